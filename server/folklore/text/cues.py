"""Cues of a memory: phrases that say when it is needed, in the words of who needs it."""

from collections.abc import Iterable, Sequence

from folklore.text.words import separated


def distinct(phrases: Iterable[str]) -> tuple[str, ...]:
    """Return phrases without repetitions, whatever their case, in the order given."""
    by_words: dict[str, str] = {}
    for phrase in phrases:
        by_words.setdefault(phrase.casefold(), phrase)
    return tuple(by_words.values())


def as_text(cues: Sequence[str]) -> str:
    """Return cues as the one text of which their vector is made."""
    return ". ".join(cues)


def united(cues: Iterable[str], content: str, most: int) -> tuple[str, ...]:
    """Return at most `most` of these cues: those that bring most new words.

    New is a word that neither the content nor a cue chosen before has. Of equal ones the
    first is chosen; the chosen ones keep their order.
    """
    candidates = list(distinct(cues))
    if len(candidates) <= most:
        return tuple(candidates)
    known = set(separated(content))
    words = {cue: set(separated(cue)) for cue in candidates}
    chosen: list[str] = []
    while len(chosen) < most:
        left = [cue for cue in candidates if cue not in chosen]
        best = max(left, key=lambda cue: len(words[cue] - known))
        chosen.append(best)
        known |= words[best]
    return tuple(cue for cue in candidates if cue in chosen)
