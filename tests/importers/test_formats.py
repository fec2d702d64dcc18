"""Import of other formats: nothing is lost, and a repeated import changes only changed records."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from folklore.errors import InvalidInput
from folklore.importers.json_values import json_records
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.importers.test_import_claude import exported


async def test_a_knowledge_graph_is_imported_with_its_relations_as_sentences_too(
    folklore: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "memory.jsonl"
    lines: list[Any] = [
        {
            "type": "entity", "name": "Alice", "entityType": "person",
            "observations": ["Leads payments", "Alice likes tea"],
        },
        {"type": "entity", "name": "Acme", "entityType": "company", "observations": []},
        {"type": "relation", "from": "Alice", "to": "Acme", "relationType": "works_at"},
        {"type": "surprise"},
    ]  # fmt: skip
    file.write_text("\n".join(map(json.dumps, lines)) + "\nnot json\n")

    first = await folklore("import", file, "--format", "mcp-memory-json", "--json")
    again = await folklore("import", file, "--format", "mcp-memory-json", "--json")
    found = await exported(folklore)

    assert (first.json["stored"], first.json["relations"], first.json["failed"]) == (
        5,
        1,
        2,
    )
    assert [failure["line"] for failure in first.json["failures"]] == [4, 5]
    assert again.json["stored"] == 0
    assert set(found) == {
        "Alice (person)", "Alice: Leads payments", "Alice likes tea", "Acme (company)", "Alice works at Acme",
    }  # fmt: skip
    assert found["Alice: Leads payments"]["tags"] == ["entity:person:alice"]


RECORDS = {
    "results": [
        {
            "id": "892db2ae-06d9-49e5-8b3e-585ef9b85b8e", "memory": "Prefers dark mode", "hash": "abc",
            "metadata": {"app": "editor"}, "categories": ["preferences"], "user_id": "alice", "run_id": "run-1",
            "created_at": "2024-07-20T01:30:36.275141-07:00", "updated_at": None,
        },
        {"id": "2", "memory": "Uses Vim"},
        {"id": "3"},
        "odd",
    ]
}  # fmt: skip


@pytest.mark.parametrize("shape", ["object", "list", "lines", "data"])
async def test_mem0_records_are_imported_from_every_shape_of_export(
    folklore: CommandLine, tmp_path: Path, shape: str
) -> None:
    file = tmp_path / "mem0.json"
    records = RECORDS["results"]
    text = {
        "object": json.dumps(RECORDS, indent=2),
        "list": json.dumps(records),
        "lines": "\n".join(map(json.dumps, records[:3])),
        "data": json.dumps({"kind": "mem0_export", "data": RECORDS}),
    }[shape]
    file.write_text(text)

    ran = await folklore("import", file, "--json")
    again = await folklore("import", file, "--format", "mem0", "--json")
    found = await exported(folklore)

    failed = 1 if shape == "lines" else 2
    assert (ran.json["format"], ran.json["stored"], ran.json["failed"]) == (
        "mem0",
        2,
        failed,
    )
    assert (again.json["stored"], again.json["duplicates"]) == (0, 2)
    kept = found["Prefers dark mode"]
    assert kept["id"] == "892db2ae-06d9-49e5-8b3e-585ef9b85b8e"
    assert kept["tags"] == ["user:alice", "preferences"]
    assert (kept["session"], kept["created_at"][:10]) == ("run-1", "2024-07-20")
    assert kept["metadata"] == {"app": "editor"}


async def test_mcp_memory_service_exports_keep_type_tags_and_times(
    folklore: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "export.json"
    memory = {
        "content": "We deploy on Fridays", "content_hash": "f00", "tags": ["deploy", "source:laptop"],
        "created_at": 1700000000.5, "updated_at": 1700000001, "memory_type": "decision",
        "metadata": {"import_info": {"a": 1}},
    }  # fmt: skip
    file.write_text(
        json.dumps(
            {
                "export_metadata": {"source_machine": "laptop", "total_memories": 1},
                "memories": [memory],
            }
        )
    )

    report = await folklore.json("import", file)
    assert (report["format"], report["stored"]) == ("mcp-memory-service", 1)
    kept = (await exported(folklore))["We deploy on Fridays"]

    assert (kept["kind"], kept["tags"]) == ("decision", ["deploy", "source:laptop"])
    assert kept["created_at"].startswith("2023-11-14T22:13:20.5")


async def test_pages_are_imported_section_by_section(
    folklore: CommandLine, tmp_path: Path
) -> None:
    root = tmp_path / "wiki"
    (root / "ops").mkdir(parents=True)
    (root / "node_modules").mkdir()
    (root / "node_modules" / "x.md").write_text("# Not imported\n\ntext")
    (root / "ops" / "deploy.md").write_text(
        "---\ntags: [Ops, deploy]\nkind: procedural\ndate: 2025-03-01\n---\nIntro.\n\n"
        "# Deploy\n\nRun `make deploy`.\n\n"
        "## Roll back\n\n```\n# no heading\nmake undo\n```\n\n# Empty\n"
    )
    (root / "README.md").write_text("Just text.\n")

    report = await folklore.json("import", root, "--format", "markdown")
    found = await exported(folklore)

    assert report["stored"] == 4
    assert set(found) == {
        "Just text.", "Intro.", "Deploy\n\nRun `make deploy`.",
        "Deploy > Roll back\n\n```\n# no heading\nmake undo\n```",
    }  # fmt: skip
    section = found["Deploy\n\nRun `make deploy`."]
    assert (section["kind"], section["tags"], section["source"]) == (
        "procedural", ["ops", "deploy"], "ops/deploy.md#Deploy",
    )  # fmt: skip
    assert section["occurred_at"].startswith("2025-03-01")


async def test_unusable_front_matter_is_reported_and_its_page_imported(
    folklore: CommandLine, tmp_path: Path
) -> None:
    root = tmp_path / "wiki"
    root.mkdir()
    (root / "odd.md").write_text(
        "---\nkind: My Kind!\ndate: someday\ntags: {a: b}\nlayout: post\nempty:\ntitle: T\n---\nOne.\n\n# A\n\nTwo.\n"
    )
    (root / "broken.md").write_text("---\nkind: [decision\n---\nThree.\n")
    (root / "list.md").write_text("---\n- decision\n---\nFour.\n")
    (root / "good.md").write_text(
        "---\nkind: decision\ncreated: '2025-03-01'\ntags: a, b\n---\nFive.\n"
    )
    (root / "none.md").write_text("---\n---\nSix.\n")

    report = await folklore.json("import", root, "--format", "markdown", "--dry-run")
    printed = await folklore.done("import", root, "--format", "markdown")
    found = await exported(folklore)

    assert report["ignored_fields"] == {
        "front matter": 1, "front matter: date": 2, "front matter: kind": 3, "front matter: layout": 2,
        "front matter: tags": 2,
    }  # fmt: skip
    assert "field 'front matter: date' on 2 lines" in printed
    assert {content: line["kind"] for content, line in found.items()} == {
        "T\n\nOne.": "note", "A\n\nTwo.": "note", "Three.": "note", "Four.": "note", "Five.": "decision",
        "Six.": "note",
    }  # fmt: skip
    assert found["Five."]["occurred_at"].startswith("2025-03-01")
    assert found["Five."]["tags"] == ["a", "b"]


async def test_claude_memory_is_imported_without_other_pages(
    folklore: CommandLine, tmp_path: Path
) -> None:
    root = tmp_path / ".claude"
    memory = root / "projects" / "-home-a-api" / "memory"
    memory.mkdir(parents=True)
    (root / "CLAUDE.md").write_text("# Style\n\n- Use ruff.\n")
    (root / "notes.md").write_text("Not memory.")
    (memory / "tests.md").write_text(
        "---\nname: testing\ndescription: How to test\ntype: feedback\n---\nRun pytest with -q.\n"
    )

    report = await folklore.json(
        "import", root, "--format", "claude-memory", "--namespace", "mine"
    )
    found = await exported(folklore)

    assert (report["stored"], report["ignored_fields"], report["namespaces"]) == (
        2,
        {},
        {"mine": 2},
    )
    note = found["testing\n\nRun pytest with -q."]
    assert (note["kind"], note["summary"], note["namespace"]) == (
        "procedural",
        "How to test",
        "mine",
    )
    assert note["tags"] == ["claude-memory", "project:home-a-api"]
    assert found["Style\n\n- Use ruff."]["source"] == "CLAUDE.md#Style"


async def test_a_missing_folder_is_invalid_input(
    folklore: CommandLine, tmp_path: Path
) -> None:
    assert (
        await folklore("import", tmp_path / "none", "--format", "markdown")
    ).code == 2


@pytest.mark.parametrize(
    "form", ["mcp-memory-service", "mem0", "mcp-memory-json", "jsonl"]
)
async def test_a_document_that_cannot_be_read_is_refused_in_one_sentence(
    folklore: CommandLine, tmp_path: Path, form: str
) -> None:
    file = tmp_path / "broken.json"
    for document, said in (
        (b'{"memories":\n [{"content": "Whole."},\n {"content": "Hal', "is not JSON"),
        (b'{"memories":\n ' + b"[" * 50_000, "is nested too deep"),
        ('[{"content": "Größe"}]'.encode("latin-1"), "is not UTF-8"),
    ):
        file.write_bytes(document)
        ran = await folklore("import", file, "--format", form)
        assert ran.code == 1
        assert said in ran.err
        assert "0 stored, 0 duplicates, 0 skipped, 1 failed" in ran.out
    assert await exported(folklore) == {}


values = st.dictionaries(
    st.text(max_size=5), st.none() | st.integers() | st.text(max_size=20), max_size=3
)


@given(st.lists(values, max_size=5), st.sampled_from([None, 2]), st.booleans())
def test_records_equal_those_of_the_json_module(
    records: list[dict[str, Any]], indent: int | None, ascii_only: bool
) -> None:
    document = {"meta": {"n": 1}, "memories": records, "after": [1]}
    for value in (document, records):
        raw = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode(
            "utf-8", "surrogatepass"
        )
        if b"\xed" in raw:
            continue
        assert [read.value for read in json_records(BytesIO(raw))] == records


@given(st.binary(max_size=100))
@example(b"\x1f\x8b")
def test_any_bytes_give_records_or_invalid_input_or_are_a_damaged_file(
    raw: bytes,
) -> None:
    values: list[object] = []
    damage = ""
    try:
        values = [read.value for read in json_records(BytesIO(raw))]
    except OSError as error:
        damage = str(error)
    assert not damage or "it is damaged" in damage
    assert all(isinstance(value, dict | InvalidInput) for value in values)
