"""From what settings or the store name to an embedder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from folklore.config import EmbeddingSettings
from folklore.embedding.model_profiles import Habits, habits
from folklore.embedding.protocol import Embedder
from folklore.errors import ConfigInvalid, EmbedderUnavailable


@dataclass(frozen=True, slots=True)
class Choice:
    """Which model, never with a key. `dimensions` is the size asked for, None for the model's own."""

    provider: str
    name: str
    url: str | None = None
    dimensions: int | None = None
    query_prefix: str = ""
    document_prefix: str = ""
    revision: str = ""

    @property
    def label(self) -> str:
        """Its name for people."""
        return f"{self.provider}/{self.name}"


def wanted(settings: EmbeddingSettings) -> Choice | None:
    """The model that settings name, with the prefixes known for it; None for `none`. Raises ConfigInvalid."""
    provider = settings.provider
    if provider == "none":
        return None
    if provider == "bundled":
        from folklore.embedding.bundled import MODEL

        return Choice("bundled", MODEL.name)
    url = settings.url
    if provider == "ollama" and url is None:
        from folklore.embedding.ollama import DEFAULT_URL

        url = DEFAULT_URL
    if provider == "openai" and (url is None or settings.model is None):
        raise ConfigInvalid("embedding", "the openai provider needs url and model.", hint="Set both.")
    if settings.model is None:
        raise ConfigInvalid("embedding.model", f"the {provider} provider needs one.", hint="Set embedding.model.")
    known = habits(settings.model)
    if provider == "openai" and url is not None:
        from folklore.embedding.openai import tells_apart

        known = Habits(max_tokens=known.max_tokens) if tells_apart(url) else known
    return Choice(
        provider,
        settings.model,
        None if provider == "fastembed" else url,
        settings.dimensions,
        known.query_prefix if settings.query_prefix is None else settings.query_prefix,
        known.document_prefix if settings.document_prefix is None else settings.document_prefix,
    )


def build(choice: Choice, settings: EmbeddingSettings, home: Path) -> Embedder:
    """The embedder of a model, reached as this process's settings say. Raises ConfigInvalid, EmbedderUnavailable."""
    max_tokens = settings.max_tokens or habits(choice.name).max_tokens
    if choice.provider == "bundled":
        from folklore.embedding.bundled import MODEL, BundledEmbedder

        if choice.name != MODEL.name:
            raise EmbedderUnavailable(
                f"This version of Folklore does not carry the bundled model {choice.name}.",
                hint="Run `folklore embeddings switch` to the one it carries.",
            )
        return BundledEmbedder()
    if choice.provider == "fastembed":
        from folklore.embedding.fastembed import FastembedEmbedder

        return FastembedEmbedder(
            choice.name,
            models_folder(home),
            query_prefix=choice.query_prefix,
            document_prefix=choice.document_prefix,
            revision=choice.revision,
            max_tokens=max_tokens,
        )
    from folklore.embedding.http_embedder import Endpoint
    from folklore.embedding.ollama import ollama_embedder
    from folklore.embedding.openai import openai_embedder

    url = way_to(choice, settings)
    if url is None:
        raise EmbedderUnavailable(f"Nobody says where {choice.label} is.", hint="Set embedding.url.")
    endpoint = Endpoint(
        url,
        choice.name,
        key_for(url, settings),
        choice.dimensions,
        settings.timeout_seconds,
        settings.batch_size,
        settings.concurrency,
        choice.query_prefix,
        choice.document_prefix,
        choice.revision,
        max_tokens,
    )
    return ollama_embedder(endpoint) if choice.provider == "ollama" else openai_embedder(endpoint)


def choose(settings: EmbeddingSettings, home: Path = Path()) -> Embedder | None:
    """The embedder that settings name; None for `none` (keyword only). Raises ConfigInvalid, EmbedderUnavailable."""
    choice = wanted(settings)
    return None if choice is None else build(choice, settings, home)


def way_to(choice: Choice, settings: EmbeddingSettings) -> str | None:
    """The address of a model from here: the settings' own if they name the same model, else the one it came with."""
    if (settings.provider, settings.model) == (choice.provider, choice.name) and settings.url is not None:
        return settings.url
    return choice.url


def key_for(url: str, settings: EmbeddingSettings) -> str | None:
    """The key that settings hold for this very origin; a key is never sent to another, whatever a store may name."""
    for address, key in settings.keys.items():
        if _origin(address) == _origin(url):
            return key.get_secret_value()
    if settings.api_key is not None and settings.url is not None and _origin(settings.url) == _origin(url):
        return settings.api_key.get_secret_value()
    return None


def models_folder(home: Path) -> Path:
    """Where models that were fetched are kept."""
    return home / "models"


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url if "//" in url else f"//{url}")
    scheme = parts.scheme or "https"
    return scheme, parts.hostname, parts.port or {"https": 443, "http": 80}.get(scheme)
