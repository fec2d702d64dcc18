"""Form in which a hook gives a memory: whole, as a headline, or not at all; and which memories an edit concerns.

In a blind trial of 150 prompts, plans were in accordance with the fact in 32 % without notes, 77 % with headlines and
86 % with the three best memories whole: a headline ends before its fact, and hardly ever is the rest read. A note beside
the point costs its tokens and little else.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal

Form = Literal["full", "headline"]
# Least confidence of a whole note, and of a headline, of a memory with cues and of one without.
# A headline is given only where some memory is worth a whole note. The header and a whole note take 70 tokens, and one
# that answers spares a wrong turn of some 700: worth it where about one in nine answers, or
# a little fewer, since a note beside the point does little harm. A headline is 13 tokens:
# worth it where one in fifty answers. A typed prompt has an answer more seldom than a question:
# of these scores with cues, one in nine and one in fifty are right. The text of a memory without
# cues shares few words with the tasks that it governs, so where none has any, scores are lower
# for the same chance.
FULL_WITH_CUES = 0.19
FULL_WITHOUT = 0.045
LIKELY_WITH_CUES = 0.019
LIKELY = 0.008
# Share of those with cues among what was found from which a memory without is held to their line.
_MOSTLY = 0.8
# Whole notes and headlines of one prompt.
_MOST_FULL = 3
_MOST_HEADLINES = 5
# The worth from which an edit concerns a memory, that of a tie to its folder, what more a word counts that the memory
# writes as code, and notes of one edit: four words that occur in one memory each are seldom shared by chance.
CONCERNED = 3.9
_FOLDER = 2.5
CODE = 0.5
MOST_OF_EDIT = 3
# Characters of a longest word in which a path is looked for, and patterns of a text that are compared.
_LONGEST_WORD = 1_000
_MOST_PATTERNS = 100
# A path with a folder in a text, or a pattern of files that have a folder and an ending.
_WRITTEN_PATH = re.compile(
    r"(?<![\w./*-])\w[\w.-]*/(?:[\w.*-]+/)*[\w*-]*\.?\w[\w.-]*(?![\w/*-])"
)
# Injections without any use after which a memory is given as a headline at most.
IGNORED = 4


def forms(
    confidences: Sequence[float],
    ignored: Sequence[bool],
    with_cues: Sequence[bool],
    cued_share: float,
) -> list[Form | None]:
    """Return the form of each memory, best first; None for one that is not given.

    `ignored` says which were given several times without a use, `with_cues` which have cues, and `cued_share` how many
    of all that were found have any, 0 to 1. Recall knows none of this.
    """
    worth_whole = []
    for confidence, has_cues in zip(confidences, with_cues, strict=True):
        worth_whole.append(is_worth_whole(confidence, has_cues, cued_share))
    if not any(worth_whole):
        return [None] * len(worth_whole)

    results: list[Form | None] = []
    facts = zip(confidences, ignored, with_cues, worth_whole, strict=True)
    for confidence, is_ignored, has_cues, is_whole in facts:
        least = least_confidence(LIKELY_WITH_CUES, LIKELY, has_cues, cued_share)
        may_be_whole = is_whole and not is_ignored
        if may_be_whole and results.count("full") < _MOST_FULL:
            results.append("full")
        elif confidence >= least and results.count("headline") < _MOST_HEADLINES:
            results.append("headline")
        else:
            results.append(None)
    return results


def is_worth_whole(confidence: float, with_cues: bool, cued_share: float) -> bool:
    """Return whether a memory is worth the tokens of a whole note, where this share of what was found has cues."""
    least = least_confidence(FULL_WITH_CUES, FULL_WITHOUT, with_cues, cued_share)
    return confidence >= least


def least_confidence(
    if_all_cued: float, if_none_cued: float, with_cues: bool, cued_share: float
) -> float:
    """Return the confidence that a memory needs, with cues or without, where this share of what was found has cues.

    The more memories say when they are needed, the less likely is one that does not: what it needs rises from
    `if_none_cued` to `if_all_cued`, which one with cues needs always.
    """
    if with_cues:
        return if_all_cued
    risen = min(cued_share / _MOSTLY, 1.0)
    return if_none_cued + (if_all_cued - if_none_cued) * risen


def edit_worth(
    shared_words: float, path: str, paths: Sequence[str], text: str
) -> float:
    """Return how nearly a memory concerns an edit, in words that no other memory has.

    `shared_words` is the weight of the words that both have, in the same unit: two words of half the weight of such a
    one count as one. A tie to the file itself is enough, as is its path in
    the memory's text, or a pattern of files such as `locales/*.json`. A tie to a folder above the file, or to another
    file of its folder, and the name of the file alone in the text count as some.
    """
    if path in paths or _writes_path(text, path):
        return shared_words + CONCERNED
    if _writes_name(text, path) or any(_is_near(path, other) for other in paths):
        return shared_words + _FOLDER
    return shared_words


def _writes_name(text: str, path: str) -> bool:
    """Return whether a text has the name of a file without its folder; not that of a file without an ending."""
    _, _, name = path.rpartition("/")
    if "." not in name:
        return False
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None


def _is_near(path: str, other: str) -> bool:
    """Return whether another path is a folder above a file, or in the folder of the file, which is not the root."""
    folder, _, _ = path.rpartition("/")
    other_folder, _, _ = other.rpartition("/")
    is_above = path.startswith(f"{other}/")
    return is_above or (folder != "" and folder == other_folder)


def _writes_path(text: str, path: str) -> bool:
    """Return whether a text has a path, or a pattern of files that fits it."""
    patterns = 0
    for word in text.split():
        if "/" not in word or len(word) > _LONGEST_WORD:
            continue
        for match in _WRITTEN_PATH.findall(word):
            written = match.rstrip(".")
            if written == path:
                return True
            if "*" in written and patterns < _MOST_PATTERNS:
                patterns += 1
                if fnmatchcase(path, written):
                    return True
    return False
