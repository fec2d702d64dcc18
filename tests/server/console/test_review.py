"""The pages Review and Injected: decisions where an item stands, with an undo; the texts that assistants were given."""

import html
import re
from typing import Any
from uuid import UUID

import httpx

from folklore.model import Relation
from tests.team import Team, bearer
from tests.visitor import Visitor, texts, visiting

_ITEM = re.compile(r'name="item" value="([^"]+)"')
HOSTILE = "<script>pwned=1</script>"


async def pair(team: Team, namespace: str, subject: str) -> tuple[UUID, UUID]:
    """Two near-duplicates, the older first."""
    older, newer = await team.keep(
        f"{subject} opens at six in the morning {HOSTILE}", f"{subject} opens at seven in the morning {HOSTILE}",
        namespace=namespace,
    )  # fmt: skip
    return older, newer


async def item_of(
    visitor: Visitor, project: str, id_: UUID, reason: str = "similar"
) -> str:
    page = await visitor.get("/review", project=project, reason=reason)
    assert page.status_code == 200
    (found,) = [item for item in _ITEM.findall(page.text) if str(id_) in item]
    return str(found)


async def decided(
    visitor: Visitor, item: str, decision: str, project: str, reason: str = "similar"
) -> httpx.Response:
    """Press the button of a decision."""
    page = await visitor.get("/review", project=project, reason=reason)
    assert f'name="decide" value="{decision} {item}"' in page.text
    return await visitor.post(
        "/review/apply", project=project, reason=reason, decide=f"{decision} {item}"
    )


async def test_items_are_decided_and_taken_back_where_they_stand(team: Team) -> None:
    async with team.visitor("ann", "docks:writer") as ann:
        for number, (decision, gone) in enumerate(
            [
                ("forget_older", 0),
                ("forget_newer", 1),
                ("supersede", 0),
                ("merge", 0),
                ("keep", None),
            ]
        ):
            ids = await pair(team, "docks", f"The gate number {number}{number}")
            page = await decided(
                ann, await item_of(ann, "docks", ids[1]), decision, "docks"
            )
            state = [await team.read(id_) for id_ in ids]
            out = [
                item.forgotten_at is not None or item.superseded_at is not None
                for item in state
            ]
            assert "1 of 1 done" in texts(page), decision
            assert out == [place == gone for place in range(2)], decision
            [undo] = re.findall('name="undo" value="([^"]+)"', page.text)
            undone = await ann.post(
                "/review/undo", project="docks", reason="similar", undo=undo
            )
            state = [await team.read(id_) for id_ in ids]
            assert undone.status_code == 200
            assert not any(item.forgotten_at or item.superseded_at for item in state), (
                decision
            )
            # it wants a decision again
            assert str(ids[1]) in await item_of(ann, "docks", ids[1])
            await team.owner.forget(*ids)


async def test_several_are_decided_at_once_and_one_that_changed_meanwhile_is_not(
    team: Team,
) -> None:
    async with team.visitor("ann", "quays:writer") as ann:
        one = await pair(team, "quays", "The northern ticket office")
        other = await pair(team, "quays", "A bakery by the sea")
        items = [await item_of(ann, "quays", ids[1]) for ids in (one, other)]
        await ann.post(f"/memories/{other[0]}/pin", pinned="yes")

        form = {
            "project": "quays",
            "reason": "similar",
            "decision": "forget_older",
            "item": items,
        }
        preview, page = [
            await ann.post(f"/review/{path}", form) for path in ("preview", "apply")
        ]

    assert len(_ITEM.findall(preview.text)) == 2
    assert "1 of 2 done" in texts(page)
    assert "changed since it was shown" in texts(page)
    assert (await team.read(one[0])).forgotten_at is not None
    assert (await team.read(other[0])).forgotten_at is None


async def test_a_page_is_bounded(team: Team) -> None:
    texts_ = [f"{subject} opens at {hour}.\n" + f"{subject} is grey. " * 300
              for subject in [f"Shed {letter * 3} of the {letter} quay" for letter in "abcdefghijkl"]
              for hour in ("six", "seven")]  # fmt: skip
    await team.keep(*texts_, namespace="sheds")
    async with team.visitor("ann", "sheds:writer") as ann:
        page = await ann.get("/review", project="sheds")
        [further] = re.findall(
            'id="more" class="button quiet" href="([^"]+)"', page.text
        )
        rest = await ann.http.get(page.url.join(html.unescape(further)))

    assert len(_ITEM.findall(page.text)) == 10
    assert {*_ITEM.findall(page.text)}.isdisjoint(_ITEM.findall(rest.text))
    assert len(page.content) < 150_000
    assert "Only the beginnings are shown here" in texts(page)


async def test_contradictions_are_shown(team: Team) -> None:
    older, newer = await team.keep(
        "The crane is red.", "Paint of the lift: blue", namespace="yard"
    )
    await team.owner.relate(Relation(newer, "contradicts", older))
    async with team.visitor("ann", "yard:writer") as ann:
        page = await decided(
            ann,
            await item_of(ann, "yard", newer, "contradiction"),
            "keep",
            "yard",
            "contradiction",
        )
        after = await ann.get("/review", project="yard", reason="contradiction")

    assert "1 of 1 done" in texts(page)
    assert "Nothing wants this decision" in texts(after)


