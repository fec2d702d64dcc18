"""Times on the command line: for people as a distance from now, for programs as ISO 8601."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from folklore.text.dates.distance import distance
from folklore.text.dates.zones import in_zone
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`

VIENNA = ZoneInfo("Europe/Vienna")
NOON = datetime(2026, 5, 4, 12, 0, tzinfo=VIENNA)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        ("2026-05-04T11:59:30+02:00", "just now"),
        ("2026-05-04T12:00:30+02:00", "just now"),
        ("2026-05-04T11:59:00+02:00", "1 minute ago"),
        ("2026-05-04T11:01:00+02:00", "59 minutes ago"),
        ("2026-05-04T11:00:00+02:00", "1 hour ago"),
        ("2026-05-03T23:00:00+00:00", "11 hours ago"),  # 1:00 on the same day in Vienna
        ("2026-05-04T00:30:00+02:00", "11 hours ago"),
        ("2026-05-03T23:30:00+02:00", "yesterday"),
        ("2026-05-03T00:30:00+02:00", "yesterday"),
        ("2026-05-01T23:30:00+02:00", "3 days ago"),
        ("2026-05-01T22:30:00+00:00", "2 days ago"),  # after midnight in Vienna
        ("2026-04-04T12:00:00+02:00", "30 days ago"),
        ("2026-04-03T12:00:00+02:00", "1 month ago"),
        ("2025-11-04T12:00:00+01:00", "6 months ago"),
        ("2025-05-04T13:00:00+02:00", "12 months ago"),
        ("2025-05-03T13:00:00+02:00", None),
        ("2026-05-04T13:30:00+02:00", "in 1 hour"),
        ("2026-05-05T12:30:00+02:00", "tomorrow"),
        ("2026-05-24T12:30:00+02:00", "in 20 days"),
        ("2100-01-01T00:00:00+00:00", None),
    ],
)
def test_a_time_is_shown_as_its_distance_in_days_of_the_local_calendar(
    moment: str, text: str | None
) -> None:
    assert distance(in_zone(datetime.fromisoformat(moment), VIENNA), NOON) == text


async def test_people_read_distances_programs_iso_times_and_utc_is_an_option(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLKLORE_TIME_ZONE", "Asia/Tokyo")
    id_ = await folklore.keep(
        "The gate is open.", "--occurred-at", "2020-01-02T03:04:05+00:00"
    )

    (memory,) = (await folklore.json("show", id_))["memories"]
    created = datetime.fromisoformat(memory["created_at"])
    shown = await folklore.done("show", id_)
    in_utc = await folklore.done("show", id_, "--utc")

    assert "2020-01-02 12:04" in await folklore.done("list")
    assert "2020-01-02 03:04" in await folklore.done("list", "--utc")
    assert (
        f"{created.astimezone(ZoneInfo('Asia/Tokyo')):%Y-%m-%d %H:%M} (just now)"
        in shown
    )
    assert f"{created.astimezone(ZoneInfo('UTC')):%Y-%m-%d %H:%M}\n" in in_utc
    assert "just now" not in in_utc
    assert "just now" in await folklore.done("stats")
    newest = (await folklore.json("stats"))["namespaces"][0]["newest"]
    assert datetime.fromisoformat(newest).utcoffset() is not None
