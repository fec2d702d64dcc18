"""What is known of models by their names: the prefixes they were trained with, and how much they read."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Habits:
    """How a model wants to be asked. `max_tokens` is None where nobody knows."""

    query_prefix: str = ""
    document_prefix: str = ""
    max_tokens: int | None = None


_SEARCH = "Represent this sentence for searching relevant passages: "
_TASK = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "

# From the models' own cards. The first pattern that is found in a name, in lower case, holds; names come as
# "intfloat/e5-large-v2", "nomic-embed-text:latest", "BAAI/bge-base-en-v1.5" or "text-embedding-3-small".
_KNOWN: tuple[tuple[str, Habits], ...] = (
    (r"e5-.*instruct", Habits(_TASK, "", 512)),
    (r"e5-mistral", Habits(_TASK, "", 4096)),
    (r"\be5-(small|base|large)|multilingual-e5", Habits("query: ", "passage: ", 512)),
    (r"bge-m3|bge-multilingual", Habits("", "", 8192)),
    (r"bge-.*-zh", Habits("为这个句子生成表示以用于检索相关文章：", "", 512)),
    (r"bge-(small|base|large)", Habits(_SEARCH, "", 512)),
    (r"nomic-embed-(text|v)|modernbert-embed", Habits("search_query: ", "search_document: ", 2048)),
    (r"mxbai-embed-(large|2d)", Habits(_SEARCH, "", 512)),
    (r"mxbai-embed-xsmall", Habits(_SEARCH, "", 4096)),
    (r"arctic-embed.*(v2|2\.0)|arctic-embed2", Habits("query: ", "", 8192)),
    (r"arctic-embed-m-long", Habits(_SEARCH, "", 2048)),
    (r"arctic-embed", Habits(_SEARCH, "", 512)),
    (r"jina-embeddings-v4", Habits("Query: ", "Passage: ", 8192)),
    (
        r"jina-embeddings-v3",
        Habits(
            "Represent the query for retrieving evidence documents: ", "Represent the document for retrieval: ", 8192
        ),
    ),
    (r"jina-embeddings-v2", Habits("", "", 8192)),
    (r"gte-qwen|gte-.*instruct", Habits(_TASK, "", 8192)),
    (r"gte-(small|base|large)$", Habits("", "", 512)),
    (r"gte-", Habits("", "", 8192)),
    (r"qwen3-embedding", Habits(_TASK.rstrip(" "), "", 8192)),
    (r"embeddinggemma|embedding-gemma", Habits("task: search result | query: ", "title: none | text: ", 2048)),
    (r"uae-large", Habits(_SEARCH, "", 512)),
    (r"granite-embedding", Habits("", "", 512)),
    (r"all-minilm|paraphrase-", Habits("", "", 256)),
    (r"all-mpnet|multi-qa-mpnet", Habits("", "", 384)),
    (r"text-embedding-(3|ada)", Habits("", "", 8191)),
    (r"mistral-embed|codestral-embed", Habits("", "", 8192)),
    (r"voyage-", Habits("", "", 32000)),
)


def habits(name: str) -> Habits:
    """What is known of a model of this name; nothing for one that is not."""
    lower = name.lower()
    return next((held for pattern, held in _KNOWN if re.search(pattern, lower)), Habits())
