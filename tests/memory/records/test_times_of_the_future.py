"""Times at the ends of the calendar and in the future: refused, shown, and no advantage in any order."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import asyncpg
import pytest
from mcp import Client

from folklore.contract.filters import FiltersRequest
from folklore.contract.hooks import HookRequest
from folklore.contract.memories import ListRequest
from folklore.errors import InvalidInput
from folklore.model import Draft, Filters
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.memory.auth.test_isolation import holder
from tests.memory.transfer.test_transfer import Mover, new_mover  # noqa: F401 - the fixture `mover`
from tests.person import NOON, Person, contents
from tests.team import Team

NEVER = "9999-12-31T23:59:59Z"
NONE = "0001-01-01T00:00:00Z"
FAR = datetime(2999, 1, 1, tzinfo=UTC)
ENDS = [
    NEVER,
    NONE,
    "9999-12-31",
    "0001-01-01T23:59:59+00:00",
    "9999-12-31T00:00:00-12:00",
]
ZONES = ["Asia/Tokyo", "America/New_York", "UTC"]


@pytest.mark.parametrize("field", ["occurred_at", "expires_at"])
@pytest.mark.parametrize("time", ENDS)
async def test_a_time_that_not_every_zone_can_show_is_refused_by_its_field(
    client: Client, field: str, time: str
) -> None:
    stored = await client.call_tool(
        "memory_store",
        {"memories": [{"content": "A fact."}, {"content": "Of never.", field: time}]},
    )
    assert stored.structured_content is not None
    [item], [refused] = (
        stored.structured_content[name] for name in ("stored", "refused")
    )
    updated = await client.call_tool("memory_update", {"id": item["id"], field: time})

    assert (refused["index"], refused["field"]) == (1, field)
    assert "must be from 0001-01-02 to 9999-12-30" in refused["reason"]
    assert updated.content[0].text.startswith(f"{field}: must be from 0001-01-02")  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["since", "until", "as_of"])
@pytest.mark.parametrize("time", ENDS)
async def test_filters_refuse_it_too(person: Person, name: str, time: str) -> None:
    with pytest.raises(
        InvalidInput, match=rf"filters\.{name}: .*from 0001-01-02 to 9999-12-30"
    ):
        await person.list_memories(filters=FiltersRequest(**{name: time}))


@pytest.mark.parametrize(
    "field", ["occurred_at", "expires_at", "created_at", "updated_at", "forgotten_at"]
)
async def test_an_import_names_the_field_and_goes_on(mover: Mover, field: str) -> None:
    lines = [{"content": "A fact.", field: time} for time in ENDS]

    report = await mover.put([*lines, {"content": "Another fact."}])

    assert len(report.failures) == len(ENDS)
    assert {failure.message.partition(":")[0] for failure in report.failures} == {field}
    assert [line["content"] for line in await mover.memories()] == ["Another fact."]


async def at_the_ends(connection: asyncpg.Connection, *ids: UUID) -> None:
    """Give stored memories times at the ends of the calendar, as a former version took them."""
    for id_, end in zip(ids, (NEVER, NONE), strict=True):
        await connection.execute(
            "update memories set occurred_at = $2::text::timestamptz, changed_at = $2::text::timestamptz,"
            " changed_by = 'x', importance = 0 where id = $1",
            id_,
            end,
        )
    await connection.execute(
        "update memories set expires_at = $2::text::timestamptz where id = $1",
        ids[0],
        NEVER,
    )


@pytest.mark.parametrize("zone", ZONES)
async def test_rows_with_such_times_cost_no_hook_and_no_answer(
    person: Person, connection: asyncpg.Connection, zone: str
) -> None:
    ids = await person.keep("The quay is closed.", "The quay is open.")
    await at_the_ends(connection, *ids)
    here = replace(person, zone=ZoneInfo(zone), project="notes")

    start = await here.call(HookRequest(event="SessionStart", session="s"))
    prompt = await here.call(HookRequest(prompt="Is the quay open?", session="t"))
    found = await here.recall("Is the quay open?")
    orders = [
        await here.list_memories(sort=order)
        for order in ("time_asc", "time_desc", "updated_desc", "score")
    ]

    assert "The quay is closed." in start.text
    assert "The quay is open." in prompt.text
    assert [len(answer.memories) for answer in (found, *orders)] == [2] * 5


@pytest.mark.parametrize("zone", ZONES)
async def test_rows_with_such_times_cost_no_page(
    team: Team, connection: asyncpg.Connection, zone: str
) -> None:
    ids = await team.keep(
        "The quay is closed.", "The quay is open.", namespace="harbour"
    )
    await at_the_ends(connection, *ids)

    async with team.visitor("ann", "harbour:writer") as ann:
        ann.http.cookies.set("folklore_zone", zone)
        pages = [
            await ann.get("/"),
            await ann.get("/search", q="quay"),
            await ann.get("/search", q=""),
            await ann.get("/timeline"),
            await ann.get("/projects/harbour"),
            await ann.get("/review"),
            *[await ann.get(f"/memories/{id_}") for id_ in ids],
            *[await ann.get(f"/memories/{id_}/edit") for id_ in ids],
        ]

    assert [page.url for page in pages if page.status_code >= 500] == []


@pytest.mark.parametrize("zone", ZONES)
async def test_rows_with_such_times_cost_no_command(
    folklore: CommandLine,
    person: Person,
    connection: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    zone: str,
) -> None:
    monkeypatch.setenv("TZ", zone)
    ids = await person.keep("The quay is closed.", "The quay is open.")
    await at_the_ends(connection, *ids)

    for command in (
        ["list"], ["list", "--utc"], ["list", "--format", "detailed"], ["recall", "is the quay open"], ["review", "--json"],
        ["show", str(ids[0]), str(ids[1])], ["history", str(ids[0])], ["export"], ["list", "--json"],
    ):  # fmt: skip
        ran = await folklore(*command)
        assert ran.code == 0, (command, ran.err)


async def test_a_time_in_the_future_is_no_advantage_in_a_list(person: Person) -> None:
    await person.keep(Draft("The port is 8443.", occurred_at=FAR))
    await person.at(NOON + timedelta(days=1)).keep("The port is 9443.")

    newest = await person.list_memories()
    trending = await person.list_memories(sort="score")

    for answer in (newest, trending):
        assert contents(answer) == ["The port is 9443.", "The port is 8443."]
    assert newest.memories[1].memory.occurred_at == FAR


async def test_a_correction_is_before_a_text_of_the_future(person: Person) -> None:
    old = "The invoice service listens on port 8443 of the gateway."
    new = "The invoice service listens on port 9443 of the gateway."
    await person.keep(Draft(old, occurred_at=FAR))
    later = person.at(NOON + timedelta(days=2))
    await later.keep(new)

    answer = await later.recall("On which port does the invoice service listen?")
    by_time = await later.recall("invoice service port", sort="time_desc")

    assert contents(answer)[0] == new
    assert contents(by_time)[0] == new


async def test_what_is_planned_is_found_by_its_date_and_old_by_its_store(
    person: Person,
) -> None:
    await person.keep(
        Draft("The move to Linz.", occurred_at=datetime(2027, 3, 1, tzinfo=UTC))
    )
    later = replace(person.at(NOON + timedelta(days=3)), project="notes")

    planned = await later.list_memories(filters=FiltersRequest(time="in March 2027"))
    prompt = await later.call(
        HookRequest(prompt="When is the move to Linz?", session="s")
    )
    start = await later.call(HookRequest(event="SessionStart", session="s"))

    assert contents(planned) == ["The move to Linz."]
    assert "3 days old" in prompt.text
    assert f"{NOON:%Y-%m-%d}" in start.text
    assert "2027" not in start.text


async def test_once_changed_after_its_time_a_plan_counts_as_of_then(
    person: Person,
) -> None:
    march = datetime(2027, 3, 1, tzinfo=UTC)
    [id_] = await person.keep(Draft("The move to Linz.", occurred_at=march))
    [memory] = await person.get(id_)
    after = await person.at(march + timedelta(days=9)).update(id_, tags=["done"])

    assert (memory.order_time, after.order_time) == (NOON, march)


@pytest.mark.parametrize("member", [True, False])
async def test_an_import_states_no_past_in_the_future(
    mover: Mover, person: Person, member: bool
) -> None:
    if member:
        mover = replace(
            mover, caller=(await holder(person, "bob", "notes:writer")).caller
        )
    times = dict.fromkeys(("created_at", "updated_at"), "2999-01-01T00:00:00Z")

    report = await mover.put([{"content": "Of another clock.", **times}])

    assert report.failures == []
    [line] = await mover.memories("notes")
    assert line["created_at"] == line["updated_at"] == NOON.isoformat()


async def test_pages_of_a_list_hold_each_memory_once(person: Person) -> None:
    drafts: list[Any] = [
        Draft(f"Fact {number}.", occurred_at=NOON + timedelta(days=number - 3))
        for number in range(8)
    ]
    await person.keep(*drafts)
    await person.at(NOON + timedelta(days=1)).keep("The last one.")

    seen = list[str]()
    cursor = None
    while True:
        answer = await person.call(ListRequest(limit=3, cursor=cursor))
        seen += contents(answer)
        cursor = answer.cursor
        if cursor is None:
            break

    assert sorted(seen) == sorted(
        [*(draft.content for draft in drafts), "The last one."]
    )
    assert seen[0] == "The last one."
    assert Filters().empty
