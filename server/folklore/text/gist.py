"""What a group of texts has in common, said without a model: the words that tell it apart, and how each text begins."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_WORD = re.compile(r"[^\W_](?:[\w.+#/:-]*[\w+#])?")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")
_SHORTEST_WORD = 3
_CANDIDATES = 64
_KEYWORDS = 8
_SENTENCE = 200


def shared_words(texts: Sequence[str]) -> dict[str, float]:
    """Words that stand in at least two of the texts, with the share of texts that hold each; the most shared first.

    A word is written as it is written most often; numbers alone and short words say nothing.
    """
    spellings: dict[str, dict[str, int]] = {}
    holders: dict[str, set[int]] = {}
    for place, text in enumerate(texts):
        for word in _WORD.findall(text):
            folded = word.casefold()
            if len(word) >= _SHORTEST_WORD and not word.replace(".", "").isdigit():
                holders.setdefault(folded, set()).add(place)
                counts = spellings.setdefault(folded, {})
                counts[word] = counts.get(word, 0) + 1
    shared = [word for word, places in holders.items() if len(places) > 1]
    shared.sort(key=lambda word: (-len(holders[word]), word))
    return {
        min(spellings[word], key=lambda form: (-spellings[word][form], form)): len(holders[word]) / len(texts)
        for word in shared[:_CANDIDATES]
    }


def keywords(shared: Mapping[str, float], rarity: Mapping[str, float]) -> list[str]:
    """The words that tell the group apart: shared within, rare outside (`rarity`, 0 or more); at most eight."""
    scored = {word: share * rarity.get(word, 0.0) for word, share in shared.items()}
    best = sorted((word for word, score in scored.items() if score > 0), key=lambda word: (-scored[word], word))
    return best[:_KEYWORDS]


def leading_sentence(text: str) -> str:
    """How a text begins: its first sentence or line, cut between words if it is long."""
    first = " ".join(_SENTENCE_END.split(text.strip(), maxsplit=1)[0].split())
    if len(first) <= _SENTENCE:
        return first
    return first[:_SENTENCE].rsplit(" ", 1)[0].rstrip(",;:") + " …"


def gist(texts: Sequence[str], words: Sequence[str]) -> str:
    """The group in a few lines: its keywords, then how each text begins, each beginning once."""
    about = f" about {', '.join(words)}" if words else ""
    beginnings = dict.fromkeys(leading_sentence(text) for text in texts)
    return "\n".join([f"{len(texts)} memories{about}:", *(f"- {line}" for line in beginnings if line)])
