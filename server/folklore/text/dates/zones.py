"""Time zones by their names, such as Europe/Vienna, and times in them."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from folklore.errors import InvalidInput

# No name is as long; looking for a path of thousands of folders would end in an error of another kind.
_LONGEST = 100
HINT = "Use a name such as Europe/Vienna or UTC."


def zone_named(name: str, field: str) -> ZoneInfo:
    """Return the time zone of this name. Raises InvalidInput that names the field."""
    try:
        return ZoneInfo(name[:_LONGEST])
    except (
        ZoneInfoNotFoundError,
        ValueError,
        OSError,
    ):  # a path, a folder, an overlong name
        raise InvalidInput(
            field, f"{name[:60]!r} is not a time zone.", hint=HINT
        ) from None


def with_zone(
    value: datetime | None, zone: tzinfo, field: str = "time"
) -> datetime | None:
    """Put a time without an offset in the caller's zone. Raises InvalidInput for one outside the years 1 to 9999."""
    if value is None:
        return None
    aware = value.replace(tzinfo=zone) if value.tzinfo is None else value
    try:
        aware.astimezone(
            UTC
        )  # Postgres would store it, but Python could not read it back
    except OverflowError as error:
        raise InvalidInput(field, "must be in the years 1 to 9999.") from error
    return aware
