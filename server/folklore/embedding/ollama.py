"""Request format of Ollama's own route, which rejects a text that is too long; its OpenAI route truncates the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from folklore.embedding.protocol import ModelChoice

DEFAULT_URL = "http://localhost:11434"


class OllamaFormat:
    """`{"model", "input": [...], "truncate": false}` to `{"embeddings": [[…]]}`."""

    route = "api/embed"
    endings: tuple[str, ...] = ("/api/embed", "/api", "/v1")

    def request(self, choice: ModelChoice, texts: Sequence[str], *, question: bool) -> Mapping[str, Any]:
        """Return the body of a request. Questions and texts differ by their prefixes only."""
        del question
        body: dict[str, Any] = {"model": choice.name, "input": list(texts), "truncate": False}
        if choice.dimensions is not None:
            body["dimensions"] = choice.dimensions
        return body

    def vectors(self, answer: Any) -> list[Any]:
        """Return the vectors, which are in the order of the request."""
        return list(answer["embeddings"])
