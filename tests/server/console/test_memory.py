"""The page of a memory: what it shows, every change of it, and what other people see of it."""

import html
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import UUID

import httpx
import pytest

from folklore.contract.memories import HistoryRequest
from folklore.contract.namespaces import ListNamespacesRequest
from folklore.db.stores.events.audit import Audit
from folklore.model import Draft
from folklore.new_ids import new_id
from tests.team import Team
from tests.visitor import Visitor, texts

HOSTILE = "<script>pwned=1</script>\"'><img src=x onerror=pwned=1>{{7*7}}${7*7}<svg/onload=pwned=1> javascript:pwned()"


@pytest.fixture
async def ann(team: Team) -> AsyncIterator[Visitor]:
    """A writer in the namespace harbour."""
    async with team.visitor("ann", "harbour:writer") as visitor:
        yield visitor


@pytest.fixture
async def rita(team: Team) -> AsyncIterator[Visitor]:
    """A reader of the namespace harbour."""
    async with team.visitor("rita", "harbour:reader") as visitor:
        yield visitor


async def kept(team: Team, text: str | Draft, namespace: str = "harbour") -> UUID:
    (id_,) = await team.keep(text, namespace=namespace)
    return id_


def fields_of(page: httpx.Response) -> dict[str, str]:
    """The texts of the last form of a page, as a browser sends them."""
    form = page.text.rsplit("<form", 1)[1]
    inputs = dict(re.findall(r'<input[^>]* name="(\w+)" value="([^"]*)"', form))
    areas = dict(
        re.findall(
            r'<textarea[^>]* name="(\w+)"[^>]*>\n(.*?)</textarea>', form, re.DOTALL
        )
    )
    return {name: html.unescape(value) for name, value in (inputs | areas).items()}


async def test_a_page_shows_text_fields_relations_and_history(
    team: Team, ann: Visitor
) -> None:
    id_ = await kept(
        team,
        Draft(
            "The mole is closed in November.", tags=("port",), source="harbour office"
        ),
    )
    other = await kept(team, "The lighthouse is white.")
    await ann.post(
        f"/memories/{id_}/relate", other=other, type="near_to", strength="0.5"
    )
    await ann.post(
        f"/memories/{id_}/edit",
        fields_of(await ann.get(f"/memories/{id_}/edit"))
        | {"content": "The mole is closed in winter."},
    )

    shown = texts(await ann.get(f"/memories/{id_}"))

    assert "The mole is closed in winter ." in shown.replace("winter.", "winter .")
    for part in (
        "harbour office",
        "port",
        "near_to",
        "The lighthouse is white.",
        "by ann",
        "removed:",
        "added:",
    ):
        assert part in shown, part


async def test_times_are_in_the_zone_of_the_browser_with_its_name(
    team: Team, ann: Visitor
) -> None:
    id_ = await kept(
        team,
        Draft("The quay was built.", occurred_at=datetime(2020, 3, 1, 2, tzinfo=UTC)),
    )
    ann.http.cookies.set("folklore_zone", "America/New_York")
    there = await ann.get(f"/memories/{id_}")
    ann.http.cookies.set("folklore_zone", "no/zone")
    plain = await ann.get(f"/memories/{str(id_)[-8:]}")

    assert 'title="2020-02-29 21:00 America/New_York">2020-02-29 21:00<' in there.text
    assert 'title="2020-03-01 02:00 UTC">2020-03-01 02:00<' in plain.text


async def test_a_form_of_a_session_that_ended_is_sent_again_after_signing_in(
    team: Team, ann: Visitor
) -> None:
    id_ = await kept(team, "The ramp is steep.")
    form = fields_of(await ann.get(f"/memories/{id_}/edit")) | {
        "content": "The ramp is <steep>\nand wet."
    }
    stale = ann.form_token
    ann.http.cookies.clear()
    ended = await ann.post(f"/memories/{id_}/edit", form)
    async with team.visitor("ann", "harbour:writer") as again:
        again.form_token = stale
        refused = await again.post(f"/memories/{id_}/edit", fields_of(ended))
        unchanged = (await team.read(id_)).content
        saved = await again.post(f"/memories/{id_}/edit", fields_of(refused))

    assert (ended.status_code, refused.status_code, saved.status_code) == (
        401,
        403,
        200,
    )
    assert "The session has ended" in texts(ended)
    assert unchanged == "The ramp is steep."
    assert (await team.read(id_)).content == "The ramp is <steep>\nand wet."


