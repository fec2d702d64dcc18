"""Comparison of the subjects of two memories: of two on one subject the newer may replace the older.

A decision and its reversal share the thing that they decide, in their texts or in the cues that say when they are
needed. Of 24 reversed pairs of four projects, 22 to 24 lie above the line, by either model, and of other memories one
in twenty with the nearest of its project.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache

from folklore.text.words import separated

# Likeness from which two memories are on one subject, and what sharing all words adds to a cosine of 1: the words of a
# subject are few among those of two texts.
SAME = 0.75
_SHARED = 2.0
# Least cosine of two memories that are compared by words.
COMPARED = 0.25
# Likeness from which the newer is taken to replace the older, before it or in its place, and not only asked about as
# at a store: of the pairs above all but one lie from .86 on, by either model, of 1,560 others three (MiniLM) or none.
REPLACED = 0.85
# Likeness from which it replaces one whose subject it does not name, and the share of the
# letters of their cues that both hold: then they are needed in the same situation. Of the
# pairs above, all but one that do not name the subject have both; no other pair of a project
# has more than .99 or .24, by either model.
_NEARLY_SAME = 1.0
_SAME_NEED = 0.25
# A word weighs its letters beyond the second, up to so many: short words are common in every language.
_SHORTEST = 2
_LONGEST = 8


@lru_cache(2_000)
def subject_words(content: str, cues: Sequence[str] = ()) -> frozenset[str]:
    """Return the words of a text and its cues that say what it is about."""
    words = separated("\n".join((content, *cues)))
    return frozenset(word for word in words if len(word) > _SHORTEST)


def likeness_of(
    cosine: float, words: frozenset[str], other_words: frozenset[str]
) -> float:
    """Return how nearly two memories are on one subject, up to 3.

    It is the cosine of their texts, and up to 2 for the share of their words that both have, by letters.
    """
    shared = _letters(words & other_words)
    together = _all_letters(words) + _all_letters(other_words) - shared
    if not together:
        return cosine
    return cosine + _SHARED * shared / together


def names_subject(
    older: str, older_cues: Sequence[str], newer_words: frozenset[str]
) -> bool:
    """Return True if the words of a newer memory name the subject of an older one.

    The subject are the words which text and cues of the older both hold; half of them, by letters, name it. Two services
    have ports alike, but the cues of each name the service. Without cues nothing says which words matter.
    """
    subject = subject_words(older) & subject_words("", tuple(older_cues))
    if not subject:
        return False
    return 2 * _letters(subject & newer_words) >= _letters(subject)


def is_replaced(
    older: str,
    older_cues: Sequence[str],
    newer: str,
    newer_cues: Sequence[str],
    likeness: float,
) -> bool:
    """Return True if a newer memory of this likeness is on the subject of an older one.

    It names the subject, or both are nearly the same and are needed in the same situation: what
    is decided changes its names, as when one library gives way to another.
    """
    if likeness < REPLACED:
        return False
    newer_words = subject_words(newer, tuple(newer_cues))
    if names_subject(older, older_cues, newer_words):
        return True
    if likeness < _NEARLY_SAME:
        return False
    need = subject_words("", tuple(older_cues))
    newer_need = subject_words("", tuple(newer_cues))
    letters_of_all = max(_letters(need | newer_need), 1)
    return _letters(need & newer_need) >= _SAME_NEED * letters_of_all


@lru_cache(2_000)
def _all_letters(words: frozenset[str]) -> int:
    """Return the weight of the words of a memory, which are compared with those of many others."""
    return _letters(words)


def _letters(words: Collection[str]) -> int:
    """Return the weight of words: the letters of each beyond the second, six at most."""
    return sum(min(len(word), _LONGEST) - _SHORTEST for word in words)
