"""Keep an answer within the tokens its reader can spare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from folklore.model import Recalled
from folklore.text import tokens

# What a result costs beside its text: its id, namespace, kind, time.
_ENVELOPE = 30


def within_budget(results: Sequence[Recalled], max_tokens: int | None) -> tuple[list[Recalled], bool]:
    """The leading results that fit, and whether any was left out or shortened.

    A result whose text does not fit is given by its summary if it has one. The first always fits: it is cut if it must.
    """
    if max_tokens is None:
        return list(results), False
    kept: list[Recalled] = []
    left = max_tokens
    cut = False
    for result in results:
        room = left - _ENVELOPE
        text = result.memory.content
        if tokens.estimate(text) > room and result.memory.summary is not None:
            text = result.memory.summary
        if tokens.estimate(text) > room:
            if kept:
                return kept, True
            text = tokens.fit(text, max(room, 1))
        if text is not result.memory.content:
            cut = True
            result = replace(result, memory=replace(result.memory, content=text))
        kept.append(result)
        left -= _ENVELOPE + tokens.estimate(text)
    return kept, cut
