"""Known items from code: what is noted of a source, what makes a question's answer the only one, and a small run."""

from __future__ import annotations

import ast
from importlib.metadata import distribution

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.app import App
from folklore.bench.ablation import Direct
from folklore.bench.assistant import assistant
from folklore.bench.known_items import KnownItem, Uniqueness, known_items, parts
from folklore.bench.sets import Question
from folklore.bench.sources import Noted, installed, notes, notes_of, some
from folklore.memory.recall.pipeline import RecallRequest
from folklore.ranking.weights import Ranking
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`

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


def test_what_is_noted_of_a_file() -> None:
    found = {(note.kind, note.known_by): note.content for note in notes_of("db/pool.py", ast.parse(SOURCE))}

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


def test_the_dependencies_are_noted_alike_every_time_and_without_what_looks_like_a_credential() -> None:
    held = [found for found in installed() if found.metadata["Name"] in ("click", "h11", "PyJWT")]

    found = notes(held)

    assert len(held) == 3
    assert found == notes(held)
    assert len({note.content for note in found}) == len(found) > 300
    assert {"function", "message", "file", "version"} <= {note.kind for note in found}
    assert not [note for note in found if "token=" in note.content or "password=" in note.content]


@given(st.lists(st.integers()), st.integers(0, 20))
def test_some_of_a_list_are_in_its_order_and_no_more_than_asked_for(items: list[int], count: int) -> None:
    places = some(range(len(items)), count)

    assert len(places) == min(count, len(items))
    assert places == sorted(set(places))


def test_parts_of_identifiers() -> None:
    assert parts("getUserById HTTPServer_v2 ERR_CONN x.py") == [
        *("get", "user", "by", "id", "http", "server", "v", "2", "err", "conn", "x", "py")
    ]


@given(st.lists(words.map(" ".join), min_size=1, max_size=6, unique=True), words.map(" ".join))
def test_only_in_means_in_this_one_and_in_no_other(contents: list[str], sought: str) -> None:
    unique = Uniqueness(contents)
    holding = [place for place, text in enumerate(contents) if sought.casefold() in text.casefold()]

    for place in range(len(contents)):
        assert unique.is_only_in(sought, place) == (holding == [place])


def test_a_question_with_two_answers_is_not_asked() -> None:
    found = known_items(
        [
            Noted("function", "getUserById", "getUserById(id) of app.users: Find a user."),
            Noted("function", "loadAll", "loadAll() of app.users: Calls loadAll of the parent."),
            Noted("function", "loadAll", "loadAll(x) of app.items: Load items."),
            Noted("function", "dropUserByName", "dropUserByName(name) of app.old: Forget a user by name."),
            Noted("constant", "ERR_CONN", "ERR_CONN = '7' in app.errors"),
            Noted("version", "1.4.2", "wheel 1.4.2 is installed."),
            Noted("version", "1.4.2", "spoke 1.4.2 is installed."),
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
    assert len(known_items([Noted("version", "1.4.2", "wheel 1.4.2 is installed.")] * 2, None)) == 0


async def test_known_items_are_asked_for_end_to_end(folklore: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "folklore.bench.sources.installed", lambda: [distribution("annotated-types"), distribution("h11")]
    )

    told = await folklore.json("bench", "code", "--questions", "5")
    table = await folklore.done("bench", "code", "--questions", "1")

    assert told["distributions"] == 2
    assert (told["refused"], told["not_asked"]) == (0, 0)
    scores = told["scores"]
    assert {"all", "identifier", "path", "version"} <= set(scores)
    assert scores["identifier"] == {
        "questions": 5,
        "memory_recall hit@1": 1.0,
        "memory_recall hit@5": 1.0,
        "search_keywords hit@1": 1.0,
        "search_keywords hit@5": 1.0,
    }
    assert scores["all"]["questions"] == sum(part["questions"] for name, part in scores.items() if name != "all")
    assert "search_keywords hit@5" in table


async def test_a_branch_asked_for_alone_gives_its_whole_list(app: App) -> None:
    async with assistant(app) as client:
        texts = [f"Note {at}: the ferry to island {at} leaves at {at} past nine." for at in range(40)]
        await client.keep("notes", [{"content": text, "source": str(at)} for at, text in enumerate(texts)])
        direct = Direct(await app.host.library(), RecallRequest(query=""), client, app.now)

        lists = await direct.lists(
            Question("When does the ferry leave?", ("notes",), frozenset("1"), ""), Ranking(), 30
        )

    assert len(set(lists.dense)) == len(lists.dense) == 30
    assert len(set(lists.keyword)) == len(lists.keyword) == 30
