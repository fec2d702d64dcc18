"""The overview, the activity as pages and as a feed, and the uses of one memory."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import asyncpg
import pytest

from folklore.contract.memories import ForgetRequest
from folklore.contract.review import (
    Activity,
    ActivityRequest,
    Attention,
    AuthorChanges,
    DayCounts,
    OverviewRequest,
    UsesRequest,
)
from folklore.db.database import Database
from folklore.db.stores.events.injections import AssistantSession, Injections, Note
from folklore.db.stores.events.usage import UsageEntry, UsageStore
from folklore.errors import InvalidInput, NotFound
from folklore.memory.context.usage import query_digest
from folklore.memory.records import activity
from folklore.model import Draft, Relation
from folklore.new_ids import new_id
from tests.memory.auth.test_isolation import holder
from tests.person import NOON, Person

OLD = "The staging database password rotates every 30 days on Monday."
NEW = "The staging database password rotates every 90 days on Monday."


async def recalled(
    person: Person,
    ids: Sequence[UUID],
    *,
    at: datetime = NOON,
    by: str = "tester",
    answer: UUID | None = None,
) -> UUID:
    """Record an answer with these memories."""
    found = answer or new_id()
    entries = [
        UsageEntry(
            "notes",
            id_,
            at,
            by,
            answer=found,
            rank=rank,
            score=0.5,
            query=query_digest("?"),
            session="s",
        )
        for rank, id_ in enumerate(ids, start=1)
    ]
    assert await UsageStore(person.library.root.database).record(entries) == []
    return found


def shown(read: Activity) -> list[tuple[str, str]]:
    return [(event.action, event.memories[0].content) for event in read.events]


def named(name: str, person: Person) -> Person:
    return replace(person, name=name)


# The overview


async def test_the_overview_counts_by_day_in_the_callers_time_zone(
    person: Person,
) -> None:
    late = datetime(2026, 5, 3, 20, 0, tzinfo=UTC)  # in Tokyo already the fourth
    [one] = await person.at(late).keep("a red apple")
    await person.at(NOON - timedelta(days=2)).keep("a green pear", "a blue plum")
    await recalled(person, [one], at=late)

    here = await person.call(OverviewRequest(days=3))
    tokyo = await replace(person, zone=ZoneInfo("Asia/Tokyo")).call(
        OverviewRequest(days=3)
    )

    assert here.days == (
        DayCounts(date(2026, 5, 2), 2, 0),
        DayCounts(date(2026, 5, 3), 1, 1),
        DayCounts(date(2026, 5, 4), 0, 0),
    )
    assert [(item.stored, item.recalled) for item in tokyo.days] == [
        (2, 0),
        (0, 0),
        (1, 1),
    ]


async def test_days_are_whole_where_the_clock_is_put_forward(person: Person) -> None:
    berlin = replace(
        person,
        zone=ZoneInfo("Europe/Berlin"),
        now=datetime(2026, 3, 30, 12, tzinfo=UTC),
    )
    # 00:30 on the 29th
    await berlin.at(datetime(2026, 3, 28, 23, 30, tzinfo=UTC)).keep("a red apple")
    # 23:30 on the 29th
    await berlin.at(datetime(2026, 3, 29, 21, 30, tzinfo=UTC)).keep("a green pear")

    days = (await berlin.call(OverviewRequest(days=3))).days

    assert [(item.day.day, item.stored) for item in days] == [(28, 0), (29, 2), (30, 0)]


async def test_the_overview_counts_the_changes_of_a_week_by_author(
    person: Person,
) -> None:
    [first] = await person.at(NOON - timedelta(days=8)).keep("a red apple")
    bea = named("bea", person)
    await bea.keep("a green pear", "a blue plum")
    await bea.update(first, tags=["fruit"])
    await person.at(NOON - timedelta(days=6)).keep("a white grape")

    found = await person.call(OverviewRequest(days=2))

    assert found.changes == (
        AuthorChanges("bea", "store", 2),
        AuthorChanges("tester", "store", 1),
        AuthorChanges("bea", "update", 1),
    )
    assert [item.stored for item in found.days] == [0, 2]


async def test_the_overview_names_what_wants_attention(
    person: Person, database: Database, connection: asyncpg.Connection
) -> None:
    old, new = await person.keep(OLD, NEW)
    one, other = await person.keep("the gate opens at six", "a ferry leaves at noon")
    await person.relate(Relation(one, "contradicts", other))
    await person.keep(Draft("the makefile has a target for it", paths=("Makefile",)))
    await person.keep("a quiet text", namespace="quiet")
    [unused] = await person.keep("nothing of this kind was ever asked")
    ago = NOON - timedelta(days=200)
    await connection.execute(
        "update memories set created_at = $2, updated_at = $2 where id = $1",
        unused,
        ago,
    )
    await connection.execute("delete from embeddings where memory_id = $1", other)

    found = await person.call(OverviewRequest())

    assert found.attention == (
        Attention(
            "notes", contradictions=1, unused=1, similar=1, tied=1, pending_embeddings=1
        ),
    )
    await person.relate(
        Relation(one, "distinct_from", other), Relation(new, "distinct_from", old)
    )
    await person.forget(unused)
    [after] = (await person.call(OverviewRequest())).attention
    assert (after.contradictions, after.unused, after.similar) == (0, 0, 0)
    assert (await person.call(OverviewRequest(namespaces=("quiet",)))).attention == ()


async def test_failed_jobs_are_shown_to_the_owner_alone(
    person: Person, connection: asyncpg.Connection
) -> None:
    await person.keep("a red apple")
    await connection.execute(
        "insert into jobs (name, outcome) values ('expiry', 'failed'), ('quality', 'done')"
    )
    alice = await holder(person, "alice", "notes:reader")

    assert (await person.call(OverviewRequest())).failed_jobs == ("expiry",)
    assert (await alice.call(OverviewRequest())).failed_jobs == ()


async def test_a_token_sees_the_numbers_of_its_namespaces_alone(person: Person) -> None:
    [mine] = await person.keep("a red apple")
    [_, theirs] = await person.keep(OLD, NEW, namespace="payroll")
    await recalled(person, [mine])
    alice = await holder(person, "alice", "notes:reader")

    found = await alice.call(OverviewRequest(days=1))

    assert [(item.stored, item.recalled) for item in found.days] == [(1, 1)]
    assert found.changes == (AuthorChanges("tester", "store", 1),)
    assert [item.namespace for item in found.attention] == []
    assert [
        item.namespace for item in (await person.call(OverviewRequest())).attention
    ] == ["payroll"]
    assert [
        event.namespace for event in (await alice.call(ActivityRequest())).events
    ] == ["notes", "notes"]
    with pytest.raises(NotFound):
        await alice.call(OverviewRequest(namespaces=("payroll",)))
    with pytest.raises(NotFound):
        await alice.call(ActivityRequest(namespaces=("payroll",)))
    with pytest.raises(NotFound):
        await alice.call(UsesRequest(id=theirs))


async def test_the_overview_takes_five_statements_however_many_namespaces(
    person: Person, queries: list[str]
) -> None:
    for place in range(5):
        await person.keep(f"text {place}", namespace=f"place/{place}")
    await person.call(OverviewRequest())
    queries.clear()

    await person.call(OverviewRequest())

    statements = [
        query for query in queries if query.lstrip().startswith(("select", "with"))
    ]
    assert len(statements) <= 6


async def test_the_days_are_bounded(person: Person) -> None:
    with pytest.raises(InvalidInput, match="between 1 and 365, got 0"):
        await person.call(OverviewRequest(days=0))


# The activity


async def test_writes_and_recalls_are_read_together_newest_first(
    person: Person,
) -> None:
    apple, pear = await person.at(NOON - timedelta(hours=3)).keep(
        "a red apple", "a green pear"
    )
    await recalled(person, [pear, apple], at=NOON - timedelta(hours=2), by="bea")
    await named("cleo", person).at(NOON - timedelta(hours=1)).forget(apple)

    read = await person.call(ActivityRequest())

    assert [
        (event.action, event.author, event.amount, event.namespace)
        for event in read.events
    ] == [
        ("forget", "cleo", 1, "notes"),
        ("recall", "bea", 2, "notes"),
        ("store", "tester", 2, "notes"),
    ]
    assert [memory.id for memory in read.events[1].memories] == [pear, apple]
    assert (read.more, read.events[0].at) == (False, NOON - timedelta(hours=1))


async def test_recalls_of_one_author_are_read_for_a_month(person: Person) -> None:
    [apple] = await person.at(NOON - timedelta(days=99)).keep("a red apple")
    await recalled(person, [apple], at=NOON - timedelta(days=31))
    recent = await recalled(person, [apple], at=NOON - timedelta(days=29))

    everyone = await person.call(ActivityRequest())
    one = await person.call(ActivityRequest(author="tester"))

    assert [event.action for event in everyone.events] == ["recall", "recall", "store"]
    assert [event.action for event in one.events] == ["recall", "store"]
    assert one.events[0].id == recent


async def test_pages_give_each_event_once_also_those_of_one_moment(
    person: Person,
) -> None:
    ids = [await person.keep(f"text {place}") for place in range(4)]
    more = [
        await person.keep(f"text {place}", namespace="others") for place in range(3)
    ]
    for [id_] in ids[:2]:
        await recalled(person, [id_])

    for limit in (1, 2, 3):
        seen = []
        before = None
        pages = 0
        while True:
            read = await person.call(ActivityRequest(limit=limit, before=before))
            seen += [(event.id, event.namespace) for event in read.events]
            pages += 1
            if not read.more:
                break
            before = read.before
        assert len(seen) == len(set(seen)) == len(ids) + len(more) + 2
        assert pages == -(-len(seen) // limit)


async def test_a_feed_gives_an_event_that_was_committed_after_later_ones(
    person: Person,
) -> None:
    """A slow store bears the time of its request."""
    [apple] = await person.keep("a red apple")
    start = await person.call(ActivityRequest())
    await person.at(NOON + timedelta(seconds=9)).keep("quick")
    first = await person.at(NOON + timedelta(seconds=10)).call(
        ActivityRequest(after=start.after)
    )
    await person.at(NOON + timedelta(seconds=5)).keep("slow")
    await recalled(person, [apple], at=NOON - timedelta(seconds=30))

    second = await person.at(NOON + timedelta(minutes=9)).call(
        ActivityRequest(after=first.after)
    )
    third = await person.at(NOON + timedelta(minutes=30)).call(
        ActivityRequest(after=second.after)
    )

    assert shown(first) == [("store", "quick")]
    assert shown(second) == [("recall", "a red apple"), ("store", "slow")]
    assert shown(third) == []


async def test_a_feed_that_begins_after_a_full_page_leaves_older_events_to_the_pages(
    person: Person,
) -> None:
    for place in range(4):
        await person.at(NOON - timedelta(seconds=10 - place)).keep(f"text {place}")
    start = await person.call(ActivityRequest(limit=2))

    fed = await person.call(ActivityRequest(after=start.after))
    page = await person.call(ActivityRequest(before=start.before))

    assert shown(start) == [("store", "text 3"), ("store", "text 2")]
    assert shown(fed) == []
    assert shown(page) == [("store", "text 1"), ("store", "text 0")]


async def test_a_feed_that_was_away_gives_everything_in_parts(person: Person) -> None:
    await person.keep("a red apple")
    cursor = (await person.call(ActivityRequest())).after
    for place in range(5):
        await person.at(NOON + timedelta(minutes=place + 1)).keep(f"text {place}")
    later = person.at(NOON + timedelta(days=2))
    seen = []
    parts = 0
    while True:
        read = await later.call(ActivityRequest(after=cursor, limit=2))
        seen += shown(read)
        cursor = read.after
        parts = parts + 1
        if not read.more:
            break

    assert seen == [("store", f"text {place}") for place in range(5)]
    assert parts == 3
    assert shown(await later.call(ActivityRequest(after=cursor))) == []


async def test_a_cursor_remembers_a_bounded_number_of_events(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity, "_REMEMBERED", 3)
    cursor = (await person.call(ActivityRequest())).after
    seen = []
    for place in range(8):
        now = person.at(NOON + timedelta(seconds=place))
        await now.keep(f"text {place}")
        read = await now.call(ActivityRequest(after=cursor))
        seen += shown(read)
        cursor = read.after

    assert seen == [("store", f"text {place}") for place in range(8)]
    assert cursor is not None
    assert len(cursor) < 120


async def test_a_cursor_belongs_to_its_question(person: Person) -> None:
    await person.keep("a red apple")
    read = await person.call(ActivityRequest())

    for asked in (
        {"after": read.after, "author": "bea"}, {"before": read.before, "actions": ("store",)}, {"after": "x"},
        {"before": "eyJ9"}, {"after": read.before}, {"before": read.after},
        {"after": read.after, "before": read.before}, {"limit": 201},
    ):  # fmt: skip
        with pytest.raises(InvalidInput):
            await person.call(ActivityRequest(**asked))


async def test_a_reader_sees_no_event_of_forgotten_and_erased_memories(
    person: Person,
) -> None:
    apple, pear = await person.keep("a red apple", "a green pear")
    [plum] = await person.keep("a blue plum")
    await recalled(person, [apple])
    await person.forget(apple)
    await person.call(ForgetRequest(ids=(plum,), erase=True))
    alice = await holder(person, "alice", "notes:reader")

    assert [(event.action, event.amount, [memory.id for memory in event.memories])
            for event in (await alice.call(ActivityRequest())).events] == [("store", 2, [pear])]  # fmt: skip
    assert sorted(shown(await person.call(ActivityRequest()))) == [
        ("forget", "a red apple"),
        ("recall", "a red apple"),
        ("store", "a red apple"),
    ]


# The uses of a memory


async def injected(person: Person, id_: UUID, caller: str, at: datetime) -> UUID:
    """Record that a hook injected a memory into a session of a caller."""
    [namespace] = await person.library.find_namespaces(["notes"])
    given = new_id()
    ledger = Injections(person.library.root.database)
    session = AssistantSession(caller, f"session of {caller}")
    note = Note(namespace.id, id_, 0, "a note", 5)
    assert await ledger.claim(given, session, "UserPromptSubmit", at, "heading", [note])
    return given


async def test_the_uses_of_a_memory_are_read_newest_first(person: Person) -> None:
    apple, pear = await person.keep("a red apple", "a green pear")
    answer = await recalled(
        person, [pear, apple], at=NOON - timedelta(hours=2), by="bea"
    )
    await recalled(person, [pear], at=NOON)
    given = await injected(person, apple, "tester", NOON - timedelta(hours=1))

    uses = await person.call(UsesRequest(id=apple))

    assert [
        (use.id, use.kind, use.author, use.rank, use.score, use.session, use.used)
        for use in uses
    ] == [
        (given, "injection", "tester", 1, None, "session of tester", None),
        (answer, "recall", "bea", 2, 0.5, "s", None),
    ]
    assert [use.id for use in await person.call(UsesRequest(id=apple, limit=1))] == [
        given
    ]


async def test_injections_of_others_are_for_the_owner(person: Person) -> None:
    [apple] = await person.keep("a red apple")
    alice = await holder(person, "alice", "notes:reader")
    mine = await injected(person, apple, "alice", NOON)
    theirs = await injected(person, apple, "bea", NOON - timedelta(hours=1))

    assert [use.id for use in await alice.call(UsesRequest(id=apple))] == [mine]
    assert [use.id for use in await person.call(UsesRequest(id=apple))] == [
        mine,
        theirs,
    ]


async def test_the_uses_of_a_memory_that_the_caller_may_not_read_are_those_of_none(
    person: Person,
) -> None:
    [apple] = await person.keep("a red apple")
    await person.forget(apple)
    alice = await holder(person, "alice", "notes:reader")

    with pytest.raises(NotFound) as hidden:
        await alice.call(UsesRequest(id=apple))
    with pytest.raises(NotFound) as missing:
        await alice.call(UsesRequest(id=UUID(int=7)))

    assert hidden.value.message.replace(
        str(apple), ""
    ) == missing.value.message.replace(str(UUID(int=7)), "")
    assert await person.call(UsesRequest(id=apple)) == ()
