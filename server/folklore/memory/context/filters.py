"""Filters of a request, checked and resolved to times and normalised values.

Conditions on metadata become one predicate of the SQL/JSON path language, a parameter of the statements, in which
every key and value is quoted.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date, datetime, timedelta, tzinfo
from math import isfinite
from typing import TypeVar

from folklore.contract.filters import FiltersRequest
from folklore.errors import InvalidInput
from folklore.memory.context import RequestContext
from folklore.model import FIELDS, Filters
from folklore.text import tags as tag_rules
from folklore.text.clean import clean
from folklore.text.dates import expressions
from folklore.text.dates.zones import with_zone, zone_named
from folklore.text.paths import plain_path

MAX_VALUES = 64
# The resolution of times in the database.
_MOMENT = timedelta(microseconds=1)
_TIMES = "Give a day, an ISO 8601 time, or words such as yesterday or last week."
MAX_CONDITIONS = 16
MAX_PATH = 200
Value = TypeVar("Value")
_FIELD = "filters.metadata"
_FORMS = 'Write {"team": "x"}, {"ticket.id": {"in": [1, 2]}} or {"draft": {"exists": false}}.'
_EQUAL = [name for name, field in FIELDS.items() if field.filter]


def resolve_filters(request: FiltersRequest, context: RequestContext) -> Filters:
    """Return the filters of a request. Raises InvalidInput that names the filter; no filter is ever ignored."""
    for name in ("kinds", "tags", "exclude_tags", "paths"):
        if len(getattr(request, name)) > MAX_VALUES:
            raise InvalidInput(f"filters.{name}", f"takes at most {MAX_VALUES} values.")
    if request.time_zone is None:
        zone = context.zone
    else:
        zone = zone_named(request.time_zone, "filters.time_zone")
    since, until = _times(request, context.now, zone)
    return Filters(
        kinds=tuple(
            dict.fromkeys(
                tag_rules.kind_of(kind, "filters.kinds") for kind in request.kinds
            )
        ),
        tags=tag_rules.normalise(request.tags, field="filters.tags"),
        tag_mode=request.tag_mode,
        tag_match=request.tag_match,
        exclude_tags=tag_rules.normalise(
            request.exclude_tags, field="filters.exclude_tags"
        ),
        source_prefix=_text(request.source_prefix, "source_prefix"),
        author=_text(request.author, "author"),
        paths=tuple(
            _path(path, number) for number, path in enumerate(request.paths, start=1)
        ),
        metadata=metadata_predicate(request.metadata),
        since=since,
        until=until,
        as_of=_as_of(request.as_of, context.now, zone),
        include_superseded=request.include_superseded,
        faded=request.faded,
        equal={
            name: _text(value, name)
            for name in _EQUAL
            if (value := getattr(request, name)) is not None
        },
        time_expression=_expression(request, zone),
    )


def _expression(request: FiltersRequest, zone: tzinfo) -> str | None:
    """Return the times of a request as they were written, if what they mean moves on with the clock."""
    times = (request.since, request.until, request.as_of)
    moves = [each for each in times if isinstance(each, str) and _iso(each) is None]
    if request.time is None and not moves:
        return None
    return f"{request.time} {request.since} {request.until} {request.as_of} {zone}"


def _iso(text: str) -> date | datetime | None:
    """Return the day or the time that a text is in ISO 8601."""
    for read in (date.fromisoformat, datetime.fromisoformat):
        with suppress(ValueError):
            return read(text.strip())
    return None


def _period(
    name: str, value: datetime | str | None, now: datetime, zone: tzinfo
) -> expressions.TimeRange:
    """Return when a moment begins and ends: a time is a moment, a day a day, and words what they say."""
    if isinstance(value, str):
        moment = _iso(value)
        if isinstance(moment, datetime):
            value = moment
        else:
            return _parsed(name, moment.isoformat() if moment else value, now, zone)
    at = with_zone(value, zone, f"filters.{name}")
    return expressions.TimeRange(at, at)


def _parsed(name: str, text: str, now: datetime, zone: tzinfo) -> expressions.TimeRange:
    try:
        return expressions.parse_time(text, now=now, zone=zone)
    except InvalidInput as error:
        raise InvalidInput(
            f"filters.{name}", error.message.removeprefix("time: "), hint=error.hint
        ) from None


def _as_of(
    value: datetime | str | None, now: datetime, zone: tzinfo
) -> datetime | None:
    """Return the last moment of a period, so that a day is included."""
    end = _end("as_of", value, now, zone)
    if end is None or end == _period("as_of", value, now, zone).since:
        return end
    return end - _MOMENT


def _beginning(
    name: str, value: datetime | str | None, now: datetime, zone: tzinfo
) -> datetime | None:
    period = _period(name, value, now, zone)
    if value is not None and period.since is None:
        raise InvalidInput(f"filters.{name}", "says no beginning.", hint=_TIMES)
    return period.since


def _end(
    name: str, value: datetime | str | None, now: datetime, zone: tzinfo
) -> datetime | None:
    period = _period(name, value, now, zone)
    if value is not None and period.until is None:
        raise InvalidInput(f"filters.{name}", "says no end.", hint=_TIMES)
    return period.until


def _times(
    request: FiltersRequest, now: datetime, zone: tzinfo
) -> tuple[datetime | None, datetime | None]:
    since = _beginning("since", request.since, now, zone)
    until = _end("until", request.until, now, zone)
    if request.time is not None:
        period = _parsed("time", request.time, now, zone)
        since = max(filter(None, (since, period.since)), default=None)
        until = min(filter(None, (until, period.until)), default=None)
    if since is not None and until is not None and since > until:
        raise InvalidInput(
            "filters.until", "is before since, so nothing can match.", hint="Swap them."
        )
    if since is not None and since == until:
        problem = "is the same time as since, so nothing can match."
        hint = "Give a later time; a day such as 2025-06-30 is meant to its end."
        raise InvalidInput("filters.until", problem, hint=hint)
    return since, until


def _text(value: Value, name: str) -> Value | str:
    """Clean a text. An empty one is an error: a shell variable may be unset. Another value, or None, stays as it is."""
    if not isinstance(value, str):
        return value
    cleaned = clean(value).text
    if not cleaned.strip():
        raise InvalidInput(
            f"filters.{name}", "is empty.", hint="Leave it out, or give a value."
        )
    return cleaned


def _path(value: str, number: int) -> str:
    cleaned = clean(value).text
    if not cleaned.strip().rstrip("/"):
        raise InvalidInput(
            "filters.paths",
            f"path {number} is empty.",
            hint="Leave it out, or name a file or folder.",
        )
    return plain_path(cleaned)


def metadata_predicate(conditions: Mapping[str, object]) -> str | None:
    """Return the predicate that all conditions make; None without one. Raises InvalidInput.

    A condition is a value, `{"in": [values]}` or `{"exists": true}`. The path `a.b` names the key b of the object a, or
    a key "a.b". A list matches by any of its elements.
    """
    if len(conditions) > MAX_CONDITIONS:
        problem = (
            f"must hold at most {MAX_CONDITIONS} conditions, got {len(conditions)}."
        )
        raise InvalidInput(_FIELD, problem, hint="Leave the least important ones out.")
    return (
        " && ".join(
            _condition(clean(path).text, conditions[path])
            for path in sorted(conditions)
        )
        or None
    )


def _condition(path: str, condition: object) -> str:
    jsonpaths = _jsonpaths(path)
    field = f"{_FIELD}.{path[:60]}"
    match condition:
        case {"exists": bool(exists), **rest} if not rest:
            return ("" if exists else "!") + _any(
                f"exists({jsonpath})" for jsonpath in jsonpaths
            )
        case {"in": [_, *_] as values, **rest} if (
            not rest and len(values) <= MAX_VALUES
        ):
            return _any(
                f"{jsonpath} == {_value(value, field)}"
                for value in values
                for jsonpath in jsonpaths
            )
        case {"in": _, **rest} if not rest:
            raise InvalidInput(
                f"{field}.in", f"must be a list of 1 to {MAX_VALUES} values."
            )
    return _any(f"{jsonpath} == {_value(condition, field)}" for jsonpath in jsonpaths)


def _any(alternatives: Iterable[str]) -> str:
    return f"({' || '.join(alternatives)})"


def _jsonpaths(path: str) -> list[str]:
    """Return the expressions for a path: each key in the object of the key before, and the whole path as one key."""
    keys = path.split(".")
    if len(path) > MAX_PATH or not all(keys):
        hint = f"Write names of keys with dots between them, such as ticket.id, at most {MAX_PATH} characters."
        raise InvalidInput(_FIELD, f"{path[:60]!r} is not a path.", hint=hint)
    nested = "$" + "".join(f".{_quoted(key)}" for key in keys)
    if len(keys) == 1:
        return [nested]
    return [nested, f"$.{_quoted(path)}"]


def _value(value: object, field: str) -> str:
    if isinstance(value, str):
        return _quoted(clean(value).text)
    if isinstance(value, int) or (isinstance(value, float) and isfinite(value)):
        return json.dumps(value)
    raise InvalidInput(field, "must be a text, a number, true or false.", hint=_FORMS)


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
