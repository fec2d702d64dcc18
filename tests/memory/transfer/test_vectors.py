"""Vectors of exports, and the conditions under which an import uses them."""

import json
import random
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import asyncpg
import numpy as np
import pytest

from folklore.callers import Caller
from folklore.db.database import Database
from folklore.embedding.protocol import Embedder
from tests.background_jobs import BackgroundJobs
from tests.conftest import Cluster
from tests.embedders import MODEL, ByLetter, Down, DownForTexts
from tests.fake_keys import MAKERS
from tests.memory.transfer.test_transfer import (
    NEW,
    OLD,
    RICH,
    Line,
    Mover,
    batches_of_two,  # noqa: F401 - a fixture
)
from tests.person import Person, contents
from tests.waiting import statements_of

# A unit vector that the embedder makes of no text in this module.
ODD = np.array([0.6, 0, 0, 0, 0, 0, 0, -0.8], dtype="<f2")


def exported(vector: Any = ODD, **values: Any) -> Line:
    """Return the field `embedding` with the identity of the fake model."""
    packed = b64encode(np.asarray(vector, dtype="<f2").tobytes()).decode()
    return {
        "provider": "fake",
        "name": "by-letter",
        "dimensions": 8,
        "vector": packed,
    } | values


@dataclass(frozen=True, slots=True)
class VectorMover(Mover):
    """Exports with vectors."""

    embeddings: bool = True


@pytest.fixture
def letters() -> ByLetter:
    return ByLetter()


@pytest.fixture
async def mover(database: Database, letters: ByLetter) -> VectorMover:
    return VectorMover(database, letters)


@asynccontextmanager
async def elsewhere(
    cluster: Cluster, template: str, embedder: Embedder | None
) -> AsyncIterator[VectorMover]:
    """Open an empty database."""
    async with cluster.opened(template) as database:
        yield VectorMover(database, embedder, Caller("another user"))


def numbers(field: Line) -> list[float]:
    return [
        float(number)
        for number in np.frombuffer(b64decode(field["vector"]), dtype="<f2")
    ]


async def stored_vector(
    connection: asyncpg.Connection, content: str
) -> list[float] | None:
    """Return the stored vector of a memory."""
    sql = "select vector::text from embeddings join memories using (namespace_id) where id = memory_id and content = $1"
    text = await connection.fetchval(sql, content)
    return None if text is None else [float(number) for number in json.loads(text)]


# Export


async def test_a_line_has_the_prefixes_and_the_revision_of_the_model(
    mover: VectorMover,
) -> None:
    class Prefixed(ByLetter):
        async def model(self) -> Any:
            return replace(
                MODEL, query_prefix="query: ", document_prefix="passage: ", revision="2"
            )

    prefixed = replace(mover, embedder=Prefixed())
    await prefixed.put([{"content": "one fact"}])
    (line,) = await prefixed.memories()

    embedding = line["embedding"]
    assert (
        embedding["query_prefix"],
        embedding["document_prefix"],
        embedding["revision"],
    ) == (
        "query: ",
        "passage: ",
        "2",
    )
    plain = await prefixed.put([{"content": "a", "embedding": exported()}])
    exact = await prefixed.put([{"content": "b", "embedding": embedding}])
    assert (plain.ignored_fields, exact.ignored_fields) == ({"embedding": 1}, {})


async def test_vectors_are_exported_only_on_request(mover: VectorMover) -> None:
    await mover.put(RICH)

    plain = [
        json.loads(line) for line in await Mover(mover.database, mover.embedder).take()
    ]
    full = [json.loads(line) for line in await mover.take()]

    assert not any("embedding" in line for line in plain)
    assert [
        {name: value for name, value in line.items() if name != "embedding"}
        for line in full
    ] == plain
    assert sum("embedding" in line for line in full) == len(RICH)


async def test_a_database_without_a_model_is_exported_without_vectors(
    mover: VectorMover,
) -> None:
    silent = replace(mover, embedder=None)
    await silent.put(RICH)

    assert [("embedding" in line) for line in await silent.memories()] == [False] * len(
        RICH
    )


async def test_an_export_with_vectors_needs_a_constant_number_of_statements(
    mover: VectorMover, queries: list[str]
) -> None:
    await mover.put([{"content": "warms up"}])
    counts = []
    for size in (10, 180):
        await mover.put(
            [
                {"content": f"fact {number}", "namespace": f"of{size}"}
                for number in range(size)
            ]
        )
        assert len(await mover.memories(f"of{size}")) == size
        counts.append(len(await statements_of(mover.take(f"of{size}"), queries)))

    assert counts[0] == counts[1] > 0


