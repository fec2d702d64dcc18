"""Times as lines of an export say them, or of another system."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AwareDatetime, BeforeValidator


def _time(value: object) -> object:
    # pydantic would take "2024" for seconds since 1970; numbers that are numbers may be such seconds.
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError("is not an ISO 8601 time") from None
    if isinstance(value, datetime) and value.tzinfo is not None:
        try:
            value.astimezone(UTC)
        except OverflowError:  # Postgres would take it, and nothing that reads it back could
            raise ValueError("is out of range") from None
    return value


# One without an offset is in the zone of whoever imports it.
Time = Annotated[datetime, BeforeValidator(_time)]
ZonedTime = Annotated[AwareDatetime, BeforeValidator(_time)]
