"""An answer stays within the tokens its reader can spare."""

import json
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, strategies as st
from mcp import Client

from folklore.memory.context.budget import within_budget
from folklore.model import Draft, Memory, Recalled
from folklore.text import tokens
from tests.person import NOON, Person


def result(content: str, summary: str | None = None) -> Recalled:
    return Recalled(
        Memory(
            content, summary, id=UUID(int=1), namespace="notes", language="english", created_at=NOON, updated_at=NOON,
            author="tester",
        ),
        score=1.0,
    )  # fmt: skip


results = st.lists(
    st.builds(
        result,
        st.text(min_size=1, max_size=800),
        st.one_of(st.none(), st.text(min_size=1, max_size=80)),
    ),
    max_size=8,
)


@given(results, st.integers(50, 2_000))
def test_an_answer_never_exceeds_its_budget(found: list[Recalled], budget: int) -> None:
    kept, cut = within_budget(found, budget)

    assert sum(tokens.estimate(item.memory.content) for item in kept) <= budget
    assert bool(kept) == bool(found), "the first always fits"
    assert [item.memory.id for item in kept] == [
        item.memory.id for item in found[: len(kept)]
    ]
    assert cut == (len(kept) < len(found))


@given(results, st.integers(50, 1_000))
def test_a_larger_budget_never_gives_fewer_results(
    found: list[Recalled], budget: int
) -> None:
    fewer, _ = within_budget(found, budget)
    more, _ = within_budget(found, budget * 2)

    assert len(more) >= len(fewer)


async def test_no_answer_is_longer_than_clients_take(
    client: Client, person: Person
) -> None:
    ids = await person.keep(
        *[Draft(f"{number} " + "課" * 1_500) for number in range(60)]
    )

    async def tokens_of(tool: str, **arguments: Any) -> float:
        answered = await client.call_tool(tool, arguments)
        assert not answered.is_error
        memories = answered.structured_content["memories"]
        assert len(memories[0]["content"]) >= 20
        return sum(
            0.25 if char.isascii() else 1
            for char in json.dumps(memories, ensure_ascii=False)
        )

    for form in ("concise", "detailed"):
        assert await tokens_of("memory_list", limit=100, format=form) < 25_000
        assert (
            await tokens_of("search_keywords", query="1", limit=100, format=form)
            < 25_000
        )
    assert await tokens_of("memory_get", ids=[str(id_) for id_ in ids]) < 25_000
    assert (
        await tokens_of(
            "memory_get", ids=[str(id_) for id_ in ids[:9]], max_tokens=4_000
        )
        < 4_500
    )
    assert await tokens_of("memory_list", limit=100, max_tokens=500) < 2_500
    assert (
        await tokens_of(
            "search_keywords", query="1 2 3 4 5 6 7", limit=100, max_tokens=500
        )
        < 2_500
    )


def test_a_long_text_is_given_by_its_summary() -> None:
    kept, cut = within_budget([result("long " * 1_000, "short"), result("plain")], 150)

    assert [item.memory.content for item in kept] == ["short", "plain"]
    assert not cut


def test_a_long_text_leaves_room_for_the_others() -> None:
    kept, cut = within_budget(
        [result("first"), result("long " * 1_000), result("third")], 300
    )

    assert [len(item.memory.content) < 700 for item in kept] == [True, True, True]
    assert kept[2].memory.content == "third"
    assert not cut


def test_the_fields_around_each_text_count_towards_the_budget() -> None:
    kept, cut = within_budget([result("x")] * 10, 150)

    assert len(kept) == 3, (
        "an id, a namespace, an author, a time, a score and a match cost about forty tokens"
    )
    assert cut


@pytest.mark.parametrize("place", [0, 400, 799])
def test_a_long_text_is_cut_around_what_matches_the_question(place: int) -> None:
    sentences = [
        f"Paragraph number {number} is about nothing in particular."
        for number in range(800)
    ]
    sentences[place] = "The harbour crane was repaired by Okonkwo."

    kept, _ = within_budget(
        [result(" ".join(sentences))], 100, "who repaired the harbour crane?"
    )

    shown = kept[0].memory.content
    assert "The harbour crane was repaired by Okonkwo." in shown
    assert shown.startswith("…") is (place > 0)
    assert shown.endswith("…") is (place < 799)
