"""Texts of the same words count as one; texts that differ in any word are ranked by themselves."""

from datetime import timedelta

from folklore.contract.recall import answer_json
from folklore.model import Draft
from folklore.ranking.weights import Ranking
from tests.person import NOON, Person, contents

FACT = "We will paint the harbour office in autumn when the scaffolding is there"
SAME_WORDS = (FACT.upper(), f'"{FACT}."', FACT.replace(" in ", ", in "), f"- {FACT}!")


async def test_a_fact_stored_five_times_takes_one_place_and_keeps_its_conversation(
    person: Person,
) -> None:
    await person.keep(
        Draft("Who paints it then?", session="s"), Draft(FACT, session="s"), Draft("Ada does.", session="s"),
        *SAME_WORDS,
        *(f"The office got chair number {number}." for number in range(20)),
    )  # fmt: skip
    asked = "When will the harbour office be painted?"

    found = contents(await person.recall(asked, limit=4))
    by_relevance = contents(
        await person.recall(asked, limit=4, ranking=Ranking(mmr_lambda=1.0))
    )

    assert len({FACT, *SAME_WORDS}.intersection(found)) == 1
    assert len({FACT, *SAME_WORDS}.intersection(by_relevance)) > 1
    assert {"Who paints it then?", "Ada does."} <= set(found)


async def test_the_newest_of_a_group_is_shown_with_its_variants(person: Person) -> None:
    text = "The harbour office opens at nine in the morning on every weekday"
    [first] = await person.at(NOON - timedelta(days=9)).keep(text.replace("The h", "H"))
    [second] = await person.at(NOON - timedelta(days=2)).keep(f"{text}!")
    [newest] = await person.keep(text)
    await person.keep("A harbour has gulls.", "An office has chairs.")

    answer = answer_json(
        await person.recall("When does the harbour office open?", limit=10), "concise"
    )

    assert len(answer["memories"]) == 3
    shown = answer["memories"][0]
    assert (shown["id"], shown["content"]) == (str(newest), text)
    assert shown["variants"] == [
        {
            "id": str(second),
            "when": "2026-05-02T12:00:00Z",
            "author": "tester",
            "differs": "weekday!",
        },
        {
            "id": str(first),
            "when": "2026-04-25T12:00:00Z",
            "author": "tester",
            "differs": "Harbour",
        },
    ]


async def test_many_variants_are_counted(person: Person) -> None:
    await person.keep(
        *(f"The harbour crane{'!' * number} is red." for number in range(12))
    )

    [shown] = answer_json(await person.recall("harbour crane", limit=20), "concise")[
        "memories"
    ]

    assert len(shown["variants"]) == 6
    assert shown["variants"][-1] == {"more": 6}


async def test_the_same_text_in_two_namespaces_takes_one_place_and_both_are_named(
    person: Person,
) -> None:
    for namespace in ("one", "other"):
        await person.keep("The harbour crane is red.", namespace=namespace)
    await person.keep("A crane is a bird.", "A harbour has gulls.", namespace="other")

    answer = await person.recall("harbour crane", limit=4)

    assert sorted(contents(answer)) == [
        "A crane is a bird.",
        "A harbour has gulls.",
        "The harbour crane is red.",
    ]
    shown = answer.memories[0]
    assert {shown.memory.namespace, *(item.namespace for item in shown.variants)} == {
        "one",
        "other",
    }
