"""Recall: by word and by meaning, in a fixed order, page by page, honest about what it could not do."""

from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from folklore.contract.namespaces import CreateNamespaceRequest
from folklore.contract.recall import RecallRequest
from folklore.db.database import Database, Session
from folklore.errors import InvalidInput, NotFound, Unavailable
from folklore.memory.context import MemoryContext
from folklore.memory.context.pagination import given_cursor
from folklore.model import Draft, Filters, Sort
from folklore.ranking.weights import Ranking, chosen
from folklore.text import tokens
from tests import embedders
from tests.person import NOON, Person, contents, ids
from tests.waiting import statements_of

FACTS = (
    "The payments service retries failed charges three times, then gives up.",
    "getUserById in src/accounts/store.py returns None for deleted users.",
    "We chose Postgres over MongoDB because of transactions.",
    "Deployments happen on Tuesday mornings, never on Fridays.",
    "ERR_CONN_REFUSED on start means that the tunnel is down.", "The cat of the office is called Turing.",
    "Use pnpm, not npm, in the web client.", "CVE-2025-66416 was fixed by upgrading the SDK to 1.23.",
)  # fmt: skip
OTHER_4711 = {
    "Error 4711 came from a stale cache, delete it.",
    "Error 4711 appears when npm is too old for us.",
    "Error 4711 on Windows is about long paths again.",
    "Error 4711: ask Maria about licence servers.",
}
DENSE_ONLY = Ranking(keyword=0.0)


@pytest.fixture
async def reader(person: Person) -> Person:
    """Somebody whose notes hold the facts."""
    await person.keep(*FACTS)
    return person


async def test_a_word_finds_what_holds_it(reader: Person) -> None:
    for query, fact in (
        ("getUserById", 1), ("user by id", 1), ("src/accounts/store.py", 1), ("ERR_CONN_REFUSED", 4),
        ("err conn refused", 4), ("conn_refused", 4), ("CVE-2025-66416", 7), ("mongodb", 2),
        ("retry of a failed charge", 0),
        ("What was it again that we do when the charges of a customer have failed?", 0),
    ):  # fmt: skip
        assert contents(await reader.recall(query))[0] == FACTS[fact], query
        assert contents(await reader.search(query))[0] == FACTS[fact], query


async def test_a_meaning_finds_what_shares_no_word(reader: Person) -> None:
    for query, fact in (
        ("which database do we use", 2), ("when do we release to production", 3), ("kitten pet", 5),
        ("credit card billing", 0),
    ):  # fmt: skip
        assert FACTS[fact] in contents(
            await reader.recall(query, limit=3, ranking=DENSE_ONLY)
        ), query


async def test_an_answer_says_where_it_looked(reader: Person) -> None:
    await reader.keep("elsewhere", namespace="other")

    assert (await reader.recall("cat")).searched == ("notes", "other")
    assert (await reader.recall("cat", namespaces=("Other",))).searched == ("other",)


