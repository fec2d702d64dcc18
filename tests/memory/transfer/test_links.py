"""Relations, revisions and successors in export and import."""

import json
import random
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from folklore.callers import Caller
from folklore.contract.memories import GetRequest
from folklore.db.stores.changes import CHANGEABLE
from folklore.memory.transfer.json_lines import _BeforeField
from folklore.model import Draft, Relation
from tests.conftest import Cluster
from tests.fake_keys import MAKERS
from tests.memory.transfer.test_transfer import Mover, batches_of_two, new_mover  # noqa: F401 - fixtures
from tests.person import NOON, Person, contents

A = UUID(int=1)
B = UUID(int=2)
STAMP = {"author": "sarah", "created_at": "2025-01-01T00:00:00+00:00"}
MEMORIES: list[dict[str, Any]] = [
    {"id": str(A), "content": "one", "revision": 2},
    {"id": str(B), "content": "two"},
]
RELATION = {
    "type": "relation",
    "from": str(A),
    "relation": "causes",
    "to": str(B),
    "strength": 0.5,
} | STAMP
REVISION = {
    "type": "revision", "memory": str(A), "revision": 1, "action": "update", "author": "sarah",
    "changed_at": "2025-01-01T00:00:00+00:00", "before": {"content": "zero", "summary": None},
}  # fmt: skip


@pytest.fixture
async def changed_memories(person: Person) -> list[UUID]:
    """Store memories with relations and every kind of change."""
    a, b, c = await person.keep(
        Draft("a fact", importance=0.8, tags=("x",), occurred_at=NOON),
        "its cause",
        "third",
    )
    await person.relate(Relation(b, "causes", a, 0.123456), Relation(a, "my_own", c))
    await person.update(
        a,
        content="another fact",
        tags=["y"],
        importance=0.3,
        metadata={"b": [1.5], "aa": "ü"},
    )
    await person.update(a, kind="bug", clear=("occurred_at",))
    await person.undo(a)
    (new,) = await person.keep(
        Draft("the fact by now", supersedes=a, supersede_reason="it changed")
    )
    await person.forget(c)
    return [a, b, c, new]


async def test_relations_and_revisions_survive_export_and_import_byte_for_byte(
    mover: Mover, changed_memories: list[UUID], cluster: Cluster, template: str
) -> None:
    first = await mover.take()
    async with cluster.opened(template) as elsewhere:
        again = Mover(elsewhere, mover.embedder, Caller("another user"))
        dry = await again.put((line.encode() for line in first), dry_run=True)
        report = await again.put(line.encode() for line in first)
        second = await again.take()
        twice = await again.put(line.encode() for line in first)
        third = await again.take()

    assert second[1:] == third[1:] == first[1:]
    types = [json.loads(line).get("type") for line in first[1:]]
    assert types == ["memory"] * 4 + ["relation"] * 3 + ["revision"] * 5
    assert (report.relations, report.revisions, report.untied, report.unlinked) == (
        3,
        5,
        0,
        0,
    )
    assert (twice.stored, twice.untied) == (0, 0)
    assert replace(dry, seconds=0.0) == replace(report, seconds=0.0)


async def test_a_memory_in_two_namespaces_has_the_relations_and_revisions_of_each(
    mover: Mover, person: Person
) -> None:
    await mover.put([*MEMORIES, RELATION, REVISION])
    await mover.put([*MEMORIES, RELATION | {"relation": "precedes"}], default="copy")
    await mover.put(
        [MEMORIES[1] | {"forgotten_at": STAMP["created_at"]}],
        default="copy",
        on_conflict="overwrite",
    )
    await mover.put([*MEMORIES, RELATION | {"relation": "part_of"}], default="third")

    found = {
        item.memory.namespace: item
        for item in (await person.call(GetRequest(ids=(A,)))).found
    }
    other = await person.call(GetRequest(ids=(B,)))

    assert {name: [relation.type for relation in item.relations] for name, item in found.items()} == {
        "notes": ["causes"], "copy": [], "third": ["part_of"],
    }  # fmt: skip
    assert {name: item.revisions for name, item in found.items()} == {
        "notes": 1,
        "copy": 0,
        "third": 0,
    }
    assert [item.memory.namespace for item in other.found] == ["notes", "third"], (
        "the live ones"
    )


async def test_links_before_their_memories_are_written_after_them(
    mover: Mover, small_batches: None, person: Person
) -> None:
    report = await mover.put([REVISION, RELATION, *MEMORIES])

    assert (report.relations, report.revisions, report.untied) == (1, 1, 0)
    assert [relation.to_id for relation in await person.relations(A)] == [B]


async def test_links_of_unknown_memories_are_counted(mover: Mover) -> None:
    lost = RELATION | {"to": str(uuid4())}

    report = await mover.put(
        [
            *MEMORIES,
            lost,
            REVISION | {"memory": str(uuid4())},
            REVISION | {"revision": 2},
            REVISION | {"revision": 7},
        ]
    )

    assert (report.relations, report.revisions, report.untied) == (0, 0, 4), (
        "also revisions after the current one"
    )


