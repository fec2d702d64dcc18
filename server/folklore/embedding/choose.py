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
    raise ConfigInvalid(
        "embedding.provider", f"{provider} is not offered by this version.", hint="Use bundled or none."
    )
