"""From settings values to an embedder."""

from __future__ import annotations

from folklore.config import EmbeddingSettings
from folklore.embedding.embedder import Embedder
from folklore.errors import ConfigInvalid


def choose(settings: EmbeddingSettings) -> Embedder | None:
    """The embedder of this name; None for `none` (keyword only). Raises ConfigInvalid for one that is not built in."""
    provider = settings.provider
    if provider == "none":
        return None
    if provider == "bundled":
        from folklore.embedding.bundled import BundledEmbedder

        return BundledEmbedder()
    if provider == "openai":
        from folklore.embedding.openai import Endpoint, OpenAIEmbedder

        if settings.url is None or settings.model is None:
            raise ConfigInvalid("embedding", "the openai provider needs url and model.", hint="Set both.")
        key = settings.api_key.get_secret_value() if settings.api_key else None
        return OpenAIEmbedder(
            Endpoint(
                settings.url, settings.model, key, settings.dimensions, settings.timeout_seconds, settings.batch_size
            )
        )
    raise ConfigInvalid("embedding.provider", f"{provider} is not offered yet.", hint="Use bundled, openai or none.")
