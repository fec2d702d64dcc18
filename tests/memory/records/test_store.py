"""Storing: one text is one memory, sessions count on, and a memory is whole or not there."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4
from zoneinfo import ZoneInfo

import asyncpg
import pytest

from folklore.callers import Caller
from folklore.db.database import Database
from folklore.db.rows import lexeme_hash
from folklore.errors import InvalidInput, Refused
from folklore.memory.context import MemoryContext
from folklore.model import Draft, Link
from folklore.text.clean import former_digest, trimmed
from tests import embedders
from tests.person import NOON, Person, contents
from tests.text.test_clean import DIFFERENT
from tests.waiting import STUCK, statements_of

pytestmark = pytest.mark.usefixtures("database_url")


async def count(connection: asyncpg.Connection, table: str = "memories") -> int:
    return int(await connection.fetchval(f"select count(*) from {table}"))


async def test_storing_the_same_text_twice_keeps_one_memory(
    person: Person, connection: asyncpg.Connection
) -> None:
    [first] = await person.keep("Use tabs, not spaces.")

    for again in (
        "Use tabs, not spaces.",
        "  Use tabs,\tnot   spaces.  \r\n",
        "Use tabs, not\u200b spaces.",
    ):
        second = await person.store(again)
        assert [(item.id, item.status) for item in second.stored] == [
            (first, "duplicate")
        ]
    assert await count(connection) == 1
    assert await connection.fetchval("select confirmed_count from memories") == 3


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
async def test_a_text_with_another_indentation_is_another_memory(
    person: Person, connection: asyncpg.Connection, one: str, other: str
) -> None:
    [first] = await person.keep(one)

    second = await person.store(other)

    [stored] = second.stored
    assert (stored.status, stored.id == first) == ("stored", False)
    rows = await connection.fetch("select content from memories order by id")
    assert [row["content"] for row in rows] == [trimmed(one), trimmed(other)]


async def test_a_corrected_list_is_stored_and_the_former_one_reported_as_similar(
    person: Person,
) -> None:
    [first] = await person.keep("- a\n- b")

    [corrected] = (await person.store("- a\n  - b")).stored

    assert corrected.status == "stored"
    assert [item.id for item in corrected.similar] == [first]


async def test_a_key_of_a_former_version_answers_the_same_request(
    person: Person, connection: asyncpg.Connection
) -> None:
    [id_] = await person.keep(Draft("- a\n- b", idempotency_key="k"))
    await connection.execute(
        "update idempotency_keys set request = $1", former_digest("- a\n- b")
    )

    [again] = (await person.store(Draft("- a\n- b", idempotency_key="k"))).stored

    assert again.id == id_
    with pytest.raises(InvalidInput, match="used before for another request"):
        await person.store(Draft("- a\n- c", idempotency_key="k"))


async def test_characters_removed_from_a_text_are_reported(person: Person) -> None:
    one = await person.store("  The launch\r\nis go\ud83d \n")
    many = await person.store(
        "Deploys are on Tuesdays.",
        Draft(
            "Clocks\u200b are\x00 in UTC.", summary="\u202eUTC", tags=("ti\u200bme",)
        ),
    )

    assert (
        one.note
        == "Invisible characters were removed before storing (memories[0].content: 1 character)."
    )
    assert many.note == (
        "Invisible characters were removed before storing"
        " (memories[1].content: 2 characters; memories[1].summary: 1 character)."
    )
    assert (
        await person.store("Line\r\nbreaks and a pile of \t white space  ")
    ).note is None


@pytest.mark.parametrize("times", [10, 11])
async def test_a_note_lists_at_most_ten_fields(person: Person, times: int) -> None:
    note = (await person.store(*(f"Fact\x00 {number}" for number in range(times)))).note

    assert note is not None
    assert note.count("content") == 10
    assert note.endswith("; and 1 more)." if times == 11 else ": 1 character).")


async def test_texts_that_differ_in_case_or_punctuation_are_two_memories(
    person: Person,
) -> None:
    stored = await person.store("Use Tabs.", "Use tabs.", "Use tabs!")

    assert {item.status for item in stored.stored} == {"stored"}
    assert len({item.id for item in stored.stored}) == 3


async def test_a_text_that_occurs_twice_in_a_batch_is_stored_once(
    person: Person, connection: asyncpg.Connection
) -> None:
    stored = await person.store("a b", "other", "a  b", "a b\n")

    assert [item.status for item in stored.stored] == [
        "stored",
        "stored",
        "duplicate",
        "duplicate",
    ]
    assert stored.stored[0].id == stored.stored[2].id == stored.stored[3].id
    assert await count(connection) == 2


async def test_texts_keys_and_positions_are_those_of_a_namespace(
    person: Person, connection: asyncpg.Connection
) -> None:
    shared = Draft("shared", session="s")
    here = await person.keep(shared, Draft("one", idempotency_key="k"))
    there = await person.keep(
        shared, Draft("two", idempotency_key="k"), namespace="elsewhere"
    )

    assert not {*here} & {*there}
    assert await count(connection) == 4
    rows = await connection.fetch("select position from memories where session = 's'")
    assert [row["position"] for row in rows] == [0, 0]


async def test_names_of_namespaces_ignore_case(
    person: Person, connection: asyncpg.Connection
) -> None:
    await person.keep("first", namespace="Team-A")
    stored = await person.store("second", namespace=" team-a ")

    assert stored.namespace == "Team-A"
    assert await count(connection, "namespaces") == 1


async def test_another_request_with_a_used_idempotency_key_is_rejected_and_writes_nothing(
    person: Person, connection: asyncpg.Connection
) -> None:
    old, other = await person.keep("old", "other")
    [first] = await person.keep(Draft("newer", supersedes=old, idempotency_key="k"))
    link = Link(other, "causes")

    for draft in (
        Draft("different text", idempotency_key="k"),
        Draft("different text", supersedes=other, idempotency_key="k"),
        Draft("newer", supersedes=other, idempotency_key="k"),
        Draft("newer", idempotency_key="k"),
        Draft("newer", supersedes=old, related=(link,), idempotency_key="k"),
    ):
        with pytest.raises(
            InvalidInput, match=rf"^memories\[0\]\.idempotency_key: .*{first}"
        ) as error:
            await person.store(draft)
        assert "another key" in str(error.value.hint)
        result = await person.store("with it", draft)
        assert [(item.index, item.field) for item in result.refused] == [
            (1, "idempotency_key")
        ]
        assert str(first) in result.refused[0].reason

    assert [change.action for change in await person.history(other)] == []
    assert [(item.from_id, item.to_id) for item in await person.relations(first)] == [
        (first, old)
    ]
    assert await count(connection) == 4


async def test_a_repeated_request_with_its_idempotency_key_gets_the_same_answer_and_has_no_effect(
    person: Person, connection: asyncpg.Connection
) -> None:
    old, cause = await person.keep("old", "cause")
    draft = Draft(
        "newer", supersedes=old, related=(Link(cause, "causes"),), idempotency_key="k"
    )
    [first] = (await person.store(draft)).stored
    later = person.at(NOON + timedelta(hours=1))
    again = (await later.store(draft)).stored
    await person.undo(old)
    after_undo = (await later.store(draft)).stored
    await person.keep(Draft("newest", supersedes=first.id))
    after_another = (await later.store(draft)).stored

    assert first.status == "superseded_old"
    for [answer] in (again, after_undo, after_another):
        assert (answer.id, answer.status) == (first.id, "superseded_old")
    assert [change.action for change in await person.history(old)] == [
        "undo",
        "supersede",
    ], "the undo stands"
    assert await count(connection) == 4


async def test_an_idempotency_key_of_a_duplicate_is_stored_too(
    person: Person, connection: asyncpg.Connection
) -> None:
    [first] = await person.keep(Draft("as it was said", idempotency_key="one"))
    drafts = [Draft("as it was said", idempotency_key=key) for key in ("two", "three")]
    said = await person.keep(*drafts)
    await person.update(first, content="as it is said now")

    again = await person.store(*drafts, Draft("as it was said", idempotency_key="one"))

    assert said == [first, first]
    assert [(item.id, item.status) for item in again.stored] == [
        (first, "duplicate")
    ] * 3
    assert await count(connection) == 1


async def test_a_new_text_is_stored_next_to_a_repeated_request_whose_memory_was_edited(
    person: Person,
) -> None:
    keyed = Draft("as it was said", idempotency_key="k")
    [first] = await person.keep(keyed)
    await person.update(first, content="as it is said now")

    result = await person.store(keyed, "as it was said", "as it was said")

    assert [item.status for item in result.stored] == [
        "duplicate",
        "stored",
        "duplicate",
    ]
    assert result.stored[0].id == first
    assert result.stored[1].id == result.stored[2].id != first


async def test_the_idempotency_key_and_the_text_of_a_forgotten_memory_can_be_used_again(
    person: Person,
) -> None:
    keyed, plain = await person.keep(
        Draft("the first wording", idempotency_key="k"), "as it was said"
    )
    await person.keep(Draft("as it was said", idempotency_key="second"))
    await person.forget(keyed, plain)

    stored = await person.store(
        Draft("another wording", idempotency_key="k"),
        Draft("as it is now", idempotency_key="second"),
        "as it was said",
    )
    again = await person.store(Draft("another wording", idempotency_key="k"))
    back = await person.undo(keyed)

    assert [item.status for item in stored.stored] == ["stored"] * 3
    assert {item.id for item in stored.stored}.isdisjoint({keyed, plain})
    assert [(item.id, item.status) for item in again.stored] == [
        (stored.stored[0].id, "duplicate")
    ]
    assert (back.id, back.content, back.forgotten_at) == (
        keyed,
        "the first wording",
        None,
    )


async def test_erasing_a_memory_erases_its_idempotency_keys(
    person: Person, connection: asyncpg.Connection
) -> None:
    [first] = await person.keep(Draft("one", idempotency_key="k"))
    await person.keep(Draft("one", idempotency_key="second"))
    assert (
        await connection.fetchval(
            "select memory_id from idempotency_keys where key = 'second'"
        )
        == first
    )
    await person.forget(first, erase=True)

    assert await count(connection, "idempotency_keys") == 0


async def test_an_idempotency_key_that_occurs_twice_in_a_batch_makes_one_memory(
    person: Person, connection: asyncpg.Connection
) -> None:
    stored = await person.store(*[Draft("one wording", idempotency_key="k")] * 2)
    again = await person.store(
        Draft("one  wording\n", idempotency_key="k"), Draft("something new")
    )

    assert stored.stored[0].id == stored.stored[1].id == again.stored[0].id
    assert [item.status for item in stored.stored] == ["stored", "duplicate"]
    assert [item.status for item in again.stored] == ["duplicate", "stored"]
    assert await count(connection) == 2
    assert (
        await connection.fetchval("select max(confirmed_count) from memories") == 0
    ), "it was not said twice"
    stored = await person.store(
        Draft("two", idempotency_key="l"), Draft("three", idempotency_key="l")
    )
    [refused] = stored.refused
    assert (refused.index, refused.field) == (1, "idempotency_key")
    assert "occurs earlier in this batch" in refused.reason
    assert await count(connection) == 3


async def test_positions_continue_their_session(
    person: Person, connection: asyncpg.Connection
) -> None:
    await person.keep(
        Draft("one", session="s"),
        Draft("two", session="s"),
        Draft("apart"),
        Draft("x", session="t"),
    )
    await person.keep(
        Draft("three", session="s"), Draft("y", session="t"), Draft("four", session="s")
    )

    rows = await connection.fetch(
        "select session, position, content from memories where session is not null order by 1, 2"
    )
    assert [tuple(row) for row in rows] == [
        ("s", 0, "one"), ("s", 1, "two"), ("s", 2, "three"), ("s", 3, "four"), ("t", 0, "x"), ("t", 1, "y"),
    ]  # fmt: skip
    assert (
        await connection.fetchval(
            "select position from memories where content = 'apart'"
        )
        is None
    )


async def test_a_time_without_an_offset_is_read_in_the_callers_zone(
    library: MemoryContext,
) -> None:
    person = Person(library, zone=ZoneInfo("Europe/Vienna"))
    await person.keep(
        Draft("winter", occurred_at=datetime.fromisoformat("2026-01-10T09:00:00")),
        Draft("summer", occurred_at=datetime.fromisoformat("2026-07-10T09:00:00")),
    )

    found = {
        result.memory.content: result.memory.occurred_at
        for result in (await person.recall("*")).memories
    }
    assert found == {
        "winter": datetime(2026, 1, 10, 8, tzinfo=UTC),
        "summer": datetime(2026, 7, 10, 7, tzinfo=UTC),
    }


async def test_a_read_only_caller_stores_nothing(
    library: MemoryContext, connection: asyncpg.Connection
) -> None:
    with pytest.raises(Refused, match="read-only"):
        await Person(library, caller=Caller("reader", may_write=False)).store("x")

    assert await count(connection, "namespaces") == 0


@pytest.mark.parametrize(
    "down", [embedders.Down(), embedders.DownForTexts()], ids=["no model", "no vectors"]
)
async def test_a_store_without_an_embedder_reports_once_that_near_duplicates_were_not_searched(
    database: Database, connection: asyncpg.Connection, down: embedders.ByLetter
) -> None:
    person = Person(MemoryContext.of(database, down))
    first = await person.store("The gateway is an Envoy.")
    several = await person.store("The gateway times out.", "The gate opens at nine.")
    known = await person.store("The gateway times out.")

    assert await count(connection, "embeddings") == 0
    assert len(contents(await person.search("gateway"))) == 2
    assert first.note is None  # nothing could be similar
    assert several.note == (
        "Everything is stored, but similar memories could not be looked up: the embedding model is unavailable."
    )
    assert ([item.status for item in known.stored], known.note) == (["duplicate"], None)


async def test_a_store_that_would_wait_for_embeddings_is_acknowledged_before_they_are_made(
    database: Database, connection: asyncpg.Connection
) -> None:
    slow = embedders.Waiting()
    memory = MemoryContext.of(database, slow, embedding_wait=0.0)
    person = Person(memory)
    first = await person.store("The gateway times out after 30 seconds.")
    second = await person.store("The gate opens at nine.", "The gate closes at ten.")

    assert [item.status for item in first.stored] == ["stored"]
    assert first.note is None
    assert second.note is not None
    assert second.note.startswith("Similar memories are not in this answer")
    assert await count(connection, "embeddings") == 0
    assert contents(await person.search("gateway")) == [
        "The gateway times out after 30 seconds."
    ]

    slow.go.set()
    await memory.finish(STUCK)

    assert await count(connection, "embeddings") == 3
    assert [len(texts) for texts in slow.calls] == [1, 2]


async def test_embeddings_that_a_process_did_not_make_before_its_end_are_pending(
    database: Database,
) -> None:
    memory = MemoryContext.of(database, embedders.Waiting(), embedding_wait=0.0)
    await Person(memory).store("The gateway times out after 30 seconds.")
    await memory.finish(0)
    [namespace] = await memory.namespaces.find(None)

    [pending] = await memory.embeddings.pending(
        namespace=namespace.id, model=embedders.MODEL.id, most=9
    )

    assert pending.content == "The gateway times out after 30 seconds."


async def test_with_embedding_switched_off_nothing_is_degraded(
    database: Database,
) -> None:
    person = Person(MemoryContext.of(database, None))
    stored = await person.store("The gateway times out.")
    answer = await person.recall("gateway")

    assert stored.note is None

    assert contents(answer) == ["The gateway times out."]
    assert answer.degraded == ()


async def test_a_batch_is_embedded_in_one_call(database: Database) -> None:
    letters = embedders.ByLetter()
    await Person(MemoryContext.of(database, letters)).keep(
        *(f"text {n}" for n in range(100)), "text 7"
    )

    assert [len(texts) for texts in letters.calls] == [100]


async def test_a_store_writes_the_postings_of_a_memory(
    person: Person, connection: asyncpg.Connection
) -> None:
    await person.keep(
        "getUserById in src/memory/store.py fails with ERR_CONN_REFUSED on v18.2.0",
        Draft(
            "Größe ändern, nicht löschen",
            summary="Umlaute",
            tags=("entity:person:sarah",),
            language="de",
        ),
        Draft("twice twice twice", source="docs/twice.md"),
        "🚀",
        "word " * 5_000,
    )

    # The source (weight C) has its own filter and does not count as text of a memory. Nor do words as they are spelled.
    # Five more words are its date.
    expected = """
        select m.id as memory_id, folklore_word(found.lexeme) as word,
            cardinality(array_remove(found.weights, 'C')) as often
        from memories m, unnest(m.search) as found
        where cardinality(array_remove(found.weights, 'C')) > 0 and not starts_with(found.lexeme, '=')
    """
    kept = """
        select memory_id, ('x' || encode(substring(words from 4 * place + 1 for 4), 'hex'))::bit(32)::integer as word,
            256 * get_byte(frequencies, 2 * place) + get_byte(frequencies, 2 * place + 1)
        from fresh_words, generate_series(0, octet_length(words) / 4 - 1) as place
    """
    dates = [
        lexeme_hash(term)
        for term in ("@2026-05-04", "@05-04", "@2026-05", "@05", "@2026")
    ]
    assert await connection.fetch(f"({expected}) except ({kept})") == []
    assert {
        row["word"] for row in await connection.fetch(f"({kept}) except ({expected})")
    } == set(dates)
    lengths = f"select memory_id, least(sum(often), 32767) from ({expected}) e group by memory_id"
    assert (
        await connection.fetch(
            f"select memory_id, length from fresh_words where length > 0 except ({lengths})"
        )
        == []
    )


async def test_a_store_runs_the_same_number_of_statements_whatever_its_size(
    person: Person, queries: list[str]
) -> None:
    await person.keep("the connection and the namespace are there")
    said = {}
    for size in (1, 500):
        drafts = [
            Draft(f"fact {uuid4()}", session="s", idempotency_key=str(uuid4()))
            for _ in range(size)
        ]
        statements = await statements_of(person.store(*drafts), queries)
        said[size] = [
            statement.split()[0].upper().rstrip(";") for statement in statements
        ]

    assert said[1] == said[500]
    assert (said[1][0], said[1][-2:]) == ("BEGIN", ["COMMIT", "WITH"]), (
        "near-duplicates and memories on the same subject are looked for last, together"
    )
    assert len(said[1]) <= 12, said


async def test_a_store_that_fails_in_the_database_writes_nothing(
    person: Person, connection: asyncpg.Connection
) -> None:
    await connection.execute(
        "alter table fresh_words add constraint refuse check (position(int4send(folklore_word('poison')) in words) = 0)"
    )

    with pytest.raises(Exception, match="refuse"):
        await person.store("fine", " ", "poison", namespace="never-made")

    assert [
        await count(connection, table)
        for table in ("namespaces", "memories", "embeddings", "models")
    ] == [0] * 4


async def test_a_session_that_has_no_more_positions_can_still_be_stored_in(
    person: Person, connection: asyncpg.Connection
) -> None:
    await person.keep(Draft("the last place", session="s", position=2**31 - 1))
    await person.keep(Draft("one more", session="s"))

    held = await connection.fetch(
        "select content, position from memories order by content"
    )
    assert [tuple(row) for row in held] == [
        ("one more", 2**31 - 1),
        ("the last place", 2**31 - 1),
    ]
