"""Files of other systems as they are: shapes, types, states and formats. What is not taken is named, never lost silently."""

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.importers.test_import_claude import exported

ENTITY: dict[str, Any] = {
    "type": "entity",
    "name": "Alice",
    "entityType": "person",
    "observations": ["Likes tea"],
}
ACME: dict[str, Any] = {
    "type": "entity",
    "name": "Acme",
    "entityType": "company",
    "observations": [],
}
RELATION: dict[str, Any] = {
    "type": "relation",
    "from": "Alice",
    "to": "Acme",
    "relationType": "works_at",
}
GRAPH = [ENTITY, ACME, RELATION]


def _untyped(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "type"}


GRAPHS = {
    "lines": "\n".join(map(json.dumps, GRAPH)),
    "list": json.dumps(GRAPH),
    "list over lines": json.dumps(GRAPH, indent=2),
    "a record a line in a list": "[\n" + ",\n".join(map(json.dumps, GRAPH)) + "\n]",
    "all on a line": " ".join(map(json.dumps, GRAPH)),
    "graph": json.dumps(
        {"entities": list(map(_untyped, GRAPH[:2])), "relations": [_untyped(RELATION)]}
    ),
    "graph over lines": json.dumps(
        {"entities": GRAPH[:2], "relations": [RELATION]}, indent=1
    ),
    "with a mark": "\ufeff" + "\r\n".join(map(json.dumps, GRAPH)),
}


@pytest.mark.parametrize("shape", GRAPHS)
@pytest.mark.parametrize("stated", [True, False])
async def test_a_graph_is_read_in_every_shape_and_known_by_its_content(
    folklore: CommandLine, tmp_path: Path, shape: str, stated: bool
) -> None:
    file = tmp_path / "memory.json"
    file.write_text(GRAPHS[shape])
    options = ["--format", "mcp-memory-json"] if stated else []

    report = await folklore.json("import", file, *options)

    assert report["format"] == "mcp-memory-json"
    assert (report["stored"], report["relations"], report["failed"]) == (4, 1, 0)
    assert "Alice: Likes tea" in await exported(folklore)


@pytest.mark.parametrize(
    "text",
    [
        '[{"content": "a"}, {"content": "b"}]',
        '[\n  {"content": "a"},\n  {"content": "b"}\n]',
        '{"content": "a"} {"content": "b"}',
        '{\n  "content": "a"\n}\n{\n  "content": "b"\n}',
        '{"memories": [{"content": "a"}, {"content": "b"}]}',
        '{"memories": [\n {"content": "a"},\n {"content": "b"}]}',
        '\ufeff{"content": "a"}\r\n\r\n{"content": "b"}\r\n',
    ],
)
async def test_objects_are_lines_in_whatever_shape_they_come(
    folklore: CommandLine, tmp_path: Path, text: str
) -> None:
    for name, raw in (
        ("plain.json", text.encode()),
        ("packed.json.gz", gzip.compress(text.encode())),
        ("windows.json", text.removeprefix("\ufeff").encode("utf-16")),
    ):
        (tmp_path / name).write_bytes(raw)
        report = await folklore.json(
            "import", tmp_path / name, "-n", name.partition(".")[0]
        )
        assert (report["stored"], report["failed"]) == (2, 0), name


def test_what_comes_from_a_pipe_is_read_in_the_same_shapes(
    folklore: CommandLine,
) -> None:
    text = b'[{"content": "a"},\n {"content": "b"}]'
    for raw in (text, gzip.compress(text)):
        ran = folklore.process("import", "-", "--dry-run", "--json", stdin=raw)
        assert (ran.json["stored"], ran.json["failed"]) == (2, 0)


