"""as_of: memories as they were then, by their revisions, and facts by the time at which they were true."""

from datetime import UTC, datetime, timedelta
from typing import Any

from mcp import Client

from folklore.contract.filters import FiltersRequest
from folklore.db.stores.upkeep.maintenance import Maintenance
from folklore.model import Draft, Filters
from tests.mcp.test_tools import call
from tests.memory.auth.test_isolation import holder
from tests.person import NOON, Person, contents

DAY = timedelta(days=1)


def year(number: int) -> datetime:
    return datetime(number, 1, 1, tzinfo=UTC)


async def texts(
    person: Person, query: str, as_of: datetime, **filters: Any
) -> list[str]:
    """Return the texts of a recall; a search by the same words and a list must agree as far as they go."""
    asked = FiltersRequest(as_of=as_of, **filters)
    recalled = contents(
        await person.recall(query, filters=Filters(as_of=as_of, **filters))
    )
    searched = contents(await person.search(query, filters=asked))
    listed = contents(await person.list_memories(filters=asked, limit=1_000))
    assert set(searched) <= set(listed)
    assert set(recalled) <= set(listed)
    return recalled


async def test_a_changed_text_is_found_by_its_old_words_and_shown_as_it_was(
    client: Client,
) -> None:
    stored = await call(client, "memory_store", content="The queue is RabbitMQ.")
    between = datetime.now(UTC).isoformat()
    await call(
        client,
        "memory_update",
        id=stored["stored"][0]["id"],
        content="The queue is NATS.",
    )

    then: dict[str, Any] = {"filters": {"as_of": between}}
    for tool, query in (
        ("memory_recall", "which queue do we use"), ("memory_recall", "rabbitmq"), ("search_keywords", "rabbitmq"),
        ("search_keywords", "queue AND rabbit*"), ("search_keywords", '"queue is RabbitMQ" -nats'),
    ):  # fmt: skip
        found = await call(client, tool, query=query, **then)
        assert [memory["content"] for memory in found["memories"]] == [
            "The queue is RabbitMQ."
        ], (tool, query)
    assert (await call(client, "search_keywords", query="NATS", **then))[
        "memories"
    ] == []
    listed = await call(client, "memory_list", **then)
    assert [memory["content"] for memory in listed["memories"]] == [
        "The queue is RabbitMQ."
    ]

    now = await call(client, "search_keywords", query="queue")
    assert [memory["content"] for memory in now["memories"]] == ["The queue is NATS."]
    assert (await call(client, "search_keywords", query="RabbitMQ"))["memories"] == []


async def test_of_several_changes_the_state_between_them_is_shown(
    person: Person,
) -> None:
    (id_,) = await person.keep("The port is 8001.")
    for day, port in enumerate((8002, 8003, 8004), start=1):
        await person.at(NOON + day * DAY).update(id_, content=f"The port is {port}.")
    later = person.at(NOON + 9 * DAY)

    for day in range(4):
        found = await texts(later, "which port", NOON + day * DAY + DAY / 2)
        assert found == [f"The port is {8001 + day}."]


async def test_an_undone_change_was_there_until_it_was_undone(person: Person) -> None:
    (id_,) = await person.keep("The owner is Anna.")
    await person.at(NOON + DAY).update(id_, content="The owner is Ben.")
    await person.at(NOON + 2 * DAY).undo(id_)
    later = person.at(NOON + 3 * DAY)

    assert await texts(later, "owner", NOON + DAY / 2) == ["The owner is Anna."]
    assert await texts(later, "owner", NOON + 3 * DAY / 2) == ["The owner is Ben."]
    assert await texts(later, "owner", NOON + 3 * DAY) == ["The owner is Anna."]