async def test_a_change_is_undone_and_is_in_the_audit_log_with_its_author(
    team: Team, ann: Visitor
) -> None:
    id_ = await kept(team, "The crane lifts ten tons.")
    form = fields_of(await ann.get(f"/memories/{id_}/edit"))
    saved = await ann.post(
        f"/memories/{id_}/edit",
        form | {"content": "The crane lifts twelve tons.", "tags": "crane, load"},
    )
    changed = await team.read(id_)
    assert (await ann.post(f"/memories/{id_}/undo", revision="nan")).status_code == 400
    undone = await ann.post(f"/memories/{id_}/undo", revision=changed.revision)

    assert "Saved." in texts(saved)
    assert (changed.content, changed.tags) == (
        "The crane lifts twelve tons.",
        ("crane", "load"),
    )
    assert "Undone." in texts(undone)
    assert (await team.read(id_)).content == "The crane lifts ten tons."
    (namespace,) = [
        item
        for item in await team.owner.call(ListNamespacesRequest())
        if item.name == "harbour"
    ]
    entries = [
        item
        for item in await Audit(team.library.database).read(
            namespaces=[namespace.id], fetch=100
        )
        if id_ in item.memories
    ]
    assert [(item.action, item.principal) for item in entries] == [
        ("undo", "ann"),
        ("update", "ann"),
        ("store", "root"),
    ]


async def test_a_change_in_between_is_a_conflict_that_loses_nothing(
    team: Team, ann: Visitor
) -> None:
    id_ = await kept(team, "The ferry leaves at nine.")
    form = fields_of(await ann.get(f"/memories/{id_}/edit"))
    await ann.post(
        f"/memories/{id_}/edit", form | {"content": "The ferry leaves at ten."}
    )

    late = await ann.post(
        f"/memories/{id_}/edit", form | {"content": "The ferry leaves at eleven."}
    )

    assert late.status_code == 409
    assert "leaves at ten." in texts(late)
    assert fields_of(late)["content"] == "The ferry leaves at eleven."
    assert (await team.read(id_)).content == "The ferry leaves at ten."
    again = await ann.post(f"/memories/{id_}/edit", fields_of(late))
    assert again.status_code == 200
    assert (await team.read(id_)).content == "The ferry leaves at eleven."


async def test_a_conflict_keeps_what_another_person_changed_and_this_one_did_not_touch(
    team: Team, ann: Visitor
) -> None:
    id_ = await kept(team, Draft("The buoy is red.", tags=("sea",)))
    form = fields_of(await ann.get(f"/memories/{id_}/edit"))
    await ann.post(
        f"/memories/{id_}/edit", form | {"tags": "sea, buoy", "importance": "0.9"}
    )

    late = await ann.post(
        f"/memories/{id_}/edit",
        form | {"content": "The buoy is green.", "importance": "0.2"},
    )
    await ann.post(f"/memories/{id_}/edit", fields_of(late))

    differing = texts(late).split("What differs")[1].split("Content (required)")[0]
    for row in (
        "Content The buoy is red. The buoy is green.",
        "Importance 0.9 0.2",
        "Tags sea, buoy You did not change",
    ):
        assert row in differing
    saved = await team.read(id_)
    assert (saved.content, saved.tags, saved.importance) == (
        "The buoy is green.",
        ("sea", "buoy"),
        0.2,
    )


WRONG: list[tuple[str, str]] = [
    ("importance", "much"), ("importance", "7"), ("priority", "9"), ("kind", "x" * 300), ("metadata", "[1"),
    ("metadata", "[1]"), ("occurred_at", "yesterday-ish"), ("content", ""), ("content", "x" * 40_000),
]  # fmt: skip


async def test_wrong_input_shows_the_form_again_with_the_message_at_its_field(
    team: Team, ann: Visitor
) -> None:
    id_ = await kept(team, "The buoy is red.")

    for field, value in WRONG:
        typed = fields_of(await ann.get(f"/memories/{id_}/edit")) | {
            "summary": "typed",
            field: value,
        }

        answer = await ann.post(f"/memories/{id_}/edit", typed)

        assert answer.status_code == 400, (field, value)
        assert re.search(rf'name="{field}"[^>]* aria-invalid="true"', answer.text), (
            texts(answer)[:400]
        )
        assert fields_of(answer)["summary"] == "typed", (field, value)
        assert fields_of(answer)[field] == value, (field, value)
        assert (await team.read(id_)).revision == 1, (field, value)


