"""Exports in which one value, wherever it is, has another type than that system writes."""

import io
import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from folklore.importers import FileFormat, installed
from folklore_import.conversations import conversation_lines
from tests.importers.test_import_conversations import CHATGPT, CLAUDE

VALUES: list[Any] = [None, True, -1, 1e308, "", "x", [], [["x"]], {}, {"x": []}]
MEM0 = {
    "user": {"user_id": "al", "id": "1"},
    "apps": [{"id": "2", "name": "cursor"}],
    "categories": [{"id": "3", "name": "deploy"}],
    "memories": [
        {
            "id": "4", "content": "We deploy from tags.", "state": "active", "app_id": "2", "category_ids": ["3"],
            "tags": ["a"], "metadata": {"b": "c"}, "created_at": 1762157730, "expiration_date": "2030-01-01",
            "run_id": 7,
        }
    ],
}  # fmt: skip
SERVICE = {
    "export_metadata": {"total": 1},
    "memories": [
        {
            "content": "We deploy from tags.", "content_hash": "ab", "tags": ["a"], "created_at": 1762157730.5,
            "memory_type": "decision", "metadata": {"b": "c"},
        }
    ],
}  # fmt: skip
GRAPH = {
    "entities": [
        {"name": "Al", "entityType": "person", "observations": ["Al deploys.", {"text": "He likes tea."}]}
    ],
    "relations": [{"from": "Al", "to": "Acme", "relationType": "works at"}],
}  # fmt: skip


def variants(sample: Any) -> Iterator[Any]:
    """Yield the sample with each of its values replaced by each other one."""
    for path in paths(sample):
        for value in VALUES:
            changed = deepcopy(sample)
            parent = changed
            for key in path[:-1]:
                parent = parent[key]
            parent[path[-1]] = value
            yield changed


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, child in value.items():
            yield from paths(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from paths(child, (*path, index))


@pytest.mark.parametrize(
    ("name", "sample"),
    [("mem0", MEM0), ("mcp-memory-service", SERVICE), ("mcp-memory-json", GRAPH)],
)
def test_a_record_becomes_lines_or_an_error(name: str, sample: Any) -> None:
    reader = installed.formats()[name]
    assert isinstance(reader, FileFormat)

    for changed in variants(sample):
        source = io.BytesIO(json.dumps(changed).encode())
        list(reader.read(source))


@pytest.mark.parametrize("sample", [CLAUDE, CHATGPT], ids=["Claude", "ChatGPT"])
def test_a_conversation_becomes_lines_or_an_error(sample: Any, tmp_path: Path) -> None:
    file = tmp_path / "conversations.json"

    for changed in variants(sample):
        file.write_text(json.dumps([changed]))
        list(conversation_lines(file))