WRONG: list[dict[str, Any]] = [
    {"item": []},
    {"item": "x"},
    {"item": "x:1|y:2"},
    {"decision": "burn"},
    {"reason": "boredom"},
    {"decision": "pin"},
    {"decide": "pin x"},
]


async def test_a_wrong_form_is_a_clear_error(team: Team) -> None:
    ids = await pair(team, "slips", "The slipway")
    right = {
        "project": "slips",
        "reason": "similar",
        "decision": "keep",
        "item": f"{ids[0]}:1|{ids[1]}:1",
    }
    async with team.visitor("ann", "slips:writer") as ann:
        for wrong in WRONG:
            answers = [
                await ann.post(f"/review/{path}", right | wrong)
                for path in ("preview", "apply")
            ]

            assert {answer.status_code for answer in answers} == {400}, wrong


async def test_a_reader_decides_nothing_and_another_sees_nothing(team: Team) -> None:
    ids = await pair(team, "locks", "The lock of the canal")
    item = f"{ids[0]}:1|{ids[1]}:1"
    form = {
        "project": "locks",
        "reason": "similar",
        "decision": "forget_older",
        "item": item,
    }
    async with (
        team.visitor("rita", "locks:reader") as rita,
        team.visitor("bob", "elsewhere:writer") as bob,
    ):
        shown = await rita.get("/review", project="locks")
        refused = await rita.post("/review/apply", form)
        hidden = [
            await bob.get("/review", project="locks"),
            await bob.post("/review/apply", form),
        ]
        projects = await bob.get("/review")

    assert "The lock of the canal" in texts(shown)
    assert "Choose" not in texts(shown)
    assert "0 of 1 done" in texts(refused)
    assert (await team.read(ids[0])).forgotten_at is None
    assert {answer.status_code for answer in hidden} == {404}
    assert "locks" not in texts(projects)


async def test_what_was_said_is_stored_or_dropped(team: Team) -> None:
    token = await team.token("ann", "docks:writer")
    said = ["From now on we tie up at pier four.", "Never load at night."]
    async with httpx.AsyncClient(
        base_url=team.url,
        headers={**bearer(token.secret), "Folklore-Namespace": "docks"},
    ) as http:
        for sentence in said:
            event = {"event": "UserPromptSubmit", "prompt": sentence, "session": "one"}
            assert (await http.post("/api/hook", json=event)).is_success
    async with visiting(team.url, token.secret) as ann:
        await team.keep("The pier is long.", namespace="docks")
        overview = texts(await ann.get("/review"))
        before = texts(await ann.get("/review", project="docks"))
        stored = await ann.post(
            "/review/statement", project="docks", sentence=said[0], store=1
        )
        dropped = await ann.post(
            "/review/statement", project="docks", sentence=said[1], drop=1
        )
        found = texts(await ann.get("/search", q="pier four", project="docks"))

    assert "docks 2 0 in docks" in overview
    assert all(sentence in before for sentence in said)
    assert said[0] not in texts(stored)
    assert said[1] in texts(stored)
    assert said[1] not in texts(dropped)
    assert "Stored." in texts(stored)
    assert "From now on we tie up at" in found


async def test_an_injected_text_is_shown_exactly_to_its_person_and_to_the_owner(
    team: Team,
) -> None:
    text = f"The signal of the harbour is three short tones {HOSTILE}"
    await team.keep(text, namespace="repo:acme/port")
    ann_token, bob_token = [
        await team.token(name, "repo:acme/port:writer") for name in ("ann", "bob")
    ]
    owner_token = await team.token("root", owner=True)
    event = {
        "event": "UserPromptSubmit",
        "prompt": "What is the signal of the harbour?",
        "session": "session-7",
    }
    async with httpx.AsyncClient(base_url=team.url) as client:
        headers = {**bearer(ann_token.secret), "Folklore-Namespace": "repo:acme/port"}
        given = (await client.post("/api/hook", json=event, headers=headers)).json()[
            "result"
        ]["text"]
    async with (
        visiting(team.url, ann_token.secret) as ann,
        visiting(team.url, bob_token.secret) as bob,
        visiting(team.url, owner_token.secret) as owner,
    ):
        hers = await ann.get("/injected")
        his = await bob.get("/injected")
        all_ = await owner.get("/injected", everyone="1")
        own = await owner.get("/injected")
        tried = await bob.get("/injected", everyone="1", session="session-7")

    assert "three short tones" in given
    assert " ".join(given.split()) in texts(hers)
    assert "session-7" in texts(hers)
    assert "not used" in texts(hers)
    assert " ".join(given.split()) in texts(all_)
    for page in (his, own, tried):
        assert "three short tones" not in texts(page)
    assert HOSTILE not in hers.text
