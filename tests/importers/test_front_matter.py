"""Front matter as people and their programs write it: one bad line costs nothing else, and no field becomes a fact."""

import json
from pathlib import Path
from typing import Any

import pytest

from folklore_import.front_matter import read_front_matter
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.importers.test_import_claude import exported
from tests.linear_time import assert_linear_time

# Blocks, their fields, and whether a part is no field.
BLOCKS: list[tuple[str, dict[str, Any], bool]] = [
    ("title: Why: we left Jenkins\ntags: [ci]", {"title": "Why: we left Jenkins", "tags": ["ci"]}, False),
    ("title: 'Why: so'\nglobs: **/*.ts", {"title": "Why: so", "globs": "**/*.ts"}, False),
    ("tags:\n  - a\n  - @b\ntitle: x", {"tags": ["a", "@b"], "title": "x"}, False),
    ("tags:\n\t- a\n\t- b\ntitle: x", {"tags": ["a", "b"], "title": "x"}, False),
    ("title: {{title}}\nkind: note", {"title": "{{title}}", "kind": "note"}, False),
    ("title: [WIP] Plan\nstatus: open", {"title": "[WIP] Plan", "status": "open"}, False),
    ('title: "Blue" and green\nid: 7', {"title": '"Blue" and green', "id": "7"}, False),
    ("version: 3.10\nactive: no\nday: 2024-11-07", {"version": "3.10", "active": "no", "day": "2024-11-07"}, False),
    ("# a comment\ntitle: a: b\n\nkind: note", {"title": "a: b", "kind": "note"}, False),
    ("some words\ntitle: a: b", {"title": "a: b"}, True),
    ("date created: 2024-11-07\nx: a: b", {"date created": "2024-11-07", "x": "a: b"}, False),
    ("summary: a: b\n  goes on", {"summary": "a: b goes on"}, False),
    ("a: 1\na: 2\nb: x: y", {"a": "1 2", "b": "x: y"}, False),
    ("- a list", {}, True),
    ("", {}, False),
]  # fmt: skip


@pytest.mark.parametrize(("block", "fields", "is_partial"), BLOCKS)
def test_a_block_gives_what_it_says_whatever_one_line_is(
    block: str, fields: dict[str, Any], is_partial: bool
) -> None:
    read = read_front_matter(f"---\n{block}\n---\nText.\n")

    assert read == (fields, is_partial, "Text.\n")


@pytest.mark.parametrize(
    ("page", "fields", "text"),
    [
        ("---\npermalink: p\n---\n\n---\nname: n\ntype: reference\n---\n\nText.",
         {"name": "n", "type": "reference", "permalink": "p"}, "\nText."),
        ("---\ntitle: a\n---\n---\ntitle: b\ntags: x\n---\nText.", {"title": "a", "tags": "x"}, "Text."),
        ("\n\n---\ntitle: a\n---\nText.", {"title": "a"}, "Text."),
        ("---\ntitle: a\n---\n\n---\nJust words.\n---\nText.", {"title": "a"}, "\n---\nJust words.\n---\nText."),
        ("---\ntitle: a\n---\n---\nNote: of mine\n---\nText.", {"title": "a"}, "---\nNote: of mine\n---\nText."),
        ("Text.\n---\ntitle: a\n---\n", {}, "Text.\n---\ntitle: a\n---\n"),
        ('+++\ntitle = "a"\ndraft = true\ntags = ["x", "y"]\nday = 2024-11-07\n+++\nText.',
         {"title": "a", "draft": "true", "tags": ["x", "y"], "day": "2024-11-07"}, "Text."),
        ("title:: a\ntags:: [[x]], y\n\n- Text.", {"title": "a", "tags": "[[x]], y"}, "\n- Text."),
        ("std::vector is used.", {}, "std::vector is used."),
    ],
)  # fmt: skip
def test_several_blocks_toml_and_properties_are_no_text(
    page: str, fields: dict[str, Any], text: str
) -> None:
    read = read_front_matter(page)

    assert (read.fields, read.text) == (fields, text)


