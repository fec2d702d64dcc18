"""Compact JSON, as the tools and `--json` write it: without nulls and with no more than a reader needs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

Format = Literal["concise", "detailed", "ids"]
JsonDict = dict[str, Any]
# Marks a field that is not among the properties of a tool's schema, since every session pays for these.
NOT_LISTED = object()
# Characters by which a text is recognised.
_BEGINNING = 200


def beginning(text: str) -> str:
    """Return the beginning of a text, by which it is recognised."""
    if len(text) <= _BEGINNING:
        return text
    return text[: _BEGINNING - 1].rstrip() + "…"


def fields_of(item: object, names: str) -> JsonDict:
    return {name: plain(getattr(item, name)) for name in names.split()}


def plain(value: object) -> object:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds").replace("+00:00", "Z")
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def without_unset(**values: object) -> JsonDict:
    """Return the values that say something: no null, no False, no empty list."""
    return {
        name: value
        for name, value in values.items()
        if value is not None and value is not False and value != []
    }