async def test_a_dry_run_counts_links_and_successors_of_unknown_memories(
    mover: Mover, small_batches: None
) -> None:
    here, late, lost = (str(UUID(int=number)) for number in (7, 8, 9))
    await mover.put([{"id": here, "content": "here"}, {"id": late, "content": "late"}])
    superseded = {"superseded_at": "2025-01-01T00:00:00Z"}
    lines = [
        REVISION, RELATION, RELATION | {"to": lost}, REVISION | {"memory": lost},
        {"content": "by a memory of the file", "superseded_by": str(B)} | superseded,
        {"content": "by a stored memory", "superseded_by": here} | superseded,
        {"content": "by an unknown memory", "superseded_by": lost} | superseded,
        {"content": "by a duplicate, whose id is not stored", "superseded_by": str(UUID(int=10))} | superseded,
        {"id": str(UUID(int=10)), "content": "late"}, *MEMORIES,
        {"content": "elsewhere", "superseded_by": str(A), "namespace": "new"} | superseded,
    ]  # fmt: skip

    dry = await mover.put(lines, dry_run=True)
    done = await mover.put(lines)

    assert replace(dry, seconds=0.0) == replace(done, seconds=0.0)
    assert (done.unlinked, done.untied, done.relations, done.revisions) == (3, 2, 1, 1)


async def test_invalid_links_are_reported_by_field(mover: Mover) -> None:
    report = await mover.put(
        [
            RELATION | {"strength": 2}, RELATION | {"relation": "Not A Type"},
            REVISION | {"before": {"content": "x" * 40_000}}, REVISION | {"revision": 0},
            REVISION | {"before": {"tags": "one"}}, REVISION | {"before": {"kind": None}},
            REVISION | {"before": {"language": "klingon"}}, REVISION | {"before": {"importance": float("nan")}},
            REVISION | {"before": {"metadata": {"a": float("inf")}}},
            REVISION | {"before": {"expires_at": "9999-12-31T23:59:59-12:00"}},
            RELATION | {"created_at": "9999-12-31T23:59:59-12:00"},
            RELATION | {"created_at": "0001-01-01T00:00:00+12:00"},
            REVISION | {"changed_at": "9999-12-31T23:59:59-12:00"},
        ]
    )  # fmt: skip

    assert report.failed == 13
    words = ["strength", "relation", "before.content", "revision"]
    words += [
        f"before.{name}"
        for name in ("tags", "kind", "language", "importance", "metadata", "expires_at")
    ]
    words += ["created_at", "created_at", "changed_at"]
    assert all(
        word in failure.message
        for word, failure in zip(words, report.failures, strict=True)
    )
    assert all(
        "must be from 0001-01-02 to 9999-12-30" in failure.message
        for failure in report.failures[-4:]
    )


async def test_invisible_characters_are_removed_from_headers_and_links(
    mover: Mover,
) -> None:
    unseen = "\x1b[31m\x00\u202e\U000e0041"
    header = {
        "name": "team",
        "created_at": "2025-01-01T00:00:00Z",
        "created_by": "sarah",
        "description": "ours",
    }
    lines: list[dict[str, Any]] = [
        {
            "folklore": 1,
            "namespaces": [
                header
                | {
                    name: header[name] + unseen
                    for name in ("created_by", "description")
                }
            ],
        },
        *MEMORIES,
        RELATION | {"author": "sarah" + unseen},
        REVISION
        | {
            "author": "sarah" + unseen,
            "agent": "pi" + unseen,
            "before": {
                "summary": "a" + unseen,
                "tags": ["b" + unseen],
                "metadata": {"a\0": "b\0"},
            },
        },
    ]

    report = await mover.put(lines)
    out = [json.loads(line) for line in await mover.take()]

    assert (report.failed, report.relations, report.revisions) == (0, 1, 1)
    (made,) = [
        namespace for namespace in out[0]["namespaces"] if namespace["name"] == "team"
    ]
    assert (made["created_by"], made["description"]) == ("sarah", "ours")
    relation, revision = out[-2:]
    assert (relation["author"], revision["author"], revision["agent"]) == (
        "sarah",
        "sarah",
        "pi",
    )
    assert revision["before"] == {"summary": "a", "tags": ["b"], "metadata": {"a": "b"}}


async def test_a_header_with_a_secret_in_a_description_is_refused(mover: Mover) -> None:
    key = MAKERS["github"][0](random.Random(7))
    header = {
        "name": "team",
        "created_at": "2025-01-01T00:00:00Z",
        "created_by": "sarah",
        "description": key,
    }

    report = await mover.put([{"folklore": 1, "namespaces": [header]}, *MEMORIES])

    assert (report.refused, report.stored) == (1, 2)
    assert key not in report.refusals[0].message
    assert key not in "".join(await mover.take())


def test_a_revision_line_accepts_every_changeable_column() -> None:
    assert set(_BeforeField.model_fields) == set(CHANGEABLE)


async def test_overwriting_can_be_undone(mover: Mover, person: Person) -> None:
    await mover.put(MEMORIES)
    await mover.put(
        [MEMORIES[0] | {"content": "uno", "summary": "one"}], on_conflict="overwrite"
    )
    assert (await person.history(A))[0].action == "import"

    memory = await person.undo(A)

    assert (memory.content, memory.summary) == ("one", None)
    assert contents(await person.search("one")) == ["one"]


async def test_overwriting_can_be_undone_after_its_successor_was_erased(
    mover: Mover, person: Person
) -> None:
    await mover.put(MEMORIES)
    (new,) = await person.keep(Draft("uno", supersedes=A))
    await mover.put(MEMORIES[:1], on_conflict="overwrite")
    await person.forget(new, erase=True)

    memory = await person.undo(A)

    assert memory.superseded_at is not None
    assert memory.superseded_by is None