async def test_texts_in_json_are_decoded_and_what_is_of_another_type_is_named(
    folklore: CommandLine, tmp_path: Path
) -> None:
    service = {
        "content": "x", "content_hash": "h", "tags": '["c", "d, e"]', "metadata": '{"x": 1}',
        "created_at": "1700000000", "memory_type": {"a": 1}, "embedding_model": "m",
    }  # fmt: skip
    mem0 = {
        "id": 7, "memory": "y", "metadata": '{"z": [1]}', "categories": '[{"name": "food"}, "tea"]',
        "created_at": "last week", "updated_at": 1700000000000, "user_id": ["u"], "score": 0.5,
    }  # fmt: skip
    line = {
        "content": "w",
        "tags": '["f"]',
        "metadata": '{"v": true}',
        "paths": '["a.py"]',
    }
    for name, document in (
        ("service", {"export_metadata": {}, "memories": [service]}),
        ("mem0", {"results": [mem0]}),
        ("line", line),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))

    reports = {
        name: await folklore.json("import", tmp_path / f"{name}.json")
        for name in ("service", "mem0", "line")
    }
    found = await exported(folklore)

    assert (found["x"]["tags"], found["x"]["metadata"]) == (["c", "d,-e"], {"x": 1})
    assert found["x"]["created_at"].startswith("2023-11-14T22:13:20")
    assert (found["y"]["tags"], found["y"]["metadata"]) == (["food", "tea"], {"z": [1]})
    assert found["y"]["updated_at"].startswith("2023-11-14T22:13:20")
    assert (found["w"]["tags"], found["w"]["metadata"]) == (["f"], {"v": True})
    assert found["w"]["paths"] == ["a.py"]
    assert reports["service"]["ignored_fields"] == {
        "memory_type": 1,
        "embedding_model": 1,
    }
    assert reports["mem0"]["ignored_fields"] == {
        "created_at": 1,
        "user_id": 1,
        "score": 1,
    }
    assert reports["mem0"]["ignored_at"]["score"] == "record 1"
    assert reports["line"]["ignored_fields"] == {}


async def test_fields_of_a_graph_that_have_no_place_are_named(
    folklore: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "memory.jsonl"
    records = [
        ENTITY | {"observations": '["Likes tea"]', "entityType": ["x"], "weight": 2},
        {
            "type": "entity",
            "name": "Bob",
            "observations": [{"content": "Is tall", "at": "noon"}, 5],
        },
        RELATION | {"relationType": "属于", "since": 2020},
    ]
    file.write_text("\n".join(map(json.dumps, records)))

    report = (await folklore("import", file, "--json")).json

    assert report["ignored_fields"] == {
        "entityType": 1, "weight": 1, "at": 1, "relationType": 1, "since": 1,
    }  # fmt: skip
    assert report["failed"] == 1
    assert {"Alice: Likes tea", "Bob: Is tall", "Alice 属于 Acme"} <= set(
        await exported(folklore)
    )


OPEN_MEMORY: dict[str, Any] = {
    "user": {"id": "u1", "user_id": "alice"},
    "apps": [{"id": "a1", "name": "cursor"}],
    "categories": [{"id": "c1", "name": "work"}],
    "memories": [
        {"id": "m1", "user_id": "u1", "app_id": "a1", "content": "Live one.",
         "state": "active", "category_ids": ["c1"], "metadata": {"k": 1}},
        {"id": "m2", "user_id": "u1", "app_id": None, "content": "Deleted.", "state": "deleted", "category_ids": []},
        {"id": "m3", "user_id": "u1", "app_id": None, "content": "Archived.", "state": "archived", "category_ids": []},
        {"id": "m4", "user_id": "u1", "app_id": None, "content": "Paused.", "state": "paused", "category_ids": []},
        {"id": "m5", "user_id": "u1", "app_id": "a9", "content": "Restored.",
         "state": "active", "deleted_at": "2024-01-01", "category_ids": ["c9"]},
    ],
}  # fmt: skip


@pytest.mark.parametrize("shape", ["document", "zip", "lines"])
async def test_memories_that_openmemory_shows_nobody_are_counted_and_not_stored(
    folklore: CommandLine, tmp_path: Path, shape: str
) -> None:
    document = json.dumps(OPEN_MEMORY, indent=2)
    lines = [
        {"id": record["id"], "content": record["content"], "metadata": {},
         "state": record["state"], "app": "cursor", "categories": ["work"]}
        for record in OPEN_MEMORY["memories"]
    ]  # fmt: skip
    packed = gzip.compress("\n".join(map(json.dumps, lines)).encode())
    file = tmp_path / "export"
    if shape == "zip":
        with ZipFile(file, "w") as archive:
            archive.writestr("memories.json", document)
            archive.writestr("memories.jsonl.gz", packed)
    else:
        file.write_bytes(document.encode() if shape == "document" else packed)

    report = await folklore.json("import", file)
    found = await exported(folklore)

    assert (report["format"], report["stored"], report["failed"]) == ("mem0", 2, 0)
    assert report["skipped"] == {
        "deleted memory": 1,
        "archived memory": 1,
        "paused memory": 1,
    }
    tags = ["app:cursor", "work"]
    assert found["Live one."]["tags"] == (
        tags if shape == "lines" else ["user:alice", *tags]
    )
    if shape != "lines":
        assert report["ignored_fields"] == {"category_ids": 1, "deleted_at": 1}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"state": "Deleted"}, "deleted"),
        ({"status": "archived"}, "archived"),
        ({"deleted": True}, "deleted"),
        ({"is_deleted": 1}, "deleted"),
        ({"isArchived": "true"}, "archived"),
        ({"deleted_at": "2024-01-01T00:00:00Z"}, "deleted"),
    ],
)
async def test_a_record_of_any_format_that_its_system_put_away_does_not_come_back(
    folklore: CommandLine, tmp_path: Path, fields: dict[str, Any], reason: str
) -> None:
    records = {
        "jsonl": {"content": "Away."} | fields,
        "mem0": {"memory": "Away."} | fields,
        "mcp-memory-service": {"content": "Away.", "content_hash": "h"} | fields,
    }
    for form, record in records.items():
        here = {"content": "Here.", "memory": "Here.", "content_hash": "i"}
        file = tmp_path / f"{form}.json"
        file.write_text(json.dumps([record, here]))
        report = await folklore.json("import", file, "--format", form, "-n", form)
        assert report["skipped"] == {f"{reason} memory": 1}, form
        assert report["stored"] == 1, form


