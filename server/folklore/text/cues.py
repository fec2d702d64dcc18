"""Cues of a memory: phrases that say when it is needed, in the words of who needs it."""

from collections.abc import Iterable, Sequence

from folklore.model import FIELDS
from folklore.text.clean import cleaned
from folklore.text.languages import FREQUENT_WORDS
from folklore.text.secrets.finder import SearchEnded, find
from folklore.text.words import separated

# Words with the same first letters count as one: deploy and deployed.
_STEM = 5
# Words that a question shares with a memory stored after it. Of 160 pairs of a prompt and its memory (prompts-dev) 28 %
# share two, of pairs with another memory of the project 3 %. The bundled model's cosine is no better at that rate.
_SHARED = 2
# Words with which people ask, beside the frequent ones of a language.
_ASKING = frozenset(
    "how what which who whose where when why do does did can could should would will shall must may i me my our us "
    "your their its there any some if into about many much "
    "wie was welche welcher welches welchen wer wo wann warum wieso kann können soll sollen muss müssen ich mir mich "
    "unser unsere gibt es zu an bei um "
    "comment quoi quel quelle quels quelles où quand pourquoi peut dois doit je mon notre nos "
    "cómo qué cuál cuáles quién dónde cuándo puede debe hay "
    "come cosa quale quali chi dove quando perché può deve "
    "como quê qual quais quem onde porquê pode deve há "
    "hoe wat welke wie waar wanneer waarom kan moet ons onze "
    "hur vad vilken vilka vem var när varför kan ska".split()
)
_FENCES = ("```", "~~~")


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
        others = [cue for cue in candidates if cue not in chosen]
        best = max(others, key=lambda cue: len(words[cue] - known))
        chosen.append(best)
        known |= words[best]
    return tuple(cue for cue in candidates if cue in chosen)


def phrase(text: str) -> str | None:
    """Return a text as one line that can be a cue; None if it is too long, or has a secret or a fence."""
    line = " ".join(str(cleaned(text)).split())
    too_long = len(line) > FIELDS["cues"].limit
    if not line or too_long or any(fence in line for fence in _FENCES):
        return None
    try:
        return None if find(line) else line
    except SearchEnded:
        return None


def fits(question: str, text: str) -> bool:
    """Return whether a question is about a text: they share two words that are not frequent ones."""
    return len(_stems(question) & _stems(text)) >= _SHARED


def brings_words(question: str, known: Iterable[str]) -> bool:
    """Return whether a question has a word, not a frequent one, that none of the known texts has."""
    return bool(_stems(question).difference(*map(_stems, known)))


def with_learned(
    cues: Sequence[str], learned: Sequence[str], question: str, answers: Sequence[int]
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return cues and learned cues with a question among both; None if there is no room for it.

    Of eight cues the learned one that the fewest answers had leaves, the oldest of equal ones; `answers` has how many
    each of `learned` had.
    Of the learned ones that were removed the latest are kept.
    """
    most = FIELDS["cues"].most
    present = [cue for cue in learned if cue in cues]
    removed = [cue for cue in learned if cue not in cues]
    others = list(cues)
    if len(others) >= most:
        if not present:
            return None
        answers_of = dict(zip(learned, answers, strict=True))
        least_answering = min(present, key=answers_of.__getitem__)
        others.remove(least_answering)
        present.remove(least_answering)
    latest_removed = removed[-(FIELDS["learned_cues"].most - most) :]
    return (*others, question), (*latest_removed, *present, question)


def _stems(text: str) -> frozenset[str]:
    words = set(separated(text)) - FREQUENT_WORDS - _ASKING
    return frozenset(word[:_STEM] for word in words if len(word) > 1)