# Round trip


async def test_an_export_with_vectors_of_an_import_of_one_differs_in_its_header_only(
    mover: VectorMover, cluster: Cluster, template: str, small_batches: None
) -> None:
    await mover.put([*RICH, {"content": "A ratio."}, {"content": "???"}])
    first = await mover.take()
    reader = ByLetter()
    async with elsewhere(cluster, template, reader) as other:
        report = await other.put(line.encode() for line in first)
        second = await other.take()

    assert second[1:] == first[1:]
    assert (report.stored, report.ignored_fields) == (5, {})
    # no vector can be made of it, so its line has none
    assert reader.calls == [["???"]]
    assert sum('"embedding"' in line for line in first) == 4


async def stored_vector_of_cues(
    connection: asyncpg.Connection, content: str
) -> list[float] | None:
    """Return the stored vector of the cues of a memory."""
    sql = (
        "select e.cues::text from embeddings e join memories m using (namespace_id) "
        "where m.id = e.memory_id and e.passage = 0 and m.content = $1"
    )
    text = await connection.fetchval(sql, content)
    return None if text is None else [float(number) for number in json.loads(text)]


async def test_the_vector_of_cues_goes_with_that_of_the_text(
    mover: VectorMover, cluster: Cluster, template: str
) -> None:
    await mover.put(
        [
            {"content": "a fact", "cues": ["change a timeout", "retry a call"]},
            {"content": "without cues"},
        ]
    )
    first = await mover.take()
    reader = ByLetter()
    async with elsewhere(cluster, template, reader) as other:
        report = await other.put(line.encode() for line in first)
        second = await other.take()

    assert second[1:] == first[1:]
    assert (report.ignored_fields, reader.calls) == ({}, [])
    fields = [json.loads(line).get("embedding", {}) for line in first[1:]]
    assert [("cues" in field) for field in fields] == [True, False]


# Import


CUES = ["change a timeout"]


@pytest.mark.parametrize(
    ("cues", "of_cues", "ignored", "kept"),
    [
        (CUES, ODD, {}, True),
        ([], ODD, {"embedding.cues": 1}, False),
        ([" with blanks "], ODD, {"embedding.cues": 1}, False),
        (CUES, ODD * 2, {"embedding": 1}, False),
        (CUES, ODD[:4], {"embedding": 1}, False),
        (CUES, None, {}, False),
    ],
    ids=["whole", "no cues", "cleaned", "too long", "other dimensions", "none"],
)
async def test_the_vector_of_cues_is_stored_if_it_is_of_these_cues_and_this_model(
    mover: VectorMover,
    connection: asyncpg.Connection,
    cues: list[str],
    of_cues: Any,
    ignored: dict[str, int],
    kept: bool,
) -> None:
    field = exported()
    if of_cues is not None:
        field["cues"] = exported(of_cues)["vector"]

    report = await mover.put([{"content": "one", "cues": cues, "embedding": field}])

    assert (report.stored, report.ignored_fields) == (1, ignored)
    odd = pytest.approx(ODD.tolist())
    assert (await stored_vector_of_cues(connection, "one") == odd) is kept
    assert (await stored_vector(connection, "one") == odd) is (
        "embedding" not in ignored
    )


async def test_a_vector_of_the_active_model_is_stored_without_embedding_its_text(
    mover: VectorMover, letters: ByLetter, connection: asyncpg.Connection
) -> None:
    report = await mover.put(
        [
            {"content": "first", "embedding": exported()},
            {"content": "second"},
            {"content": "third", "embedding": exported()},
        ]
    )

    assert (report.stored, report.ignored_fields, report.without_vector) == (3, {}, 0)
    assert letters.calls == [["second"]]
    assert (
        await stored_vector(connection, "first")
        == await stored_vector(connection, "third")
        == pytest.approx(ODD.tolist())
    )
    made = (await ByLetter().embed(["second"]))[0].tolist()
    assert await stored_vector(connection, "second") == pytest.approx(made, abs=1e-3)