async def test_a_memory_is_forgotten_after_a_question_and_restored(
    team: Team, ann: Visitor
) -> None:
    old = await kept(team, "The pier has one lamp.")
    answer = await ann.post(
        f"/memories/{old}/supersede",
        content="The pier has two lamps.",
        reason="a new one",
    )
    new = UUID(str(answer.url).split("/memories/")[1].split("?")[0])
    question = texts(await ann.get(f"/memories/{new}/forget"))
    forgotten = await ann.post(f"/memories/{new}/forget")
    in_force = (await team.read(old)).superseded_at
    restored = await ann.post(
        f"/memories/{new}/undo", revision=(await team.read(new)).revision
    )

    assert "In force again" in question
    assert "The pier has one lamp." in question
    assert "Forgotten." in texts(forgotten)
    assert in_force is None
    assert "Undone." in texts(restored)
    assert (await team.read(old)).superseded_by == new


async def test_erasing_asks_for_a_word_and_leaves_nothing(
    team: Team, ann: Visitor
) -> None:
    id_ = await kept(team, "The code of the gate is in the drawer.")
    async with team.visitor("ada", "harbour:admin") as ada:
        refused = await ann.post(f"/memories/{id_}/erase", word="erase")
        wrong = await ada.post(f"/memories/{id_}/erase", word="yes")
        erased = await ada.post(f"/memories/{id_}/erase", word="erase")

    assert (refused.status_code, wrong.status_code) == (403, 400)
    assert "Erased permanently." in texts(erased)
    assert (await ann.get(f"/memories/{id_}")).status_code == 404


async def test_a_page_shows_cues_and_adds_one(team: Team, ann: Visitor) -> None:
    id_ = await kept(team, Draft("The mole is closed.", cues=("moor a boat",)))

    page = await ann.get(f"/memories/{id_}")
    await ann.post(f"/memories/{id_}/cue", cue="find a berth")

    assert "moor a boat" in page.text
    assert (await team.read(id_)).cues == ("moor a boat", "find a berth")


async def test_a_page_marks_learned_cues_and_removes_one(
    team: Team, ann: Visitor
) -> None:
    draft = Draft(
        "The new mole is open.",
        cues=("moor a boat", "find a berth"),
        learned_cues=("find a berth",),
    )
    id_ = await kept(team, draft)

    page = await ann.get(f"/memories/{id_}")
    await ann.post(f"/memories/{id_}/uncue", cue="find a berth")

    assert "Remove the cue find a berth" in texts(page)
    assert "Remove the cue moor a boat" not in texts(page)
    memory = await team.read(id_)
    assert (memory.cues, memory.learned) == (("moor a boat",), ())


async def test_pinning_relating_and_merging(team: Team, ann: Visitor) -> None:
    one = await kept(team, "The depot opens at six.")
    other = await kept(team, "The depot opens at six in summer.")
    await ann.post(f"/memories/{one}/pin", pinned="yes")
    pinned = (await team.read(one)).pinned
    await ann.post(f"/memories/{one}/pin", pinned="")
    related = await ann.post(
        f"/memories/{one}/relate", other=str(other)[-12:], type="part_of"
    )
    removed = await ann.post(
        f"/memories/{one}/unrelate", {"from": one, "to": other, "type": "part_of"}
    )
    preview = await ann.post(f"/memories/{one}/merge", other=other)
    before = (await team.read(other)).superseded_at
    merged = await ann.post(f"/memories/{one}/merge", fields_of(preview))

    assert pinned
    assert not (await team.read(one)).pinned
    assert "part_of" in texts(related)
    assert "part_of" not in texts(removed)
    assert "Merge these two?" in texts(preview)
    assert before is None
    assert "Merged." in texts(merged)
    assert (await team.read(other)).superseded_by == one
    history = await team.owner.call(HistoryRequest(id=one))
    assert history.revisions[0].author == "ann"


