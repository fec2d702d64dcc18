"""Times as people read them: date and time, or the distance from now."""

from datetime import datetime, tzinfo

from folklore.text.amounts import amount
from folklore.text.dates.zones import in_zone

_MINUTE = 60  # seconds
_HOUR = 3_600
_YEAR = 365  # days


def absolute_time(moment: datetime, zone: tzinfo) -> str:
    """Return date and time in a zone, to the minute."""
    return in_zone(moment, zone).isoformat(" ", "minutes")[:16]


def distance(moment: datetime, now: datetime) -> str | None:
    """Return the distance from now in the largest unit that fits, in days of the calendar; None beyond a year."""
    seconds = abs((now - moment).total_seconds())
    days = abs((now.astimezone(moment.tzinfo).date() - moment.date()).days)
    if days > _YEAR:
        return None
    if seconds < _MINUTE:
        return "just now"
    if seconds < _HOUR:
        count = int(seconds // _MINUTE)
        unit = "minute"
    elif days == 0 or seconds < 12 * _HOUR:
        count = int(seconds // _HOUR)
        unit = "hour"
    elif days == 1:
        return "tomorrow" if moment > now else "yesterday"
    elif days <= 30:
        count = days
        unit = "day"
    else:
        count = round(days / (_YEAR / 12))
        unit = "month"
    text = amount(count, unit)
    if moment > now:
        return f"in {text}"
    return f"{text} ago"
