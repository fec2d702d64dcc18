"""The people of a text: its author, and who changed it last."""

from datetime import datetime, tzinfo

from folklore.text.dates.zones import in_zone


def byline(
    author: str, changed_by: str | None, changed_at: datetime | None, zone: tzinfo
) -> str:
    """Return the author of a text, and with the day who changed it last: "alice, changed by bob 2026-11-28"."""
    if changed_by is None:
        return author
    if changed_at is None:
        return f"{author}, changed by {changed_by}"
    day = in_zone(changed_at, zone).date()
    return f"{author}, changed by {changed_by} {day}"
