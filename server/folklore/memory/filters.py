"""Filters as people and assistants write them, checked, for the statements to obey."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from folklore.errors import InvalidInput
from folklore.memory.validation import kind_of, zoned
from folklore.model import Filters, TagMatch, TagMode
from folklore.text import tags as tag_rules
from folklore.text.clean import clean

MAX_VALUES = 64


@dataclass(frozen=True, slots=True)
class FilterRequest:
    """What the caller asked for; None and no values are no filter, an empty text is an error.

    `since`, `until` and `as_of` carry a time zone or are in the caller's.
    """

    kinds: Sequence[str] = ()
    tags: Sequence[str] = ()
    tag_mode: TagMode = "any"
    tag_match: TagMatch = "prefix"
    exclude_tags: Sequence[str] = ()
    source_prefix: str | None = None
    session: str | None = None
    author: str | None = None
    paths: Sequence[str] = ()
    time: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    include_superseded: bool = False


def filters_of(request: FilterRequest, *, now: datetime, zone: tzinfo) -> Filters:
    """The filters in force. Raises InvalidInput that names the filter; one that is not understood is never ignored."""
    for name in ("kinds", "tags", "exclude_tags", "paths"):
        if len(getattr(request, name)) > MAX_VALUES:
            raise InvalidInput(f"filters.{name}", f"takes at most {MAX_VALUES} values.")
    since, until = _times(request, now, zone)
    return Filters(
        kinds=tuple(dict.fromkeys(kind_of(kind, "filters.kinds") for kind in request.kinds)),
        tags=tag_rules.normalise(request.tags, field="filters.tags"),
        tag_mode=request.tag_mode,
        tag_match=request.tag_match,
        exclude_tags=tag_rules.normalise(request.exclude_tags, field="filters.exclude_tags"),
        source_prefix=_text(request.source_prefix, "filters.source_prefix"),
        session=_text(request.session, "filters.session"),
        author=_text(request.author, "filters.author"),
        paths=tuple(_path(path, place) for place, path in enumerate(request.paths, start=1)),
        since=since,
        until=until,
        as_of=zoned(request.as_of, zone, "filters.as_of"),
        include_superseded=request.include_superseded,
        said=None if request.time is None else f"{request.time} {request.since} {request.until}",
    )


def _times(request: FilterRequest, now: datetime, zone: tzinfo) -> tuple[datetime | None, datetime | None]:
    since, until = zoned(request.since, zone, "filters.since"), zoned(request.until, zone, "filters.until")
    if request.time is not None:
        from folklore.text.dates.expressions import parse_time

        try:
            named = parse_time(request.time, now=now, zone=zone)
        except InvalidInput as error:
            raise InvalidInput("filters.time", error.message.removeprefix("time: "), hint=error.hint) from None
        since = max(filter(None, (since, named.since)), default=None)
        until = min(filter(None, (until, named.until)), default=None)
    if since is not None and until is not None and since > until:
        raise InvalidInput("filters.until", "lies before since, so that nothing could match.", hint="Swap them.")
    return since, until


def _text(value: str | None, field: str) -> str | None:
    """None is no filter; an empty text is more likely a variable that was not set than a wish for everything."""
    if value is None:
        return None
    cleaned = clean(value).text
    if not cleaned.strip():
        raise InvalidInput(field, "is empty.", hint="Leave it out to have all, or say which.")
    return cleaned


def _path(value: str, place: int) -> str:
    cleaned = clean(value).text.rstrip("/")
    if not cleaned.strip():
        raise InvalidInput("filters.paths", f"path {place} is empty.", hint="Leave it out, or name a file or folder.")
    return cleaned
