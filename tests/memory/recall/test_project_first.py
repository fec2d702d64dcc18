"""The project first: a question is asked in its project, and elsewhere for what is answered clearly better there."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from folklore.contract.filters import FiltersRequest
from folklore.contract.memories import ForgetRequest, ListRequest
from folklore.contract.namespaces import ShareNamespaceRequest
from folklore.contract.recall import RecallRequest, SearchRequest, answer_json
from folklore.db.database import Database
from folklore.db.stores.recall import RecallStatements
from folklore.db.stores.recall_rows import Hits, Scope
from folklore.errors import DatabaseUnavailable, InvalidInput, Unavailable
from folklore.memory.context import MemoryContext
from folklore.model import Answer
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.person import Person, contents, ids

# Each in a project of its own.
SHOP = (
    "The basket of the shop is kept in Redis for two days.",
    "Orders are paid by card; the shop retries a declined card once.",
    "The shop sends receipts by e-mail through the queue.", "Discounts are rounded down to whole cents.",
    "The catalogue is read from a replica of the database.", "Tests of the shop run against a throwaway Postgres.",
)  # fmt: skip
GATE = "The gate of the harbour opens with the code of the watchman, who changes it every Monday."
ABOUT_GATE = "Who changes the code of the harbour gate, and when?"
QUESTIONS = (
    "How long is the basket kept?",
    "What happens when a card is declined?",
    "How are discounts rounded?",
)


async def filled(person: Person, others: int = 5) -> Person:
    """Return the caller in the project `shop`, among other namespaces."""
    await person.keep(*SHOP, namespace="shop")
    for place in range(others):
        texts = [
            f"Note {number} of team {place}: the basket is a matter of taste."
            for number in range(20)
        ]
        await person.keep(*texts, namespace=f"team-{place}")
    return replace(person, project="shop")


@pytest.fixture
async def shop(person: Person) -> Person:
    return await filled(person)


@pytest.fixture
async def harbour(shop: Person) -> None:
    """A namespace that alone knows of the gate."""
    await shop.keep(GATE, namespace="harbour")


async def asked(person: Person, query: str, **given: Any) -> Answer:
    return await person.call(RecallRequest(query=query, **given))


def own(answer: Answer) -> list[tuple[UUID, float | None]]:
    return [
        (result.memory.id, result.score)
        for result in answer.memories
        if not result.elsewhere
    ]


def elsewhere(answer: Answer) -> list[str]:
    return [result.memory.content for result in answer.memories if result.elsewhere]


async def test_a_project_is_answered_exactly_as_if_nothing_else_existed(
    person: Person,
) -> None:
    alone = replace(person, project="shop")
    await person.keep(*SHOP, namespace="shop")
    before = [own(await asked(alone, query)) for query in QUESTIONS]
    await filled(person)

    assert [own(await asked(alone, query)) for query in QUESTIONS] == before
    assert all(before)


async def test_an_answer_that_only_another_namespace_has_comes_last_and_is_marked(
    shop: Person, harbour: None
) -> None:
    answer = await asked(shop, ABOUT_GATE)

    assert elsewhere(answer) == [GATE]
    assert contents(answer)[-1] == GATE
    assert (
        answer.note
        == "Nothing in shop fits the question well; see the results from elsewhere."
    )
    assert answer.searched[0] == "shop"
    assert "harbour" in answer.searched
    shown = answer_json(answer, "concise")["memories"]
    assert (shown[-1]["elsewhere"], shown[-1]["namespace"]) == (True, "harbour")
    assert not any("elsewhere" in memory for memory in shown[:-1])


async def test_a_question_that_the_project_answers_as_well_brings_nothing_from_elsewhere(
    shop: Person, person: Person
) -> None:
    await person.keep(*SHOP, GATE, namespace="copy")

    for query in QUESTIONS:
        answer = await asked(shop, query)
        assert answer.memories
        assert elsewhere(answer) == []


async def test_at_most_three_results_are_from_elsewhere_within_the_limit(
    shop: Person, person: Person
) -> None:
    gates = [
        GATE.replace("Monday", day)
        for day in ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
    ]
    await person.keep(*gates, namespace="harbour")

    counts = {
        limit: await asked(shop, ABOUT_GATE, limit=limit) for limit in (1, 2, 4, 6, 10)
    }

    assert all(len(answer.memories) <= limit for limit, answer in counts.items())
    assert {limit: len(elsewhere(answer)) for limit, answer in counts.items()} == {
        1: 0,
        2: 1,
        4: 2,
        6: 3,
        10: 3,
    }


async def test_shared_namespaces_are_searched_with_the_project_in_every_project(
    shop: Person, person: Person
) -> None:
    await person.keep(GATE, namespace="rules")
    await person.call(ShareNamespaceRequest(name="rules"))

    answer = await asked(shop, ABOUT_GATE)
    assert contents(answer)[0] == GATE
    assert elsewhere(answer) == []
    assert answer.searched[:2] == ("shop", "rules")

    await person.call(ShareNamespaceRequest(name="rules", off=True))
    assert elsewhere(await asked(shop, ABOUT_GATE)) == [GATE]


async def test_names_ask_those_namespaces_only_and_an_asterisk_asks_all(
    shop: Person, person: Person, harbour: None
) -> None:
    named = await asked(shop, ABOUT_GATE, namespaces=("team-0", "shop"))
    every = await asked(shop, ABOUT_GATE, namespaces=("*",))

    assert set(named.searched) == {"team-0", "shop"}
    assert GATE not in contents(named)
    assert contents(every)[0] == GATE
    assert elsewhere(every) == []
    assert len(every.searched) == 7
    assert own(every) == own(await asked(person, ABOUT_GATE))  # without a project


@pytest.mark.parametrize("request_type", [RecallRequest, SearchRequest, ListRequest])
def test_an_empty_list_of_namespaces_is_an_error_that_says_what_to_give(
    request_type: Any,
) -> None:
    with pytest.raises(
        ValidationError, match=r'leave it out for the default, or give \["\*"\] for all'
    ):
        request_type(
            query="x", namespaces=[]
        ) if "query" in request_type.model_fields else request_type(namespaces=[])
    with pytest.raises(
        ValidationError, match="must name each namespace; leave it out for the default"
    ):
        ForgetRequest(namespaces=[])


async def test_a_search_for_words_has_the_same_default(
    shop: Person, harbour: None
) -> None:
    here = await shop.call(SearchRequest(query="basket"))
    there = await shop.call(SearchRequest(query="watchman"))

    assert {result.memory.namespace for result in here.memories} == {"shop"}
    assert elsewhere(there) == [GATE]
    assert contents(there) == [GATE]
    assert there.note is not None


async def test_the_trending_memories_are_those_of_the_project(person: Person) -> None:
    shop = await filled(person, others=2)

    assert {
        result.memory.namespace for result in (await asked(shop, "*")).memories
    } == {"shop"}
    every = await asked(shop, "*", namespaces=("*",), limit=100)
    assert len({result.memory.namespace for result in every.memories}) == 3


async def test_a_new_project_has_no_answers_but_the_strong_ones_of_others(
    person: Person,
) -> None:
    await filled(person)
    await person.keep(GATE, namespace="harbour")
    new = replace(person, project="repo:acme/new")

    answer = await asked(new, ABOUT_GATE)
    assert contents(answer)[0] == GATE
    assert elsewhere(answer) == contents(answer)
    assert "repo:acme/new" in (answer.note or "")
    assert contents(await asked(new, ABOUT_GATE, limit=1)) == [GATE]
    assert contents(await asked(new, "Which colour has the moon?")) == []


async def test_outside_a_repository_all_are_searched_until_default_holds_memories(
    person: Person,
) -> None:
    await filled(person)
    outside = replace(person, project="default")

    assert own(await asked(outside, QUESTIONS[0])) == own(
        await asked(person, QUESTIONS[0])
    )

    await person.keep("The attic is cold.", namespace="default")
    assert {
        result.memory.namespace
        for result in (await asked(outside, "cold attic")).memories
    } == {"default"}


async def test_several_questions_of_a_project_share_the_places_for_results_from_elsewhere(
    shop: Person, person: Person
) -> None:
    gates = [
        GATE.replace("Monday", day)
        for day in ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
    ]
    await person.keep(*gates, namespace="harbour")

    first = await shop.call(
        RecallRequest(
            queries=(QUESTIONS[0], ABOUT_GATE, "Who has the code of the gate?"), limit=5
        )
    )

    assert len(first.memories) == 5
    assert [result.elsewhere for result in first.memories] == [
        False,
        False,
        False,
        True,
        True,
    ]
    assert contents(first)[0] == SHOP[0]


async def test_the_pages_of_an_answer_are_the_projects_and_repeat_nothing(
    shop: Person, harbour: None
) -> None:
    first = await asked(shop, ABOUT_GATE, limit=2)
    pages = [first]
    cursor = first.cursor
    while cursor is not None:
        pages.append(await asked(shop, ABOUT_GATE, limit=2, cursor=cursor))
        cursor = pages[-1].cursor
    seen = [id_ for page in pages for id_ in ids(page)]
    whole = await asked(shop, ABOUT_GATE, limit=50)

    assert elsewhere(first) == [GATE]
    assert [elsewhere(page) for page in pages[1:]] == [[]] * (len(pages) - 1)
    assert len(seen) == len(set(seen))
    assert set(seen) == set(ids(whole))
    with pytest.raises(InvalidInput, match="belongs to another question"):
        await asked(
            replace(shop, project="team-0"), ABOUT_GATE, limit=2, cursor=first.cursor
        )


async def test_results_from_elsewhere_fit_into_the_token_budget(
    shop: Person, harbour: None
) -> None:
    answer = await asked(shop, ABOUT_GATE, max_tokens=150)

    assert elsewhere(answer) == [GATE]
    assert len(answer.memories) > 1
    assert answer.truncated
    assert sum(30 + len(text) / 4 for text in contents(answer)) <= 170


async def test_filters_and_an_order_by_time_hold_elsewhere_too(
    shop: Person, harbour: None
) -> None:
    for sort in ("time_asc", "time_desc"):
        assert contents(await asked(shop, ABOUT_GATE, sort=sort))[-1] == GATE
    assert (
        elsewhere(await asked(shop, ABOUT_GATE, filters=FiltersRequest(kinds=("bug",))))
        == []
    )


async def test_an_explanation_says_what_was_needed_of_others(shop: Person) -> None:
    explained = (await asked(shop, QUESTIONS[0], explain=True)).explain

    assert explained is not None
    others = explained["elsewhere"]
    assert isinstance(others, dict)
    assert others["namespaces"] == 5
    assert others["needed"] > others["best"]


async def test_very_many_searched_namespaces_are_counted(person: Person) -> None:
    shop = await filled(person, others=30)

    shown = answer_json(await asked(shop, QUESTIONS[0]), "concise")["searched"]

    assert shown[0] == "shop"
    assert len(shown) == 12
    assert shown[-1] == "and 20 more"


async def test_with_no_other_memories_nothing_more_runs(
    person: Person, queries: list[str]
) -> None:
    shop = await filled(person, others=0)
    await asked(shop, QUESTIONS[0])
    queries.clear()
    await asked(shop, QUESTIONS[0], namespaces=("shop",))
    named = len(queries)
    for place in range(20):
        [id_] = await person.keep("gone", namespace=f"empty-{place}")
        await person.forget(id_, erase=True)
    await asked(shop, QUESTIONS[0])
    queries.clear()

    await asked(shop, QUESTIONS[0])

    # the namespaces are read, since another process may add one
    assert 0 < len(queries) <= named + 1


class Failing(RecallStatements):
    """Statements that fail for every scope without one namespace."""

    def __init__(self, database: Database, but: UUID) -> None:
        super().__init__(database)
        self.but = but

    def pinned(self) -> RecallStatements:
        return self

    def _check(self, scope: Scope) -> None:
        if self.but not in scope.namespaces:
            raise DatabaseUnavailable("The statement took too long.")

    async def dense(self, scope: Scope, *given: Any) -> Hits:
        self._check(scope)
        return await super().dense(scope, *given)

    async def keyword(self, scope: Scope, *given: Any) -> Hits:
        self._check(scope)
        return await super().keyword(scope, *given)


async def test_an_answer_of_the_project_stands_when_the_others_fail(
    shop: Person, library: MemoryContext, database: Database
) -> None:
    whole = await asked(shop, QUESTIONS[0])
    [space] = await library.find_namespaces(["shop"])
    failing = replace(library)
    vars(failing)["statements"] = Failing(database, space.id)
    without = replace(shop, library=failing)

    answer = await asked(without, QUESTIONS[0])

    assert own(answer) == own(whole)
    assert [item.branch for item in answer.degraded] == ["elsewhere"]
    with pytest.raises(Unavailable):
        await asked(replace(without, project="team-0"), QUESTIONS[0])


async def test_the_command_line_marks_what_is_elsewhere(folklore: CommandLine) -> None:
    for text in SHOP:
        await folklore.done("store", text)
    await folklore.done("store", GATE, "--namespace", "harbour")

    shown = await folklore.done("recall", ABOUT_GATE)
    documents: Sequence[dict[str, Any]] = (await folklore.json("recall", ABOUT_GATE))[
        "memories"
    ]

    assert "harbour" in shown
    assert "· elsewhere" in shown
    assert [memory.get("elsewhere") for memory in documents][-1] is True
    assert "elsewhere" not in await folklore.done(
        "recall", ABOUT_GATE, "--namespace", "*"
    )


async def test_a_namespace_is_shared_and_unshared_on_the_command_line(
    folklore: CommandLine,
) -> None:
    await folklore.done("store", GATE, "--namespace", "rules")

    await folklore.done("namespaces", "share", "rules")
    [listed] = [
        item
        for item in (await folklore.json("namespaces", "list"))["namespaces"]
        if item["name"] == "rules"
    ]
    assert listed["shared"] == "always"
    assert "namespace_share" in await folklore.done("audit")

    await folklore.done("namespaces", "share", "rules", "--off")
    [listed] = [
        item
        for item in (await folklore.json("namespaces", "list"))["namespaces"]
        if item["name"] == "rules"
    ]
    assert listed["shared"] == "never"
    assert (await folklore("namespaces", "share", "rule")).code == 4
