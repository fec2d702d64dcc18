"""The pages of projects: what each role may do with a whole project, with its preview and its way back."""

import json

import httpx

from folklore.model import Draft
from tests.team import Team
from tests.visitor import Visitor, texts


async def listed(visitor: Visitor, project: str) -> str:
    return texts(await visitor.get("/search", project=project, order="newest"))


async def import_file(
    visitor: Visitor, content: bytes, **fields: str
) -> httpx.Response:
    form = {"form_token": visitor.form_token, **fields}
    return await visitor.http.post(
        "/projects/import",
        data=form,
        files={"file": ("a.jsonl", content)},
        headers={"Origin": visitor.url},
    )


async def test_the_owner_creates_describes_shares_and_renames_a_project(
    team: Team,
) -> None:
    async with team.visitor("root", owner=True) as owner:
        made = await owner.post(
            "/projects",
            name="Quay/North",
            language="german",
            description="Notes & more",
        )
        await owner.post("/project/describe", project="quay/north", description="Ships")
        shared = await owner.post("/project/share", project="quay/north", shared="1")
        alone = await owner.post("/project/share", project="quay/north")
        renamed = await owner.post(
            "/project/rename", project="quay/north", to="quay/south"
        )
        again = await owner.post("/projects", name="quay/south")
        found = texts(await owner.get("/projects", q="SOUTH quay"))
        none = texts(await owner.get("/projects", q="nowhere"))

    assert "Created." in texts(made)
    assert "german" in texts(made)
    assert "searched in every project too" in texts(shared)
    assert "Ships" in texts(shared)
    assert "Search this project in every project too" in texts(alone)
    assert "Renamed." in texts(renamed)
    assert str(renamed.url).endswith("project=quay%2Fsouth")
    assert again.status_code == 409
    assert "quay/south" in found
    assert "No project has such a name." in none


async def test_a_tag_is_renamed_after_a_preview_and_back(team: Team) -> None:
    await team.keep(
        Draft("The crane lifts forty tonnes.", tags=("lift/heavy",)), namespace="crane"
    )
    async with team.visitor("kate", "crane:writer") as writer:
        preview = texts(
            await writer.get("/project/tag", project="crane", tag="lift", to="hoist")
        )
        before = await listed(writer, "crane")
        done = await writer.post(
            "/project/tag", project="crane", tag="lift", to="hoist"
        )
        after = await listed(writer, "crane")
        undo = texts(
            await writer.get(
                "/project/tag", project="crane", tag="lift", to="hoist", undo=1
            )
        )
        undone = await writer.post(
            "/project/tag", project="crane", tag="lift", to="hoist", undo="1"
        )
        last = await listed(writer, "crane")
        nothing = await writer.get(
            "/project/tag", project="crane", tag="absent", to="hoist"
        )

    assert "lift/heavy → hoist/heavy" in preview
    assert "on 1 memory" in preview
    assert "lift/heavy" in before
    assert "Renamed." in texts(done)
    assert "hoist/heavy" in after
    assert "lift/heavy" not in after
    assert "hoist/heavy → lift/heavy" in undo or "hoist → lift" in undo
    assert "Undone." in texts(undone)
    assert "lift/heavy" in last
    assert nothing.status_code == 404


async def test_projects_are_merged_after_a_preview_and_back(team: Team) -> None:
    await team.keep("The ferry leaves at six.", namespace="ferry")
    await team.keep("The pier has two ramps.", namespace="pier")
    async with team.visitor("chief", owner=True) as owner:
        preview = texts(await owner.get("/project/merge", project="ferry", into="pier"))
        still = await listed(owner, "ferry")
        merged = await owner.post("/project/merge", project="ferry", into="pier")
        together = await listed(owner, "pier")
        asked = texts(
            await owner.get("/project/merge", project="ferry", into="pier", undo=1)
        )
        back = await owner.post(
            "/project/merge", project="ferry", into="pier", undo="1"
        )
        apart = await listed(owner, "pier")

    assert "1 memory will move from ferry into pier" in preview
    assert "leaves at six" in still
    assert "Merged." in texts(merged)
    assert "leaves at six" in together
    assert "two ramps" in together
    assert "ferry is restored" in asked
    assert "Undone." in texts(back)
    assert str(back.url).endswith("project=ferry")
    assert "leaves at six" not in apart


