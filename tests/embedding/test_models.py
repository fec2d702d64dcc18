"""Choice of the model: known prefixes, keys and their origin, local models."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import SecretStr

from folklore.config import EmbeddingSettings
from folklore.embedding.factory import (
    build_embedder,
    configured_choice,
    configured_embedder,
    key_for,
    url_of,
)
from folklore.embedding.fastembed import load
from folklore.embedding.model_profiles import profile_of
from folklore.embedding.protocol import Model, ModelChoice
from folklore.embedding.vectors import average_pieces, split_text
from folklore.errors import ConfigInvalid, EmbedderUnavailable


@pytest.mark.parametrize(
    ("name", "query", "document"),
    [
        ("intfloat/e5-large-v2", "query: ", "passage: "),
        ("intfloat/multilingual-e5-small", "query: ", "passage: "),
        (
            "BAAI/bge-base-en-v1.5",
            "Represent this sentence for searching relevant passages: ",
            "",
        ),
        ("bge-m3:latest", "", ""),
        ("nomic-embed-text", "search_query: ", "search_document: "),
        ("nomic-ai/nomic-embed-text-v1.5", "search_query: ", "search_document: "),
        (
            "mxbai-embed-large",
            "Represent this sentence for searching relevant passages: ",
            "",
        ),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "query: ", ""),
        (
            "snowflake-arctic-embed:33m",
            "Represent this sentence for searching relevant passages: ",
            "",
        ),
        ("thenlper/gte-base", "", ""),
        ("jinaai/jina-embeddings-v2-base-en", "", ""),
        ("text-embedding-3-small", "", ""),
        ("unknown/model", "", ""),
    ],
)
def test_known_names_have_prefixes(name: str, query: str, document: str) -> None:
    profile = profile_of(name)

    assert (profile.query_prefix, profile.document_prefix) == (query, document)


def test_prefixes_in_the_settings_override_the_known_ones() -> None:
    settings = EmbeddingSettings(
        provider="openai",
        url="http://x",
        model="e5-small",
        query_prefix="",
        dimensions=7,
    )

    assert configured_choice(settings) == ModelChoice(
        "openai", "e5-small", "http://x", 7, "", "passage: "
    )


def test_the_id_of_a_model_depends_on_everything_that_changes_its_vectors() -> None:
    plain = Model("openai", "m", 8)

    assert plain.id == Model("openai", "m", 8, contextual=False, url="http://x").id
    others = {
        Model("ollama", "m", 8).id,
        Model("openai", "n", 8).id,
        Model("openai", "m", 9).id,
        Model("openai", "m", 8, query_prefix="q: ").id,
        Model("openai", "m", 8, document_prefix="q: ").id,
        Model("openai", "m", 8, revision="2").id,
    }
    assert len(others | {plain.id}) == 7


def test_a_key_is_sent_to_its_own_origin_only() -> None:
    settings = EmbeddingSettings(
        provider="openai",
        url="https://one.test/v1",
        model="m",
        api_key=SecretStr("one"),
    )

    assert key_for("https://one.test/elsewhere", settings) == "one"
    assert key_for("https://two.test/v1", settings) is None
    assert key_for("http://one.test/v1", settings) is None
    assert key_for("https://one.test:8443/v1", settings) is None
    assert key_for("https://one.test.evil.test/v1", settings) is None


def test_the_address_in_the_settings_overrides_the_one_in_the_database() -> None:
    settings = EmbeddingSettings(
        provider="openai", url="http://from-here:1/v1", model="m"
    )

    assert (
        url_of(ModelChoice("openai", "m", "http://from-there:1/v1"), settings)
        == "http://from-here:1/v1"
    )
    assert (
        url_of(ModelChoice("openai", "other", "http://from-there:1/v1"), settings)
        == "http://from-there:1/v1"
    )


def test_a_bundled_model_of_another_version_is_not_replaced_by_this_one(
    tmp_path: Path,
) -> None:
    with pytest.raises(EmbedderUnavailable, match="does not contain"):
        build_embedder(
            ModelChoice("bundled", "wordllama-older"), EmbeddingSettings(), tmp_path
        )


@pytest.mark.parametrize(
    ("provider", "needed"),
    [("openai", "url and model"), ("ollama", "model"), ("fastembed", "model")],
)
def test_a_provider_without_a_model_is_an_invalid_setting(
    provider: Any, needed: str
) -> None:
    with pytest.raises(ConfigInvalid, match=needed):
        configured_embedder(
            EmbeddingSettings(
                provider=provider, url="http://x" if provider == "openai" else None
            )
        )


def test_joined_pieces_are_the_text_and_no_piece_exceeds_the_limit() -> None:
    text = "one two three four five six seven eight nine ten " * 20

    found = split_text(text, 100)

    assert "".join(found) == text
    assert max(map(len, found)) <= 100
    assert split_text("short", 100) == ["short"]
    assert split_text("x" * 250, 100) == ["x" * 84, "x" * 84, "x" * 82]


def test_pieces_are_weighted_by_their_length() -> None:
    vectors = np.array([[1, 0], [0, 1], [1, 0]], dtype=np.float32)

    found = average_pieces(vectors, [["aaa", "b"], ["c"]])

    assert np.allclose(found[0], np.array([3, 1]) / np.sqrt(10))
    assert np.allclose(found[1], [1, 0])


class TextEmbedding:
    """Interface of fastembed with a model that counts letters, because tests do not download models."""

    cached: ClassVar[set[str]] = set()

    def __init__(
        self,
        model_name: str,
        cache_dir: str | None = None,
        local_files_only: bool = False,
    ) -> None:
        self.model_name = model_name
        if local_files_only and model_name not in self.cached:
            raise ValueError("Could not load model from any source.")
        self.cached.add(model_name)

    @classmethod
    def list_supported_models(cls) -> list[dict[str, Any]]:
        return [{"model": "BAAI/bge-small-en-v1.5", "dim": 4, "size_in_GB": 0.067}]

    def passage_embed(
        self, texts: Iterable[str], batch_size: int = 256
    ) -> Iterator[np.ndarray[Any, Any]]:
        for text in texts:
            yield np.array([text.count(letter) for letter in "aeio"], dtype=np.float32)

    def query_embed(
        self, texts: Iterable[str], batch_size: int = 256
    ) -> Iterator[np.ndarray[Any, Any]]:
        yield from self.passage_embed(texts, batch_size)


@pytest.fixture
def fastembed(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("fastembed")
    module.TextEmbedding = TextEmbedding  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fastembed", module)
    TextEmbedding.cached.clear()


@pytest.mark.usefixtures("fastembed")
async def test_a_local_model_is_downloaded_by_the_command_only(tmp_path: Path) -> None:
    settings = EmbeddingSettings(provider="fastembed", model="BAAI/bge-small-en-v1.5")
    embedder = configured_embedder(settings, tmp_path)
    assert embedder is not None
    with pytest.raises(EmbedderUnavailable, match="not on this machine") as failed:
        await embedder.embed(["a text"])
    assert "folklore embeddings fetch" in str(failed.value)

    load("BAAI/bge-small-en-v1.5", tmp_path, fetch=True)
    found = await embedder.embed(["a text", "about the sea"])
    model = await embedder.model()

    assert found.shape == (2, 4)
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0)
    assert (model.provider, model.dimensions) == ("fastembed", 4)
    assert model.query_prefix.startswith("Represent this sentence")
    await embedder.close()


@pytest.mark.usefixtures("fastembed")
async def test_a_model_unknown_to_fastembed_raises_embedder_unavailable(
    tmp_path: Path,
) -> None:
    with pytest.raises(EmbedderUnavailable, match="knows no model"):
        await build_embedder(
            ModelChoice("fastembed", "unknown/model"), EmbeddingSettings(), tmp_path
        ).model()


async def test_a_missing_package_is_reported_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)

    with pytest.raises(
        EmbedderUnavailable, match="fastembed is not installed"
    ) as failed:
        await build_embedder(
            ModelChoice("fastembed", "bge"), EmbeddingSettings(), tmp_path
        ).model()

    assert "pip install" in str(failed.value)
