"""Formats of the requests and answers of embedding services: OpenAI's route, which most share, and Ollama's own."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from folklore.embedding.protocol import ModelChoice

OLLAMA_URL = "http://localhost:11434"
# Two services mark questions and texts by a field of the request instead of prefixes: (field, question, text).
_INPUT_TYPE = {
    "api.voyageai.com": ("input_type", "query", "document"),
    "api.jina.ai": ("task", "retrieval.query", "retrieval.passage"),
}
# Voyage has its own name for the requested size.
_SIZE = {"api.voyageai.com": "output_dimension"}


class OpenAIFormat:
    """`{"model", "input": [...]}` to `{"data": [{"index", "embedding"}]}`: OpenAI, Azure, vLLM, TEI, Voyage and others.

    `endings` are those of a URL that users may write.
    """

    route = "embeddings"
    endings: tuple[str, ...] = ("/embeddings",)

    def __init__(self, url: str) -> None:
        self._host = urlsplit(url).hostname or ""

    def request(
        self, choice: ModelChoice, texts: Sequence[str], *, question: bool
    ) -> Mapping[str, Any]:
        """Return the body of a request, with the fields that the service adds to OpenAI's."""
        body: dict[str, Any] = {"model": choice.name, "input": list(texts)}
        if choice.dimensions is not None:
            body[_SIZE.get(self._host, "dimensions")] = choice.dimensions
        if self._host in _INPUT_TYPE and not (
            choice.query_prefix or choice.document_prefix
        ):
            field, of_question, of_text = _INPUT_TYPE[self._host]
            body[field] = of_question if question else of_text
        return body

    def vectors(self, answer: Any) -> list[Any]:
        """Return the vectors in the order of the texts. Raises ValueError, KeyError or TypeError."""
        entries = sorted(answer["data"], key=lambda entry: int(entry["index"]))
        if [entry["index"] for entry in entries] != list(range(len(entries))):
            raise ValueError("indices")
        return [entry["embedding"] for entry in entries]


class OllamaFormat(OpenAIFormat):
    """Ollama's own route, which rejects a text that is too long; its OpenAI route truncates the text."""

    route = "api/embed"
    endings = ("/api/embed", "/api", "/v1")

    def request(
        self, choice: ModelChoice, texts: Sequence[str], *, question: bool
    ) -> Mapping[str, Any]:
        """Return the body of a request."""
        return {**super().request(choice, texts, question=question), "truncate": False}

    def vectors(self, answer: Any) -> list[Any]:
        """Return the vectors, which are in the order of the request."""
        return list(answer["embeddings"])


def has_input_type(url: str) -> bool:
    """Return true if the service at this address has a field for questions, and so needs no prefixes."""
    return urlsplit(url).hostname in _INPUT_TYPE
