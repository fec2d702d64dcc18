"""Texts of the same words count as one; texts that differ in any word are ranked by themselves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from folklore.model import Draft
from folklore.ranking.diversity import split_near_duplicates
from folklore.ranking.weights import Ranking
from tests.person import Person, contents

FACT = "We will paint the harbour office in autumn when the scaffolding is there"
SAME_WORDS = (FACT.upper(), f'"{FACT}."', FACT.replace(" in ", ", in "), f"- {FACT}!")


def split(*texts: str) -> tuple[list[str], list[str]]:
    places, repeated = split_near_duplicates(range(len(texts)), lambda place: texts[place], len(texts))
    return [texts[place] for place in places], [texts[place] for place in repeated]


def test_the_best_of_the_same_words_represents_the_others() -> None:
    assert split("The wind turned.", "Rain.", "the wind turned", "The wind: turned!") == (
        ["The wind turned.", "Rain."],
        ["the wind turned", "The wind: turned!"],
    )


def test_long_texts_are_compared_to_their_end() -> None:
    beginning = "the deploy of the billing service went well " * 200
    texts = (beginning + "today", beginning + "again", beginning + "Today.")

    assert split(*texts) == (list(texts[:2]), [texts[2]])


def test_a_text_is_no_near_duplicate_of_its_beginning() -> None:
    texts = ("we retry before the message", "we retry before the message is acknowledged", "we retry", "")

    assert split(*texts) == (list(texts), [])


@given(st.lists(st.text("ab .", max_size=6), max_size=8))
def test_every_text_comes_once_and_each_wording_is_represented_once(texts: list[str]) -> None:
    def wording(text: str) -> tuple[str, ...]:
        return tuple(word for word in (chunk.rstrip(".") for chunk in text.split()) if word)

    representatives, repeated = split_near_duplicates(range(len(texts)), lambda place: texts[place], len(texts))
    first = {wording(text): place for place, text in reversed(list(enumerate(texts)))}

    assert representatives == sorted(first.values())
    assert repeated == sorted(set(range(len(texts))) - set(representatives))


def test_nothing_is_read_beyond_the_representatives_asked_for() -> None:
    texts = ("rain", "Rain.", "wind", "Wind.", "snow")

    assert split_near_duplicates(range(5), lambda place: texts[place], 2) == ([0, 2], [1])


async def test_a_fact_stored_five_times_takes_one_place_and_keeps_its_conversation(person: Person) -> None:
    await person.keep(
        Draft("Who paints it then?", session="s"), Draft(FACT, session="s"), Draft("Ada does.", session="s"),
        *SAME_WORDS,
        *(f"The office got chair number {number}." for number in range(20)),
    )  # fmt: skip
    asked = "When will the harbour office be painted?"

    found = contents(await person.recall(asked, limit=4))
    by_relevance = contents(await person.recall(asked, limit=4, ranking=Ranking(mmr_lambda=1.0)))

    assert len({FACT, *SAME_WORDS}.intersection(found)) == 1
    assert len({FACT, *SAME_WORDS}.intersection(by_relevance)) > 1
    assert {"Who paints it then?", "Ada does."} <= set(found)


async def test_near_duplicates_come_after_everything_else_and_are_not_lost(person: Person) -> None:
    said = "The harbour office opens at nine in the morning on every weekday"
    await person.keep(said, f"{said}!", "A harbour has gulls.", "An office has chairs.")

    answer = await person.recall("When does the harbour office open?", limit=10, explain=True)

    assert ["nine" in text for text in contents(answer)] == [True, False, False, True]
    assert [(result.explain or {})["redundancy"] for result in answer.memories] == [0.0, 0.0, 0.0, 1.0]


async def test_the_same_text_in_two_namespaces_takes_one_place(person: Person) -> None:
    for namespace in ("one", "other"):
        await person.keep("The harbour crane is red.", namespace=namespace)
    await person.keep("A crane is a bird.", "A harbour has gulls.", namespace="other")

    found = contents(await person.recall("harbour crane", limit=4))

    assert found[0] == found[3] == "The harbour crane is red."
