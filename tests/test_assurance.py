"""How sure an answer is: words are taken together, times count by their marks, the best result speaks for the rest."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.model import Draft
from folklore.ranking.confidence import MOST_WORDS, Asked, calibrated
from folklore.ranking.standard_scores import inverse_document_frequency
from folklore.ranking.weights import chosen
from tests.person import NOON, Person, ids

NOTHING = inverse_document_frequency(0, 100)
weights = st.dictionaries(st.text("abc@", min_size=1, max_size=4), st.floats(0.01, 12), max_size=70)
bits = st.integers(0, 2**MOST_WORDS - 1)


@given(weights, bits, bits, bits)
def test_more_words_never_cover_less_and_nobody_covers_all(
    held: dict[str, float], own: int, beside: int, more: int
) -> None:
    asked = Asked.of(held, dict.fromkeys(held, 1), (), 100)

    covered = asked.covered(own, beside)

    assert 0 <= covered < 1
    assert asked.covered(own, beside | more) >= covered
    assert asked.covered(own | more, beside) >= covered
    assert asked.covered(own | beside, 0) >= covered


def test_words_of_a_memory_and_of_those_beside_it_are_taken_together() -> None:
    asked = Asked.of({"harbour": 4.0, "paint": 4.0}, {"harbour": 2, "paint": 2}, (), 100)

    apart, together = asked.covered(0b01, 0), asked.covered(0b01, 0b10)

    assert together == pytest.approx(apart * 1.8)
    assert asked.covered(0b11, 0) == pytest.approx(apart * 2)


def test_a_word_that_nothing_holds_counts_against_an_answer() -> None:
    known = Asked.of({"harbour": 4.0}, {"harbour": 2}, (), 100)
    unknown = Asked.of({"harbour": 4.0}, {"harbour": 2, "submarine": 0}, (), 100)

    assert unknown.covered(1, 0) < known.covered(1, 0)


def test_a_short_question_is_less_sure_than_a_long_one_covered_as_much() -> None:
    short = Asked.of({"harbour": 4.0}, {"harbour": 2}, (), 100)
    long = Asked.of({"harbour": 4.0, "paint": 4.0, "night": 4.0}, {"harbour": 2, "paint": 2, "night": 2}, (), 100)

    assert short.covered(1, 0) < long.covered(0b111, 0)


def test_a_date_counts_once_by_its_marks_and_not_by_how_it_is_written() -> None:
    documents = {"paint": 3, "juli": 1, "2023": 0, "9": 0, "@2023-07-09": 4, "@2023-07-08": 0, "@2023-07-10": 9}
    weighed = {"paint": 4.0, "@2023-07-09": 3.0, "@2023-07-10": 1.0, "juli": 5.0}

    asked = Asked.of(weighed, documents, {"juli", "2023", "9"}, 100)

    assert asked.whole == pytest.approx(4.0 + 3.0 + 0.75 * NOTHING)
    assert asked.covered(0b001, 0) < asked.covered(0b101, 0) < asked.covered(0b011, 0)
    assert asked.covered(0b1111, 0) == asked.covered(0b011, 0)


def test_words_beyond_those_that_are_told_apart_make_no_answer_less_sure() -> None:
    words = {f"word{number}": 2.0 for number in range(MOST_WORDS + 20)}

    assert Asked.of(words, dict.fromkeys(words, 1), (), 100) == Asked.of(
        dict(list(words.items())[:MOST_WORDS]), {}, (), 100
    )


def test_a_date_of_which_nothing_is_kept_counts_against_an_answer() -> None:
    dateless = Asked.of({"paint": 4.0}, {"paint": 3}, (), 100)
    elsewhen = Asked.of({"paint": 4.0}, {"paint": 3, "juli": 0, "@07": 0}, {"juli"}, 100)

    assert elsewhen.whole == pytest.approx(dateless.whole + NOTHING)


def test_a_question_of_nothing_that_could_be_held_is_not_covered() -> None:
    assert Asked.of({}, {}, (), 0).covered(0, 0) == 0


@given(st.lists(st.tuples(st.one_of(st.none(), st.floats(0, 1)), st.floats(-1, 1)), max_size=12))
def test_evidence_lies_between_nothing_and_certainty_and_rises_with_what_it_is_made_of(found: list[Any]) -> None:
    coverages, cosines = [coverage for coverage, _ in found], [cosine for _, cosine in found]

    evidence = calibrated(coverages, cosines)

    assert len(evidence) == len(found)
    assert all(0 < value < 1 for value in evidence)
    for place, coverage in enumerate(coverages):
        nearer = calibrated(coverages, [*cosines[:place], cosines[place] + 0.1, *cosines[place + 1 :]])
        assert nearer[place] > evidence[place]
        if coverage is not None:
            fuller = calibrated([*coverages[:place], coverage + 0.1, *coverages[place + 1 :]], cosines)
            assert fuller[place] > evidence[place]


def test_a_result_is_surer_beside_one_that_is_sure() -> None:
    assert calibrated([0.2, 0.8], [0.3, 0.6])[0] > calibrated([0.2, 0.2], [0.3, 0.3])[0]


def test_where_no_words_count_the_cosine_stands_in_for_them() -> None:
    assert calibrated([None], [0.6]) == calibrated([0.6], [0.6])


async def sureness(person: Person, question: str, **asked: Any) -> float:
    """The score of the first result."""
    score = (await person.recall(question, **asked)).memories[0].score
    assert score is not None
    return score


async def test_a_question_about_the_day_of_a_memory_is_surer_than_about_another(person: Person) -> None:
    day = NOON - timedelta(days=300)  # 8 July 2025
    others = [Draft(f"Somebody repaired boat number {number}.", occurred_at=NOON) for number in range(12)]
    await person.keep(Draft("Maria painted the harbour.", occurred_at=day), *others)

    right = await sureness(person, "What did Maria paint on 8 July 2025?")
    wrong = await sureness(person, "What did Maria paint on 20 October 2024?")

    assert right > await sureness(person, "What did Maria paint on the whale?") > wrong


async def test_an_identifier_with_a_year_in_it_is_as_sure_as_another(person: Person) -> None:
    await person.keep("CVE-2025-66416 was fixed by upgrading the SDK.", "CVE-3025-66417 was fixed by a patch.")
    await person.keep(*(f"Something else entirely, paragraph {number} about gardens." for number in range(20)))

    assert await sureness(person, "CVE-2025-66416") == pytest.approx(await sureness(person, "CVE-3025-66417"), abs=0.1)


async def test_a_question_and_its_reply_are_surer_together_than_apart(person: Person) -> None:
    said = ("Which submarine did you visit?", "The one in Lagos, with my uncle.")
    fillers = [f"Somebody repaired boat number {number}." for number in range(12)]
    await person.keep(*said, *fillers, namespace="apart")
    await person.keep(*(Draft(text, session="s") for text in said), *fillers, namespace="together")

    asked = "Who visited the submarine in Lagos with his uncle?"

    apart = await sureness(person, asked, namespaces=("apart",))
    assert await sureness(person, asked, namespaces=("together",)) > apart + 0.1


async def test_of_a_very_long_question_the_rarest_words_are_told_apart(person: Person) -> None:
    words = [f"word{number}" for number in range(90)]
    await person.keep(" ".join(words), *(" ".join(words[:number]) for number in range(30, 60)))

    answer = await person.recall(" ".join(words))

    assert all(0 < (result.score or 0) <= 1 for result in answer.memories)
    assert answer.memories[0].score == max(result.score or 0 for result in answer.memories)


@pytest.mark.parametrize("expression", ['"harbour office"', "harbour AND NOT boat"])
async def test_what_satisfies_an_expression_is_as_sure_as_its_words(person: Person, expression: str) -> None:
    await person.keep("The harbour office opens at nine.", *(f"Boat number {number} is new." for number in range(9)))

    assert await sureness(person, expression) > await sureness(person, "harbour AND submarine OR office")


async def test_what_says_too_little_leaves_its_place_to_what_says_enough(person: Person) -> None:
    await person.keep(*(f"The regatta of {year} in Kiel was cancelled by storm." for year in range(1990, 2010)))
    await person.keep(*(f"Something else entirely, paragraph {number} about gardens." for number in range(40)))
    question, ranking = "regatta Kiel cancelled storm gardens paragraph", chosen(min_score=0.7)
    enough = await person.recall(question, limit=60, ranking=ranking)

    given: list[UUID] = []
    cursor = None
    for _ in range(10):
        page = await person.recall(question, limit=5, ranking=ranking, cursor=cursor)
        given += ids(page)
        cursor = page.cursor
        if cursor is None:
            break
        assert len(page.memories) == 5

    assert len(enough.memories) == 20
    assert sorted(given) == sorted(ids(enough))
