"""Profiles of known models, by name: the prefixes they were trained with, and the longest text they read."""

import re
from dataclasses import dataclass

# English prose has four characters per token; code and other languages have fewer.
CHARACTERS_PER_TOKEN = 3.2


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """Prefixes for questions and texts, and the longest text in tokens, None if unknown."""

    query_prefix: str = ""
    document_prefix: str = ""
    max_tokens: int | None = None


# The model of embedding/bundled.py.
BUNDLED = "wordllama-l2_supercat-lower-sqrt"
# Characters of a passage, and of the texts that have some, for models that show one fact only in a short passage, and
# the subject of a text best in the whole of it: with the bundled one, and passages from 2,000 characters on, one of
# eight sets lost 2 points of R@10. So MiniLM finds 18 of 20 facts late in 20,000 characters, and 10 in passages of 819.
_OF_ONE_FACT = (200, 4_000)
# Characters of a passage for a model that reads in context: a few paragraphs.
_PASSAGE = 1_600

_SEARCH = "Represent this sentence for searching relevant passages: "
_EVIDENCE = "Represent the query for retrieving evidence documents: "
_TASK = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "

# From the models' own cards. The first pattern that matches a part of the name in lower case applies. Names have forms
# such as "intfloat/e5-large-v2", "nomic-embed-text:latest" and "text-embedding-3-small".
_PROFILES: tuple[tuple[str, ModelProfile], ...] = (
    (r"e5-.*instruct", ModelProfile(_TASK, "", 512)),
    (r"e5-mistral", ModelProfile(_TASK, "", 4096)),
    (
        r"\be5-(small|base|large)|multilingual-e5",
        ModelProfile("query: ", "passage: ", 512),
    ),
    (r"bge-m3|bge-multilingual", ModelProfile("", "", 8192)),
    (r"bge-.*-zh", ModelProfile("为这个句子生成表示以用于检索相关文章：", "", 512)),
    (r"bge-(small|base|large)", ModelProfile(_SEARCH, "", 512)),
    (
        r"nomic-embed-(text|v)|modernbert-embed",
        ModelProfile("search_query: ", "search_document: ", 2048),
    ),
    (r"mxbai-embed-(large|2d)", ModelProfile(_SEARCH, "", 512)),
    (r"mxbai-embed-xsmall", ModelProfile(_SEARCH, "", 4096)),
    (r"arctic-embed.*(v2|2\.0)|arctic-embed2", ModelProfile("query: ", "", 8192)),
    (r"arctic-embed-m-long", ModelProfile(_SEARCH, "", 2048)),
    (r"arctic-embed", ModelProfile(_SEARCH, "", 512)),
    (r"jina-embeddings-v4", ModelProfile("Query: ", "Passage: ", 8192)),
    (
        r"jina-embeddings-v3",
        ModelProfile(_EVIDENCE, "Represent the document for retrieval: ", 8192),
    ),
    (r"jina-embeddings-v2", ModelProfile("", "", 8192)),
    (r"gte-qwen|gte-.*instruct", ModelProfile(_TASK, "", 8192)),
    (r"gte-(small|base|large)$", ModelProfile("", "", 512)),
    (r"gte-", ModelProfile("", "", 8192)),
    (r"qwen3-embedding", ModelProfile(_TASK.rstrip(" "), "", 8192)),
    (
        r"embeddinggemma|embedding-gemma",
        ModelProfile("task: search result | query: ", "title: none | text: ", 2048),
    ),
    (r"uae-large", ModelProfile(_SEARCH, "", 512)),
    (r"granite-embedding", ModelProfile("", "", 512)),
    (r"all-minilm|paraphrase-", ModelProfile("", "", 256)),
    (r"all-mpnet|multi-qa-mpnet", ModelProfile("", "", 384)),
    (r"text-embedding-(3|ada)", ModelProfile("", "", 8191)),
    (r"mistral-embed|codestral-embed", ModelProfile("", "", 8192)),
    (r"voyage-", ModelProfile("", "", 32000)),
)


def profile_of(name: str) -> ModelProfile:
    """Return the profile of a model; an empty one for an unknown name."""
    lower = name.lower()
    return next(
        (profile for pattern, profile in _PROFILES if re.search(pattern, lower)),
        ModelProfile(),
    )


def passage_rule(name: str, characters: int) -> tuple[int, int]:
    """Return the usual length of a passage in a text of so many characters, and the length beyond which it has some.

    A passage fits into the window of the model, and a text that the model reads nearly whole has none.
    """
    if name == BUNDLED or (
        "all-minilm" in name.lower() and characters > _OF_ONE_FACT[1]
    ):
        return _OF_ONE_FACT
    size = _PASSAGE
    if (max_tokens := profile_of(name).max_tokens) is not None:
        size = min(size, int(max_tokens * CHARACTERS_PER_TOKEN))
    return size, 2 * size
