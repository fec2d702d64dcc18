"""Bundled model: a text has the same vector in every batch, and no network is needed."""

import subprocess
import sys
import threading
from collections.abc import Sequence

import numpy as np
import psutil
import pytest

from folklore.embedding import bundled
from folklore.embedding.bundled import BundledEmbedder
from folklore.embedding.protocol import Embedder
from folklore.embedding.static_model import StaticModel
from folklore.embedding.vectors import Vectors
from folklore.errors import EmbedderUnavailable


async def test_vectors_have_the_models_shape_and_length_one_and_are_zero_without_a_token(
    embedder: Embedder,
) -> None:
    vectors = await embedder.embed(
        ["a harbour", "the wind of the sea", "x" * 10_000, ""]
    )

    assert vectors.shape == (4, 256)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1, 0], abs=1e-5)
    assert (await embedder.embed([])).shape == (0, 256)


async def test_a_vector_does_not_depend_on_its_batch(embedder: Embedder) -> None:
    texts = [
        "short",
        "a longer text about harbours",
        "word " * 3_000,
        "",
        "🚀 C++ über",
    ] * 30

    together = await embedder.embed(texts)
    alone = np.vstack([await embedder.embed([text]) for text in texts[:5]])

    assert np.allclose(together[:5], alone, atol=1e-5)
    assert np.allclose(together[:5], together[-5:], atol=1e-6)


async def test_a_question_with_equal_weights_has_the_direction_of_its_text(
    embedder: Embedder,
) -> None:
    question = "which wind do they fear in the harbour"
    [text] = await embedder.embed([question])

    vector = await embedder.embed_question(question.split(), [1.0] * 8)

    assert vector @ text == pytest.approx(1, abs=1e-3)


async def test_a_larger_weight_moves_the_question_towards_its_word(
    embedder: Embedder,
) -> None:
    [harbour] = await embedder.embed(["harbour"])

    plain = await embedder.embed_question(["wind", "harbour"], [1.0, 1.0])
    turned = await embedder.embed_question(["wind", "harbour"], [1.0, 5.0])

    assert turned @ harbour > plain @ harbour
    assert np.linalg.norm(turned) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("pieces", [[], [""], ["\n"]])
async def test_a_question_without_a_token_or_weight_has_a_vector_of_zeros(
    embedder: Embedder, pieces: list[str]
) -> None:
    vector = await embedder.embed_question(pieces, [1.0] * len(pieces))
    nothing = await embedder.embed_question(["word"], [0.0])

    assert vector.shape == nothing.shape == (256,)
    assert not nothing.any()


async def test_texts_with_similar_meaning_are_closer(embedder: Embedder) -> None:
    cat, kitten, invoice = await embedder.embed(
        ["a cat", "a kitten", "an unpaid invoice"]
    )

    assert cat @ kitten > cat @ invoice + 0.2


async def test_a_large_batch_runs_in_another_thread(
    embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    embed = StaticModel.embed

    def recorded(model: StaticModel, texts: Sequence[str]) -> Vectors:
        threads.append(threading.current_thread().name)
        return embed(model, texts)

    monkeypatch.setattr(StaticModel, "embed", recorded)

    assert (await embedder.embed(["word " * 5_000] * 40)).shape == (40, 256)
    assert threads == ["embed_0"]


def test_embedding_starts_no_threads_which_would_keep_much_memory() -> None:
    model = StaticModel.load()
    before = psutil.Process().num_threads()
    model.embed(["a harbour"] * 100)

    assert psutil.Process().num_threads() == before


# Modules of a command that embeds nothing.
WITHOUT_EMBEDDING = """
import sys
from pathlib import Path
from folklore.config import EmbeddingSettings, RerankerSettings
from folklore.embedding.factory import configured_embedder, configured_reranker
configured_embedder(EmbeddingSettings(), Path())
configured_reranker(RerankerSettings())
print([name for name in ("numpy", "httpx", "tokenizers", "safetensors", "tenacity") if name in sys.modules])
"""


def test_building_the_default_embedder_imports_no_numpy_and_no_model_runtime() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EMBEDDING],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


async def test_a_model_that_cannot_be_loaded_raises_embedder_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing() -> object:
        raise EmbedderUnavailable(
            "The bundled embedding model cannot be loaded (ImportError)."
        )

    monkeypatch.setattr(bundled, "load_model", missing)
    broken = BundledEmbedder()

    for _ in range(2):
        with pytest.raises(EmbedderUnavailable):
            await broken.embed(["x"])
    await broken.close()


# An account that exists only while a service runs may have no home directory and no entry in /etc/passwd.
HOMELESS = """
import asyncio, os, pwd
os.environ.pop("HOME", None)
def unknown(uid): raise KeyError(uid)
pwd.getpwuid = unknown
from folklore.embedding.bundled import BundledEmbedder
print(len(asyncio.run(BundledEmbedder().probe())))
"""


def test_the_model_loads_for_an_account_without_a_home() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HOMELESS], capture_output=True, text=True, timeout=60
    )

    assert (done.stdout, done.returncode) == ("256\n", 0), done.stderr