async def test_a_record_that_is_not_put_away_is_stored_without_a_remark(
    folklore: CommandLine, tmp_path: Path
) -> None:
    record = {
        "content": "Here.",
        "state": "active",
        "deleted": False,
        "archived_at": None,
    }
    (tmp_path / "x.json").write_text(json.dumps(record | {"status": "done"}))

    report = await folklore.json("import", tmp_path / "x.json")

    assert (report["stored"], report["ignored_fields"]) == (1, {"status": 1})


async def test_a_file_of_deleted_memories_alone_was_read(
    folklore: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "x.json").write_text('{"content": "Away.", "deleted": true}')

    assert (await folklore("import", tmp_path / "x.json")).code == 0


async def test_a_mem0_memory_expires_at_the_end_of_its_last_day(
    folklore: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "x.json").write_text(
        '{"results": [{"memory": "Until then.", "expiration_date": "2099-03-01"}]}'
    )

    await folklore.done("import", tmp_path / "x.json")

    expires_at = (await exported(folklore))["Until then."]["expires_at"]
    assert expires_at.endswith(":59:59+00:00")


def _database(path: Path, tables: list[str]) -> None:
    with closing(sqlite3.connect(path)) as database:
        for table in tables:
            database.execute(f"CREATE TABLE {table} (id INTEGER)")
        database.commit()


ROAM = [{"title": "A page", "children": [{"string": "text", "uid": "u"}]}]
# Files, and words of the sentence that names them.
OTHERS: dict[str, tuple[str | bytes, str]] = {
    "chat.html": ("<html><head><title>ChatGPT Data Export</title></head>", "chat.html of ChatGPT's export"),
    "page.html": ("<!DOCTYPE html><html><body>Hi</body></html>", "a page in HTML"),
    "session.jsonl": ('{"type": "user", "sessionId": "s", "uuid": "u", "message": {}}\n', "a transcript of Claude Code"),
    "other.jsonl": ('{"type": "summary", "summary": "s", "leafUuid": "u"}\n{"type": "user"}\n', "a transcript of Claude Code"),
    "rollout.jsonl": ('{"timestamp": "t", "type": "session_meta", "payload": {}}\n', "a transcript of Codex"),
    "roam.json": (json.dumps(ROAM), "a graph of Roam"),
    "logseq.json": ('{"version": 1, "blocks": []}', "a graph of Logseq"),
    "keep.json": ('{"textContent": "t", "isTrashed": false}', "a note of Google Keep"),
    "train.jsonl": ('{"messages": [{"role": "user", "content": "x"}]}\n', "messages of a chat"),
    "notes.csv": ("title,text\na,b\nc,d\n", "a table in CSV"),
    "notes.tsv": ("title\ttext\na\tb\n", "a table in CSV"),
    "notes.txt": ("Just words.\n", "plain text"),
    "notes": ("Some words, and others\nNo table.\n", "plain text"),
    "notes.yaml": ("- content: a\n- content: b\n", "plain text"),
    "pages.json": ('[{"page-name": "x", "children": []}]', "a graph of Logseq"),
    "some.dat": (b"\x00\x01\x02\xff", "a binary file"),
    "notes.enex": ('<?xml version="1.0"?><!DOCTYPE en-export><en-export/>', "an export of Evernote"),
    "paper.pdf": (b"%PDF-1.7\n\xff", "a PDF document"),
    "x.zst": (b"\x28\xb5\x2f\xfd\0\0\0", "compressed by zstd"),
    "x.png": (b"\x89PNG\r\n\x1a\n", "an image"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
async def test_a_file_that_is_not_read_is_named_with_what_to_do(
    folklore: CommandLine, tmp_path: Path, name: str
) -> None:
    content, words = OTHERS[name]
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())

    ran = await folklore("import", file)

    assert ran.code == 2
    assert ran.err.startswith(
        f"folklore: FILE: {name} looks like {words}, which is not read. "
    )
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        (
            ["observations", "sdk_sessions", "user_prompts"],
            "the database of claude-mem",
        ),
        (["memories", "memory_embeddings"], "the database of mcp-memory-service"),
        (["posts", "users"], "a database of SQLite with the tables posts, users"),
        ([], "a database of SQLite,"),
    ],
)
async def test_a_database_is_named_by_its_tables_whatever_format_is_stated(
    folklore: CommandLine, tmp_path: Path, tables: list[str], words: str
) -> None:
    file = tmp_path / "some.db"
    _database(file, tables or ["x"])
    if not tables:
        file.write_bytes(file.read_bytes()[:100])

    for options in ([], ["--format", "jsonl"], ["--format", "conversations"]):
        ran = await folklore("import", file, *options)
        assert ran.code == 2
        assert f"some.db looks like {words}" in ran.err


