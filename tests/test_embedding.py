"""The bundled model: the same vector for the same text, whatever stands beside it, and no network."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import numpy as np
import pytest

from folklore.config import EmbeddingSettings
from folklore.embedding import bundled
from folklore.embedding.bundled import MODEL, BundledEmbedder
from folklore.embedding.factory import choose
from folklore.embedding.protocol import Embedder, Model
from folklore.errors import EmbedderUnavailable


async def test_vectors_have_the_models_shape_and_length_one(embedder: Embedder) -> None:
    vectors = await embedder.embed(["a harbour", "the wind of the sea", "x" * 10_000])

    assert vectors.shape == (3, 256)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


async def test_a_text_without_a_token_has_no_direction(embedder: Embedder) -> None:
    vectors = await embedder.embed(["", "word"])

    assert not vectors[0].any()
    assert vectors[1].any()


async def test_no_texts_have_no_vectors(embedder: Embedder) -> None:
    assert (await embedder.embed([])).shape == (0, 256)


async def test_a_vector_does_not_depend_on_its_batch(embedder: Embedder) -> None:
    texts = ["short", "a longer text about harbours", "word " * 3_000, "", "🚀 C++ über"] * 30

    together = await embedder.embed(texts)
    alone = np.vstack([await embedder.embed([text]) for text in texts[:5]])

    assert np.allclose(together[:5], alone, atol=1e-5)
    assert np.allclose(together[:5], together[-5:], atol=1e-6)


async def test_a_question_whose_words_count_alike_points_where_its_text_does(embedder: Embedder) -> None:
    question = "which wind do they fear in the harbour"
    [text] = await embedder.embed([question])

    alike = await embedder.embed_question(question.split(), [1.0] * 8)

    assert alike @ text == pytest.approx(1, abs=1e-3)


async def test_a_word_that_counts_more_turns_the_question_its_way(embedder: Embedder) -> None:
    [harbour] = await embedder.embed(["harbour"])

    plain = await embedder.embed_question(["wind", "harbour"], [1.0, 1.0])
    turned = await embedder.embed_question(["wind", "harbour"], [1.0, 5.0])

    assert turned @ harbour > plain @ harbour
    assert np.linalg.norm(turned) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("pieces", [[], [""], ["\n"]])
async def test_a_question_without_a_token_or_weight_does_not_break(embedder: Embedder, pieces: list[str]) -> None:
    vector = await embedder.embed_question(pieces, [1.0] * len(pieces))
    nothing = await embedder.embed_question(["word"], [0.0])

    assert vector.shape == nothing.shape == (256,)
    assert not nothing.any()


async def test_what_means_the_same_lies_closer(embedder: Embedder) -> None:
    cat, kitten, invoice = await embedder.embed(["a cat", "a kitten", "an unpaid invoice"])

    assert cat @ kitten > cat @ invoice + 0.2


async def test_a_large_batch_leaves_the_loop_free(embedder: Embedder) -> None:
    long = ["word " * 5_000] * 40
    longest = 0.0
    working = asyncio.create_task(embedder.embed(long))
    while not working.done():
        before = time.perf_counter()
        await asyncio.sleep(0.001)
        longest = max(longest, time.perf_counter() - before)

    assert (await working).shape == (40, 256)
    assert longest < 0.25


async def test_a_model_that_cannot_be_loaded_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> object:
        raise EmbedderUnavailable("The bundled embedding model cannot be loaded (ImportError).")

    monkeypatch.setattr(bundled, "_load", missing)
    broken = BundledEmbedder()

    for _ in range(2):
        with pytest.raises(EmbedderUnavailable):
            await broken.embed(["x"])
    await broken.close()


def test_a_models_id_follows_from_what_it_is() -> None:
    assert MODEL.id == Model(MODEL.provider, MODEL.name, MODEL.dimensions).id
    assert len({Model(p, n, d).id for p in "ab" for n in "xy" for d in (1, 2)}) == 8


async def test_the_settings_choose_the_embedder() -> None:
    assert choose(EmbeddingSettings(provider="none")) is None
    assert isinstance(choose(EmbeddingSettings()), BundledEmbedder)


# An account that exists only while a service runs may have no home and no entry among the accounts.
NOBODY = """
import asyncio, os, pwd
os.environ.pop("HOME", None)
def unknown(uid): raise KeyError(uid)
pwd.getpwuid = unknown
from folklore.embedding.bundled import BundledEmbedder
print(len(asyncio.run(BundledEmbedder().probe())))
"""


def test_the_model_loads_for_an_account_without_a_home() -> None:
    done = subprocess.run([sys.executable, "-c", NOBODY], capture_output=True, text=True, timeout=60)

    assert (done.stdout, done.returncode) == ("256\n", 0), done.stderr
