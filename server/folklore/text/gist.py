"""Gist of a group of texts without a model: the words that distinguish the group, and the beginning of each text."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

_WORD = re.compile(r"[^\W_](?:[\w.+#/:-]*[\w+#])?")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")
_MIN_WORD_LENGTH = 3
_MAX_SHARED_WORDS = 64
_MAX_KEYWORDS = 8
_MAX_SENTENCE_LENGTH = 200


def shared_words(texts: Sequence[str]) -> dict[str, float]:
    """Return the words of at least two texts with the share of texts that contain each, the largest share first.

    Each word has its most frequent spelling. Numbers and words of one or two letters are left out.
    """
    spellings: dict[str, Counter[str]] = {}
    texts_with: Counter[str] = Counter()
    for text in texts:
        folded_words: set[str] = set()
        for word in _WORD.findall(text):
            if len(word) >= _MIN_WORD_LENGTH and not word.replace(".", "").isdigit():
                folded = word.casefold()
                spellings.setdefault(folded, Counter())[word] += 1
                folded_words.add(folded)
        texts_with.update(folded_words)
    shared = [word for word, count in texts_with.items() if count > 1]
    shared.sort(key=lambda word: (-texts_with[word], word))
    return {
        _most_frequent(spellings[word]): texts_with[word] / len(texts)
        for word in shared[:_MAX_SHARED_WORDS]
    }


def _most_frequent(spellings: Mapping[str, int]) -> str:
    """Return the spelling with most uses, of equal ones the first by the alphabet."""
    return min(spellings, key=lambda spelling: (-spellings[spelling], spelling))


def keywords(shared: Mapping[str, float], rarity: Mapping[str, float]) -> list[str]:
    """Return at most eight words with the highest share * rarity; `rarity` (0 or more) is that of the whole corpus."""
    scores = {word: share * rarity.get(word, 0.0) for word, share in shared.items()}
    candidates = [word for word, score in scores.items() if score > 0]
    candidates.sort(key=lambda word: (-scores[word], word))
    return candidates[:_MAX_KEYWORDS]


def leading_sentence(text: str) -> str:
    """Return the first sentence or line of a text, cut between words if it is long."""
    first = " ".join(_SENTENCE_END.split(text.strip(), maxsplit=1)[0].split())
    if len(first) <= _MAX_SENTENCE_LENGTH:
        return first
    return first[:_MAX_SENTENCE_LENGTH].rsplit(" ", 1)[0].rstrip(",;:") + " …"


def gist(texts: Sequence[str], words: Sequence[str]) -> str:
    """Return a short text: the keywords of a group, then the leading sentence of each text without repetitions."""
    about = f" about {', '.join(words)}" if words else ""
    beginnings = dict.fromkeys(map(leading_sentence, texts))
    lines = [f"{len(texts)} memories{about}:"]
    lines += [f"- {line}" for line in beginnings if line]
    return "\n".join(lines)