async def test_filters_and_answers_see_every_field_as_it_was(person: Person) -> None:
    (id_,) = await person.keep(
        Draft("harbour fees", kind="note", tags=("area:port",), session="monday")
    )
    await person.at(NOON + DAY).update(
        id_, kind="decision", tags=("area:money",), session="tuesday"
    )
    later = person.at(NOON + 2 * DAY)
    then = NOON + DAY / 2

    for filters in (
        {"kinds": ("note",)},
        {"tags": ("area:port",)},
        {"tags": ("area",), "tag_match": "prefix"},
    ):
        assert await texts(later, "harbour", then, **filters) == ["harbour fees"], (
            filters
        )
    for filters in ({"kinds": ("decision",)}, {"tags": ("area:money",)}):
        assert await texts(later, "harbour", then, **filters) == [], filters
        assert await texts(later, "harbour", NOON + 2 * DAY, **filters) == [
            "harbour fees"
        ], filters
    [result] = (await later.recall("harbour", filters=Filters(as_of=then))).memories
    assert (result.memory.kind, result.memory.tags, result.memory.session) == (
        "note",
        ("area:port",),
        "monday",
    )
    assert contents(
        await later.search("tag:port", filters=FiltersRequest(as_of=then))
    ) == ["harbour fees"]
    assert (
        contents(await later.search("tag:money", filters=FiltersRequest(as_of=then)))
        == []
    )


async def test_an_edited_memory_is_still_found_by_meaning_as_of_then_if_its_text_stayed(
    person: Person,
) -> None:
    (id_,) = await person.keep("The lorry is parked behind the warehouse.")
    await person.at(NOON + DAY).update(id_, tags=("vehicles",), importance=0.9)

    found = await person.at(NOON + 2 * DAY).recall(
        "truck", filters=Filters(as_of=NOON + DAY / 2)
    )

    assert contents(found) == ["The lorry is parked behind the warehouse."]
    assert (found.memories[0].memory.tags, found.memories[0].memory.importance) == (
        (),
        None,
    )


async def test_a_fact_is_true_until_that_which_supersedes_it(client: Client) -> None:
    old = await call(
        client,
        "memory_store",
        content="We build with Jenkins.",
        occurred_at="2020-01-01",
    )
    await call(
        client,
        "memory_store",
        content="We build with Actions.",
        occurred_at="2022-01-01",
        supersedes=old["stored"][0]["id"],
    )

    async def built(as_of: str) -> list[str]:
        found = await call(
            client,
            "memory_recall",
            query="what do we build with",
            filters={"as_of": as_of},
        )
        return [memory["content"] for memory in found["memories"]]

    assert await built("2019-06-01") == []
    assert await built("2021-06-01") == ["We build with Jenkins."]
    assert await built("2022-01-01T00:00Z") == ["We build with Actions."]
    assert await built("2023-06-01") == ["We build with Actions."]


async def test_a_change_announced_for_later_counts_from_then(person: Person) -> None:
    (old,) = await person.keep("Releases are on Friday.")
    await person.at(NOON + DAY).keep(
        Draft("Releases are on Monday.", occurred_at=NOON + 9 * DAY, supersedes=old)
    )
    later = person.at(NOON + 20 * DAY)

    assert await texts(later, "releases", NOON + 5 * DAY) == ["Releases are on Friday."]
    assert await texts(later, "releases", NOON + 9 * DAY) == ["Releases are on Monday."]


async def test_a_fact_stored_later_is_shown_as_it_is_now(person: Person) -> None:
    (id_,) = await person.keep(Draft("The offce was in Graz.", occurred_at=year(2020)))
    await person.at(NOON + DAY).update(id_, content="The office was in Graz.")

    assert await texts(person.at(NOON + 2 * DAY), "office", year(2021)) == [
        "The office was in Graz."
    ]
    assert await texts(person.at(NOON + 2 * DAY), "offce", NOON + DAY / 2) == [
        "The offce was in Graz."
    ]


