"""Ollama's own route, which tells a text that is too long instead of cutting it silently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import httpx

from folklore.embedding.http_embedder import Endpoint, RemoteEmbedder

DEFAULT_URL = "http://localhost:11434"


class OllamaWire:
    """`{"model", "input": [...], "truncate": false}` to `{"embeddings": [[…]]}`."""

    provider = "ollama"
    route = "api/embed"

    def request(self, endpoint: Endpoint, texts: Sequence[str], *, question: bool) -> Mapping[str, Any]:
        """The body. A question and a text differ by their prefixes alone."""
        del question
        body: dict[str, Any] = {"model": endpoint.model, "input": list(texts), "truncate": False}
        if endpoint.dimensions is not None:
            body["dimensions"] = endpoint.dimensions
        return body

    def vectors(self, answer: Any) -> list[Any]:
        """In the order asked."""
        return list(answer["embeddings"])


def ollama_embedder(endpoint: Endpoint, transport: httpx.AsyncBaseTransport | None = None) -> RemoteEmbedder:
    """The embedder behind an Ollama; an address that ends in /v1 or /api is taken for the server's."""
    url = endpoint.url.rstrip("/")
    for ending in ("/v1", "/api"):
        url = url.removesuffix(ending)
    return RemoteEmbedder(OllamaWire(), replace(endpoint, url=url), transport)
