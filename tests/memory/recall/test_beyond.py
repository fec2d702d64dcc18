"""What recall looks at beside the text: relations, entities, ratings, reflections, vectors of the caller's own."""

import json
import re
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from folklore.contract.filters import FiltersRequest
from folklore.db.database import Database
from folklore.embedding.protocol import Embedder
from folklore.errors import InvalidInput
from folklore.memory.context import MemoryContext
from folklore.model import Draft, Filters, Relation, Sort
from folklore.ranking.weights import Ranking, chosen
from folklore.text import tokens
from tests.commands import CommandLine, Ran, command_line  # noqa: F401 - the fixture `folklore`
from tests.person import NOON, Person, contents, ids


async def tie(
    connection: asyncpg.Connection, *pairs: tuple[UUID, UUID], strength: float = 1.0
) -> None:
    """Relations between memories, as memory_relate writes them."""
    for from_id, to_id in pairs:
        await connection.execute(
            "insert into relations (namespace_id, from_id, type, to_id, strength, author, created_at)"
            " select namespace_id, $1, 'relates_to', $2, $3, 'tester', $4 from memories where id = $1",
            from_id, to_id, strength, NOON,
        )  # fmt: skip


FILLER = tuple(
    f"Something else entirely, paragraph {number} about gardens."
    for number in range(40)
)


@pytest.mark.parametrize("turned", [False, True])
async def test_what_a_good_answer_is_related_to_enters_whichever_way_the_relation_goes(
    person: Person, connection: asyncpg.Connection, turned: bool
) -> None:
    cause, effect, *_ = await person.keep(
        "The tunnel broke at noon.",
        "Invoices were sent twice.",
        "Nobody was at lunch.",
        *FILLER,
    )
    await tie(connection, (effect, cause) if turned else (cause, effect))

    answer = contents(await person.recall("tunnel broke", limit=3))
    without = contents(
        await person.recall(
            "tunnel broke", limit=3, ranking=chosen(weights={"relations": 0.0})
        )
    )

    assert answer[:2] == ["The tunnel broke at noon.", "Invoices were sent twice."]
    assert "Invoices were sent twice." not in without


async def test_expansion_adds_bridges_and_what_names_the_same_and_marks_them(
    person: Person, connection: asyncpg.Connection
) -> None:
    first, second, bridge, loose, *_ = await person.keep(
        "The regatta in Kiel was won by the green boat.",
        "The regatta in Kiel had eleven starters.",
        "Protests are heard on Monday.",
        "Tied to one result alone.",
        Draft("She keeps the cups.", tags=("entity:tool:postgres",)),
        "The regatta office uses Postgres.",
        *FILLER,
    )
    await tie(connection, (first, bridge), (bridge, second), strength=0.01)
    await tie(connection, (first, loose), strength=0.01)
    plain = await person.recall("regatta", limit=3)

    answer = await person.recall(
        "regatta", limit=3, ranking=chosen(expand=("relations", "entities"))
    )

    beyond = {
        result.memory.content: result.expanded
        for result in answer.memories
        if result.expanded
    }
    assert [result.memory.content for result in answer.memories][:3] == contents(plain)
    assert beyond == {
        "Protests are heard on Monday.": "relations",
        "She keeps the cups.": "entities",
    }


async def test_forgotten_memories_leave_room_for_others_in_an_expansion(
    person: Person, connection: asyncpg.Connection
) -> None:
    entity = ("entity:person:sarah",)
    kiel = Draft("The regatta in Kiel.", tags=("entity:person:sarah",))
    first, second, tied = await person.keep(
        kiel, "The regatta in Laboe.", "Protests are on Monday."
    )
    gone = await person.keep(
        *(Draft(f"Old {number}.", importance=0.9, tags=entity) for number in range(40))
    )
    await person.keep(Draft("She keeps the cups.", tags=entity))
    await tie(
        connection,
        *((of, other) for of in (first, second) for other in gone[:6]),
        strength=1.0,
    )
    await tie(connection, (first, tied), (second, tied), strength=0.9)
    await person.forget(*gone)

    answer = await person.recall(
        "regatta of Sarah", limit=2, ranking=chosen(expand=("relations", "entities"))
    )

    assert set(contents(answer)[2:]) == {
        "Protests are on Monday.",
        "She keeps the cups.",
    }


