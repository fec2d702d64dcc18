"""Filters of a request, checked and resolved to times and normalised values."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from folklore.errors import InvalidInput
from folklore.lazy import Lazy
from folklore.memory.context import RequestContext
from folklore.memory.metadata_filter import metadata_predicate
from folklore.memory.requests import FiltersRequest
from folklore.model import FIELDS, Filters
from folklore.text import tags as tag_rules
from folklore.text.clean import clean
from folklore.text.dates.zones import with_zone, zone_named
from folklore.text.paths import plain_path

if TYPE_CHECKING:
    from folklore.text.dates import expressions
else:
    expressions = Lazy("folklore.text.dates.expressions")

MAX_VALUES = 64
_EQUAL = [name for name, field in FIELDS.items() if field.filter]


def resolve_filters(request: FiltersRequest, context: RequestContext) -> Filters:
    """Return the filters of a request. Raises InvalidInput that names the filter; no filter is ever ignored."""
    for name in ("kinds", "tags", "exclude_tags", "paths"):
        if len(getattr(request, name)) > MAX_VALUES:
            raise InvalidInput(f"filters.{name}", f"takes at most {MAX_VALUES} values.")
    zone = context.zone if request.time_zone is None else zone_named(request.time_zone, "filters.time_zone")
    since, until = _times(request, context.now, zone)
    equal = {name: value for name in _EQUAL if (value := getattr(request, name)) is not None}
    return Filters(
        kinds=tuple(dict.fromkeys(tag_rules.kind_of(kind, "filters.kinds") for kind in request.kinds)),
        tags=tag_rules.normalise(request.tags, field="filters.tags"),
        tag_mode=request.tag_mode,
        tag_match=request.tag_match,
        exclude_tags=tag_rules.normalise(request.exclude_tags, field="filters.exclude_tags"),
        source_prefix=_text(request.source_prefix, "source_prefix"),
        author=_text(request.author, "author"),
        paths=tuple(_path(path, place) for place, path in enumerate(request.paths, start=1)),
        metadata=metadata_predicate(request.metadata),
        since=since,
        until=until,
        as_of=with_zone(request.as_of, zone, "filters.as_of"),
        include_superseded=request.include_superseded,
        faded=request.faded,
        equal={name: _text(value, name) if isinstance(value, str) else value for name, value in equal.items()},
        time_expression=None if request.time is None else f"{request.time} {request.since} {request.until} {zone}",
    )


def _times(request: FiltersRequest, now: datetime, zone: tzinfo) -> tuple[datetime | None, datetime | None]:
    since, until = with_zone(request.since, zone, "filters.since"), with_zone(request.until, zone, "filters.until")
    if request.time is not None:
        try:
            named = expressions.parse_time(request.time, now=now, zone=zone)
        except InvalidInput as error:
            raise InvalidInput("filters.time", error.message.removeprefix("time: "), hint=error.hint) from None
        since = max(filter(None, (since, named.since)), default=None)
        until = min(filter(None, (until, named.until)), default=None)
    if since is not None and until is not None and since > until:
        raise InvalidInput("filters.until", "is before since, so nothing can match.", hint="Swap them.")
    return since, until


def _text(value: str | None, name: str) -> str | None:
    """Clean a text. None is no filter; an empty text is an error: a shell variable may be unset."""
    if value is None:
        return None
    cleaned = clean(value).text
    if not cleaned.strip():
        raise InvalidInput(f"filters.{name}", "is empty.", hint="Leave it out, or give a value.")
    return cleaned


def _path(value: str, place: int) -> str:
    cleaned = clean(value).text
    if not cleaned.strip().rstrip("/"):
        raise InvalidInput("filters.paths", f"path {place} is empty.", hint="Leave it out, or name a file or folder.")
    return plain_path(cleaned)
