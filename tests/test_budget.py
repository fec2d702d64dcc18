"""An answer stays within the tokens its reader can spare."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from folklore.memory.recall.page import within_budget
from folklore.model import Memory, Recalled
from folklore.text import tokens
from tests.person import NOON


def result(content: str, summary: str | None = None) -> Recalled:
    return Recalled(
        Memory(
            content,
            summary,
            id=UUID(int=1),
            namespace="notes",
            language="english",
            created_at=NOON,
            updated_at=NOON,
            author="tester",
        ),
        score=1.0,
    )


results = st.lists(
    st.builds(result, st.text(min_size=1, max_size=800), st.one_of(st.none(), st.text(min_size=1, max_size=80))),
    max_size=8,
)


@given(results)
def test_without_a_budget_nothing_is_left_out(found: list[Recalled]) -> None:
    assert within_budget(found, None) == (found, False)


@given(results, st.integers(50, 2_000))
def test_an_answer_never_exceeds_its_budget(found: list[Recalled], budget: int) -> None:
    kept, cut = within_budget(found, budget)

    assert sum(tokens.estimate(item.memory.content) for item in kept) <= budget
    assert bool(kept) == bool(found), "the first always fits"
    assert [item.memory.id for item in kept] == [item.memory.id for item in found[: len(kept)]]
    assert cut == (kept != found)


@given(results, st.integers(50, 1_000))
def test_a_larger_budget_never_gives_fewer_results(found: list[Recalled], budget: int) -> None:
    fewer, _ = within_budget(found, budget)
    more, _ = within_budget(found, budget * 2)

    assert len(more) >= len(fewer)


def test_a_long_text_is_given_by_its_summary() -> None:
    kept, cut = within_budget([result("long " * 1_000, "short"), result("plain")], 100)

    assert [item.memory.content for item in kept] == ["short", "plain"]
    assert cut


def test_a_later_text_that_does_not_fit_ends_the_answer() -> None:
    kept, cut = within_budget([result("first"), result("long " * 1_000), result("third")], 200)

    assert [item.memory.content for item in kept] == ["first"]
    assert cut


def test_the_fields_around_each_text_count_towards_the_budget() -> None:
    kept, cut = within_budget([result("x")] * 10, 100)

    assert len(kept) == 3, "an id, a namespace, a kind and a time cost about thirty tokens"
    assert cut


def test_the_first_result_is_cut_if_it_exceeds_the_budget() -> None:
    kept, cut = within_budget([result("word " * 1_000)], 50)

    assert kept[0].memory.content.endswith("…")
    assert kept[0].score == 1.0
    assert cut
