"""Export and import: nothing is lost or stored twice, and a bad line does not stop the others."""

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO
from uuid import UUID, uuid4

import asyncpg
import pytest

from folklore.callers import Caller
from folklore.contract.token_secrets import key_of
from folklore.contract.transfer import ExportRequest, ImportRequest, Report
from folklore.db.database import Database
from folklore.db.stores.transfer import Batch, Transfers
from folklore.embedding.protocol import Embedder
from folklore.errors import ConcurrentChange, Conflict, InvalidInput, NotFound, Refused
from folklore.importers import json_values
from folklore.importers.json_lines import json_lines
from folklore.memory.context import MemoryContext, RequestContext
from folklore.memory.transfer import (
    importer,
    json_lines as json_lines_format,
    namespace_import,
)
from folklore.memory.transfer.export import export_lines
from folklore.memory.transfer.importer import import_lines
from folklore.model import Draft, SecretPolicy
from tests.conftest import Cluster
from tests.embedders import ByLetter
from tests.person import NOON, Person, contents
from tests.waiting import statements_of

Line = dict[str, Any]
EARLIEST = datetime.min.replace(tzinfo=UTC) + timedelta(days=1)
LATEST = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)
OLD, NEW, GONE = (str(UUID(int=number)) for number in (1, 2, 3))