async def test_a_memory_is_stored_and_what_is_similar_is_shown(
    team: Team, ann: Visitor
) -> None:
    form = fields_of(await ann.get("/new", project="harbour"))
    first = await ann.post(
        "/new",
        form | {"content": "The tide table hangs in the office.", "tags": "tide"},
    )
    second = await ann.post(
        "/new", form | {"content": "The tide table hangs in the office!"}
    )
    wrong = await ann.post("/new", form | {"content": "x", "importance": "no"})
    foreign = await ann.post("/new", form | {"content": "x", "project": "elsewhere"})

    assert "Saved." in texts(first)
    assert "Similar memories" in texts(second) or "Known already" in texts(second)
    assert wrong.status_code == 400
    assert foreign.status_code == 404


async def test_a_reader_sees_no_change_and_may_make_none(
    team: Team, rita: Visitor
) -> None:
    id_ = await kept(team, "The harbour master is Ada.")
    page = await rita.get(f"/memories/{id_}")
    changes = [
        await rita.post(f"/memories/{id_}/{path}", fields)
        for path, fields in (
            ("edit", {"content": "x", "revision": 1}), ("pin", {"pinned": "yes"}), ("forget", {}),
            ("cue", {"cue": "x"}), ("uncue", {"cue": "x"}),
            ("erase", {"word": "erase"}), ("undo", {"revision": 1}), ("supersede", {"content": "x"}),
            ("relate", {"other": id_}), ("merge", {"other": id_, "confirmed": "yes", "revision": 1}),
        )
    ]  # fmt: skip
    forms = [
        await rita.get(f"/memories/{id_}/{path}")
        for path in ("edit", "forget", "erase", "supersede", "relate")
    ]

    assert "The harbour master is Ada." in texts(page)
    assert not re.search(r"Edit|Forget|Erase|Merge|Pin\b", texts(page))
    assert {answer.status_code for answer in (*changes, *forms)} <= {403}
    assert (await team.read(id_)).revision == 1


async def test_anothers_memory_answers_as_one_that_never_was(
    team: Team, ann: Visitor
) -> None:
    hidden = await kept(team, "Bob alone knows this.", "bob-private")
    never = new_id()
    for path in ("", "/edit", "/forget", "/erase", "/supersede", "/relate", "/merge"):
        one = await ann.get(f"/memories/{hidden}{path}")
        other = await ann.get(f"/memories/{never}{path}")
        assert (one.status_code, one.text.replace(str(hidden), "ID")) == (
            404,
            other.text.replace(str(never), "ID"),
        )
    for path in (
        "edit",
        "pin",
        "undo",
        "forget",
        "erase",
        "supersede",
        "relate",
        "unrelate",
        "merge",
    ):
        fields = {
            "revision": 1,
            "word": "erase",
            "content": "x",
            "other": never,
            "from": never,
            "to": never,
        }
        one, other = [
            await ann.post(f"/memories/{id_}/{path}", fields) for id_ in (hidden, never)
        ]
        shown = [
            answer.text.replace(str(hidden), "ID").replace(str(never), "ID")
            for answer in (one, other)
        ]
        assert (one.status_code, shown[0]) == (404, shown[1]), path


async def test_hostile_texts_are_shown_as_they_are(team: Team, ann: Visitor) -> None:
    draft = Draft(
        HOSTILE,
        summary=HOSTILE,
        source=HOSTILE,
        session=HOSTILE,
        paths=(HOSTILE[:60],),
        metadata={HOSTILE: HOSTILE},
    )
    id_ = await kept(team, draft)
    other = await kept(team, "The quay is long.")
    await ann.post(f"/memories/{other}/relate", other=id_, type="near_to")
    await ann.post(
        f"/memories/{other}/supersede",
        content=f"The quay is short. {HOSTILE}",
        reason=HOSTILE,
    )
    pages = [
        await ann.get(path)
        for path in (
            f"/memories/{id_}",
            f"/memories/{id_}/edit",
            f"/memories/{other}",
            "/",
        )
    ]

    for page in pages:
        assert page.status_code == 200
        assert html.escape("<script>pwned=1</script>") in page.text
        assert not re.search(r"<script>|<img|<svg/|49\$", page.text)
    assert fields_of(pages[1])["content"] == HOSTILE