async def test_expansion_stays_within_the_filters_and_the_namespaces(
    person: Person, connection: asyncpg.Connection
) -> None:
    first, second, hidden = await person.keep(
        Draft("The regatta in Kiel.", kind="decision"),
        Draft("The regatta in Laboe.", kind="decision"),
        Draft("A note between them.", tags=("entity:tool:postgres",)),
    )
    await person.keep(
        Draft("Elsewhere.", tags=("entity:tool:postgres",)), namespace="other"
    )
    await tie(connection, (first, hidden), (hidden, second))

    answer = await person.recall(
        "regatta Postgres",
        namespaces=("notes",),
        filters=Filters(kinds=("decision",)),
        ranking=chosen(expand=("relations", "entities")),
    )

    assert set(contents(answer)) == {"The regatta in Kiel.", "The regatta in Laboe."}


async def test_reflections_are_a_third_of_an_answer_at_most_and_can_be_had_alone_or_not_at_all(
    person: Person,
) -> None:
    await person.keep(
        *(
            Draft(f"Reflection {n}: releases fail on Fridays", kind="reflection")
            for n in range(8)
        )
    )
    await person.keep(
        *(f"Release {n} failed on a Friday, cause {n * 7}" for n in range(12))
    )

    usual = await person.recall("releases fail Friday", limit=10)
    alone = await person.recall(
        "releases fail Friday", limit=10, filters=Filters(reflections=True)
    )
    none = await person.recall(
        "releases fail Friday", limit=10, filters=Filters(reflections=False)
    )

    kinds = [result.memory.kind for result in usual.memories]
    assert kinds.count("reflection") <= 3
    assert len(kinds) == 10
    assert {result.memory.kind for result in alone.memories} == {"reflection"}
    assert "reflection" not in {result.memory.kind for result in none.memories}


async def test_a_short_answer_has_a_place_for_the_best_reflection(
    person: Person,
) -> None:
    await person.keep(
        *(
            Draft(f"Reflection {n}: releases fail on Fridays", kind="reflection")
            for n in range(3)
        )
    )
    await person.keep(*(f"A release on some Friday, number {n * 7}" for n in range(6)))

    for limit in (1, 2, 3):
        reflected = await person.recall("releases fail on Fridays", limit=limit)
        kinds = [result.memory.kind for result in reflected.memories]
        assert kinds == ["reflection", "note", "note"][:limit]
    plain = await person.recall("a release on some Friday, number 7", limit=1)
    assert contents(plain) == ["A release on some Friday, number 7"]


async def test_where_there_are_only_reflections_they_are_the_whole_answer(
    person: Person,
) -> None:
    only = FiltersRequest(kinds=("reflection",))
    await person.keep(
        *(
            Draft(f"Reflection {n}: releases fail on Fridays", kind="reflection")
            for n in range(12)
        )
    )

    alone = [
        await person.recall("releases fail Friday", limit=limit) for limit in (1, 3, 10)
    ]
    await person.keep(*(f"Release {n} failed on a Friday" for n in range(12)))
    for limit, first in zip((1, 3, 10), alone, strict=True):
        asked_for = await person.recall(
            "releases fail Friday", limit=limit, filters=Filters(kinds=("reflection",))
        )
        by_word = await person.search("releases fail Friday", limit=limit, filters=only)
        for answer in (first, asked_for, by_word):
            assert [result.memory.kind for result in answer.memories] == [
                "reflection"
            ] * limit


async def test_a_vector_of_the_callers_own_takes_the_place_of_the_questions(
    person: Person, embedder: Embedder
) -> None:
    await person.keep("The sea is rough today.", "Taxes are due in May.", *FILLER)
    [vector] = await embedder.embed(["a stormy ocean"])

    answer = contents(
        await person.recall(
            "xyzzy",
            limit=1,
            ranking=Ranking(keyword=0.0),
            embedding=[float(x) * 3 for x in vector],
        )
    )

    assert answer == ["The sea is rough today."]


async def test_a_vector_that_fits_no_model_here_is_refused_by_name(
    person: Person, database: Database
) -> None:
    await person.keep("The sea is rough today.")

    for vector in ([1.0, 2.0], [0.0] * 256, [float("nan")] * 256, [float("inf")] * 256):
        with pytest.raises(InvalidInput, match=r"ranking\.embedding"):
            await person.recall("sea", embedding=vector)
    with pytest.raises(InvalidInput, match=r"ranking\.embedding.*off"):
        await Person(MemoryContext.of(database, None)).recall(
            "sea", embedding=[1.0] * 256
        )