RICH: list[Line] = [
    {
        "type": "memory", "namespace": "team", "id": OLD,
        "content": "We release on Fridays.\n\tIndented: ärger, 日本語, 👩‍💻.", "summary": "Friday releases",
        "kind": "decision", "tags": ["area/release", "entity:person:sarah"], "source": "adr-1", "session": "planning",
        "position": 7, "occurred_at": "2025-01-02T03:04:05.000006+00:00", "created_at": "2025-01-03T00:00:00+00:00",
        "updated_at": "2025-02-03T00:00:00+00:00", "author": "sarah", "agent": "claude", "importance": 0.8,
        "confidence": 0.123457, "priority": 2, "quality": 0.5, "trust": "stated", "language": "german",
        "paths": ["src/release.py"], "commit": "abc123", "blobs": [f"{'5' * 40} src/release.py"],
        "metadata": {"b": [1, 2.5, None], "a": {"nested": "ü"}}, "expires_at": "2025-06-01T00:00:00+00:00",
        "superseded_at": "2025-03-01T00:00:00+00:00", "superseded_by": NEW,
        "last_recalled_at": "2025-02-04T00:00:00+00:00", "recall_count": 12, "confirmed_count": 3, "revision": 4,
        "idempotency_key": "release-day",
    },
    {"namespace": "team", "id": NEW, "content": "We release on Mondays.", "created_at": "2025-03-01T00:00:00+00:00"},
    {
        "namespace": "other", "id": GONE, "content": "Forgotten on purpose.", "created_at": "2024-01-01T00:00:00+02:00",
        "forgotten_at": "2024-02-01T00:00:00+00:00",
    },
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mover:
    """Imports and exports with the arguments that rarely matter filled in."""

    database: Database
    embedder: Embedder | None
    caller: Caller = Caller("importer")
    secrets: SecretPolicy = "refuse"
    embeddings: bool = False
    embedding_wait: float | None = None

    def context(self, namespace: str = "notes") -> RequestContext:
        wait = self.embedding_wait
        memory = MemoryContext.of(
            self.database, self.embedder, secrets=self.secrets, embedding_wait=wait
        )
        return RequestContext(memory, self.caller, NOON, UTC, lambda: namespace)

    async def put(
        self, lines: Iterable[Any], default: str = "notes", **options: Any
    ) -> Report:
        """Import lines; those that name no namespace go to `default`."""
        source = io.BytesIO(
            b"\n".join(
                line if isinstance(line, bytes) else _bytes(line) for line in lines
            )
        )
        report = Report()
        await self.pour(source, report, default, **options)
        return report

    async def pour(
        self, source: BinaryIO, report: Report, default: str = "notes", **options: Any
    ) -> None:
        await import_lines(
            self.context(default),
            json_lines(source),
            ImportRequest(**options, report=report),
        )

    async def take(self, *namespaces: str) -> list[str]:
        """Export namespaces, or all."""
        request = ExportRequest.model_validate(
            {"namespaces": namespaces or None, "embeddings": self.embeddings}
        )
        return [line async for line in export_lines(self.context(), request)]

    async def memories(self, *namespaces: str) -> list[Line]:
        lines = [json.loads(line) for line in await self.take(*namespaces)]
        return [line for line in lines if line.get("type") == "memory"]


def _bytes(line: Line) -> bytes:
    return json.dumps(line, ensure_ascii=False).encode()


@pytest.fixture(name="mover")
async def new_mover(database: Database, embedder: Embedder) -> Mover:
    return Mover(database, embedder)


@pytest.fixture(name="small_batches")
def batches_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (importer, namespace_import):
        monkeypatch.setattr(module, "BATCH", 2)


# Round trip


async def test_an_export_of_an_import_of_an_export_differs_in_its_header_only(
    mover: Mover, person: Person, cluster: Cluster, template: str
) -> None:
    """The earliest and the latest time survive too."""
    await mover.put(RICH)
    await person.keep(
        Draft("a card that never expires", expires_at=LATEST),
        Draft("the first day", occurred_at=EARLIEST),
    )
    first = await mover.take()
    async with cluster.opened(template) as elsewhere:
        again = Mover(elsewhere, mover.embedder, Caller("another user"))
        report = await again.put(line.encode() for line in first)
        second = await again.take()

    assert report.failures == []
    assert second[1:] == first[1:]
    assert json.loads(second[0])["folklore"] == 1


async def test_every_field_of_a_line_survives(mover: Mover) -> None:
    await mover.put(RICH)

    old, new = await mover.memories("team")
    (gone,) = await mover.memories("other")

    assert old == RICH[0]
    assert new["author"] == "importer"
    assert new["updated_at"] == new["created_at"] == "2025-03-01T00:00:00+00:00"
    assert gone["created_at"] == "2023-12-31T22:00:00+00:00"
    assert gone["forgotten_at"] == RICH[2]["forgotten_at"]


async def test_an_export_is_ordered_by_namespace_creation_and_id_after_its_header(
    mover: Mover,
) -> None:
    await mover.put(reversed(RICH))

    header, *lines = [json.loads(line) for line in await mover.take()]

    assert (header["folklore"], header["exported_at"]) == (1, NOON.isoformat())
    assert [line["id"] for line in lines] == [GONE, OLD, NEW]
    assert list(lines[0])[:4] == ["type", "namespace", "id", "content"]


async def test_an_export_of_one_namespace_has_no_other(mover: Mover) -> None:
    await mover.put(RICH)

    assert {line["namespace"] for line in await mover.memories("TEAM")} == {"team"}
    with pytest.raises(NotFound, match="nowhere"):
        await mover.take("nowhere")


async def test_a_namespace_keeps_its_language_even_when_it_is_empty(
    mover: Mover, connection: asyncpg.Connection
) -> None:
    described = {
        "name": "leer",
        "language": "german",
        "created_at": "2025-01-01T00:00:00Z",
        "created_by": "sarah",
    }
    await mover.put(
        [
            {
                "folklore": 1,
                "exported_at": "2025-01-01T00:00:00Z",
                "namespaces": [described],
            }
        ]
    )
    await mover.put([{"namespace": "leer", "content": "Die Häuser sind alt."}])

    (memory,) = await mover.memories("leer")

    assert memory["language"] == "german"
    assert await connection.fetchval("select created_by from namespaces") == "sarah"


async def test_a_shared_namespace_stays_shared_by_export_and_import(
    mover: Mover,
) -> None:
    described = {
        "name": "rules",
        "created_at": "2025-01-01T00:00:00Z",
        "created_by": "sarah",
    }
    await mover.put(
        [
            {
                "folklore": 1,
                "namespaces": [
                    described | {"shared": "always"},
                    described | {"name": "own"},
                ],
            }
        ]
    )

    header = json.loads((await mover.take())[0])

    assert {item["name"]: item["shared"] for item in header["namespaces"]} == {
        "rules": "always",
        "own": "never",
    }


async def test_imported_memories_are_found_by_word_and_by_meaning(
    mover: Mover, person: Person
) -> None:
    report = await mover.put(
        [
            {"content": "The deploy script needs ERR_TOKEN_77."},
            {"content": "Cats sleep a lot."},
        ]
    )

    assert report.without_vector == 0
    assert contents(await person.search("ERR_TOKEN_77")) == [
        "The deploy script needs ERR_TOKEN_77."
    ]
    assert contents(await person.recall("Do cats sleep?"))[0] == "Cats sleep a lot."


# Lines


async def test_content_alone_is_enough(mover: Mover) -> None:
    report = await mover.put(
        [
            {"content": "One fact."},
            {"content": "Another.", "tags": ["A b"], "namespace": "mine"},
        ]
    )

    by_namespace = {line["namespace"]: line for line in await mover.memories()}

    assert report.stored == 2
    assert by_namespace["notes"]["created_at"] == NOON.isoformat()
    assert by_namespace["mine"]["tags"] == ["a-b"]


async def test_unknown_fields_are_reported(mover: Mover) -> None:
    report = await mover.put(
        [
            {"content": "a", "mood": "good", "score": 3},
            {"content": "b", "mood": "bad", "id": "not-a-uuid"},
            {"content": "c", "type": "fact"},
        ]
    )

    assert report.stored == 3
    assert report.ignored_fields == {"mood": 2, "score": 1, "id": 1, "type": 1}


async def test_lines_of_other_types_are_skipped_and_counted(mover: Mover) -> None:
    report = await mover.put(
        [
            {"type": "question", "query": "?"},
            {"type": "relation"},
            {"type": "question"},
            b"",
            {"content": "kept"},
        ]
    )

    assert report.skipped == {"question": 2, "relation": 1}
    assert (report.stored, report.failed) == (1, 0)


BAD = [
    (b"{nonsense", "not JSON"), (b"[1, 2]", "not a JSON object"), (b'{"content": "\xff"}', "not UTF-8"),
    (b"[" * 50_000, "line: is not JSON that can be read"),
    (b'{"content": "ok", "metadata": {"a": ' + b"[" * 400 + b"]" * 400 + b"}}", "list[0]: is nested too deeply"),
    ({"summary": "no content"}, "content"), ({"content": 12}, "content"), ({"content": "  "}, "content: is empty"),
    ({"content": "x" * 32_001}, "got 32,001"), ({"content": "ok", "tags": "one"}, "tags"),
    ({"content": "ok", "tags": [""]}, "tags"), ({"content": "ok", "importance": 2}, "importance"),
    (b'{"content": "ok", "importance": NaN}', "importance"),
    ({"content": "ok", "occurred_at": "2024"}, "occurred_at: must be an ISO 8601 time"),
    ({"content": "ok", "created_at": "0001-01-01T00:00:00+14:00"}, "created_at: must be from 0001-01-02"),
    ({"content": "ok", "recall_count": -1}, "recall_count"), ({"content": "ok", "namespace": "???"}, "namespace"),
    ({"content": "ok", "language": "klingon"}, "language"),
    ({"content": "ok", "metadata": {"much": "x" * 9000}}, "metadata"),
    ({"folklore": 99}, "folklore: must be at most 1, got 99"),
]  # fmt: skip


async def test_a_bad_line_is_reported_by_number_and_does_not_stop_the_rest(
    mover: Mover,
) -> None:
    lines: list[Any] = [
        {"content": "first"},
        *(line for line, _ in BAD),
        {"content": "last"},
    ]

    report = await mover.put(lines)

    assert report.stored == 2
    assert report.failed == len(BAD)
    for place, (failure, (_, words)) in enumerate(
        zip(report.failures, BAD, strict=True), start=2
    ):
        assert failure.line == place
        assert words in failure.message


async def test_only_the_first_failures_are_kept(mover: Mover) -> None:
    report = await mover.put([b"{]"] * 30)

    assert report.failed == 30
    assert [failure.line for failure in report.failures] == list(range(1, 21))


async def test_a_line_that_is_too_long_fails_alone(
    mover: Mover, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_values, "LINE_BYTES", 1000)
    monkeypatch.setattr(json_lines_format, "LINE_BYTES", 1000)

    report = await mover.put([{"content": "x" * 5000}, {"content": "kept"}])

    assert [
        (failure.line, "at most 1,000 bytes" in failure.message)
        for failure in report.failures
    ] == [(1, True)]
    assert report.stored == 1


async def test_a_header_with_unstorable_values_does_not_stop_an_import(
    mover: Mover,
) -> None:
    team = {
        "name": "team",
        "created_at": "2025-01-01T00:00:00+00:00",
        "created_by": "sa\0rah",
        "description": "ou\0rs",
    }
    late = team | {"name": "late", "created_at": "9999-12-31T23:59:59-12:00"}

    report = await mover.put(
        [
            {"folklore": 1, "namespaces": [team]},
            {"folklore": 1, "namespaces": [late]},
            {"content": "kept"},
        ]
    )

    assert (report.stored, [failure.line for failure in report.failures]) == (1, [2])
    header = json.loads((await mover.take())[0])
    described = {
        item["name"]: (item["created_by"], item.get("description"))
        for item in header["namespaces"]
    }
    assert described["team"] == ("sarah", "ours")


async def test_times_without_an_offset_are_in_the_time_zone_of_the_caller_and_numbers_are_seconds(
    mover: Mover,
) -> None:
    await mover.put(
        [
            {"content": "a", "created_at": "2025-05-01T10:00:00"},
            {"content": "b", "created_at": 86400},
        ]
    )

    assert [line["created_at"] for line in await mover.memories()] == [
        "1970-01-02T00:00:00+00:00",
        "2025-05-01T10:00:00+00:00",
    ]


async def test_memories_without_a_position_continue_their_session(
    mover: Mover, small_batches: None
) -> None:
    await mover.put(
        [
            {"content": f"step {number}", "session": "s", "created_at": number}
            for number in range(5)
        ]
    )

    assert [line["position"] for line in await mover.memories()] == [0, 1, 2, 3, 4]


# Existing memories


async def test_importing_twice_changes_nothing(mover: Mover) -> None:
    lines = [
        *RICH,
        {"content": "plain"},
        {"content": "forgotten", "forgotten_at": "2024-01-01T00:00:00Z"},
    ]
    await mover.put(lines)
    before = await mover.take()

    report = await mover.put(lines)

    assert (report.stored, report.duplicates) == (0, 5)
    assert await mover.take() == before


async def test_the_same_text_or_id_or_key_is_a_duplicate(mover: Mover) -> None:
    lines: list[Line] = [
        {"content": "One  fact.", "id": OLD}, {"content": "One fact."}, {"content": "Something else.", "id": OLD},
        {"content": "Keyed.", "idempotency_key": "k"}, {"content": "Keyed again.", "idempotency_key": "k"},
    ]  # fmt: skip
    anew: list[Line] = [
        {"content": "Keyed anew.", "idempotency_key": "k"},
        {"content": "One fact."},
    ]

    for dry_run in (True, False):
        report = await mover.put(lines, dry_run=dry_run)
        assert (report.stored, report.duplicates) == (2, 3)
    for dry_run in (True, False):
        report = await mover.put(anew, dry_run=dry_run)
        assert (report.stored, report.duplicates, report.failed) == (0, 2, 0)


@pytest.mark.parametrize(
    "taken", [{"content": "three", "idempotency_key": "k"}, {"content": "one"}]
)
async def test_overwriting_takes_neither_the_key_nor_the_text_of_another_memory(
    mover: Mover, taken: Line
) -> None:
    await mover.put(
        [
            {"id": OLD, "content": "one", "idempotency_key": "k"},
            {"id": NEW, "content": "two"},
        ]
    )

    changed: list[Line] = [{"id": NEW, **taken}, {"id": OLD, "content": "four"}]
    report = await mover.put(changed, on_conflict="overwrite")

    assert (report.overwritten, [failure.line for failure in report.failures]) == (
        1,
        [1],
    )
    assert OLD in report.failures[0].message
    assert {line["content"] for line in await mover.memories()} == {"two", "four"}


async def test_a_text_that_overwriting_frees_goes_to_another_memory_with_the_next_import(
    mover: Mover,
) -> None:
    await mover.put([{"id": OLD, "content": "one"}, {"id": NEW, "content": "two"}])
    changed: list[Line] = [
        {"id": OLD, "content": "three"},
        {"id": NEW, "content": "one"},
    ]

    first = await mover.put(changed, on_conflict="overwrite")
    again = await mover.put(changed, on_conflict="overwrite")

    assert (first.overwritten, [failure.line for failure in first.failures]) == (1, [2])
    assert "Import it again" in first.failures[0].message
    assert (again.overwritten, again.duplicates, again.failed) == (1, 1, 0)


async def test_a_forgotten_and_a_live_memory_may_have_one_text(mover: Mover) -> None:
    report = await mover.put(
        [RICH[2], {"namespace": "other", "content": RICH[2]["content"]}]
    )
    await mover.put([{"namespace": "again", "content": RICH[2]["content"]}])
    forgotten = await mover.put([RICH[2] | {"namespace": "again"}])
    await mover.put([RICH[2] | {"namespace": "later"}])
    later = await mover.put(
        [
            RICH[2] | {"namespace": "later"},
            {"namespace": "later", "content": RICH[2]["content"]},
        ]
    )

    assert (report.stored, forgotten.stored, later.stored, later.duplicates) == (
        2,
        1,
        1,
        1,
    )


async def test_overwriting_with_a_live_line_makes_a_superseded_memory_live(
    mover: Mover,
) -> None:
    await mover.put(RICH)
    ended = ("superseded_at", "superseded_by", "expires_at")

    await mover.put(
        [{key: value for key, value in RICH[0].items() if key not in ended}],
        on_conflict="overwrite",
    )

    [again] = [line_ for line_ in await mover.memories("team") if line_["id"] == OLD]
    assert not again.keys() & set(ended)


async def test_existing_memories_are_not_embedded_again(mover: Mover) -> None:
    letters = ByLetter()
    by_letter = replace(mover, embedder=letters)
    await by_letter.put([{"content": "a"}, {"content": "b"}])
    await by_letter.put([{"content": "a"}, {"content": "b"}, {"content": "c"}])

    assert letters.calls == [["a", "b"], ["c"]]


async def test_overwriting_replaces_a_memory_and_its_index_entries(
    mover: Mover, person: Person, connection: asyncpg.Connection
) -> None:
    line = {
        "id": OLD,
        "content": "The gateway is nginx.",
        "summary": "gateway",
        "author": "sarah",
        "revision": 3,
    }
    await mover.put([line | {"created_at": "2025-01-01T00:00:00+00:00"}])

    report = await mover.put(
        [{"id": OLD, "content": "The gateway is caddy."}], on_conflict="overwrite"
    )

    (stored,) = await mover.memories()
    assert (report.overwritten, report.stored, report.duplicates) == (1, 0, 0)
    assert (stored["content"], stored["revision"]) == ("The gateway is caddy.", 4)
    assert (stored["author"], stored["created_at"]) == (
        "sarah",
        "2025-01-01T00:00:00+00:00",
    )
    assert stored["updated_at"] == NOON.isoformat()
    assert "summary" not in stored
    assert contents(await person.search("caddy")) == ["The gateway is caddy."]
    assert contents(await person.search("nginx")) == []
    assert await connection.fetchval("select count(*) from embeddings") == 1
    held = "select bool_or(position(int4send(folklore_word('nginx')) in words) > 0) from fresh_words"
    assert not await connection.fetchval(held)


async def test_an_overwritten_memory_is_indexed_like_a_new_one(
    mover: Mover, connection: asyncpg.Connection
) -> None:
    """Old postings (words, length, dates) are deleted before the new ones are written."""
    await mover.put(
        [
            {
                "id": OLD,
                "content": "Ada met Bo in Graz.",
                "tags": ["a"],
                "occurred_at": "2023-03-04",
            }
        ]
    )
    changed = {
        "id": OLD,
        "content": "Cy met Di.",
        "tags": ["b"],
        "occurred_at": "2024-05-06",
    }

    await mover.put([changed], on_conflict="overwrite")
    await mover.put([changed], namespace="fresh")

    postings = "select words, frequencies, length from fresh_words join namespaces n on n.id = namespace_id where name = $1"
    overwritten = await connection.fetch(postings, "notes")
    assert overwritten == await connection.fetch(postings, "fresh") != []


async def test_overwriting_a_second_time_changes_nothing(mover: Mover) -> None:
    await mover.put([{"id": OLD, "content": "old", "importance": 0.3}])
    changed = [
        {
            "id": OLD,
            "content": "new",
            "importance": 0.1234567,
            "metadata": {"a": 1},
            "revision": 9,
        }
    ]
    await mover.put(changed, on_conflict="overwrite")
    before = await mover.take()

    report = await mover.put(changed, on_conflict="overwrite")

    assert (report.overwritten, report.duplicates) == (0, 1)
    assert await mover.take() == before


async def test_a_batch_is_compared_again_if_another_request_stores_one_of_its_texts_meanwhile(
    mover: Mover, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other request commits after the comparison and before the write."""
    await mover.put([{"id": OLD, "content": "one"}, {"id": NEW, "content": "another"}])
    meanwhile = ["two"]
    write = Transfers.write

    async def late(self: Transfers, batch: Batch, **named: Any) -> set[UUID]:
        if meanwhile:
            await person.keep(meanwhile.pop())
        return await write(self, batch, **named)

    monkeypatch.setattr(Transfers, "write", late)

    lines = [{"id": OLD, "content": "two"}, {"id": NEW, "content": "other"}]
    report = await mover.put(lines, on_conflict="overwrite")

    assert (report.overwritten, report.failed, report.failures[0].line) == (1, 1, 1)
    assert {line["content"] for line in await mover.memories()} == {
        "one",
        "other",
        "two",
    }


async def test_an_import_ends_if_other_requests_change_its_memories_at_every_attempt(
    mover: Mover, monkeypatch: pytest.MonkeyPatch
) -> None:
    await mover.put([{"id": OLD, "content": "one"}])
    attempts = []

    async def failing(_self: Transfers, batch: Batch, **_named: Any) -> set[UUID]:
        attempts.append(batch)
        raise ConcurrentChange(
            "Another request changed the same memory at the same time."
        )

    monkeypatch.setattr(Transfers, "write", failing)

    with pytest.raises(ConcurrentChange, match="Import it again"):
        await mover.put([{"id": OLD, "content": "two"}], on_conflict="overwrite")
    assert 1 < len(attempts) < 10


@pytest.mark.parametrize(
    ("lines", "stored", "texts"),
    [
        (
            [{"content": "one"}, {"content": "two"}],
            1,
            {"one", "two"},
        ),  # the first is free by now
        ([{"id": OLD, "content": "three"}], 0, {"three"}),
    ],
)
async def test_overwriting_counts_before_the_next_lines_of_the_same_batch(
    mover: Mover, lines: list[Line], stored: int, texts: set[str]
) -> None:
    await mover.put([{"id": OLD, "content": "one"}])

    for dry_run in (True, False):
        report = await mover.put(
            [{"id": OLD, "content": "two"}, *lines],
            on_conflict="overwrite",
            dry_run=dry_run,
        )
        assert (report.overwritten, report.stored, report.duplicates) == (1, stored, 1)
    assert {line["content"] for line in await mover.memories()} == texts


async def test_failing_on_a_conflict_writes_nothing_of_its_batch(
    mover: Mover, small_batches: None
) -> None:
    await mover.put([{"content": "here"}])
    [existing] = await mover.memories()

    with pytest.raises(
        Conflict, match=f"Line 4 exists already, as the memory {existing['id']}"
    ):
        await mover.put(
            [{"content": text} for text in ("a", "b", "c", "here", "d")],
            on_conflict="fail",
        )

    assert {line["content"] for line in await mover.memories()} == {"here", "a", "b"}


# Dry runs, interruptions, batches


@pytest.mark.parametrize("policy", ["skip", "overwrite"])
async def test_a_dry_run_gives_the_same_report_and_writes_nothing(
    mover: Mover, small_batches: None, policy: str, connection: asyncpg.Connection
) -> None:
    await mover.put([{"id": OLD, "content": "here"}])
    before = await mover.take()
    lines: list[Any] = [
        *({"content": text} for text in ("a", "b", "a", "here", "c", "b")), {"id": OLD, "content": "changed"},
        {"content": "elsewhere", "namespace": "new"}, {"content": "elsewhere", "namespace": "new", "odd": 1},
        {"type": "question"}, b"{",
    ]  # fmt: skip

    dry = await mover.put(lines, on_conflict=policy, dry_run=True)
    assert await mover.take() == before
    assert await connection.fetchval("select count(*) from namespaces") == 1
    done = await mover.put(lines, on_conflict=policy)

    assert replace(dry, seconds=0.0) == replace(done, seconds=0.0)


@pytest.mark.parametrize(
    "later",
    [
        {"content": "one"}, {"id": NEW, "content": "one"}, {"id": OLD, "content": "one"},
        {"id": OLD, "content": "two", "idempotency_key": "l"}, {"content": "z", "idempotency_key": "k"},
        {"content": "z", "idempotency_key": "l"}, {"content": "z", "idempotency_key": "confirmed"},
        {"id": NEW, "content": "x"}, {"id": NEW, "content": "x", "kind": "decision"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("stored", [False, True], ids=["imported", "stored"])
async def test_each_batch_of_a_dry_run_sees_the_changes_of_earlier_batches(
    mover: Mover, small_batches: None, person: Person, stored: bool, later: Line
) -> None:
    if stored:  # with a key of a store request, which keeps its answer
        await person.keep(Draft("one", id=UUID(OLD), idempotency_key="k"))
        await person.keep(Draft("one", idempotency_key="confirmed"))
    else:
        await mover.put(
            [
                {
                    "id": OLD,
                    "content": "one",
                    "idempotency_key": "k",
                    "idempotency_keys": {"confirmed": "0" * 64},
                }
            ]
        )
    changed = [
        {"id": OLD, "content": "two", "idempotency_key": "l"},
        {"id": NEW, "content": "x"},
    ]
    lines = [*changed, later, {"content": "y"}]

    dry = await mover.put(lines, on_conflict="overwrite", dry_run=True)
    done = await mover.put(lines, on_conflict="overwrite")

    assert replace(dry, seconds=0.0) == replace(done, seconds=0.0)


async def test_a_repeated_import_completes_an_interrupted_one(
    mover: Mover, small_batches: None
) -> None:
    class Torn(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            line = super().readline(size)
            if b"fourth" in line:
                raise OSError(5, "Input/output error")
            return line

    # The successor of the first line is the last one, which the torn file does not reach.
    lines = [
        {"id": OLD, "content": "first", "superseded_at": "2025-01-01T00:00:00+00:00", "superseded_by": NEW},
        {"content": "second"}, {"content": "third"}, {"content": "fourth"}, {"id": NEW, "content": "last"},
    ]  # fmt: skip
    text = b"\n".join(map(_bytes, lines))
    with pytest.raises(InvalidInput, match="Input/output error"):
        await mover.pour(Torn(text), Report())
    first_part = await mover.memories()

    report = await mover.put(lines)

    stored = {line["content"]: line for line in await mover.memories()}
    assert len(first_part) == 2
    assert (report.stored, report.duplicates, report.unlinked) == (3, 2, 0)
    assert stored["first"]["superseded_by"] == NEW


async def test_a_batch_costs_a_constant_number_of_statements(
    mover: Mover, queries: list[str]
) -> None:
    for warming in ("creates the namespace", "lets asyncpg read array types"):
        await mover.put([{"content": warming}])
    few, many = [
        await statements_of(
            mover.put(
                [{"content": f"fact {uuid4()}", "session": "s"} for _ in range(size)]
            ),
            queries,
        )
        for size in (10, 400)
    ]

    assert len(few) == len(many) <= 12


async def test_a_read_only_caller_may_only_run_a_dry_run(mover: Mover) -> None:
    reader = replace(mover, caller=Caller("reader", may_write=False))

    with pytest.raises(Refused):
        await reader.put([{"content": "a"}])

    assert (await reader.put([{"content": "a"}], dry_run=True)).stored == 1
    assert await mover.memories() == []


async def test_a_text_that_postgres_refuses_fails_alone(
    mover: Mover, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Transfers.write

    async def refusing(self: Transfers, batch: Batch, **named: Any) -> set[UUID]:
        if any(memory.draft.content == "bad" for memory in batch.new):
            raise InvalidInput("value", "Postgres refused it (DataError).")
        return await write(self, batch, **named)

    monkeypatch.setattr(Transfers, "write", refusing)

    report = await mover.put(
        [{"content": text} for text in ("a", "b", "bad", "c", "d")]
    )

    assert (report.stored, report.failed) == (4, 1)
    assert report.failures[0].line == 3


@pytest.mark.parametrize("whose", ["owner", "token"])
async def test_an_export_shows_one_moment_while_memories_are_stored(
    database: Database, embedder: Embedder, whose: str
) -> None:
    person = Person(MemoryContext.of(database, embedder))
    await person.keep("before the export began")
    made = await person.create_token("alice", "notes:reader")
    seen = database if whose == "owner" else database.for_token(key_of(made.secret))

    lines = export_lines(Mover(seen, embedder).context(), ExportRequest())
    header = await anext(lines)
    await person.keep("during the export")
    rest = [json.loads(line_)["content"] async for line_ in lines]

    assert "notes" in header
    assert rest == ["before the export began"]
