"""Time zones by their names, such as Europe/Vienna, and times in them."""

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from folklore.errors import InvalidInput

# No name is as long; looking for a path of thousands of folders would end in an error of another kind.
_LONGEST = 100
HINT = "Use a name such as Europe/Vienna or UTC."
# Every time between these is in the years 1 to 9999 in every zone.
_EARLIEST = datetime.min.replace(tzinfo=UTC) + timedelta(days=1)
_LATEST = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)
UNSHOWABLE = "must be from 0001-01-02 to 9999-12-30 (UTC): others cannot be shown in every time zone"


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
    """Put a time without an offset in the caller's zone. Raises InvalidInput for one that not every zone can show."""
    if value is None:
        return None
    aware = value.replace(tzinfo=zone) if value.tzinfo is None else value
    if not is_showable(aware):
        hint = "Leave the field out if there is no such time."
        raise InvalidInput(field, f"{UNSHOWABLE}.", hint=hint)
    return aware


def is_showable(aware: datetime) -> bool:
    """Return True for a time that is in the years 1 to 9999 in every time zone."""
    try:
        return _EARLIEST <= aware <= _LATEST
    except OverflowError:
        return False


def in_zone(moment: datetime, zone: tzinfo) -> datetime:
    """Return a time as it is in a zone; in UTC if it is too near to the ends of the calendar for the zone."""
    try:
        return moment.astimezone(zone)
    except (OverflowError, ValueError):  # of the local zone
        return moment.astimezone(UTC)
