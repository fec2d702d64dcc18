"""Several questions in one recall: answered at once, each memory once, the best results of each question first."""

import asyncio
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from mcp import Client

from folklore.contract.filters import FiltersRequest
from folklore.contract.recall import RankingRequest, RecallRequest
from folklore.errors import InvalidInput, Unavailable
from folklore.memory.context import MemoryContext
from folklore.model import Answer, Draft
from tests.cli.test_confirmed import command_place  # noqa: F401 - a fixture
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.person import NOON, Person, contents, ids

CAT = "The cat is called Turing."
DOG = "The dog is called Hopper."
LEASE = "The lease ends in March."
ASKED = ("what is the cat called", "when does the lease end")


async def ask(person: Person, *queries: str, **asked: Any) -> Answer:
    return await person.call(RecallRequest(queries=queries, **asked))


@pytest.fixture
async def reader(person: Person) -> Person:
    await person.keep(CAT, DOG, LEASE)
    return person


async def test_the_best_result_of_each_question_comes_first_and_each_memory_once(
    reader: Person,
) -> None:
    answer = await ask(reader, *ASKED)

    assert contents(answer)[:2] == [CAT, LEASE]
    assert len(ids(answer)) == len(set(ids(answer)))
    numbers = {result.memory.content: result.queries for result in answer.memories}
    for place, query in enumerate(ASKED):
        alone = contents(await reader.call(RecallRequest(query=query)))
        assert [text for text in numbers if place in numbers[text]] == [
            text for text in numbers if text in alone
        ]
    assert answer.searched == ("notes",)


async def test_a_memory_that_answers_several_questions_has_all_their_numbers_and_its_best_score(
    reader: Person,
) -> None:
    same = "what are the cat and the dog called"
    answer = await ask(reader, same, ASKED[1], same)

    [cat] = [result for result in answer.memories if result.memory.content == CAT]
    assert {0, 2} <= set(cat.queries)
    alone = {
        result.memory.content: result.score
        for result in (await reader.call(RecallRequest(query=same))).memories
    }
    assert cat.score is not None
    assert cat.score >= (alone[CAT] or 0)


async def test_limit_and_tokens_are_those_of_the_whole_answer(reader: Person) -> None:
    assert contents(await ask(reader, *ASKED, limit=2)) == [CAT, LEASE]
    short = await ask(reader, *ASKED, max_tokens=50)
    assert contents(short) == [CAT]
    assert short.truncated


async def test_pages_continue_without_repetition(person: Person) -> None:
    await person.keep(
        *(f"The cat number {n} is grey." for n in range(7)),
        *(f"Lease {n} ends." for n in range(7)),
    )
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(20):
        answer = await ask(person, "grey cat", "lease", limit=4, cursor=cursor)
        seen += contents(answer)
        if (cursor := answer.cursor) is None:
            break

    assert len(seen) == len(set(seen)) == 14
    first = await ask(person, "grey cat", "lease", limit=4)
    for other in (("lease", "grey cat"), ("grey cat",)):
        with pytest.raises(InvalidInput, match="another question"):
            await ask(person, *other, limit=4, cursor=first.cursor)


async def test_results_can_be_sorted_by_time(person: Person) -> None:
    await person.keep(CAT)
    await person.at(NOON - timedelta(days=1)).keep(LEASE)

    answer = await ask(person, *ASKED, sort="time_asc")

    assert contents(answer) == [LEASE, CAT]


async def test_filters_and_expansion_apply_to_every_question(person: Person) -> None:
    await person.keep(
        Draft(CAT, kind="bug"), Draft(LEASE, kind="decision", tags=("entity:person:ada",)),
        Draft("Ada signs for us.", kind="decision", tags=("entity:person:ada",)),
    )  # fmt: skip

    filtered = await ask(person, *ASKED, filters=FiltersRequest(kinds=("decision",)))
    expanded = await ask(person, *ASKED, ranking=RankingRequest(expand=("entities",)))

    assert set(contents(filtered)) == {LEASE, "Ada signs for us."}
    assert len(ids(expanded)) == len(set(ids(expanded))) == 3


async def test_each_question_is_explained(reader: Person) -> None:
    answer = await ask(reader, *ASKED, explain=True)

    assert answer.explain is not None
    assert list(answer.explain) == ["0", "1"]
    for result in answer.memories:
        assert result.explain is not None
        assert list(result.explain) == [str(number) for number in result.queries]
        assert all("relevance" in terms for terms in result.explain.values())  # type: ignore[operator]


