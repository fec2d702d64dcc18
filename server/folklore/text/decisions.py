"""Sentences that say that something was decided, found out or preferred: what is worth storing."""

from __future__ import annotations

import re

from folklore.text.words import is_question

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_CHOICE = r"(?:use|go with|stick (?:with|to)|switch to|move to|adopt|standardi[sz]e on|keep using|settle on)"
_CUES = re.compile(
    r"\b(?:"
    # a decision
    rf"(?:let'?s|let us|we(?:'ll| will| should| are going to)?|i'?ll|i will) {_CHOICE}"
    r"|(?:we|i|you|the team|it was|has been|have) (?:have |has |finally |all )?"
    r"(?:decided|agreed|settled|opted|chose|chosen)"
    r"|decision(?: is| was)?:|the decision (?:is|was)|decided (?:to|on|against|that)"
    # a convention or preference
    r"|from now on|by convention|our convention|(?:always|never) (?:use|run|put|write|commit|call|deploy|add|make|push|"
    r"merge|name|keep|store|import|test|do)"
    r"|(?:i|we) prefer|prefers? .{1,60} (?:over|to)\b"
    # a cause that was found
    r"|root cause|(?:cause|reason|culprit|problem|bug|issue) (?:was|turned out)|turned out (?:to be|that)|was caused by"
    r")",
    re.IGNORECASE,
)


def sounds_decided(text: str) -> bool:
    """Return whether a sentence that is no question says that something was decided, found out or preferred.

    A few fixed phrases in English: a request to store comes once in a session at most, so that one too few does less
    harm than one too many.
    """
    return any(_CUES.search(part) and not is_question(part) for part in _SENTENCE.split(text.replace("\u2019", "'")))