UNUSABLE = [
    exported(provider="other"),
    exported(name="by-word"),
    exported(name="\ud800"),  # not UTF-8: no model id follows from it
    exported(dimensions=4),
    exported(revision="2"),
    exported(query_prefix="query: "),
    exported(document_prefix="passage: "),
    exported(ODD[[0, 7, 1, 2]], dimensions=4),
    exported(ODD[:4]),
    exported([]),
    exported(ODD * 1.02),
    exported(ODD * 0.98),
    exported(np.zeros(8)),
    exported([np.nan, *ODD[1:]]),
    exported([np.inf, *ODD[1:]]),
    [0.6, 0, 0, 0, 0, 0, 0, -0.8],
]


@pytest.mark.parametrize("dry_run", [True, False])
async def test_an_unusable_vector_is_reported_and_its_text_embedded(
    mover: VectorMover, letters: ByLetter, connection: asyncpg.Connection, dry_run: bool
) -> None:
    lines: list[Line] = [
        {"content": f"fact {chr(97 + place)}", "embedding": field}
        for place, field in enumerate(UNUSABLE)
    ]

    raw = [
        json.dumps(line).encode()
        for line in [*lines, {"content": "good", "embedding": exported()}]
    ]
    report = await mover.put(raw, dry_run=dry_run)

    assert (report.stored, report.failed) == (len(UNUSABLE) + 1, 0)
    assert report.ignored_fields == {"embedding": len(UNUSABLE)}
    if not dry_run:
        assert letters.calls == [[line["content"] for line in lines]]
        assert (
            await connection.fetchval("select count(*) from embeddings")
            == len(UNUSABLE) + 1
        )
        assert await connection.fetchval("select count(*) from models") == 1


async def test_the_length_of_a_vector_may_differ_by_1_percent(
    mover: VectorMover,
) -> None:
    report = await mover.put(
        [
            {"content": f"{share}", "embedding": exported(ODD * np.float16(share))}
            for share in (0.992, 1.008)
        ]
    )

    assert (report.stored, report.ignored_fields) == (2, {})


MALFORMED = [
    ("text", "embedding"), (7, "embedding"), ({}, "embedding.provider"), (exported(provider=1), "embedding.provider"),
    (exported(dimensions="many"), "embedding.dimensions"), (exported(dimensions=0), "embedding.dimensions"),
    (exported() | {"vector": None}, "embedding.vector"),
    (exported() | {"vector": "no base64"}, "embedding.vector: must be base64"),
    (exported() | {"vector": "ä"}, "embedding.vector: must be base64"),
    (exported() | {"vector": b64encode(b"odd").decode()}, "embedding.vector: must be base64 of half floats"),
]  # fmt: skip


async def test_a_malformed_vector_fails_its_line_and_names_the_field(
    mover: VectorMover,
) -> None:
    lines = [
        {"content": f"fact {place}", "embedding": field}
        for place, (field, _) in enumerate(MALFORMED)
    ]

    report = await mover.put([*lines, {"content": "kept", "embedding": None}])

    assert (report.stored, report.failed, report.ignored_fields) == (
        1,
        len(MALFORMED),
        {},
    )
    for failure, (_, place) in zip(report.failures, MALFORMED, strict=True):
        assert failure.message.startswith(place)


async def test_a_cleaned_text_is_embedded_again(
    mover: VectorMover, letters: ByLetter
) -> None:
    report = await mover.put(
        [
            {"content": " With blanks around it. ", "embedding": exported()},
            {"content": "With a hidden\u200b character.", "embedding": exported()},
            {
                "content": "As it is.",
                "summary": " Only the summary is cleaned. ",
                "embedding": exported(),
            },
        ]
    )

    assert (report.stored, report.ignored_fields) == (3, {"embedding": 2})
    assert letters.calls == [["With blanks around it.", "With a hidden character."]]


async def test_a_redacted_text_is_embedded_again(
    mover: VectorMover, letters: ByLetter, connection: asyncpg.Connection
) -> None:
    key = MAKERS["github"][0](random.Random(7))
    redacting = replace(mover, secrets="redact")

    report = await redacting.put(
        [{"content": f"CI uses {key}.", "embedding": exported()}]
    )

    ((text,),) = letters.calls
    assert (report.redacted, report.ignored_fields) == (1, {"embedding": 1})
    assert key not in text
    assert await stored_vector(connection, text) != pytest.approx(ODD.tolist())


