"""Time zones by their names, such as Europe/Vienna."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from folklore.errors import InvalidInput

HINT = "Use a name such as Europe/Vienna or UTC."


def zone_named(name: str, field: str) -> ZoneInfo:
    """Return the time zone of this name. Raises InvalidInput that names the field."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a path, a folder, an overlong name
        raise InvalidInput(field, f"{name[:60]!r} is not a time zone.", hint=HINT) from None
