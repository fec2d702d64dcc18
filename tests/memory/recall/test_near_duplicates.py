"""Texts of the same words count as one; texts that differ in any word are ranked by themselves."""

from collections.abc import Sequence
from datetime import timedelta

from hypothesis import given, strategies as st

from folklore.memory import serializers
from folklore.model import Draft
from folklore.ranking.diversity import group_near_duplicates, newest_first, opening
from folklore.ranking.weights import Ranking
from folklore.text.query.question import plain
from tests.person import NOON, Person, contents

FACT = "We will paint the harbour office in autumn when the scaffolding is there"
SAME_WORDS = (FACT.upper(), f'"{FACT}."', FACT.replace(" in ", ", in "), f"- {FACT}!")


def grouped_places(texts: Sequence[str]) -> dict[int, list[int]]:
    return group_near_duplicates(
        range(len(texts)),
        lambda place: opening(plain(texts[place])),
        lambda place: texts[place],
        lambda place: NOON + timedelta(place),
    )


def grouped(*texts: str) -> list[list[str]]:
    """Group texts, best first and each a day newer than the one before it."""
    groups = grouped_places(texts)
    return [[texts[newest], *(texts[other] for other in others)] for newest, others in groups.items()]


def test_long_texts_are_compared_to_their_end_and_in_the_order_of_their_words() -> None:
    beginning = "the deploy of the billing service went well " * 200
    ends = ("today for Ada and Ben", "again", "Today for Ada and Ben.", "today for Ben and Ada")
    texts = [beginning + end for end in ends]

    assert grouped(*texts) == [[texts[2], texts[0]], [texts[1]], [texts[3]]]


def test_a_text_is_no_near_duplicate_of_its_beginning() -> None:
    texts = ("we retry before the message", "we retry before the message is acknowledged", "we retry", "", "!!!", "the")

    assert grouped(*texts) == [[text] for text in texts]


@given(st.lists(st.text("ab .", max_size=6), max_size=8))
def test_every_text_comes_once_and_each_wording_is_represented_once(texts: list[str]) -> None:
    def wording(place: int) -> tuple[object, ...]:
        chunks = (chunk.rstrip(".") for chunk in texts[place].split())
        return tuple(word for word in chunks if word and word != "a") or (place,)

    groups = grouped_places(texts)

    places = range(len(texts))
    assert sorted([*groups, *(other for others in groups.values() for other in others)]) == list(places)
    assert len(groups) == len({wording(place) for place in places})
    assert all({wording(newest)} >= {wording(other) for other in others} for newest, others in groups.items())
    assert all([newest, *others] == sorted([newest, *others], reverse=True) for newest, others in groups.items())


def test_of_one_subject_the_newer_comes_first_wherever_it_was() -> None:
    assert newest_first("abcd", {"a": ["d", "x"], "c": ["d"]}) == ["d", "x", "a", "b", "c"]
    assert newest_first("abc", {"a": ["c", "b"], "b": ["c"]}) == ["c", "b", "a"]
    assert newest_first("abc", {}) == ["a", "b", "c"]


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


async def test_the_newest_of_a_group_is_shown_with_its_variants(person: Person) -> None:
    text = "The harbour office opens at nine in the morning on every weekday"
    [first] = await person.at(NOON - timedelta(days=9)).keep(text.replace("The h", "H"))
    [second] = await person.at(NOON - timedelta(days=2)).keep(f"{text}!")
    [newest] = await person.keep(text)
    await person.keep("A harbour has gulls.", "An office has chairs.")

    answer = serializers.answer(await person.recall("When does the harbour office open?", limit=10), "concise")

    assert len(answer["memories"]) == 3
    shown = answer["memories"][0]
    assert (shown["id"], shown["content"]) == (str(newest), text)
    assert shown["variants"] == [
        {"id": str(second), "when": "2026-05-02T12:00:00Z", "author": "tester", "differs": "weekday!"},
        {"id": str(first), "when": "2026-04-25T12:00:00Z", "author": "tester", "differs": "Harbour"},
    ]


async def test_many_variants_are_counted(person: Person) -> None:
    await person.keep(*(f"The harbour crane{'!' * number} is red." for number in range(12)))

    [shown] = serializers.answer(await person.recall("harbour crane", limit=20), "concise")["memories"]

    assert len(shown["variants"]) == 6
    assert shown["variants"][-1] == {"more": 6}


async def test_the_same_text_in_two_namespaces_takes_one_place_and_both_are_named(person: Person) -> None:
    for namespace in ("one", "other"):
        await person.keep("The harbour crane is red.", namespace=namespace)
    await person.keep("A crane is a bird.", "A harbour has gulls.", namespace="other")

    answer = await person.recall("harbour crane", limit=4)

    assert sorted(contents(answer)) == ["A crane is a bird.", "A harbour has gulls.", "The harbour crane is red."]
    shown = answer.memories[0]
    assert {shown.memory.namespace, *(item.namespace for item in shown.variants)} == {"one", "other"}
