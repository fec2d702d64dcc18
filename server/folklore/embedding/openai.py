"""Any endpoint that speaks OpenAI's embeddings route: OpenAI, Azure, LM Studio, vLLM, llama.cpp, TEI, Voyage, Jina …"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx

from folklore.embedding.http_embedder import Endpoint, RemoteEmbedder

# Two services tell questions from texts by a field of the request: (field, for a question, for a text).
_TOLD_APART = {
    "api.voyageai.com": ("input_type", "query", "document"),
    "api.jina.ai": ("task", "retrieval.query", "retrieval.passage"),
}
# Voyage gives the wanted size another name.
_SIZE = {"api.voyageai.com": "output_dimension"}


class OpenAIWire:
    """`{"model", "input": [...]}` to `{"data": [{"index", "embedding"}]}`."""

    provider = "openai"
    route = "embeddings"

    def request(self, endpoint: Endpoint, texts: Sequence[str], *, question: bool) -> Mapping[str, Any]:
        """The body, with the service's own fields where it has some."""
        host = _host(endpoint)
        body: dict[str, Any] = {"model": endpoint.model, "input": list(texts)}
        if endpoint.dimensions is not None:
            body[_SIZE.get(host, "dimensions")] = endpoint.dimensions
        if tells_apart(endpoint.url) and not (endpoint.query_prefix or endpoint.document_prefix):
            field, of_question, of_text = _TOLD_APART[host]
            body[field] = of_question if question else of_text
        return body

    def vectors(self, answer: Any) -> list[Any]:
        """By their index, which need not be the order of the answer."""
        entries = sorted(answer["data"], key=lambda entry: int(entry["index"]))
        if [entry["index"] for entry in entries] != list(range(len(entries))):
            raise ValueError("indices")
        return [entry["embedding"] for entry in entries]


def tells_apart(url: str) -> bool:
    """Whether the service at this address has a field for whether it is a question, and so needs no prefixes."""
    return urlsplit(url).hostname in _TOLD_APART


def openai_embedder(endpoint: Endpoint, transport: httpx.AsyncBaseTransport | None = None) -> RemoteEmbedder:
    """The embedder behind an OpenAI-compatible endpoint; its URL may end in /embeddings or before."""
    return RemoteEmbedder(OpenAIWire(), endpoint, transport)


def _host(endpoint: Endpoint) -> str:
    return urlsplit(endpoint.url).hostname or ""
