"""The export format, and what becomes of conflicts: properties of pure functions."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.db.stores.memories import PreparedMemory
from folklore.db.stores.transfer import Present
from folklore.db.stores.transfer_rows import Arrival, Carried, Entry, Past
from folklore.errors import Conflict, InvalidInput
from folklore.memory.transfer.conflicts import Known, OnConflict, Verdict, judge
from folklore.memory.transfer.json_lines import HeaderLine, MemoryLine, _MemoryLine, header_line, memory_line, read_line
from folklore.model import Draft

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
moments = st.datetimes(
    datetime(1900, 1, 1),  # noqa: DTZ001
    datetime(2100, 1, 1),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=-7))]),
)
counts = st.integers(0, 2**31 - 1)
shares = st.floats(0, 1).map(lambda value: round(value, 6))
entries = st.builds(
    Entry,
    st.builds(
        Draft,
        content=texts,
        summary=st.none() | texts,
        kind=texts,
        tags=st.lists(texts, max_size=3).map(tuple),
        source=st.none() | texts,
        position=st.none() | counts,
        occurred_at=st.none() | moments,
        importance=st.none() | shares,
        metadata=st.none() | st.dictionaries(texts, st.none() | st.integers() | texts | st.lists(texts, max_size=2)),
        id=st.uuids(),
        author=texts,
        created_at=moments,
    ),
    st.builds(
        Past,
        quality=st.none() | shares,
        forgotten_at=st.none() | moments,
        superseded_by=st.none() | st.uuids(),
        recall_count=counts,
        revision=st.integers(1, 2**31 - 1),
    ),
    st.none()
    | st.builds(
        Carried,
        provider=texts,
        name=texts,
        dimensions=st.integers(1, 4),
        vector=st.binary(max_size=8).map(lambda raw: raw * 2),
        revision=st.just("") | texts,
        query_prefix=st.just("") | texts,
        document_prefix=st.just("") | texts,
    ),
)


@given(entries, texts)
def test_what_is_written_is_read_back(entry: Entry, namespace: str) -> None:
    line = memory_line(namespace, entry)

    read = read_line(line.encode())

    assert "\n" not in line
    assert read == MemoryLine(namespace, entry, ())


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_a_line_or_bad_input(raw: bytes) -> None:
    with suppress(InvalidInput):
        read_line(raw)


FIELDS = ["type", *_MemoryLine.model_fields]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*FIELDS, "folklore", "odd"]), json_values))
def test_any_object_is_a_line_or_bad_input(line: dict[str, Any]) -> None:
    with suppress(InvalidInput):
        read_line(json.dumps(line).encode())


def test_a_header_is_read_back_and_a_plain_one_is_enough() -> None:
    assert read_line(header_line(datetime.now(UTC), []).encode()) == HeaderLine(())
    assert read_line(b'{"folklore": 1, "exported_at": "2026-01-01T00:00:00Z"}') == HeaderLine(())


def test_errors_do_not_repeat_what_was_wrong() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_line(b'{"content": "a", "importance": "hunter2"}')

    assert "hunter2" not in str(caught.value)


# Few ids, texts and keys, so that they collide.
arrivals = st.lists(
    st.builds(
        lambda id_, text, key, dead: (id_, text, key, dead),
        st.integers(1, 5),
        st.sampled_from("abcd"),
        st.sampled_from([None, None, "k"]),
        st.booleans(),
    ),
    max_size=12,
).map(
    lambda given_: [
        Arrival(
            line,
            PreparedMemory(UUID(int=id_), Draft(text, id=UUID(int=id_), idempotency_key=key), text.encode()),
            Past(forgotten_at=datetime(2025, 1, 1, tzinfo=UTC) if dead else None),
        )
        for line, (id_, text, key, dead) in enumerate(given_, start=1)
    ]
)


@given(arrivals, st.sampled_from(["skip", "overwrite"]))
def test_every_arrival_has_one_fate(batch: list[Arrival], policy: OnConflict) -> None:
    verdict = judge(batch, Known(), {}, policy)

    refused = [arrival for arrival, _ in verdict.refused]
    fates = [*verdict.fresh, *verdict.replacing, *verdict.duplicates, *refused]
    assert sorted(arrival.line for arrival in fates) == [arrival.line for arrival in batch]


@given(arrivals, st.sampled_from(["skip", "overwrite"]))
def test_what_goes_in_breaks_no_unique_index(batch: list[Arrival], policy: OnConflict) -> None:
    verdict = judge(batch, Known(), {}, policy)

    ids = [arrival.id for arrival in verdict.fresh]
    living = [arrival.prepared.digest for arrival in verdict.fresh if arrival.alive]
    keys = [key for arrival in verdict.fresh if (key := arrival.prepared.draft.idempotency_key)]
    assert len(ids) == len(set(ids))
    assert len(living) == len(set(living))
    assert len(keys) == len(set(keys))


@given(arrivals)
def test_failing_is_skipping_without_a_duplicate(batch: list[Arrival]) -> None:
    skipping = judge(batch, Known(), {}, "skip")

    if skipping.duplicates:
        with pytest.raises(Conflict, match=f"Line {skipping.duplicates[0].line} "):
            judge(batch, Known(), {}, "fail")
    else:
        assert judge(batch, Known(), {}, "fail") == skipping


def overwritten(stored: Entry, said: Entry) -> Verdict:
    """What becomes of a line that says `said` of a memory that is here as `stored`."""
    assert stored.draft.id is not None
    known = Known()
    known.learn([Present(stored.draft.id, b"as it was", stored.draft.idempotency_key, alive=True)])
    arrival = Arrival(1, PreparedMemory(stored.draft.id, said.draft, b"as it is said"), said.past)
    return judge([arrival], known, {stored.draft.id: stored}, "overwrite")


DAY = datetime(2025, 1, 1, tzinfo=UTC)
HERE = Entry(
    Draft(
        "here", summary="s", kind="decision", tags=("a",), source="adr", session="planning", position=7,
        occurred_at=DAY, importance=0.5, language="german", expires_at=DAY, metadata={"a": 1}, idempotency_key="own",
        id=UUID(int=1), author="sarah", created_at=DAY,
    ),
    Past("claude", DAY, 0.5, "stated", None, DAY, UUID(int=2), DAY, 12, 3, 4),
)  # fmt: skip


def test_what_a_line_leaves_out_is_gone_but_for_what_a_memory_always_has_and_what_it_lived_through() -> None:
    (kept,) = overwritten(HERE, Entry(Draft("said", session="planning"), Past())).replacing
    (moved,) = overwritten(HERE, Entry(Draft("said", session="another"), Past())).replacing

    always = {"id": UUID(int=1), "author": "sarah", "created_at": DAY, "language": "german", "idempotency_key": "own"}
    assert kept.prepared.draft == Draft("said", session="planning", position=7, **always)  # type: ignore[arg-type]
    assert kept.past == replace(HERE.past, superseded_at=None, superseded_by=None)
    assert (kept.id, kept.prepared.digest) == (UUID(int=1), b"as it is said")
    assert moved.prepared.draft.position is None, "a place in another session is none in this one"


def test_what_a_line_says_replaces_what_is_here_also_if_it_is_nothing_or_less() -> None:
    late = DAY + timedelta(days=9)
    draft = Draft(
        "said", session="planning", position=0, language="english", idempotency_key="new",
        id=UUID(int=1), author="carl", created_at=late,
    )  # fmt: skip
    past = Past("codex", late, 0.0, "inferred", None, None, None, late, 0, 0, 9)

    (arrival,) = overwritten(HERE, Entry(draft, past)).replacing

    assert arrival.prepared.draft == draft
    assert arrival.past == replace(past, revision=4, updated_at=DAY)  # these tell of the change itself


def test_a_line_that_says_what_is_here_or_less_of_its_life_changes_nothing() -> None:
    less = Past(superseded_at=DAY, superseded_by=UUID(int=2))
    for past in (HERE.past, less, replace(HERE.past, revision=9, updated_at=DAY + timedelta(days=9))):
        assert [arrival.line for arrival in overwritten(HERE, Entry(HERE.draft, past)).duplicates] == [1]

    assert overwritten(HERE, Entry(HERE.draft, replace(less, recall_count=13))).replacing
    assert overwritten(HERE, Entry(replace(HERE.draft, summary="another"), HERE.past)).replacing
