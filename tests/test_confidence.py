"""Confidence: words of neighbours count, times count by date terms, the best result counts for the others."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.model import Draft
from folklore.ranking.confidence import MAX_WORDS, QuestionTerms, confidences
from folklore.ranking.statistics import inverse_document_frequency
from folklore.ranking.weights import chosen
from tests.person import NOON, Person, ids

NOTHING = inverse_document_frequency(0, 100)
weights = st.dictionaries(st.text("abc@", min_size=1, max_size=4), st.floats(0.01, 12), max_size=70)
bits = st.integers(0, 2**MAX_WORDS - 1)


@given(weights, bits, bits, bits)
def test_more_words_never_cover_less_and_none_cover_everything(
    held: dict[str, float], own: int, neighbours: int, more: int
) -> None:
    terms = QuestionTerms.of(held, dict.fromkeys(held, 1), (), 100)

    covered = terms.coverage(own, neighbours)

    assert 0 <= covered < 1
    assert terms.coverage(own, neighbours | more) >= covered
    assert terms.coverage(own | more, neighbours) >= covered
    assert terms.coverage(own | neighbours, 0) >= covered


def test_words_of_a_memory_and_of_its_neighbours_count_together() -> None:
    terms = QuestionTerms.of({"harbour": 4.0, "paint": 4.0}, {"harbour": 2, "paint": 2}, (), 100)

    apart, together = terms.coverage(0b01, 0), terms.coverage(0b01, 0b10)

    assert together == pytest.approx(apart * 1.8)
    assert terms.coverage(0b11, 0) == pytest.approx(apart * 2)


def test_a_word_that_no_memory_holds_lowers_coverage() -> None:
    known = QuestionTerms.of({"harbour": 4.0}, {"harbour": 2}, (), 100)
    unknown = QuestionTerms.of({"harbour": 4.0}, {"harbour": 2, "submarine": 0}, (), 100)

    assert unknown.coverage(1, 0) < known.coverage(1, 0)


def test_a_short_question_is_covered_less_than_a_long_one() -> None:
    short = QuestionTerms.of({"harbour": 4.0}, {"harbour": 2}, (), 100)
    long = QuestionTerms.of(
        {"harbour": 4.0, "paint": 4.0, "night": 4.0}, {"harbour": 2, "paint": 2, "night": 2}, (), 100
    )

    assert short.coverage(1, 0) < long.coverage(0b111, 0)


def test_a_date_counts_once_by_its_date_terms_and_not_by_its_spelling() -> None:
    documents = {"paint": 3, "juli": 1, "2023": 0, "9": 0, "@2023-07-09": 4, "@2023-07-08": 0, "@2023-07-10": 9}
    weighed = {"paint": 4.0, "@2023-07-09": 3.0, "@2023-07-10": 1.0, "juli": 5.0}

    terms = QuestionTerms.of(weighed, documents, {"juli", "2023", "9"}, 100)

    assert terms.total == pytest.approx(4.0 + 3.0 + 0.75 * NOTHING)
    assert terms.coverage(0b001, 0) < terms.coverage(0b101, 0) < terms.coverage(0b011, 0)
    assert terms.coverage(0b1111, 0) == terms.coverage(0b011, 0)


def test_words_beyond_those_that_are_distinguished_do_not_lower_coverage() -> None:
    words = {f"word{number}": 2.0 for number in range(MAX_WORDS + 20)}

    assert QuestionTerms.of(words, dict.fromkeys(words, 1), (), 100) == QuestionTerms.of(
        dict(list(words.items())[:MAX_WORDS]), {}, (), 100
    )


def test_a_date_without_memories_lowers_coverage() -> None:
    dateless = QuestionTerms.of({"paint": 4.0}, {"paint": 3}, (), 100)
    elsewhen = QuestionTerms.of({"paint": 4.0}, {"paint": 3, "juli": 0, "@07": 0}, {"juli"}, 100)

    assert elsewhen.total == pytest.approx(dateless.total + NOTHING)


def test_a_question_without_words_is_not_covered() -> None:
    assert QuestionTerms.of({}, {}, (), 0).coverage(0, 0) == 0


@given(st.lists(st.tuples(st.one_of(st.none(), st.floats(0, 1)), st.floats(-1, 1)), max_size=12))
def test_confidence_lies_between_0_and_1_and_rises_with_coverage_and_cosine(found: list[Any]) -> None:
    coverages, cosines = [coverage for coverage, _ in found], [cosine for _, cosine in found]

    confidence = confidences(coverages, cosines)

    assert len(confidence) == len(found)
    assert all(0 < value < 1 for value in confidence)
    for place, coverage in enumerate(coverages):
        nearer = confidences(coverages, [*cosines[:place], cosines[place] + 0.1, *cosines[place + 1 :]])
        assert nearer[place] > confidence[place]
        if coverage is not None:
            fuller = confidences([*coverages[:place], coverage + 0.1, *coverages[place + 1 :]], cosines)
            assert fuller[place] > confidence[place]


def test_confidence_rises_with_the_best_result_of_the_answer() -> None:
    assert confidences([0.2, 0.8], [0.3, 0.6])[0] > confidences([0.2, 0.2], [0.3, 0.3])[0]


def test_without_words_the_cosine_takes_the_place_of_coverage() -> None:
    assert confidences([None], [0.6]) == confidences([0.6], [0.6])


async def first_score(person: Person, question: str, **asked: Any) -> float:
    """Return the score of the first result."""
    score = (await person.recall(question, **asked)).memories[0].score
    assert score is not None
    return score


async def test_confidence_is_greater_for_a_question_about_the_day_of_a_memory(person: Person) -> None:
    day = NOON - timedelta(days=300)  # 8 July 2025
    others = [Draft(f"Somebody repaired boat number {number}.", occurred_at=NOON) for number in range(12)]
    await person.keep(Draft("Maria painted the harbour.", occurred_at=day), *others)

    right = await first_score(person, "What did Maria paint on 8 July 2025?")
    wrong = await first_score(person, "What did Maria paint on 20 October 2024?")

    assert right > await first_score(person, "What did Maria paint on the whale?") > wrong


async def test_a_year_within_an_identifier_does_not_lower_confidence(person: Person) -> None:
    await person.keep("CVE-2025-66416 was fixed by upgrading the SDK.", "CVE-3025-66417 was fixed by a patch.")
    await person.keep(*(f"Something else entirely, paragraph {number} about gardens." for number in range(20)))

    assert await first_score(person, "CVE-2025-66416") == pytest.approx(
        await first_score(person, "CVE-3025-66417"), abs=0.1
    )


async def test_confidence_is_greater_for_a_reply_after_its_question(person: Person) -> None:
    said = ("Which submarine did you visit?", "The one in Lagos, with my uncle.")
    fillers = [f"Somebody repaired boat number {number}." for number in range(12)]
    await person.keep(*said, *fillers, namespace="apart")
    await person.keep(*(Draft(text, session="s") for text in said), *fillers, namespace="together")

    asked = "Who visited the submarine in Lagos with his uncle?"

    apart = await first_score(person, asked, namespaces=("apart",))
    assert await first_score(person, asked, namespaces=("together",)) > apart + 0.1


async def test_of_a_very_long_question_the_rarest_words_are_distinguished(person: Person) -> None:
    words = [f"word{number}" for number in range(90)]
    await person.keep(" ".join(words), *(" ".join(words[:number]) for number in range(30, 60)))

    answer = await person.recall(" ".join(words))

    assert all(0 < (result.score or 0) <= 1 for result in answer.memories)
    assert answer.memories[0].score == max(result.score or 0 for result in answer.memories)


@pytest.mark.parametrize("expression", ['"harbour office"', "harbour AND NOT boat"])
async def test_an_expression_has_the_confidence_of_its_words(person: Person, expression: str) -> None:
    await person.keep("The harbour office opens at nine.", *(f"Boat number {number} is new." for number in range(9)))

    assert await first_score(person, expression) > await first_score(person, "harbour AND submarine OR office")


async def test_a_result_below_min_score_leaves_its_place_to_the_next(person: Person) -> None:
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