async def test_an_empty_namespace_is_named_in_the_answer_and_costs_no_lookups(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    await person.keep(*FACTS)
    for number in range(3):
        await person.call(
            CreateNamespaceRequest(name=f"empty-{number}", language="german")
        )
    looked_up: dict[str, object] = {}
    languages: list[object] = []
    rows = Session.rows

    async def record(self: Session, name: str, /, **values: object) -> Any:
        if "namespaces" in values:
            looked_up[name] = values["namespaces"]
        if "languages" in values:
            languages.append(values["languages"])
        return await rows(self, name, **values)

    monkeypatch.setattr(Session, "rows", record)
    unnamed = await person.recall("cat")
    looked_up.clear()
    answer = await person.recall("cat", namespaces=unnamed.searched)
    [notes] = await person.library.find_namespaces(["notes"])

    assert contents(answer) == contents(unnamed)
    assert contents(answer)[0] == FACTS[5]
    assert answer.searched == ("empty-0", "empty-1", "empty-2", "notes")
    assert {
        "recall/lexemes",
        "recall/dense:plain",
        "recall/pool:plain",
    } <= looked_up.keys()
    assert {
        name: asked for name, asked in looked_up.items() if asked != [notes.id]
    } == {}
    assert languages == [["english"]] * 2


async def test_reasons_of_an_empty_answer_are_told_apart(
    person: Person, database: Database, connection: asyncpg.Connection
) -> None:
    assert (await person.recall("anything")).note == "Nothing has been stored yet."

    speechless = Person(MemoryContext.of(database, None))
    await speechless.keep("The cat is called Turing.")
    no_match = (await speechless.recall("zeppelin")).note
    filtered = (
        await speechless.recall("cat", filters=Filters(kinds=("decision",)))
    ).note
    await connection.execute("delete from memories")
    empty, unasked = [
        (await Person(MemoryContext.of(database, None)).recall(query)).note
        for query in ("cat", "*")
    ]

    assert no_match is not None
    assert "shares a word" in no_match
    assert filtered is not None
    assert "filters" in filtered
    assert (empty, unasked) == ("Empty so far: notes.", "Nothing matches.")


async def test_an_empty_answer_does_not_blame_what_did_not_empty_it(
    person: Person, database: Database
) -> None:
    await person.keep("The cat is called Turing.")
    notes = Filters(kinds=("note",))
    sure = chosen(min_score=1.0)

    unsure = await person.recall(
        "the cat of somebody else", filters=notes, ranking=sure
    )
    reflections = await person.recall("cat", filters=Filters(reflections=True))
    by_word = await Person(MemoryContext.of(database, embedders.Down())).recall(
        "kitten", filters=notes
    )

    assert "min_score" in str(unsure.note)
    assert "filters" in str(reflections.note)
    assert "degraded" in str(by_word.note)
    assert unsure.memories == reflections.memories == by_word.memories == ()


async def test_an_unknown_namespace_is_an_error_that_names_the_nearest(
    person: Person,
) -> None:
    with pytest.raises(
        NotFound, match=r"no namespace 'a'\. Nothing has been stored yet\."
    ):
        await person.recall("x", namespaces=("a",))
    for name in ("payments-team", "repo:acme/api", "alice-private"):
        await person.keep("x", namespace=name)

    with pytest.raises(
        NotFound, match=r"no namespace 'payment-team'.*Did you mean payments-team\?"
    ):
        await person.recall("x", namespaces=("alice-private", "payment-team"))
    with pytest.raises(NotFound, match="repo:acme/api"):
        await person.recall("x", namespaces=("acme/api",))
    with pytest.raises(
        NotFound, match=r"'zzz-nothing-like-it'\. `folklore namespaces list`"
    ):
        await person.recall("x", namespaces=("zzz-nothing-like-it",))
    with pytest.raises(InvalidInput, match="namespaces"):
        await person.recall("x", namespaces=("not a name",))


async def test_an_empty_question_lists_the_newest_first(person: Person) -> None:
    for day in range(5):
        await person.at(NOON + timedelta(days=day)).keep(f"said on day {day}")
    await person.at(NOON + timedelta(days=9)).keep(
        Draft("of long ago", occurred_at=NOON - timedelta(days=900))
    )

    for query in ("", "*", "  ", " * ", "\u200b"):
        answer = await person.at(NOON + timedelta(days=10)).recall(query, limit=3)
        assert contents(answer) == ["said on day 4", "said on day 3", "said on day 2"]
        assert answer.truncated
        rest = await person.at(NOON + timedelta(days=10)).recall(
            query, limit=9, cursor=answer.cursor
        )
        assert contents(rest) == ["said on day 1", "said on day 0", "of long ago"]
        assert (rest.truncated, rest.cursor) == (False, None)


async def test_a_listing_has_the_order_asked_for_over_its_pages(
    person: Person, connection: asyncpg.Connection
) -> None:
    for day, name in enumerate("abc"):
        await person.at(NOON + timedelta(days=day)).keep(name)
    await connection.execute(
        "update memories set updated_at = $1 where content = 'b'",
        NOON + timedelta(days=9),
    )

    orders: dict[Sort, str] = {
        "time_desc": "cba",
        "time_asc": "abc",
        "score": "cba",
        "updated_desc": "bca",
    }
    for sort, order in orders.items():
        assert [
            contents(page) for page in await person.pages("*", sort=sort, limit=1)
        ] == [[name] for name in order]


async def test_a_listing_of_all_goes_on_when_a_namespace_has_come_since(
    person: Person,
) -> None:
    await person.keep("first", "second")
    page = await person.recall("*", limit=1)
    await person.keep("third", namespace="another")

    rest = await person.recall("*", cursor=page.cursor)

    assert {"first", "second"} <= {*contents(page), *contents(rest)}
    with pytest.raises(InvalidInput, match="cursor"):
        await person.recall("*", namespaces=("another",), cursor=page.cursor)


async def test_the_same_question_has_the_same_answer_even_where_scores_are_equal(
    person: Person,
) -> None:
    await person.keep(*(f"tied {'x' * 3} {n:03}" for n in range(60)))

    first = await person.recall("tied", limit=20)

    assert len(first.memories) == 20
    for _ in range(3):
        again = await person.recall("tied", limit=20)
        assert [(r.memory.id, r.score) for r in again.memories] == [
            (r.memory.id, r.score) for r in first.memories
        ]


@pytest.mark.parametrize("limit", [0, 101])
def test_a_limit_out_of_range_is_refused(limit: int) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        RecallRequest(query="cat", limit=limit)


WINDS = [
    f"the wind of day {n} in the harbour {'calm ' * (n % 7)}{'storm ' * (n % 3)}"
    for n in range(70)
]
NEAR_DUPLICATES = [f"the wind in the harbour, number {n}" for n in range(30)]
GULLS = [f"a harbour has wind, sails, ropes and {n} gulls" for n in range(30)]
RUNS_4711 = [f"The build failed with error 4711 in run {n}." for n in range(20)]


@pytest.mark.parametrize(
    ("query", "limit", "texts"),
    [
        ("wind in the harbour", 8, WINDS),
        ("*", 8, WINDS),
        ("wind in the harbour", 7, [*NEAR_DUPLICATES, *GULLS]),
        ("error 4711", 3, [*RUNS_4711, *OTHER_4711]),
    ],
)
async def test_pages_hold_everything_once(
    person: Person, query: str, limit: int, texts: list[str]
) -> None:
    kept = await person.keep(*texts)

    pages = await person.pages(query, limit=limit)
    flat = [id_ for page in pages for id_ in ids(page)]

    assert [(page.truncated, len(page.memories)) for page in pages[:-1]] == [
        (True, limit)
    ] * (len(pages) - 1)
    assert not pages[-1].truncated
    assert len(flat) == len(set(flat)), "a memory came twice"
    assert set(flat) == set(kept), "a memory was left out"


@pytest.mark.parametrize("query", ["cache -server", '"harbour crane" AND cache'])
async def test_an_expression_is_answered_the_same_whatever_was_asked_before(
    person: Person, query: str
) -> None:
    words = ("tunnel", "server", "cache", "harbour", "crane", "regatta", "invoice")
    await person.keep(
        *(
            " ".join(words[(n * k) % 7] for k in range(3 + n * n % 90)) + f" {n}"
            for n in range(90)
        )
    )

    first = await person.recall(query, explain=True)
    await person.recall("where is the crane")
    again = await person.recall(query, explain=True)

    assert [(item.memory.id, item.score, item.explain) for item in again.memories] == [
        (item.memory.id, item.score, item.explain) for item in first.memories
    ]


async def test_pages_end_where_a_cursor_could_not_be_read_again(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("folklore.memory.context.pagination.MAX_PAGED", 10)
    monkeypatch.setattr("folklore.memory.recall.page.MAX_PAGED", 10)
    await person.keep(*RUNS_4711)

    pages = await person.pages("error 4711", limit=4)
    given = [id_ for page in pages for id_ in ids(page)]

    assert len(set(given)) == len(given) == 12
    assert pages[-1].truncated
    assert "Paging ends" in str(pages[-1].note)


async def test_a_cursor_of_another_query_is_rejected(reader: Person) -> None:
    cursor = (await reader.recall("the service", limit=1)).cursor
    listing = (await reader.recall("*", limit=1)).cursor
    assert cursor
    assert listing

    for asked in (
        {"query": "another"}, {"query": "*"}, {"query": "the service", "namespaces": ("notes",)},
        {"query": "the service", "filters": Filters(kinds=("note",))}, {"query": "the service", "ranking": DENSE_ONLY},
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match="cursor"):
            await reader.recall(limit=1, cursor=cursor, **asked)
    for broken in (
        "",
        "x",
        "é",
        cursor[:-3],
        listing,
        given_cursor([], frozenset(), "?"),
        "A" * 10_000,
    ):
        with pytest.raises(InvalidInput, match="cursor"):
            await reader.recall("the service", limit=1, cursor=broken)
    for broken in ("x", cursor):
        with pytest.raises(InvalidInput, match="cursor"):
            await reader.recall("*", limit=1, cursor=broken)


async def test_a_token_budget_cuts_the_answer_and_the_cursor_goes_on(
    person: Person,
) -> None:
    await person.keep(*(f"harbour {n} " + "wind and water " * 40 for n in range(6)))

    answer = await person.recall("harbour", max_tokens=500)
    rest = await person.recall("harbour", max_tokens=100_000, cursor=answer.cursor)

    assert answer.truncated
    assert 0 < sum(tokens.estimate(content) for content in contents(answer)) <= 500
    assert not set(ids(answer)) & set(ids(rest))
    assert len(answer.memories) + len(rest.memories) == 6


async def test_when_every_branch_fails_that_is_an_error_and_no_empty_answer(
    database: Database, connection: asyncpg.Connection
) -> None:
    person = Person(MemoryContext.of(database, embedders.Down()))
    await person.keep(*FACTS)
    await connection.execute("alter table postings rename to lost")

    with pytest.raises(Unavailable, match=r"dense: .*keyword: "):
        await person.recall("Turing")


async def test_a_question_is_never_compared_with_vectors_of_another_model(
    database: Database, reader: Person
) -> None:
    other = Person(MemoryContext.of(database, embedders.ByLetter()))

    answer = await other.recall("aeinorst", ranking=DENSE_ONLY)

    assert answer.memories == ()


async def test_a_recall_runs_at_most_five_statements(
    reader: Person, queries: list[str]
) -> None:
    await reader.recall("Turing")  # both connections are there

    statements = await statements_of(reader.recall("what is the cat called"), queries)

    assert 1 <= len(statements) <= 5, statements


async def test_listing_runs_two_statements(reader: Person, queries: list[str]) -> None:
    assert len(await statements_of(reader.recall("*"), queries)) == 2


async def test_neighbours_of_the_same_session_enter(person: Person) -> None:
    said = [
        "Anna: hello there", "Ben: how was the regatta in Kiel?", "Anna: we came second, and the mast broke",
        "Ben: what a pity", "Anna: let us have lunch", "Ben: at noon then",
    ]  # fmt: skip
    await person.keep(*(Draft(turn, session="monday") for turn in said))
    await person.keep(*(f"filler about something else, number {n}" for n in range(30)))

    found = contents(await person.recall("regatta Kiel", limit=5))

    assert found[0] == said[1]
    assert said[2] in found
    assert said[0] in found


async def test_neighbours_stay_within_their_session_and_namespace(
    person: Person,
) -> None:
    await person.keep(
        Draft("about the regatta", session="s"), Draft("beside it", session="s")
    )
    await person.keep(
        Draft("in another session", session="t"), Draft("no session at all")
    )
    await person.keep(
        Draft("first elsewhere", session="s"),
        Draft("second elsewhere", session="s"),
        namespace="other",
    )

    searched = await person.search("regatta", namespaces=("notes",))
    recalled = await person.recall(
        "regatta", namespaces=("notes",), ranking=Ranking(dense=0.0)
    )

    assert contents(searched) == ["about the regatta"], (
        "a search by keyword lends nothing"
    )
    assert contents(recalled) == ["about the regatta", "beside it"]


async def test_near_duplicates_do_not_fill_the_answer(person: Person) -> None:
    await person.keep(
        *(f"The build failed with error 4711 in run {n}." for n in range(8)),
        *OTHER_4711,
    )
    await person.keep(*(f"filler number {n}" for n in range(50)))

    by_score = contents(
        await person.recall("error 4711", limit=6, ranking=Ranking(mmr_lambda=1.0))
    )
    diverse = contents(await person.recall("error 4711", limit=6))

    assert all("4711" in content for content in by_score), (
        "what holds the words comes before what does not"
    )
    assert len(OTHER_4711.intersection(diverse)) > len(
        OTHER_4711.intersection(by_score)
    )
    assert len(OTHER_4711.intersection(diverse)) >= 3


async def test_an_exact_word_survives_many_that_mean_the_same(person: Person) -> None:
    await person.keep(
        *(
            f"The login page shows a failure to customers in country {n}."
            for n in range(40)
        )
    )
    await person.keep("E-7731: see runbook.")

    assert "E-7731: see runbook." in contents(
        await person.recall("login failure E-7731", limit=10)
    )


@pytest.mark.parametrize(
    ("signal", "less", "more"),
    [
        ("tags", {"tags": ("area:boat",)}, {"tags": ("area:crane",)}),
        ("priority", {"priority": 4}, {"priority": 1}),
        ("importance", {"importance": 0.1}, {"importance": 0.9}),
        ("confidence", {"confidence": 0.1}, {"confidence": 0.9}),
        ("recency", {"created_at": NOON - timedelta(days=90)}, {"created_at": NOON}),
    ],
)
async def test_of_two_that_answer_alike_a_signal_says_which_comes_first(
    person: Person, signal: str, less: dict[str, Any], more: dict[str, Any]
) -> None:
    texts = ("The harbour crane is red.", "The harbour crane is tall.")
    for namespace, kept in (("one", texts), ("other", texts[::-1])):
        await person.keep(
            Draft(kept[0], **less), Draft(kept[1], **more), namespace=namespace
        )
        await person.keep(
            *(f"Nothing is known of number {n}." for n in range(8)), namespace=namespace
        )

        ranking = chosen(weights={"dense": 0.0, signal: 1.0})
        answer = await person.recall(
            "harbour crane", namespaces=(namespace,), ranking=ranking
        )

        assert contents(answer) == [kept[1], kept[0]]