async def test_a_superseded_memory_is_marked_in_every_format(client: Client) -> None:
    old = (await call(client, "memory_store", content="We release on Fridays."))[
        "stored"
    ][0]["id"]
    new = (
        await call(
            client, "memory_store", content="We release on Mondays.", supersedes=old
        )
    )["stored"][0]["id"]

    for form in ("concise", "detailed", "ids"):
        for tool in ("memory_recall", "search_keywords", "memory_list"):
            query = {} if tool == "memory_list" else {"query": "release"}
            found = await call(
                client, tool, **query, format=form, filters={"include_superseded": True}
            )
            marks = {
                memory["id"]: memory.get("superseded_by")
                for memory in found["memories"]
            }
            assert marks == {old: new, new: None}, (tool, form)


async def test_what_was_forgotten_since_is_shown_to_those_who_could_restore_it(
    person: Person,
) -> None:
    (id_,) = await person.keep("The door code is on the blackboard.")
    await person.at(NOON + DAY).forget(id_)
    later = person.at(NOON + 2 * DAY)
    writer, reader = [
        (await holder(person, name, f"notes:{name}")).at(later.now)
        for name in ("writer", "reader")
    ]

    assert await texts(later, "door", NOON + DAY / 2) == [
        "The door code is on the blackboard."
    ]
    assert await texts(writer, "door", NOON + DAY / 2) == [
        "The door code is on the blackboard."
    ]
    assert await texts(reader, "door", NOON + DAY / 2) == []
    assert await texts(later, "door", NOON + DAY) == []
    assert contents(await later.recall("door")) == []


async def test_former_texts_of_another_namespace_are_never_shown(
    person: Person,
) -> None:
    for namespace in ("notes", "secret"):
        (id_,) = await person.keep(
            f"The codename was Heron in {namespace}.", namespace=namespace
        )
        await person.at(NOON + DAY).update(
            id_, content=f"The codename is Egret in {namespace}."
        )
    reader = (await holder(person, "reader", "notes:reader")).at(NOON + 2 * DAY)

    assert await texts(reader, "heron", NOON + DAY / 2) == [
        "The codename was Heron in notes."
    ]
    assert await texts(reader, "egret", NOON + 2 * DAY) == [
        "The codename is Egret in notes."
    ]


async def test_what_expired_was_true_until_then_even_after_the_job_forgot_it(
    person: Person,
) -> None:
    await person.keep(Draft("The office is closed this week.", expires_at=NOON + DAY))
    [namespace] = await person.library.find_namespaces(["notes"])
    await Maintenance(person.library.database).forget_expired(
        namespace=namespace.id, now=NOON + 2 * DAY, batch=100
    )
    later = person.at(NOON + 3 * DAY)
    reader = (await holder(person, "reader", "notes:reader")).at(later.now)

    for who in (later, reader):
        assert await texts(who, "office", NOON + DAY / 2) == [
            "The office is closed this week."
        ]
        assert await texts(who, "office", NOON + DAY * 3 / 2) == []


async def test_a_former_text_is_found_among_many_and_the_best_comes_first(
    person: Person,
) -> None:
    many = [
        id_
        for part in range(3)
        for id_ in await person.keep(*(f"harbour note {part} {n}" for n in range(300)))
    ]
    (best,) = await person.keep("The lighthouse keeper counts the harbour lights.")
    for id_ in (*many[:40], best):
        await person.at(NOON + DAY).update(id_, content=f"rewritten {id_}")
    later = person.at(NOON + 2 * DAY)

    found = await texts(later, "lighthouse of the harbour", NOON + DAY / 2)

    assert found[0] == "The lighthouse keeper counts the harbour lights."
    assert len(found) == 10
    assert not any("rewritten" in text for text in found)


async def test_pages_of_an_answer_as_of_a_time_have_every_memory_once(
    person: Person,
) -> None:
    ids = await person.keep(*(f"fees of pier {n}" for n in range(7)))
    for id_ in ids[:3]:
        await person.at(NOON + DAY).update(id_, content=f"dues of quay {id_}")
    later = person.at(NOON + 2 * DAY)

    for query in ("*", "fees"):
        pages = await later.pages(query, limit=2, filters=Filters(as_of=NOON + DAY / 2))
        assert len(pages) == 4
        assert sorted(text for page in pages for text in contents(page)) == [
            f"fees of pier {n}" for n in range(7)
        ]
