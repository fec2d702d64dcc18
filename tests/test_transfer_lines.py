"""The export format, and what becomes of conflicts: properties of pure functions."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.db.entries import Arrival, Carried, Entry, Past
from folklore.db.memories import Prepared
from folklore.errors import Conflict, InvalidInput
from folklore.memory.conflicts import Known, OnConflict, judge
from folklore.memory.lines import HeaderLine, MemoryLine, _MemoryLine, header_line, memory_line, read_line
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
            Prepared(UUID(int=id_), Draft(text, id=UUID(int=id_), idempotency_key=key), text.encode()),
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
