"""The page Why: the explanation of a question, other weights, and what other people see of it."""

import re
from collections.abc import AsyncIterator
from html import unescape

import pytest
import yaml

from folklore.ranking.weights import Ranking, named_presets
from tests.team import Team
from tests.visitor import Visitor, texts

QUESTION = "how many connections has the pool?"
_IDS = re.compile(r'data-id="([^"]+)"')


@pytest.fixture(scope="module")
async def team(team: Team) -> Team:
    await team.keep(
        "The pool of connections has six places.", "The pool closes idle connections.",
        "Deploys happen on Thursday.", "<script>pwned=1</script> connections of the pool",
        namespace="harbour",
    )  # fmt: skip
    await team.keep("Bob's secret pool of connections.", namespace="bob-private")
    return team


@pytest.fixture
async def ann(team: Team) -> AsyncIterator[Visitor]:
    async with team.visitor("ann", "harbour:writer") as visitor:
        yield visitor


async def test_a_question_is_explained_with_both_lists_and_all_shares(
    ann: Visitor,
) -> None:
    page = await ann.get("/why", q=QUESTION)
    shown = texts(page)

    for part in (
        "Dense branch", "Keyword branch", "in the answer", "relevance", "coverage", "cosine", "Words of the question",
    ):  # fmt: skip
        assert part in shown, part
    assert "six places" in shown
    assert "<script>pwned" not in page.text
    assert "Bob" not in shown
    assert len(_IDS.findall(page.text)) == len(set(_IDS.findall(page.text))) >= 3


async def test_a_result_has_the_score_that_a_search_shows(ann: Visitor) -> None:
    searched = await ann.get("/search", q=QUESTION, project="harbour")
    explained = await ann.get("/why", q=QUESTION, project="harbour")

    assert (
        re.findall(r"· score ([\d.]+)", texts(explained))
        == re.findall(r" match, ([\d.]+)", texts(searched))
        != []
    )


async def test_weights_are_in_the_address_and_change_the_answer(ann: Visitor) -> None:
    both = await ann.get("/why", q=QUESTION, project="harbour")
    words = await ann.get("/why", q=QUESTION, project="harbour", dense="0")
    part = await ann.get("/why", q=QUESTION, project="harbour", dense="0", part="1")

    assert "Dense branch" in texts(both)
    assert "Dense branch" not in texts(words)
    assert _IDS.findall(part.text) == _IDS.findall(words.text)
    assert "<html" not in part.text


WRONG: list[tuple[dict[str, str], str]] = [
    ({"dense": "x"}, "dense"), ({"dense": "-1"}, "dense"), ({"dense": "nan"}, "dense"), ({"preset": "unknown"}, "preset"),
    ({"limit": "0"}, "limit"), ({"limit": "x"}, "limit"), ({"dense": "0", "keyword": "0"}, "weights"),
]  # fmt: skip


async def test_wrong_numbers_are_a_clear_error(ann: Visitor) -> None:
    for wrong, named in WRONG:
        answer = await ann.get("/why", q=QUESTION, **wrong)

        assert answer.status_code == 400, wrong
        assert named in texts(answer), wrong


async def test_changed_weights_are_shown_as_lines_of_the_settings(ann: Visitor) -> None:
    unchanged = await ann.get("/why", q=QUESTION, preset="rrf")
    moved = {"dense": "0.5", "exact": "2", "keyword": "1"}
    page = await ann.get("/why", q=QUESTION, preset="rrf", **moved)

    assert "ranking.presets" not in texts(unchanged)
    assert "Save as preset" not in texts(unchanged)
    (lines,) = re.findall(r"<pre>(.*?)</pre>", page.text, re.DOTALL)
    settings = yaml.safe_load(unescape(lines))
    assert "keyword" not in lines
    ranking = named_presets(settings["ranking"]["presets"])["NAME"]
    assert ranking == Ranking(fusion="rrf", dense=0.5, exact=2)


async def test_an_unknown_preset_is_an_error_with_the_setting(ann: Visitor) -> None:
    asked = await ann.get("/why", q=QUESTION, preset="words")

    assert asked.status_code == 400
    assert "setting ranking.presets" in texts(asked)