@pytest.mark.parametrize(
    ("members", "words"),
    [
        (
            {"Page 1.md": "# A", "Page 2.md": "# B", "Table.csv": "a,b"},
            "a zip file with 2 pages",
        ),
        ({"[Content_Types].xml": "", "word/document.xml": ""}, "a document of Word"),
        ({"a.json": "{}", "b.json": "{}"}, "is a zip file with 2 files"),
        ({"picture.png": ""}, "is a zip file with 1 file"),
    ],
)
async def test_a_zip_file_of_something_else_is_named(
    folklore: CommandLine, tmp_path: Path, members: dict[str, str], words: str
) -> None:
    file = tmp_path / "export.zip"
    with ZipFile(file, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)

    ran = await folklore("import", file)

    assert ran.code in (1, 2)
    assert words in ran.err


async def test_the_format_of_a_file_is_proposed_where_another_was_stated(
    folklore: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "memory.jsonl"
    file.write_text(GRAPHS["lines"])

    ran = await folklore("import", file, "--format", "mem0")

    assert ran.code == 1
    assert (
        "memory.jsonl looks like mcp-memory-json: use --format mcp-memory-json."
        in ran.err
    )


async def test_a_record_without_content_is_described_by_its_fields(
    folklore: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "x.json"
    file.write_text('[{"headline": "A", "body": "B"}]')

    ran = await folklore("import", file)

    assert ran.code == 1
    assert (
        "The first record has the fields headline, body. A memory needs `content`."
        in ran.err
    )


@pytest.mark.parametrize(
    "content", ["", "\n\n", '{"type": "question", "query": "?"}\n']
)
async def test_a_file_of_which_nothing_is_read_fails(
    folklore: CommandLine, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(content)

    ran = await folklore("import", file)
    as_json = await folklore("import", file, "--json")

    assert (ran.code, as_json.code) == (1, 1)
    assert as_json.json["advice"] in ran.err


async def test_an_export_without_memories_is_read(
    folklore: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(await folklore.done("export"))

    assert (await folklore("import", file)).code == 0


async def test_a_damaged_gzip_file_is_one_error(
    folklore: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "x.jsonl.gz"
    whole = gzip.compress(
        b"".join(b'{"content": "%d"}\n' % number for number in range(5000))
    )
    file.write_bytes(whole[: len(whole) // 2])

    ran = await folklore("import", file)

    assert ran.code == 2
    assert "FILE: cannot be read any further (it is damaged: " in ran.err


async def test_other_files_of_a_folder_of_pages_are_counted(
    folklore: CommandLine, tmp_path: Path
) -> None:
    root = tmp_path / "vault"
    (root / ".obsidian").mkdir(parents=True)
    (root / ".obsidian" / "app.json").write_text("{}")
    (root / "page.md").write_text("A page.\n")
    for name in ("board.canvas", "Table.CSV", "a.txt", "b.txt", "picture.png"):
        (root / name).write_text("x")

    report = await folklore.json("import", root)

    assert (report["format"], report["stored"]) == ("markdown", 1)
    assert report["skipped"] == {".canvas file": 1, ".csv file": 1, ".txt file": 2}


async def test_a_folder_without_a_page_says_what_it_has(
    folklore: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("x")

    ran = await folklore("import", tmp_path)

    assert ran.code == 1
    assert "skipped: 1 of type '.txt file'" in ran.out
    assert "has no page with a text. Files .md, .markdown, .mdx are pages." in ran.err