async def test_a_project_is_deleted_restored_and_erased(team: Team) -> None:
    await team.keep("The lamp turns every nine seconds.", namespace="lamp")
    async with team.visitor("boss", owner=True) as owner:
        asked = texts(await owner.get("/project/delete", project="lamp"))
        deleted = await owner.post("/project/delete", project="lamp")
        gone = await owner.get("/project", project="lamp")
        restored = await owner.post("/projects/restore", project="lamp")
        there = await listed(owner, "lamp")
        page = await owner.get("/project/erase", project="lamp")
        ids = page.text.split('name="id" value="')[1].split('"')[0]
        unsure = await owner.post("/project/erase", project="lamp", id=ids, word="yes")
        other = await owner.post(
            "/project/erase",
            project="lamp",
            id="01890000-0000-7000-8000-000000000000",
            word="erase",
        )
        kept = await listed(owner, "lamp")
        erased = await owner.post(
            "/project/erase", project="lamp", id=ids, word="Erase"
        )
        last = await owner.get("/project", project="lamp")

    assert "1 memory will be hidden from everyone" in asked
    assert "Restore" in texts(deleted)
    assert gone.status_code == 404
    assert "Restored." in texts(restored)
    assert "nine seconds" in there
    assert unsure.status_code == 400
    assert "Nothing was erased." in texts(unsure)
    assert other.status_code == 409
    assert "nine seconds" in kept
    assert "Erased permanently." in texts(erased)
    assert last.status_code == 404


async def test_forgotten_memories_are_counted_on_no_page(team: Team) -> None:
    await team.keep("The buoy is red.", "The buoy is green.", namespace="buoys")
    (gone,) = await team.keep("The buoy is gone.", namespace="buoys")
    await team.owner.forget(gone)
    async with team.visitor("cleo", "buoys:reader") as reader:
        pages = {
            path: texts(await reader.http.get(path))
            for path in ("/", "/projects", "/project?project=buoys", "/operate")
        }

    for path, count in zip(
        pages, ("buoys 2 reader", "buoys 2 reader", "Memories 2", "2 of 2"), strict=True
    ):
        assert count in pages[path]


async def test_an_export_is_imported_once(team: Team) -> None:
    await team.keep("The buoy is red.", namespace="buoy")
    async with team.visitor("head", owner=True) as owner:
        export = await owner.get("/project/export", project="buoy")
        trial = texts(
            await import_file(owner, export.content, project="float", dry_run="1")
        )
        not_yet = await owner.get("/project", project="float")
        done = texts(await import_file(owner, export.content, project="float"))
        again = texts(await import_file(owner, export.content, project="float"))
        found = await listed(owner, "float")
        bad = texts(
            await import_file(
                owner, b'{"content": "Fine."}\n{"content": 4}\n', project="float"
            )
        )
        binary = await import_file(owner, b"\xff\xfe\x00")
        empty = await import_file(owner, b"")
        unknown = await import_file(owner, export.content, on_conflict="guess")

    assert (
        export.headers["content-disposition"]
        == "attachment; filename*=utf-8''buoy.jsonl"
    )
    assert [json.loads(line).get("content") for line in export.text.splitlines()][
        1:2
    ] == ["The buoy is red."]
    assert "1 memory stored" in trial
    assert not_yet.status_code == 404
    assert "1 memory stored" in done
    assert "0 memories stored 1 memory known already" in again
    assert "The buoy is red." in found
    assert "1 memory stored 1 line failed" in bad
    assert "Line 2" in bad
    assert {answer.status_code for answer in (binary, empty, unknown)} == {400}
    assert "not text in UTF-8" in texts(binary)


async def test_each_role_sees_and_may_do_what_is_its_own(team: Team) -> None:
    await team.keep("The dock is dry.", namespace="dock")
    await team.keep("The safe is blue.", namespace="safe")
    async with (
        team.visitor("rita", "dock:reader") as reader,
        team.visitor("adam", "dock:admin") as admin,
    ):
        projects = texts(await reader.get("/projects"))
        page = await reader.get("/project", project="dock")
        hidden = [
            await reader.get(path, project="safe")
            for path in ("/project", "/project/delete", "/project/export")
        ]
        missing = await reader.get("/project", project="nowhere")
        refused = [
            await reader.post("/project/rename", project="dock", to="other"),
            await reader.post("/project/tag", project="dock", tag="a", to="b"),
            await reader.post("/project/delete", project="dock"),
            await reader.get("/project/delete", project="dock"),
            await admin.post("/projects", name="mine"),
            await admin.post("/projects/restore", project="dock"),
            await admin.get("/project/erase", project="dock"),
            await admin.post("/project/erase", project="dock", word="erase"),
            await admin.get("/projects/import"),
            await import_file(admin, b'{"content": "x"}'),
        ]
        export = await reader.get("/project/export", project="dock")
        described = await admin.post(
            "/project/describe", project="dock", description="Repairs"
        )
        shown = await admin.get("/project", project="dock")

    assert "dock" in projects
    assert "safe" not in projects
    assert "Export as JSON Lines" in texts(page)
    assert "Delete this project" not in texts(page)
    assert [answer.status_code for answer in hidden] == [404] * 3
    assert missing.text.replace("nowhere", "safe") == hidden[0].text
    assert {answer.status_code for answer in refused} <= {403, 404}
    assert "The dock is dry." in export.text
    assert "The safe" not in export.text
    assert "Saved." in texts(described)
    assert "Delete this project" in texts(shown)
    assert "Erase it permanently" not in texts(shown)
