"""Commands `folklore export` and `folklore import`."""

import json
from pathlib import Path

import pytest

from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "memories.jsonl"
    path.write_text(
        '{"content": "One fact."}\n{"content": "Two facts.", "mood": 1}\n{"type": "question"}\n'
    )
    return path


async def test_an_import_prints_its_counts_and_with_json_one_document(
    folklore: CommandLine, file: Path
) -> None:
    dry = await folklore.json("import", file, "--dry-run")
    out = await folklore.done("import", file)
    again = await folklore.json("import", file)

    expected = {"skipped": {"question": 1}, "ignored_fields": {"mood": 1}, "failed": 0}
    assert (
        dry.items()
        >= (expected | {"stored": 2, "duplicates": 0, "dry_run": True}).items()
    )
    assert "2 stored, 0 duplicates, 1 skipped, 0 failed" in out
    assert "'question'" in out
    assert "'mood'" in out
    assert (
        again.items()
        >= (expected | {"stored": 0, "duplicates": 2, "dry_run": False}).items()
    )
    assert len((await folklore.json("list"))["memories"]) == 2


async def test_a_dry_run_names_the_namespaces_with_their_counts(
    folklore: CommandLine, file: Path
) -> None:
    with file.open("a") as lines:
        lines.write('{"content": "Three facts.", "namespace": "team"}\n')

    dry = await folklore.done("import", file, "--dry-run")
    redirected = await folklore.done("import", file, "--dry-run", "--namespace", "mine")
    report = await folklore.json("import", file)
    again = await folklore.done("import", file, "--dry-run")

    assert "  into namespace 'notes': 2\n  into namespace 'team': 1\n" in dry
    assert [line for line in redirected.splitlines() if "namespace" in line] == [
        "  into namespace 'mine': 3"
    ]
    assert report["namespaces"] == {"notes": 2, "team": 1}
    assert "  into namespace 'notes': 2\n  into namespace 'team': 1\n" in again


async def test_a_failed_line_makes_exit_code_1_and_the_rest_is_stored(
    folklore: CommandLine, file: Path
) -> None:
    with file.open("a") as lines:
        lines.write("{\n")

    plain = await folklore("import", file)
    as_json = await folklore("import", file, "--json")

    assert plain.code == as_json.code == 1
    assert "2 stored" in plain.out
    assert "line 4: " in plain.err
    assert as_json.json["failures"][0]["line"] == 4


async def test_a_conflict_ends_with_exit_code_1_under_the_policy_fail(
    folklore: CommandLine, file: Path
) -> None:
    await folklore.done("import", file)

    ran = await folklore("import", file, "--on-conflict", "fail")

    assert ran.code == 1
    assert "Line 1 exists already" in ran.err


async def test_a_file_of_another_format_gives_a_hint_to_the_option_format(
    folklore: CommandLine, tmp_path: Path
) -> None:
    page, mixed, graph = (
        tmp_path / name for name in ("page.txt", "mixed.jsonl", "memory.jsonl")
    )
    graph.write_text(
        '{"type": "entity", "name": "Ann", "entityType": "person", "observations": ["Likes tea."]}\n'
    )
    page.write_text("# Deploy\n\nWe deploy from tags.\n")
    mixed.write_text('{"content": "Good."}\nnonsense\n')

    assert "--format markdown" in (await folklore("import", page)).err
    assert (await folklore("import", graph)).code == 0, "its format is recognised"
    folder = await folklore("import", tmp_path, "--format", "jsonl")
    assert (
        "A folder has the format markdown, rules, claude-memory, git, conversations"
        in folder.err
    )
    assert "--format" not in (await folklore("import", mixed)).err


async def test_an_export_goes_through_a_pipe_into_an_import(
    folklore: CommandLine, file: Path
) -> None:
    await folklore.done("import", file)

    exported = folklore.process("export")
    imported = folklore.process(
        "import", "-", "--namespace", "copy", "--json", stdin=exported.out.encode()
    )

    header, *lines = [json.loads(line) for line in exported.out.splitlines()]
    assert (exported.err, list(header)[:2]) == ("", ["folklore", "exported_at"])
    assert [line["type"] for line in lines] == ["memory", "memory"]
    assert imported.json["stored"] == 2
    assert len((await folklore.json("list", "-n", "copy"))["memories"]) == 2


async def test_exported_vectors_are_imported_into_a_database_with_the_same_model(
    folklore: CommandLine, file: Path, tmp_path: Path
) -> None:
    await folklore.done("import", file)
    target = tmp_path / "out.jsonl"
    await folklore.done("export", target, "--embeddings")
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    lines[2]["embedding"]["name"] = "another"
    target.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    dry = await folklore.done("import", target, "--namespace", "copy", "--dry-run")
    done = await folklore.json("import", target, "--namespace", "copy")

    assert [line["embedding"]["provider"] for line in lines[1:]] == [
        "bundled",
        "bundled",
    ]
    assert "field 'embedding' on 1 line (line 3); not of this store's model" in dry
    assert (done["stored"], done["ignored_fields"], done["without_vector"]) == (
        2,
        {"embedding": 1},
        0,
    )


async def test_a_failed_export_keeps_the_file_of_an_earlier_one(
    folklore: CommandLine, file: Path, tmp_path: Path
) -> None:
    await folklore.done("import", file)
    target = tmp_path / "out.jsonl"

    counted = await folklore.json("export", target, "-n", "*")
    whole = target.read_text()
    failed = await folklore("export", target, "--namespace", "nowhere")

    assert counted == {"file": str(target), "exported": 2}
    assert len(whole.splitlines()) == 3
    assert failed.code == 4
    assert target.read_text() == whole
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == [
        "memories.jsonl",
        "out.jsonl",
    ]


async def test_an_export_counts_memories_without_their_relations_and_revisions(
    folklore: CommandLine, tmp_path: Path
) -> None:
    old = (await folklore.json("store", "We deploy from main."))["stored"][0]["id"]
    await folklore.done("store", "We deploy from tags.", "--supersedes", old)
    target = tmp_path / "out.jsonl"

    printed = await folklore.done("export", target)

    kinds = [
        json.loads(line).get("type") for line in target.read_text().splitlines()[1:]
    ]
    assert sorted(kinds) == ["memory", "memory", "relation", "revision"]
    assert printed.startswith("2 memories exported")


async def test_an_unwritable_file_is_invalid_input(folklore: CommandLine) -> None:
    ran = await folklore("export", "/nowhere/at/all.jsonl")

    assert (ran.code, "cannot be written" in ran.err) == (2, True)
