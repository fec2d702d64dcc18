"""Properties of the export format and of conflict resolution, both pure."""

import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from folklore.contract.transfer import OnConflict
from folklore.db.stores.transfer import (
    ExistingMemory,
    ModelVector,
    Past,
    TransferredMemory,
)
from folklore.errors import Conflict, InvalidInput
from folklore.memory.transfer.conflicts import (
    ExistingMemories,
    ImportAuthor,
    Resolution,
    resolve,
)
from folklore.memory.transfer.json_lines import (
    Line,
    _MemoryLine,
    header_line,
    memory_line,
    read_line,
)
from folklore.model import Draft

SARAH = ImportAuthor("sarah", datetime(2025, 1, 1, tzinfo=UTC))
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
moments = st.datetimes(
    datetime(1900, 1, 1),  # noqa: DTZ001
    datetime(2100, 1, 1),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=-7))]),
)
counts = st.integers(0, 2**31 - 1)
shares = st.floats(0, 1).map(lambda value: round(value, 6))
memories = st.builds(
    TransferredMemory,
    st.builds(
        Draft, content=texts, summary=st.none() | texts, kind=texts, tags=st.lists(texts, max_size=3).map(tuple),
        source=st.none() | texts, position=st.none() | counts, occurred_at=st.none() | moments,
        importance=st.none() | shares, id=st.uuids(), author=texts, created_at=moments,
        metadata=st.none() | st.dictionaries(texts, st.none() | st.integers() | texts | st.lists(texts, max_size=2)),
    ),
    st.builds(
        Past, quality=st.none() | shares, forgotten_at=st.none() | moments, superseded_by=st.none() | st.uuids(),
        recall_count=counts, revision=st.integers(1, 2**31 - 1),
    ),
    st.none()
    | st.builds(
        ModelVector, provider=texts, name=texts, dimensions=st.integers(1, 4), revision=st.just("") | texts,
        vector=st.binary(max_size=8).map(lambda raw: raw * 2),
        query_prefix=st.just("") | texts, document_prefix=st.just("") | texts,
    ),
)  # fmt: skip


@given(memories, texts)
def test_a_written_line_is_read_back(memory: TransferredMemory, namespace: str) -> None:
    line = memory_line(namespace, memory)

    read = read_line(line.encode())

    assert "\n" not in line
    assert read == Line(memory, namespace)


@given(
    st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))
)
def test_any_bytes_give_a_line_or_invalid_input(raw: bytes) -> None:
    with suppress(InvalidInput):
        read_line(raw)


FIELDS = ["type", *_MemoryLine.model_fields]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*FIELDS, "folklore", "odd"]), json_values))
def test_any_object_gives_a_line_or_invalid_input(line: dict[str, Any]) -> None:
    with suppress(InvalidInput):
        read_line(json.dumps(line).encode())


def test_a_header_is_read_back_and_may_lack_namespaces() -> None:
    assert read_line(header_line(datetime.now(UTC), []).encode()) == Line(())
    assert read_line(b'{"folklore": 1, "exported_at": "2026-01-01T00:00:00Z"}') == Line(
        ()
    )


def test_errors_do_not_repeat_the_wrong_value() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_line(b'{"content": "a", "importance": "hunter2"}')

    assert "hunter2" not in str(caught.value)


# Few ids, texts and keys, so that they collide.
batches = st.lists(
    st.tuples(
        st.integers(1, 5),
        st.sampled_from("abcd"),
        st.sampled_from([None, None, "k"]),
        st.booleans(),
    ),
    max_size=12,
).map(
    lambda rows: [
        TransferredMemory(
            Draft(text, id=UUID(int=id_), idempotency_key=key),
            Past(forgotten_at=datetime(2025, 1, 1, tzinfo=UTC) if forgotten else None),
            digest=text.encode(),
            line=line,
        )
        for line, (id_, text, key, forgotten) in enumerate(rows, start=1)
    ]
)


@given(batches, st.sampled_from(["skip", "overwrite"]))
def test_every_memory_has_one_outcome(
    batch: list[TransferredMemory], policy: OnConflict
) -> None:
    resolution = resolve(batch, ExistingMemories(), {}, policy, SARAH)

    refused = [memory for memory, _ in resolution.refusals]
    outcomes = [*resolution.new, *resolution.replaced, *resolution.duplicates, *refused]
    assert sorted(memory.line for memory in outcomes) == [
        memory.line for memory in batch
    ]


