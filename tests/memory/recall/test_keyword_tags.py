"""Tags and sources are found by words as they are spelled; a phrase is a phrase."""

from collections.abc import Sequence
from typing import Any

import pytest

from folklore.contract.filters import FiltersRequest
from folklore.db.database import Database
from folklore.memory.context import MemoryContext
from folklore.model import Draft
from tests.person import Person, contents

AUTHENTICATION = Draft(
    "postgres authentication failed", tags=("billing",), source="docs/x.md"
)
REFUND = Draft(
    "money goes back within a week",
    tags=("area:payments/refunds",),
    source="wiki/Money-Back",
)
OTHER = Draft("the office is closed in August", tags=("people",), source="handbook")
BILLED = "the customer was billed twice"


@pytest.fixture
async def reader(database: Database) -> Person:
    """Somebody without a model, so that words alone count."""
    person = Person(MemoryContext.of(database, None))
    await person.keep(AUTHENTICATION, REFUND, OTHER)
    return person


def texts(*drafts: Draft) -> list[str]:
    return sorted(draft.content for draft in drafts)


FOUND: dict[str, Sequence[Draft]] = {
    "tag:Billing": [AUTHENTICATION], "tag:billi*": [AUTHENTICATION], "tag:refunds": [REFUND],
    'tag:"area:payments"': [REFUND], "tag:area:payments": [REFUND], "tag:area/payments/refunds": [REFUND],
    "tag:refunds:payments": [], "tag:bill": [], "tag:(billing OR refunds)": [AUTHENTICATION, REFUND],
    "source:docs/x.md": [AUTHENTICATION], "source:money-back": [REFUND],
    "source:(docs OR handbook)": [AUTHENTICATION, OTHER], "content:billing": [],
    "content:authentication": [AUTHENTICATION], "authentication -tag:billing": [],
    "(authentication OR money) -source:docs": [REFUND], "(authentication OR money) -billing": [REFUND],
    "billing AND failed": [AUTHENTICATION], "the AND billing": [], "the AND closed": [OTHER],
    "billing*": [AUTHENTICATION], '"area payments"': [REFUND],
}  # fmt: skip


async def test_an_expression_finds_tags_and_sources_as_they_are_spelled(
    reader: Person,
) -> None:
    for query, found in FOUND.items():
        assert sorted(contents(await reader.search(query))) == texts(*found), query


async def test_a_bare_word_finds_a_tag_that_no_text_says(reader: Person) -> None:
    for query, found in (
        ("billing", AUTHENTICATION),
        ("any refunds?", REFUND),
        ("payments/refunds", REFUND),
    ):
        assert contents(await reader.search(query)) == [found.content]
        assert contents(await reader.recall(query)) == [found.content]


async def test_a_function_word_finds_no_tag_unless_it_is_asked_for_as_one(
    reader: Person,
) -> None:
    await reader.keep(Draft("new laptops are ordered here", tags=("it",)))

    assert contents(await reader.search("is it closed in August")) == [OTHER.content]
    assert contents(await reader.search("tag:it")) == ["new laptops are ordered here"]


async def test_a_text_in_no_language_is_found_by_words_of_a_language_that_is_asked_too(
    reader: Person,
) -> None:
    await reader.keep(Draft("retrying is pointless", language="simple"))

    assert contents(await reader.search("retrying")) == ["retrying is pointless"]


async def test_a_word_counts_once_whether_it_is_said_or_tagged_or_both(
    reader: Person,
) -> None:
    await reader.keep(BILLED, Draft("billing is done by the night", tags=("billing",)))

    answer = await reader.recall("billing", explain=True)

    whole: Any = answer.explain
    each: list[Any] = [result.explain for result in answer.memories]
    assert {word: of["documents"] for word, of in whole["lexemes"].items()} == {
        "bill": 3
    }
    assert len(each) == 3
    assert len({explained["branches"]["keyword"]["raw"] for explained in each}) == 1


async def test_a_tag_elsewhere_takes_no_evidence_from_who_says_the_word(
    database: Database,
) -> None:
    person = Person(MemoryContext.of(database, None))
    for namespace in ("said", "tagged"):
        await person.keep(BILLED, "an outage of the lift", namespace=namespace)
    await person.keep(Draft("nothing else", tags=("other",)), namespace="said")
    await person.keep(
        Draft("nothing else", tags=("other", "billing")), namespace="tagged"
    )
    await person.keep("the clerk billed it", namespace="said")
    await person.keep("the clerk wrote it", namespace="tagged")

    for query in ("billing outage", "billing AND customer"):
        said, tagged = [
            await person.search(query, namespaces=(namespace,))
            for namespace in ("said", "tagged")
        ]
        evidence = [
            next(
                result.score
                for result in answer.memories
                if result.memory.content == BILLED
            )
            for answer in (said, tagged)
        ]
        assert evidence[0] == evidence[1]


async def test_a_source_asked_for_is_no_word_that_a_memory_lacks(
    reader: Person,
) -> None:
    """No posting tells of sources, so they speak neither for nor against anything but by the expression itself."""
    bare, bounded = [
        await reader.search(query)
        for query in ("authentication", "authentication AND source:docs")
    ]

    assert contents(bare) == contents(bounded) == [AUTHENTICATION.content]
    assert bare.memories[0].score == bounded.memories[0].score


async def test_a_tag_alone_is_as_good_evidence_as_the_word_alone(
    database: Database,
) -> None:
    person = Person(MemoryContext.of(database, None))
    for namespace in ("said", "tagged"):
        await person.keep(
            "an outage of the lift", "the office is closed", namespace=namespace
        )
    await person.keep("they bill us", namespace="said")
    await person.keep(Draft("they charge us", tags=("billing",)), namespace="tagged")

    scores = [
        (await person.search("billing", namespaces=(namespace,))).memories[0].score
        for namespace in ("said", "tagged")
    ]

    assert scores[0] == scores[1]


async def test_a_tag_that_is_new_is_found_though_the_word_was_common_a_moment_ago(
    person: Person,
) -> None:
    """How common words read is remembered; what is tagged since must not wait until it is forgotten."""
    for start in range(0, 1_200, 400):
        await person.keep(
            *(f"fact {place} about the bill" for place in range(start, start + 400))
        )
    assert len((await person.search("billing fact")).memories) == 10

    await person.keep(Draft("they charge us twice", tags=("billing",)))

    found = await person.search("billing", filters=FiltersRequest(tags=("billing",)))
    assert contents(found) == ["they charge us twice"]


async def test_a_search_finds_a_phrase_which_a_recall_prefers_to_its_words(
    database: Database,
) -> None:
    full = "the connection pool is full"
    reversed_ = "pool connection reversed"
    proxy = "a timeout of the proxy"
    person = Person(MemoryContext.of(database, None))
    await person.keep(reversed_, full, proxy)

    for query, found in (
        ('"connection pool"', [full]),
        ('"connection pools" OR nothing', [full]),
        ('"connection pool" timeout', [proxy, full]),
        ("connection pool", [reversed_, full]),
    ):
        assert sorted(contents(await person.search(query))) == found, query
    assert contents(await person.recall('"connection pool"')) == [full, reversed_]