async def test_a_page_keeps_its_tags_kind_and_time_in_spite_of_a_colon_and_a_second_block(
    folklore: CommandLine, tmp_path: Path
) -> None:
    root = tmp_path / "wiki"
    root.mkdir()
    (root / "a.md").write_text(
        "---\ntitle: Why: we left Jenkins\ntags: [ci, 3.10, no]\n---\n"
        "---\ntype: decision\ncreated: 2024-11-07 10:00:00 +02:00\n---\nJenkins was left.\n"
    )

    report = await folklore.json("import", root, "--format", "markdown")
    kept = (await exported(folklore))["Why: we left Jenkins\n\nJenkins was left."]

    assert (report["stored"], report["ignored_fields"]) == (1, {})
    assert (kept["tags"], kept["kind"]) == (["ci", "3.10", "no"], "decision")
    assert kept["occurred_at"] == "2024-11-07T08:00:00+00:00"


async def test_a_field_of_front_matter_that_is_not_used_is_named_with_its_page(
    folklore: CommandLine, tmp_path: Path
) -> None:
    root = tmp_path / "wiki"
    root.mkdir()
    (root / "a.md").write_text(
        "---\ntitle: [a, b]\ndescription: {c: d}\nkind: decision\ntype: note\n"
        "date: someday\ncreated: 2024-11-07\ntags: [ok, {e: f}]\n---\nOne.\n"
    )

    report = await folklore.json("import", root, "--format", "markdown", "--dry-run")
    printed = await folklore.done("import", root, "--format", "markdown")
    kept = (await exported(folklore))["One."]

    names = ("date", "description", "tags", "title", "type")
    assert report["ignored_fields"] == {f"front matter: {name}": 1 for name in names}
    assert report["ignored_at"]["front matter: type"] == "a.md:10"
    assert "ignored: field 'front matter: date' on 1 line (a.md:10); " in printed
    assert (kept["kind"], kept["tags"]) == ("decision", ["ok"])
    assert kept["occurred_at"].startswith("2024-11-07")


@pytest.mark.parametrize("written", ["true", "True", '"true"', "yes"])
async def test_a_condition_of_a_rule_is_true_however_it_is_written(
    folklore: CommandLine, tmp_path: Path, written: str
) -> None:
    rules = tmp_path / ".cursor" / "rules"
    rules.mkdir(parents=True)
    for name, globs in (("plain", ""), ("starred", " **/*.py")):
        (rules / f"{name}.mdc").write_text(
            f"---\nglobs:{globs}\nalwaysApply: {written}\n---\nUse {name} tests.\n"
        )

    await folklore.done("import", tmp_path, "--format", "rules", "-n", "team")
    found = await exported(folklore)
    listed = await folklore.json(
        "list", "--filter", "metadata.alwaysApply=true", "-n", "team"
    )

    assert [line["metadata"]["alwaysApply"] for line in found.values()] == [True, True]
    assert len(json.loads(json.dumps(listed))["memories"]) == 2


async def test_a_page_of_another_encoding_is_read_or_named_once(
    folklore: CommandLine, tmp_path: Path
) -> None:
    root = tmp_path / "wiki"
    root.mkdir()
    (root / "latin.md").write_bytes("Größe\n".encode("latin-1"))
    (root / "windows.md").write_bytes(
        "# Größe\r\n\r\nVon Windows.\r\n".encode("utf-16")
    )

    ran = await folklore("import", root, "--format", "markdown")

    assert ran.code == 1
    assert ran.err.count("latin.md") == 1
    assert "  latin.md: is not UTF-8. Convert it and import it again." in ran.err
    assert set(await exported(folklore)) == {"Größe\n\nVon Windows."}


@pytest.mark.parametrize(
    "unit",
    [
        "---\n",
        "---\ntitle: a\n---\n",
        "---\na: b: c\n",
        "a:: b\n",
        "\n",
        "--- ",
        "+++\n",
        "a b ",
    ],
)
def test_any_page_is_read_in_a_time_that_grows_no_faster_than_its_length(
    unit: str,
) -> None:
    assert_linear_time(read_front_matter, unit, 64_000)
    assert_linear_time(
        lambda text: read_front_matter(f"---\n{text}: b: c\n---\n"), unit, 16_000
    )
