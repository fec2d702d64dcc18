"""Known items of code: facts about a file, the uniqueness of an answer, and a small run."""

from __future__ import annotations

import ast
from importlib.metadata import distribution

import pytest
from benchmarks.code import Fact, KnownItem, Uniqueness, code, facts, facts_of, installed, known_items, parts
from benchmarks.sets import evenly
from hypothesis import given
from hypothesis import strategies as st

from tests.benchmark_commands import Benchmarks, benchmark_commands  # noqa: F401 - the fixture `benchmarks`

SOURCE = '''
"""Pools of connections.

More of it.
"""
POOL_TIMEOUT = 30
POOL_VERSION = "1.2"
lower = 1


class UniqueViolation(Exception):
    """A key is there already."""

    sqlstate = "23505"


def acquireFreeConnection(self, wait: float = 1.0):
    """Take a connection
    that nobody uses."""
    raise RuntimeError(f"the pool {self.name!r} is closed and cannot be used: {wait}")


def undocumented():
    raise ValueError("too short")
'''

words = st.lists(st.sampled_from(["alpha", "Beta", "gamma_delta", "getUserById", "x"]), min_size=1, max_size=4)


def test_the_facts_of_a_file_are_read() -> None:
    found = {(fact.kind, fact.known_by): fact.content for fact in facts_of("db/pool.py", ast.parse(SOURCE))}

    assert found == {
        ("file", "db/pool.py"): "db/pool.py: Pools of connections.",
        ("function", "UniqueViolation"): "class UniqueViolation of db.pool: A key is there already.",
        ("sqlstate", "23505"): "Postgres answers SQLSTATE 23505: db.pool raises UniqueViolation.",
        ("function", "acquireFreeConnection"): (
            "acquireFreeConnection(self, wait: float=1.0) of db.pool: Take a connection that nobody uses."
        ),
        ("message", "is closed and cannot be used"): (
            "db.pool raises RuntimeError: the pool … is closed and cannot be used: …"
        ),
        ("constant", "POOL_TIMEOUT"): "POOL_TIMEOUT = '30' in db.pool",
    }


def test_facts_of_dependencies_are_repeatable_and_look_like_no_credential() -> None:
    held = [found for found in installed() if found.metadata["Name"] in ("click", "h11")]

    found = facts(held)

    assert len(held) == 2
    assert found == facts(held)
    assert len({fact.content for fact in found}) == len(found) > 200
    assert {"function", "message", "file", "version"} <= {fact.kind for fact in found}
    assert not [fact for fact in found if "token=" in fact.content or "password=" in fact.content]


@given(st.lists(st.integers()), st.integers(0, 20))
def test_items_spread_evenly_keep_their_order_and_number(items: list[int], count: int) -> None:
    places = evenly(range(len(items)), count)

    assert len(places) == min(count, len(items))
    assert places == sorted(set(places))


def test_identifiers_are_split_into_parts() -> None:
    assert parts("getUserById HTTPServer_v2 ERR_CONN x.py") == [
        *("get", "user", "by", "id", "http", "server", "v", "2", "err", "conn", "x", "py")
    ]


@given(st.lists(words.map(" ".join), min_size=1, max_size=6, unique=True), words.map(" ".join))
def test_a_text_is_only_in_one_if_no_other_holds_it(contents: list[str], sought: str) -> None:
    unique = Uniqueness(contents)
    holding = [place for place, text in enumerate(contents) if sought.casefold() in text.casefold()]

    for place in range(len(contents)):
        assert unique.is_only_in(sought, place) == (holding == [place])


def test_a_question_with_two_answers_is_not_asked() -> None:
    found = known_items(
        [
            Fact("function", "getUserById", "getUserById(id) of app.users: Find a user."),
            Fact("function", "loadAll", "loadAll() of app.users: Calls loadAll of the parent."),
            Fact("function", "loadAll", "loadAll(x) of app.items: Load items."),
            Fact("function", "dropUserByName", "dropUserByName(name) of app.old: Forget a user by name."),
            Fact("constant", "ERR_CONN", "ERR_CONN = '7' in app.errors"),
            Fact("version", "1.4.2", "wheel 1.4.2 is installed."),
            Fact("version", "1.4.2", "spoke 1.4.2 is installed."),
        ],
        None,
    )

    assert found == [
        KnownItem("error code", "ERR_CONN", 4),
        KnownItem("identifier", "getUserById", 0),
        KnownItem("identifier", "dropUserByName", 3),
        KnownItem("part of an identifier", "user by id", 0),
        KnownItem("part of an identifier", "user by name", 3),
        KnownItem("version", "wheel 1.4.2", 5),
        KnownItem("version", "spoke 1.4.2", 6),
    ]
    assert len(known_items([Fact("version", "1.4.2", "wheel 1.4.2 is installed.")] * 2, None)) == 0


async def test_known_items_are_asked_for_end_to_end(benchmarks: Benchmarks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.code.installed", lambda: [distribution("annotated-types"), distribution("h11")])

    found = await benchmarks.json(code, "--questions", "5")
    table = await benchmarks.output(code, "--questions", "1")

    assert found["distributions"] == 2
    scores = {line.pop("asked by"): line for line in found["scores"]}
    assert {"all", "identifier", "path", "version"} <= set(scores)
    assert scores["identifier"] == {
        "questions": 5, "memory_recall hit@1": 1.0, "memory_recall hit@5": 1.0, "search_keywords hit@1": 1.0,
        "search_keywords hit@5": 1.0,
    }  # fmt: skip
    assert scores["all"]["questions"] == sum(part["questions"] for name, part in scores.items() if name != "all")
    assert "search_keywords hit@5" in table