@given(batches, st.sampled_from(["skip", "overwrite"]))
def test_new_memories_violate_no_unique_index(
    batch: list[TransferredMemory], policy: OnConflict
) -> None:
    resolution = resolve(batch, ExistingMemories(), {}, policy, SARAH)

    ids = [memory.id for memory in resolution.new]
    live = [memory.digest for memory in resolution.new if memory.live]
    keys = [key for memory in resolution.new if (key := memory.draft.idempotency_key)]
    assert len(ids) == len(set(ids))
    assert len(live) == len(set(live))
    assert len(keys) == len(set(keys))


@given(batches)
def test_the_policies_fail_and_skip_differ_only_for_duplicates(
    batch: list[TransferredMemory],
) -> None:
    skipping = resolve(batch, ExistingMemories(), {}, "skip", SARAH)

    if skipping.duplicates:
        with pytest.raises(Conflict, match=f"Line {skipping.duplicates[0].line} "):
            resolve(batch, ExistingMemories(), {}, "fail", SARAH)
    else:
        assert resolve(batch, ExistingMemories(), {}, "fail", SARAH) == skipping


def overwrite(
    stored: TransferredMemory, draft: Draft, past: Past = Past()
) -> Resolution:
    """Resolve a line that states `draft` and `past` for a stored memory."""
    existing = ExistingMemories()
    existing.read(
        [ExistingMemory(stored.id, b"old", stored.draft.idempotency_key, live=True)]
    )
    line = TransferredMemory(replace(draft, id=stored.id), past, digest=b"new", line=1)
    return resolve([line], existing, {stored.id: stored}, "overwrite", SARAH)


DAY = datetime(2025, 1, 1, tzinfo=UTC)
STORED = TransferredMemory(
    Draft(
        "stored", summary="s", kind="decision", tags=("a",), source="adr", session="planning", position=7,
        occurred_at=DAY, importance=0.5, language="german", expires_at=DAY, metadata={"a": 1}, idempotency_key="own",
        id=UUID(int=1), author="sarah", created_at=DAY,
    ),
    Past("claude", DAY, 0.5, "stated", None, DAY, UUID(int=2), DAY, 12, 3, 4),
)  # fmt: skip


def test_overwriting_empties_fields_that_a_line_leaves_out_except_those_that_are_never_empty_and_the_past() -> (
    None
):
    (kept,) = overwrite(STORED, Draft("new", session="planning")).replaced
    (moved,) = overwrite(STORED, Draft("new", session="another")).replaced

    always = {
        "id": UUID(int=1),
        "author": "sarah",
        "created_at": DAY,
        "language": "german",
        "idempotency_key": "own",
    }
    assert kept.draft == Draft("new", session="planning", position=7, **always)  # type: ignore[arg-type]
    assert kept.past == replace(STORED.past, superseded_at=None, superseded_by=None)
    assert (kept.id, kept.digest) == (UUID(int=1), b"new")
    assert moved.draft.position is None, "a position belongs to one session"


def test_overwriting_takes_every_stated_value_also_if_it_is_zero() -> None:
    late = DAY + timedelta(days=9)
    draft = Draft(
        "new", session="planning", position=0, language="english", idempotency_key="new",
        id=UUID(int=1), author="carl", created_at=late,
    )  # fmt: skip
    past = Past("codex", late, 0.0, "inferred", None, None, None, late, 0, 0, 9)

    (memory,) = overwrite(STORED, draft, past).replaced

    assert memory.draft == draft
    assert memory.past == replace(past, revision=4, updated_at=DAY), (
        "the change itself sets these two"
    )


def test_overwriting_with_the_stored_values_or_fewer_of_the_past_changes_nothing() -> (
    None
):
    fewer = Past(superseded_at=DAY, superseded_by=UUID(int=2))
    for past in (
        STORED.past,
        fewer,
        replace(STORED.past, revision=9, updated_at=DAY + timedelta(days=9)),
    ):
        assert [
            memory.line for memory in overwrite(STORED, STORED.draft, past).duplicates
        ] == [1]

    assert overwrite(STORED, STORED.draft, replace(fewer, recall_count=13)).replaced
    assert overwrite(
        STORED, replace(STORED.draft, summary="another"), STORED.past
    ).replaced
