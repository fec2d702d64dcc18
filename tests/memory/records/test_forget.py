"""Forgetting: reversible within the retention time, or erasing without a trace."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from mcp import Client

from folklore.callers import Caller
from folklore.contract.filters import FiltersRequest
from folklore.contract.memories import UndoRequest
from folklore.contract.namespaces import (
    CreateNamespaceRequest,
    DeleteNamespaceRequest,
    DescribeNamespaceRequest,
    EraseNamespaceRequest,
    RenameNamespaceRequest,
    RestoreNamespaceRequest,
)
from folklore.errors import Conflict, InvalidInput, NotFound, Refused
from folklore.model import Draft, Filters, Link, Relation
from tests.mcp.test_tools import call, refusal
from tests.memory.records.test_store_concurrent import whole
from tests.person import NOON, Person, contents
from tests.waiting import STUCK

RETENTION = timedelta(days=30)
HOUR = timedelta(hours=1)
# A unique word that no stemmer changes.
SECRET = "xqzvortex"


async def test_a_forgotten_memory_is_hidden_from_every_read_at_once(
    client: Client,
) -> None:
    stored = await call(
        client,
        "memory_store",
        memories=[{"content": "The gate is open."}, {"content": "It rains."}],
    )
    gone, kept = (item["id"] for item in stored["stored"])

    answer = await call(client, "memory_forget", ids=[gone])

    assert [item["id"] for item in answer["forgotten"]] == [gone]
    for tool, arguments in (
        ("memory_recall", {"query": "gate rains"}),
        ("memory_recall", {"query": "gate", "filters": {"include_superseded": True}}),
        ("search_keywords", {"query": "gate OR rains"}),
        ("memory_list", {}),
        ("memory_get", {"ids": [gone, kept]}),
    ):
        found = await call(client, tool, **arguments)
        assert gone not in {memory["id"] for memory in found["memories"]}, tool
    assert "no memory" in await refusal(client, "memory_get", ids=[gone])
    again = await call(client, "memory_forget", ids=[gone])
    assert again == {"forgotten": [], "already_forgotten": [gone]}


async def test_undo_restores_a_forgotten_memory_within_the_retention_time(
    person: Person,
) -> None:
    early, late = await person.keep("early", "late")
    await person.forget(early, late)

    back = await person.at(NOON + RETENTION).undo(early)

    assert back.forgotten_at is None
    assert contents(await person.recall("*")) == ["early"]
    with pytest.raises(Conflict, match="30 days"):
        await person.at(NOON + RETENTION + timedelta(seconds=1)).undo(late)


async def test_undo_does_not_duplicate_a_text_that_was_stored_again(
    person: Person,
) -> None:
    (old,) = await person.keep("stated twice")
    await person.forget(old)
    (new,) = await person.keep("stated twice")

    with pytest.raises(Conflict, match=str(new)):
        await person.undo(old)


async def test_a_forget_of_more_memories_than_its_limit_reports_the_rest(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("folklore.memory.records.forget.MAX_AT_ONCE", 3)
    await person.keep(*(Draft(f"junk {n}", tags=("junk",)) for n in range(5)))

    first, second = [
        await person.forget(
            filters=FiltersRequest(tags=("junk",)), namespaces=("notes",)
        )
        for _ in range(2)
    ]

    assert (len(first.memories), first.more) == (3, True)
    assert (len(second.memories), second.more) == (2, False)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "ids"),
    ({"filters": {}}, "exclude nothing"),
    ({"filters": {"tag_mode": "all", "tag_match": "exact"}}, "exclude nothing"),
    ({"filters": {"include_superseded": True}, "erase": True}, "exclude nothing"),
    ({"filters": {"as_of": "2999-01-01"}}, "exclude nothing"),
    (
        {"filters": {"kinds": ["note"], "session": ""}},
        "filters.session: is empty. Leave it out",
    ),
    (
        {"filters": {"kinds": ["note"], "paths": [""]}},
        "filters.paths: is empty. Leave it out",
    ),
    ({"filters": {"kinds": ["note"], "author": "null"}}, "filters.author: is empty"),
    ({"filters": {"session": ""}}, "give ids or filters"),
    (
        {"ids": [str(UUID(int=1))], "filters": {"tags": ["x"]}},
        "give ids or filters, one of the two",
    ),
    ({"ids": [str(UUID(int=1))]}, "There is no memory"),
    ({"ids": ["nonsense"]}, "ids[0]: 'nonsense' is not an id. Give the whole id"),
    ({"ids": [str(UUID(int=1))] * 101}, "ids: must hold at most 100, got 101."),
]


async def test_a_forget_without_ids_or_selective_filters_is_rejected(
    client: Client,
) -> None:
    await call(client, "memory_store", content="kept")

    for arguments, words in REFUSED:
        assert words in await refusal(client, "memory_forget", **arguments)
        assert len((await call(client, "memory_list"))["memories"]) == 1, arguments


async def test_an_unknown_id_or_a_caller_without_write_access_forgets_nothing(
    person: Person,
) -> None:
    (id_,) = await person.keep("kept")

    with pytest.raises(NotFound):
        await person.forget(id_, uuid4())
    with pytest.raises(Refused):
        await replace(person, caller=Caller("reader", may_write=False)).forget(id_)
    assert contents(await person.recall("*")) == ["kept"]


# Erasing


async def everywhere(connection: asyncpg.Connection, needle: str) -> list[str]:
    """The columns of every table, the catalogue's and the planner's samples included, that hold a text.

    The write-ahead log, and pages that vacuum has not come to, are no columns: they are out of any statement's reach.
    """
    columns = await connection.fetch(
        """
        select n.nspname as schema, c.relname as of, a.attname as name
        from pg_attribute a
        join pg_class c on c.oid = a.attrelid
        join pg_namespace n on n.oid = c.relnamespace
        where c.relkind in ('r', 'm', 'p', 't') and a.attnum > 0 and not a.attisdropped
            and n.nspname not in ('information_schema')
        """
    )
    found = []
    for column in columns:
        table = f'"{column["schema"]}"."{column["of"]}"'
        name = f'"{column["name"]}"'
        held = f"select count(*) from {table} where strpos(lower({name}::text), $1) > 0"
        raw = f"select count(*) from {table} where position(convert_to($1, 'UTF8') in {name}) > 0"
        kind = await connection.fetchval("select format_type(a.atttypid, null) from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relname = $2 and a.attname = $3", column["schema"], column["of"], column["name"])  # fmt: skip  # noqa: E501
        if await connection.fetchval(raw if kind == "bytea" else held, needle):
            found.append(f"{column['of']}.{column['name']}")
    return found


async def test_erasing_leaves_no_trace_in_any_table(
    person: Person, connection: asyncpg.Connection
) -> None:
    (neighbour,) = await person.keep("a harmless neighbour")
    (old,) = await person.keep(
        Draft(
            f"The password hint is {SECRET}.",
            summary=f"{SECRET} in short",
            tags=(SECRET,),
            source=f"notes/{SECRET}.md",
            session=SECRET,
            paths=(f"src/{SECRET}.py",),
            commit=SECRET,
            metadata={SECRET: [SECRET]},
            idempotency_key=SECRET,
            related=(Link(neighbour, SECRET),),
        )
    )
    await person.update(old, content=f"The password hint was {SECRET}, they say.")
    await person.undo(old)
    (new,) = await person.keep(
        Draft(
            f"The hint is {SECRET} no more.",
            supersedes=old,
            supersede_reason=f"{SECRET} leaked",
        )
    )
    await person.relate(Relation(neighbour, "relates_to", new))
    await person.library.changes.statistics.analyze()
    assert {
        "memories.content",
        "memories.search",
        "revisions.before",
        "relations.type",
    } <= set(await everywhere(connection, SECRET)), "the search finds what is there"

    outcome = await person.forget(old, new, erase=True)

    assert len(outcome.memories) == 2
    assert await everywhere(connection, SECRET) == []
    for id_ in (old, new):
        # The samples of a table that is empty now are of before; they hold no text (0003_revisions.sql), but ids.
        # The audit log has the erasure with the id and the author, and nothing of the text.
        assert set(await everywhere(connection, str(id_))) <= {
            "pg_statistic.stavalues1",
            "audit.ids",
        }
    assert contents(await person.recall("*")) == ["a harmless neighbour"]
    await whole(connection)


async def test_a_forgotten_memory_can_be_erased(
    person: Person, connection: asyncpg.Connection
) -> None:
    (id_,) = await person.keep(f"The hint is {SECRET}.")
    await person.forget(id_)

    await person.forget(id_, erase=True)

    assert await everywhere(connection, SECRET) == []
    with pytest.raises(NotFound):
        await person.undo(id_)


async def test_a_dry_run_erases_nothing_and_an_answer_does_not_repeat_an_erased_text(
    client: Client,
) -> None:
    [item] = (await call(client, "memory_store", content="still here"))["stored"]

    would = await call(
        client, "memory_forget", ids=[item["id"]], erase=True, dry_run=True
    )
    did = await call(client, "memory_forget", ids=[item["id"]], erase=True)

    assert would["forgotten"][0]["content"] == "still here"
    assert did == {
        "forgotten": [{"id": item["id"], "namespace": "notes"}],
        "erased": True,
    }


# Memories that were superseded by a forgotten one


async def test_forgetting_a_correction_restores_what_it_superseded_and_says_so(
    client: Client,
) -> None:
    old = (await call(client, "memory_store", content="The port is 8001."))["stored"][
        0
    ]["id"]
    new = (
        await call(client, "memory_store", content="The port is 9001.", supersedes=old)
    )["stored"][0]["id"]

    would = await call(client, "memory_forget", ids=[new], dry_run=True)
    assert (await call(client, "memory_list"))["memories"][0]["id"] == new
    did = await call(client, "memory_forget", ids=[new])

    for answer in (would, did):
        assert answer["restored"] == [
            {"id": old, "namespace": "notes", "content": "The port is 8001."}
        ]
    assert [
        memory["id"]
        for memory in (await call(client, "memory_recall", query="which port"))[
            "memories"
        ]
    ] == [old]
    [memory] = (await call(client, "memory_get", ids=[old]))["memories"]
    assert "superseded_by" not in memory
    assert "relations" not in memory


async def test_undoing_the_forgetting_of_a_correction_supersedes_again_what_it_had_superseded(
    person: Person,
) -> None:
    (old,) = await person.keep("The port is 8001.")
    (new,) = await person.at(NOON + HOUR).keep(
        Draft("The port is 9001.", supersedes=old)
    )
    await person.at(NOON + 2 * HOUR).forget(new)
    later = person.at(NOON + 3 * HOUR)

    undone = await later.call(UndoRequest(id=new))

    assert undone.superseded == (old,)
    assert contents(await later.recall("port")) == ["The port is 9001."]
    [memory] = await later.get(old)
    assert (memory.superseded_at, memory.superseded_by) == (NOON + HOUR, new)
    assert [relation.type for relation in await later.relations(old)] == ["supersedes"]
    assert [change.action for change in await later.history(old)] == [
        "undo",
        "restore",
        "supersede",
    ]
    for hours, port in ((0, 8001), (1, 9001), (2, 8001), (3, 9001)):
        then = Filters(as_of=NOON + hours * HOUR)
        assert contents(await later.recall("port", filters=then)) == [
            f"The port is {port}."
        ], hours

    await person.at(NOON + 4 * HOUR).redo(new)

    assert contents(await later.recall("port")) == ["The port is 8001."]
    assert (await person.at(NOON + 5 * HOUR).call(UndoRequest(id=new))).superseded == (
        old,
    )


async def test_a_redo_of_the_store_of_a_correction_supersedes_again_what_it_had_superseded(
    person: Person,
) -> None:
    (old,) = await person.keep("The port is 8001.")
    (new,) = await person.at(NOON + HOUR).keep(
        Draft("The port is 9001.", supersedes=old)
    )
    await person.at(NOON + 2 * HOUR).forget(new, undoes_store=True)

    redone = await person.at(NOON + 3 * HOUR).call(UndoRequest(id=new, redo=True))

    assert redone.superseded == (old,)
    assert contents(await person.recall("port")) == ["The port is 9001."]
    with pytest.raises(NotFound, match="no undo that could be redone"):
        await person.redo(new)


async def test_a_restored_memory_can_be_hidden_again_by_an_undo_of_its_own(
    person: Person,
) -> None:
    (old,) = await person.keep("The port is 8001.")
    (new,) = await person.keep(Draft("The port is 9001.", supersedes=old))
    await person.forget(new)

    assert (await person.undo(old)).superseded_by == new
    assert contents(await person.recall("port")) == []
    assert (await person.call(UndoRequest(id=new))).superseded == ()
    assert contents(await person.recall("port")) == ["The port is 9001."]


async def test_what_changed_since_it_was_restored_stays_as_it_is(
    person: Person,
) -> None:
    gone, replaced = await person.keep("one", "two")
    first, second = await person.keep(
        Draft("uno", supersedes=gone), Draft("due", supersedes=replaced)
    )
    await person.forget(first, second)
    await person.forget(gone)
    await person.keep(Draft("deux", supersedes=replaced))

    for id_ in (first, second):
        assert (await person.call(UndoRequest(id=id_))).superseded == ()
    assert sorted(contents(await person.recall("*"))) == ["deux", "due", "uno"]


@pytest.mark.parametrize("together", [True, False])
async def test_of_several_corrections_the_last_one_that_is_left_counts(
    person: Person, together: bool
) -> None:
    (first,) = await person.keep("The port is 1.")
    (second,) = await person.keep(Draft("The port is 2.", supersedes=first))
    (third,) = await person.keep(Draft("The port is 3.", supersedes=second))

    if together:
        result = await person.forget(second, third)
    else:
        assert (await person.forget(second)).restored == ()
        assert contents(await person.recall("port")) == ["The port is 3."]
        result = await person.forget(third)

    assert [memory.content for memory in result.restored] == ["The port is 1."]
    assert contents(await person.recall("port")) == ["The port is 1."]
    if together:
        await person.undo(second)
        assert contents(await person.recall("port")) == ["The port is 1."], (
            "the third, still forgotten, hides it"
        )
    await person.undo(third)
    assert contents(await person.recall("port")) == ["The port is 3."]


async def test_a_text_that_was_stored_again_is_not_restored(person: Person) -> None:
    (old,) = await person.keep("We use tabs.")
    (new,) = await person.keep(Draft("We use spaces.", supersedes=old))
    (again,) = await person.keep("We use tabs.")

    assert (await person.forget(new)).restored == ()
    assert [memory.id for memory in await person.get(again)] == [again]
    assert contents(await person.recall("*")) == ["We use tabs."]


async def test_forgetting_a_topic_by_filters_restores_none_of_its_older_memories(
    person: Person,
) -> None:
    topic, other = await person.keep(
        Draft("The port is 8001.", tags=("port",)), Draft("The host is amber.")
    )
    await person.keep(
        Draft("The port is 9001.", tags=("port",), supersedes=topic),
        Draft("The host is coral.", tags=("port",), supersedes=other),
    )

    result = await person.forget(filters=FiltersRequest(tags=("port",)))

    assert [memory.content for memory in result.restored] == ["The host is amber."]
    assert contents(await person.recall("*")) == ["The host is amber."]


async def test_erasing_a_correction_restores_what_it_superseded(person: Person) -> None:
    (old,) = await person.keep("old")
    (new,) = await person.keep(Draft("new", supersedes=old))

    result = await person.forget(new, erase=True)

    assert [memory.id for memory in result.restored] == [old]
    assert contents(await person.recall("*")) == ["old"]
    hidden = await person.undo(old)
    assert hidden.superseded_at is not None
    assert hidden.superseded_by is None, "the erased one cannot be named"


async def test_concurrent_forgets_of_one_process_do_not_block_each_other(
    person: Person,
) -> None:
    ids = await person.keep(*(f"thought {n}" for n in range(12)))

    async with asyncio.timeout(STUCK):
        outcomes = await asyncio.gather(
            *(person.forget(id_, erase=bool(n % 2)) for n, id_ in enumerate(ids))
        )

    assert sum(len(outcome.memories) for outcome in outcomes) == 12


# Whole namespaces


async def test_a_deleted_namespace_is_hidden_and_can_be_restored_completely(
    client: Client, person: Person
) -> None:
    [item] = (
        await call(
            client, "memory_store", content="The gate is open.", namespace="gates"
        )
    )["stored"]
    await call(client, "memory_store", content="It rains.")

    await person.call(DeleteNamespaceRequest(name="gates"))
    # another process may have cached a namespace's name for a second
    await asyncio.sleep(1.1)

    assert "no namespace" in await refusal(
        client, "memory_recall", query="gate", namespaces=["gates"]
    )
    assert "no memory" in await refusal(client, "memory_get", ids=[item["id"]])
    assert "no memory" in await refusal(
        client, "memory_update", id=item["id"], content="x"
    )
    for tool, arguments in (("memory_recall", {"query": "gate"}), ("memory_list", {})):
        found = await call(client, tool, **arguments)
        assert found["searched"] == ["notes"]
        assert item["id"] not in {memory["id"] for memory in found["memories"]}
    assert [
        entry["name"] for entry in (await call(client, "memory_status"))["namespaces"]
    ] == ["notes"]

    await person.call(RestoreNamespaceRequest(name="GATES"))
    found = await call(client, "memory_recall", query="gate", namespaces=["gates"])
    assert [memory["id"] for memory in found["memories"]] == [item["id"]]


async def test_the_name_of_a_deleted_namespace_can_be_used_again(
    person: Person,
) -> None:
    await person.keep("before")
    await person.call(DeleteNamespaceRequest(name="notes"))

    await person.keep("after")

    assert contents(await person.recall("*")) == ["after"]
    with pytest.raises(Conflict, match="Another namespace"):
        await person.call(RestoreNamespaceRequest(name="notes"))
    await person.call(RenameNamespaceRequest(name="notes", to="newer"))
    await person.call(RestoreNamespaceRequest(name="notes"))
    assert sorted(contents(await person.recall("*"))) == ["after", "before"]
    with pytest.raises(Conflict):
        await person.call(RenameNamespaceRequest(name="newer", to="Notes"))


async def test_an_erased_namespace_leaves_nothing_in_the_database(
    person: Person, connection: asyncpg.Connection
) -> None:
    a, b = await person.keep(f"{SECRET} one", f"{SECRET} two")
    await person.relate(Relation(a, "causes", b))
    await person.update(a, content=f"{SECRET} three")
    await person.keep("elsewhere", namespace="other")

    await person.call(EraseNamespaceRequest(name="notes"))

    assert await everywhere(connection, SECRET) == []
    assert contents(await person.recall("*")) == ["elsewhere"]
    with pytest.raises(NotFound):
        await person.call(RestoreNamespaceRequest(name="notes"))


async def test_a_namespace_is_created_and_described(person: Person) -> None:
    await person.call(
        CreateNamespaceRequest(name="leer", language="de", description="Empty.")
    )
    await person.call(DescribeNamespaceRequest(name="leer", description="Still empty."))

    [namespace] = await person.library.namespaces.all()

    assert (namespace.name, namespace.language, namespace.description) == (
        "leer",
        "german",
        "Still empty.",
    )
    with pytest.raises(Conflict):
        await person.call(CreateNamespaceRequest(name="LEER"))
    with pytest.raises(InvalidInput):
        await person.call(
            DescribeNamespaceRequest(name="leer", description="x" * 2_001)
        )