async def test_an_overwritten_memory_has_the_vector_of_its_new_text(
    mover: VectorMover, letters: ByLetter, connection: asyncpg.Connection
) -> None:
    await mover.put([{"id": OLD, "content": "old"}])
    letters.calls.clear()

    report = await mover.put(
        [
            {"id": OLD, "content": "new", "embedding": exported()},
            {"id": NEW, "content": "fresh"},
        ],
        on_conflict="overwrite",
    )

    assert (report.overwritten, report.stored) == (1, 1)
    assert letters.calls == [["fresh"]]
    assert await stored_vector(connection, "new") == pytest.approx(ODD.tolist())
    assert await connection.fetchval("select count(*) from embeddings") == 2


async def test_two_lines_with_one_id_are_compared_with_their_own_vectors(
    mover: VectorMover, connection: asyncpg.Connection
) -> None:
    report = await mover.put(
        [
            {"id": OLD, "content": "a tie", "embedding": exported(ODD[:4])},
            {"id": OLD, "content": "a tie", "embedding": exported()},
        ]
    )

    assert (report.stored, report.duplicates, report.ignored_fields) == (
        1,
        1,
        {"embedding": 1},
    )
    assert await stored_vector(connection, "a tie") != pytest.approx(ODD.tolist())


@pytest.mark.parametrize(
    "embedder", [Down(), DownForTexts(), None], ids=["down", "refusing", "off"]
)
async def test_without_an_embedder_usable_vectors_are_stored_and_other_embeddings_are_pending(
    mover: VectorMover, connection: asyncpg.Connection, embedder: Embedder | None
) -> None:
    await mover.put([{"content": "knows its model"}])

    report = await replace(mover, embedder=embedder).put(
        [
            {"content": "with a vector", "embedding": exported()},
            {"content": "without a vector"},
        ]
    )

    assert (report.stored, report.without_vector, report.ignored_fields) == (2, 1, {})
    assert await stored_vector(connection, "with a vector") == pytest.approx(
        ODD.tolist()
    )
    assert await stored_vector(connection, "without a vector") is None


async def test_an_import_does_not_wait_for_a_slow_model_and_the_job_makes_its_embeddings_afterwards(
    mover: VectorMover, letters: ByLetter, connection: asyncpg.Connection
) -> None:
    slow = replace(mover, embedding_wait=0.05)

    report = await slow.put(
        [
            {"content": "with a vector", "embedding": exported()},
            {"content": "without a vector"},
        ]
    )

    assert (report.stored, report.without_vector, letters.calls) == (2, 1, [])
    assert await stored_vector(connection, "with a vector") == pytest.approx(
        ODD.tolist()
    )
    assert contents(await Person(slow.context().memory).search("without")) == [
        "without a vector"
    ]
    assert await BackgroundJobs(mover.database, mover.context().memory)(
        "embeddings"
    ) == {"embedded": 1}
    assert letters.calls == [["without a vector"]]
    assert await stored_vector(connection, "without a vector") is not None


async def test_a_batch_has_vectors_of_one_model_if_the_model_changes_meanwhile(
    mover: VectorMover, connection: asyncpg.Connection
) -> None:
    """The database has one model when the vectors are checked, and the embedder another one afterwards."""

    class Another(ByLetter):
        async def model(self) -> Any:
            return replace(MODEL, name="another")

    await mover.put([{"content": "knows its model"}])
    another = Another()

    report = await replace(mover, embedder=another).put(
        [{"content": "with a vector", "embedding": exported()}, {"content": "plain"}]
    )

    assert report.stored == 2
    assert another.calls == [["plain"], ["with a vector", "plain"]]
    models = await connection.fetch(
        "select m.name, array_agg(t.content order by t.content) from models m join embeddings e on e.model_id = m.id "
        "join memories t on t.id = e.memory_id and t.namespace_id = e.namespace_id group by m.name order by m.name"
    )
    assert [tuple(row) for row in models] == [
        ("another", ["plain", "with a vector"]),
        ("by-letter", ["knows its model"]),
    ]


async def test_a_batch_with_vectors_costs_a_constant_number_of_statements(
    mover: VectorMover, queries: list[str]
) -> None:
    await mover.put([{"content": "creates the namespace", "embedding": exported()}])
    await mover.put(
        [{"content": "lets asyncpg read array types", "embedding": exported()}]
    )
    counts = []
    for size in (10, 400):
        lines = [
            {"content": f"fact {size} {number}", "embedding": exported()}
            for number in range(size)
        ]
        counts.append(len(await statements_of(mover.put(lines), queries)))

    assert counts[0] == counts[1] <= 13
