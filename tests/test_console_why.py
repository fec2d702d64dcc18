"""The page Why: the explanation of a question, other weights, saved presets, and what other people see of it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest

from folklore.embedding.protocol import Embedder
from tests.conftest import Cluster
from tests.servers import on_http, watched
from tests.team import Team, library_at
from tests.visitor import Visitor, texts, visiting

QUESTION = "how many connections has the pool?"
_IDS = re.compile(r'data-id="([^"]+)"')


@pytest.fixture(scope="module")
async def team(
    cluster: Cluster, template: str, embedder: Embedder, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Team]:
    async with cluster.new_database(template) as name:
        settings = watched(tmp_path_factory.mktemp("console"), database_url=cluster.address(name))
        async with library_at(cluster.address(name), embedder) as library, on_http(settings) as running:
            made = Team(running, library)
            await made.keep(
                "The pool of connections has six places.", "The pool closes idle connections.",
                "Deploys happen on Thursday.", "<script>pwned=1</script> connections of the pool",
                namespace="harbour",
            )  # fmt: skip
            await made.keep("Bob's secret pool of connections.", namespace="bob-private")
            yield made
            assert not running.crashes()


@pytest.fixture
async def ann(team: Team) -> AsyncIterator[Visitor]:
    async with visiting(team.url, (await team.token("ann", "harbour:writer")).secret) as visitor:
        yield visitor


async def test_a_question_is_explained_with_both_lists_and_all_shares(ann: Visitor) -> None:
    page = await ann.get("/why", q=QUESTION)
    shown = texts(page)

    for part in (
        "Dense branch",
        "Keyword branch",
        "in the answer",
        "relevance",
        "nearness",
        "cosine",
        "Words of the question",
    ):
        assert part in shown, part
    assert "six places" in shown
    assert "<script>pwned" not in page.text
    assert "Bob" not in shown
    assert len(_IDS.findall(page.text)) == len(set(_IDS.findall(page.text))) >= 3


async def test_weights_are_in_the_address_and_change_the_answer(ann: Visitor) -> None:
    both = await ann.get("/why", q=QUESTION, project="harbour")
    words = await ann.get("/why", q=QUESTION, project="harbour", dense="0")
    part = await ann.get("/why", q=QUESTION, project="harbour", dense="0", part="1")

    assert "Dense branch" in texts(both)
    assert "Dense branch" not in texts(words)
    assert _IDS.findall(part.text) == _IDS.findall(words.text)
    assert "<html" not in part.text
    assert "The owner of this deployment can save" in texts(words)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [({"dense": "x"}, "dense"), ({"dense": "-1"}, "dense"), ({"dense": "nan"}, "dense"), ({"preset": "none"}, "preset"),
     ({"limit": "0"}, "limit"), ({"limit": "x"}, "limit"), ({"dense": "0", "keyword": "0"}, "weights")],
)  # fmt: skip
async def test_wrong_numbers_are_a_clear_error(ann: Visitor, wrong: dict[str, str], named: str) -> None:
    answer = await ann.get("/why", q=QUESTION, **wrong)

    assert answer.status_code == 400
    assert named in texts(answer)


async def test_the_owner_saves_and_deletes_a_preset(team: Team, ann: Visitor) -> None:
    form = {"name": "words", "base": "balanced", "number": ["dense=0.0", "exact=2.0"]}
    async with visiting(team.url, (await team.token("root", owner=True)).secret) as owner:
        refused = await ann.post("/presets", form)
        saved = await owner.post("/presets", form)
        asked = await ann.get("/why", q=QUESTION, preset="words")
        again = await owner.post("/presets", form | {"name": "balanced"})
        deleted = await owner.post("/presets/delete", name="words")

    assert (refused.status_code, again.status_code) == (403, 409)
    assert "Saved." in texts(saved)
    assert "words (by root)" in texts(saved)
    assert "Dense branch" not in texts(asked)
    assert "words (by root)" not in texts(deleted)