async def test_a_vector_of_another_model_is_refused(
    folklore: CommandLine, embedder: Embedder, tmp_path: Path
) -> None:
    await folklore.done("store", "The sea is rough today.")
    [vector] = await embedder.embed(["a stormy ocean"])
    path = tmp_path / "vector.json"

    async def recalled(model: str) -> Ran:
        path.write_text(
            json.dumps({"model": model, "vector": [float(x) for x in vector]})
        )
        return await folklore(
            "recall", "xyzzy", "--embedding", path, "--min-score", "0", "--json"
        )

    refused = await recalled("another")
    name = re.search(r"must be (\S+), got another", refused.err)
    assert refused.code == 2
    assert name is not None
    assert (await recalled(name[1])).json["memories"][0][
        "content"
    ] == "The sea is rough today."


async def test_a_boosted_reflection_is_moved_up_to_half_of_its_rank(
    person: Person,
) -> None:
    await person.keep(
        *(
            f"Release {word} failed on Friday"
            for word in ("apple", "birch", "cedar", "daisy", "elm")
        )
    )
    await person.keep(Draft("Releases often fail", kind="reflection"), *FILLER)

    async def places(**asked: Any) -> list[int]:
        answer = await person.recall("release failed Friday", **asked)
        return [
            place
            for place, item in enumerate(answer.memories)
            if item.memory.kind == "reflection"
        ]

    [usual], [boosted] = await places(), await places(boost_reflections=True)

    assert usual >= 4
    assert boosted == -(-usual // 2)


async def test_chains_of_relations_are_followed_as_far_as_asked_and_as_strong(
    person: Person,
) -> None:
    ids = await person.keep(
        "The harbour crane is closed.",
        "Olives",
        "Kettles",
        "Walnuts",
        "Saddles",
        *FILLER,
    )
    await person.relate(
        *(
            Relation(a, "causes", b, s)
            for a, b, s in zip(ids, ids[1:], (0.9, 0.8, 0.7, 1.0), strict=False)
        )
    )

    async def reached(**asked: Any) -> list[str]:
        ranking = Ranking(expand=("relations",), relations=0.0)
        answer = await person.recall("harbour crane", limit=1, ranking=ranking, **asked)
        return [
            item.memory.content
            for item in answer.memories
            if item.expanded == "relations"
        ]

    assert await reached() == []
    assert await reached(hops=2) == ["Olives", "Kettles"]
    assert await reached(hops=3) == ["Olives", "Kettles", "Walnuts"]
    assert await reached(hops=3, least_strength=0.75) == ["Olives", "Kettles"]
    await person.forget(ids[2])
    assert await reached(hops=3) == ["Olives"]


@pytest.mark.parametrize("sort", ["score", "time_asc", "updated_desc"])
async def test_a_budget_holds_without_a_question_and_the_rest_waits_behind_the_cursor(
    person: Person, sort: Sort
) -> None:
    await person.keep(
        *(f"Paragraph {number}: " + "gardens and parks, " * 20 for number in range(12))
    )
    whole = await person.recall("*", limit=100, sort=sort)

    pages = await person.pages("*", limit=5, sort=sort, max_tokens=300)

    assert (
        max(sum(tokens.estimate(text) for text in contents(page)) for page in pages)
        <= 300
    )
    assert [page.truncated for page in pages] == [True] * (len(pages) - 1) + [False]
    assert [id_ for page in pages for id_ in ids(page)] == ids(whole)


async def test_a_search_by_keyword_is_lent_nothing_by_relations(
    person: Person, connection: asyncpg.Connection
) -> None:
    cause, effect, *_ = await person.keep(
        "The tunnel broke at noon.", "Invoices were sent twice.", *FILLER
    )
    await tie(connection, (cause, effect))

    assert contents(await person.search("tunnel")) == ["The tunnel broke at noon."]


async def test_expansion_repeats_nothing_that_an_earlier_page_gave(
    person: Person, connection: asyncpg.Connection
) -> None:
    regattas = await person.keep(
        *(f"The regatta of {year} was cancelled." for year in range(1990, 2002)),
        *FILLER,
    )
    [bridge] = await person.keep("Protests are heard on Monday.")
    await tie(connection, *((id_, bridge) for id_ in regattas[:12]), strength=0.01)

    pages = await person.pages(
        "regatta cancelled", limit=4, ranking=chosen(expand=("relations",))
    )
    given = [text for page in pages for text in contents(page)]

    assert "Protests are heard on Monday." in given
    assert len(given) == len(set(given))
