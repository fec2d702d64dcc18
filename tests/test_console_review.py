"""The pages Review and Injected: decisions with a preview and an undo; the exact texts that assistants were given."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import httpx
import pytest

from folklore.embedding.protocol import Embedder
from folklore.memory.requests import GetRequest, RelateRequest, RelationChange
from folklore.model import Memory
from tests.conftest import Cluster
from tests.servers import on_http, watched
from tests.team import Team, bearer, library_at
from tests.visitor import Visitor, texts, visiting

_ITEM = re.compile(r'name="item" value="([^"]+)"')
HOSTILE = "<script>pwned=1</script>"


@pytest.fixture(scope="module")
async def team(
    cluster: Cluster, template: str, embedder: Embedder, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Team]:
    async with cluster.new_database(template) as name:
        settings = watched(tmp_path_factory.mktemp("console"), database_url=cluster.address(name))
        async with library_at(cluster.address(name), embedder) as library, on_http(settings) as running:
            yield Team(running, library)
            assert not running.crashes()


async def pair(team: Team, namespace: str, subject: str) -> tuple[UUID, UUID]:
    """Two near-duplicates, the older first."""
    kept = await team.keep(
        f"{subject} opens at six in the morning {HOSTILE}", f"{subject} opens at seven in the morning {HOSTILE}",
        namespace=namespace,
    )  # fmt: skip
    older, newer = (UUID(str(id_)) for id_ in kept)
    return older, newer


async def read(team: Team, id_: UUID) -> Memory:
    return (await team.owner.call(GetRequest(ids=(id_,), forgotten=True))).found[0].memory


async def item_of(visitor: Visitor, project: str, id_: UUID, reason: str = "similar") -> str:
    page = await visitor.get("/review", project=project, reason=reason)
    assert page.status_code == 200
    (found,) = [item for item in _ITEM.findall(page.text) if str(id_) in item]
    return str(found)


async def decided(visitor: Visitor, item: str, decision: str, project: str, reason: str = "similar") -> httpx.Response:
    form = {"project": project, "reason": reason, "decision": decision, "item": item}
    preview = await visitor.post("/review/preview", form)
    assert preview.status_code == 200
    assert _ITEM.findall(preview.text) == [item]
    return await visitor.post("/review/apply", form)


def undo_of(page: httpx.Response) -> tuple[str, dict[str, Any]]:
    """The undo form of the last decision on a page."""
    form = page.text.rsplit('<form method="post" action="', 1)[1]
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form.split("</form>")[0]))
    fields.pop("form_token")
    return "/" + form.split('"')[0].lstrip("./"), fields


async def test_decisions_are_previewed_applied_and_taken_back(team: Team) -> None:
    async with visiting(team.url, (await team.token("ann", "docks:writer")).secret) as ann:
        for number, (decision, gone) in enumerate(
            [("forget_older", 0), ("forget_newer", 1), ("supersede", 0), ("merge", 0), ("keep", None)]
        ):
            ids = await pair(team, "docks", f"The gate number {number}{number}")
            page = await decided(ann, await item_of(ann, "docks", ids[1]), decision, "docks")
            state = [await read(team, id_) for id_ in ids]
            out = [item.forgotten_at is not None or item.superseded_at is not None for item in state]
            assert "1 of 1 done" in texts(page), decision
            assert out == [place == gone for place in range(2)], decision
            path, fields = undo_of(page)
            undone = await ann.post(path, fields)
            state = [await read(team, id_) for id_ in ids]
            assert undone.status_code == 200
            assert not any(item.forgotten_at or item.superseded_at for item in state), decision
            assert str(ids[1]) in await item_of(ann, "docks", ids[1])  # it wants a decision again
            await team.owner.call(_forgetting(*ids))


def _forgetting(*ids: UUID) -> Any:
    from folklore.memory.requests import ForgetRequest

    return ForgetRequest(ids=ids)


async def test_several_are_decided_at_once_and_one_that_changed_meanwhile_is_not(team: Team) -> None:
    async with visiting(team.url, (await team.token("ann", "quays:writer")).secret) as ann:
        one, other = (
            await pair(team, "quays", "The northern ticket office"),
            await pair(team, "quays", "A bakery by the sea"),
        )
        items = [await item_of(ann, "quays", ids[1]) for ids in (one, other)]
        await ann.post(f"/memories/{other[0]}/pin", pinned="yes")

        page = await ann.post(
            "/review/apply", {"project": "quays", "reason": "similar", "decision": "forget_older", "item": items}
        )

    assert "1 of 2 done" in texts(page)
    assert "changed since it was shown" in texts(page)
    assert (await read(team, one[0])).forgotten_at is not None
    assert (await read(team, other[0])).forgotten_at is None


async def test_contradictions_are_shown(team: Team) -> None:
    older, newer = (
        UUID(str(id_)) for id_ in await team.keep("The crane is red.", "Paint of the lift: blue", namespace="yard")
    )
    change = RelationChange(from_id=newer, to_id=older, type="contradicts")
    await team.owner.call(RelateRequest(relations=(change,)))
    async with visiting(team.url, (await team.token("ann", "yard:writer")).secret) as ann:
        page = await decided(ann, await item_of(ann, "yard", newer, "contradiction"), "keep", "yard", "contradiction")
        after = await ann.get("/review", project="yard", reason="contradiction")

    assert "1 of 1 done" in texts(page)
    assert "Nothing wants this decision" in texts(after)


@pytest.mark.parametrize(
    "wrong",
    [
        {"item": []},
        {"item": "x"},
        {"item": "x:1|y:2"},
        {"decision": "burn"},
        {"reason": "boredom"},
        {"decision": "pin"},
    ],
)
async def test_a_wrong_form_is_a_clear_error(team: Team, wrong: dict[str, Any]) -> None:
    ids = await pair(team, "slips", "The slipway")
    async with visiting(team.url, (await team.token("ann", "slips:writer")).secret) as ann:
        form = {"project": "slips", "reason": "similar", "decision": "keep", "item": f"{ids[0]}:1|{ids[1]}:1"} | wrong
        answers = [await ann.post(f"/review/{path}", form) for path in ("preview", "apply")]

    assert {answer.status_code for answer in answers} == {400}


async def test_a_reader_decides_nothing_and_another_sees_nothing(team: Team) -> None:
    ids = await pair(team, "locks", "The lock of the canal")
    item = f"{ids[0]}:1|{ids[1]}:1"
    form = {"project": "locks", "reason": "similar", "decision": "forget_older", "item": item}
    reader, other = await team.token("rita", "locks:reader"), await team.token("bob", "elsewhere:writer")
    async with visiting(team.url, reader.secret) as rita, visiting(team.url, other.secret) as bob:
        shown, refused = await rita.get("/review", project="locks"), await rita.post("/review/apply", form)
        hidden = [await bob.get("/review", project="locks"), await bob.post("/review/apply", form)]
        projects = await bob.get("/review")

    assert "The lock of the canal" in texts(shown)
    assert "Choose" not in texts(shown)
    assert "0 of 1 done" in texts(refused)
    assert (await read(team, ids[0])).forgotten_at is None
    assert {answer.status_code for answer in hidden} == {404}
    assert "locks" not in texts(projects)


async def test_an_injected_text_is_shown_exactly_to_its_person_and_to_the_owner(team: Team) -> None:
    text = f"The signal of the harbour is three short tones {HOSTILE}"
    await team.keep(text, namespace="repo:acme/port")
    ann_token, bob_token = [await team.token(name, "repo:acme/port:writer") for name in ("ann", "bob")]
    owner_token = await team.token("root", owner=True)
    event = {"event": "UserPromptSubmit", "prompt": "What is the signal of the harbour?", "session": "session-7"}
    async with httpx.AsyncClient(base_url=team.url) as client:
        headers = {**bearer(ann_token.secret), "Folklore-Namespace": "repo:acme/port"}
        given = (await client.post("/api/hook", json=event, headers=headers)).json()["result"]["text"]
    async with (
        visiting(team.url, ann_token.secret) as ann,
        visiting(team.url, bob_token.secret) as bob,
        visiting(team.url, owner_token.secret) as owner,
    ):
        hers, his = await ann.get("/injected"), await bob.get("/injected")
        all_, own = await owner.get("/injected", everyone="1"), await owner.get("/injected")
        tried = await bob.get("/injected", everyone="1", session="session-7")

    assert "three short tones" in given
    assert " ".join(given.split()) in texts(hers)
    assert "session-7" in texts(hers)
    assert "not used" in texts(hers)
    assert " ".join(given.split()) in texts(all_)
    for page in (his, own, tried):
        assert "three short tones" not in texts(page)
    assert HOSTILE not in hers.text