async def test_a_question_without_results_is_noted_by_its_number(
    person: Person,
) -> None:
    await person.keep(CAT)

    answer = await ask(person, "cat", "zebra", ranking=RankingRequest(preset="keyword"))

    assert contents(answer) == [CAT]
    assert answer.note is not None
    assert answer.note.startswith("queries[1]: ")


async def test_a_failed_branch_is_reported_once(
    person: Person, connection: asyncpg.Connection
) -> None:
    await person.keep(CAT, LEASE)
    await connection.execute("alter table embeddings rename to away")

    answer = await ask(person, *ASKED)

    assert [item.branch for item in answer.degraded] == ["dense"]
    assert set(contents(answer)) == {CAT, LEASE}


async def test_questions_fail_together_if_every_branch_fails(
    person: Person, connection: asyncpg.Connection
) -> None:
    await person.keep(CAT)
    for table in ("embeddings", "postings"):
        await connection.execute(f"alter table {table} rename to {table}_away")

    with pytest.raises(Unavailable):
        await ask(person, *ASKED)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "query: is missing. Give query, or up to 8 questions as queries."),
        (
            {"query": "cat", "queries": ("dog",)},
            "queries: excludes query. Give exactly one of the two.",
        ),
        ({"queries": ("cat", " ")}, "queries[1]: is no question."),
        ({"queries": ("*",)}, "queries[0]: is no question."),
        (
            {"queries": ("cat",), "ranking": RankingRequest(embedding=(1.0, 0.0))},
            "ranking.embedding: belongs to one query.",
        ),
    ],
)
async def test_an_unusable_request_is_refused(
    reader: Person, asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await reader.call(RecallRequest(**asked))

    assert message in str(refused.value)


async def test_eight_questions_of_many_callers_need_no_more_connections_than_one(
    library: MemoryContext,
) -> None:
    person = Person(library)
    await person.keep(CAT, DOG, LEASE)

    answers = await asyncio.gather(*(ask(person, *ASKED * 4) for _ in range(6)))

    assert all(contents(answer)[:2] == [CAT, LEASE] for answer in answers)
    assert all(answer.degraded == () for answer in answers)


async def test_the_tool_takes_several_questions(client: Client) -> None:
    await client.call_tool(
        "memory_store", {"memories": [{"content": text} for text in (CAT, LEASE)]}
    )

    answer = await client.call_tool("memory_recall", {"queries": list(ASKED)})
    refused = await client.call_tool("memory_recall", {})

    assert answer.structured_content is not None
    memories = answer.structured_content["memories"]
    assert [memory["content"] for memory in memories] == [CAT, LEASE]
    assert 0 in memories[0]["queries"]
    assert refused.is_error


async def test_the_command_takes_several_questions_here_and_at_a_server(
    folklore: CommandLine, where: tuple[str, ...]
) -> None:
    nothing = await folklore.done("recall", ASKED[0], "--also", ASKED[1], *where)
    for text in (CAT, LEASE):
        await folklore.done("store", text, "-n", "notes", *where)

    found = await folklore.json("recall", ASKED[0], "--also", ASKED[1], *where)
    shown = await folklore.done(
        "recall", ASKED[0], "--also", ASKED[1], "--explain", *where
    )

    assert [memory["content"] for memory in found["memories"]] == [CAT, LEASE]
    assert nothing.startswith("QUERY: Nothing has been stored yet. --also 1: Nothing")
    assert "(question 1" in shown
    assert "\nquestion 2\n" in shown


async def test_variants_of_one_memory_are_shown_under_it_for_every_question(
    person: Person,
) -> None:
    [old] = await person.keep("We retry three times before acknowledging the message.")
    [new] = await person.at(NOON + timedelta(days=1)).keep(
        "We retry three times, before acknowledging: the message!"
    )
    await person.keep(LEASE)

    answer = await ask(
        person.at(NOON + timedelta(days=2)),
        "how often do we retry",
        "when does the lease end",
    )

    [retry] = [result for result in answer.memories if result.memory.id in (old, new)]
    assert retry.memory.id == new
    assert [variant.id for variant in retry.variants] == [old]
