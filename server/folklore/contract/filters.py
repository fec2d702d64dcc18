"""Conditions on the memories of an answer."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BeforeValidator, Field, JsonValue, WithJsonSchema

from folklore.contract.argument_types import Words
from folklore.contract.requests import Part, with_fields
from folklore.model import FIELDS, TagMatch, TagMode

# In place of names: every namespace that the caller may read.
ALL = "*"


def _moment(value: object) -> object:
    """Return a time, or a text that is read with the clock and the zone of the request."""
    if isinstance(value, str | datetime):
        return value
    raise ValueError(
        "must be an ISO 8601 time such as 2025-06-30, or words such as yesterday"
    )


# A time of a filter: a day is the whole day.
Moment = Annotated[
    datetime | str, BeforeValidator(_moment), WithJsonSchema({"type": "string"})
]


@with_fields(name for name, field in FIELDS.items() if field.filter)
class FiltersRequest(Part):
    """Conditions on the memories of an answer. Times without an offset are in the caller's time zone."""

    kinds: Words = ()
    tags: Words = ()
    tag_mode: TagMode = "any"
    tag_match: TagMatch = "prefix"
    exclude_tags: Words = ()
    source_prefix: str | None = None
    author: str | None = None
    paths: Words = ()
    metadata: dict[str, JsonValue] = Field(
        {}, description='by path: {"team": "x", "ticket.id": {"in": [1, 2]}}'
    )
    time: Annotated[
        str | None,
        Field(description="last week, March 2025, 2025-03-01..2025-03-09"),
    ] = None
    since: Moment | None = None
    until: Moment | None = None
    as_of: Moment | None = None
    include_superseded: bool = False
    faded: bool = False
    time_zone: Annotated[str | None, Field(description="default: yours")] = None
