"""Words of a question as they are looked for in a text, with weights that do not depend on what else is stored."""

from __future__ import annotations

import math
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import islice, pairwise

from folklore.text.clean import nfc, normal_form
from folklore.text.dates.date_terms import date_terms, pieces_with_dates
from folklore.text.languages import detect

_MAX_WORDS = 64
# Pieces of a question that are read: of a long text only the beginning.
_MAX_PIECES = 2_000
# Pairs of letters of one run in a script without spaces.
_MAX_PAIRS = 200
# Places in a long text that are compared.
_MAX_PLACES = 500
_WORD = re.compile(r"[^\W_]+")
_NO_LETTER_BEFORE = r"(?<![^\W_])"
_NO_LETTER_AFTER = r"(?![^\W_])"
_LETTERS = r"[^\W_]*"
# English contractions: negations, which are function words whole, and what is no word of its own.
_CONTRACTION = re.compile(
    r"\b\w+n['\u2019]t\b|(?<=\w)['\u2019](?:s|ll|re|ve|m|d)\b", re.IGNORECASE
)
# Names in code with capitals within, and where their next part begins. They are where a text has "aA" if its letters
# are written as these: the regular expression takes thirty times as long for the whole text.
_CAMEL = re.compile(r"\b\w*?[a-z\d][A-Z]\w*")
_PART = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_CASES = bytes.maketrans(
    f"{string.ascii_lowercase}{string.digits}{string.ascii_uppercase}\t\n\v\f\r".encode(),
    b"a" * 36 + b"A" * 26 + b" " * 5,
)
_ACCENTS = re.compile("[\u0300-\u036f]+")
_SENTENCE_ENDS = ".?!:;"
# In bytes of UTF-8: str.translate takes ten times as long, and many times that for a character that is not ASCII.
_PUNCTUATION = bytes.maketrans(
    string.punctuation.encode(), b" " * len(string.punctuation)
)
_OTHER_PUNCTUATION = "\u2018\u2019\u201c\u201d\u2013\u2014\u2026"
# Scripts without spaces between words, and Korean, which joins particles to them: their words are pairs of letters.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f]+"
)
# A letter of these scripts and one of another next to it, in either order.
_BORDER = re.compile(
    f"(?<={_UNSPACED.pattern[:-1]})(?=[a-z0-9])|(?<=[a-z0-9])(?={_UNSPACED.pattern[:-1]})"
)
# Emoji and other symbols, each with what follows it as one sign; flags are pairs of letters (folklore_words).
_SYMBOLS = (
    "\u00a2-\u00a9\u00ac\u00ae-\u00b1\u00b6\u00d7\u00f7\u20a0-\u20cf\u2100-\u214f\u2190-\u243f\u25a0-\u27e5\u27f0-\u2982"
    "\u2999-\u2bff\u3030\u303d\U0001d100-\U0001d1ff\U0001f000-\U0001faff"
)
_TONES = "[\U0001f3fb-\U0001f3ff]?"
_SYMBOL = re.compile(
    f"[\U0001f1e6-\U0001f1ff]{{2}}|[{_SYMBOLS}]{_TONES}(?:\u200d[{_SYMBOLS}]{_TONES})*"
)
_OTHER_HYPHENS = "/\u2010\u2011"
_VARIANTS = "\ufe0e\ufe0f\u20e3"
# Two parts that are written as one word as well (on-call, CI/CD, Python 3), and a name with its number in one (sha256).
_PAIR = re.compile(
    r"(?<![\w./:@-])([^\W\d_]+)(?:[-/\u2010\u2011]([^\W_]+)|\x20(\d+))(?![\w/@-]|[.:]\w)"
)
_NUMBERED = re.compile(r"(?<![^\W_])([^\W\d_]{2,})(\d{1,5})(?![^\W_])")
# A word weighs its letters, beyond the first two, up to so many: short words are common in every language.
_LONGEST = 8
_SHORTEST = 2
_LEAST = 0.1
# Least weight of names, numbers and words with digits or capitals within, however short.
_SPECIFIC = 4.0
# Signs, digits or capitals within, as no word of a sentence has them.
_IDENTIFIER = re.compile(r"\w[./:_#@\\]+\w|[^\W\d]\d|\d[^\W\d]|[a-z][A-Z]")
_SIGNS = string.punctuation.replace("_", "")
# Share of the letters in which the forms of a word agree, and the least number of letters.
_STEM = 0.62
_SHORTEST_STEM = 4


@dataclass(frozen=True, slots=True)
class QuestionWord:
    """A word of a question: the beginning by which its forms are found in a plain text, its weight, its kind.

    `place` is that of its piece in the question.
    """

    start: str
    weight: float
    name: bool = False
    place: int = 0


@dataclass(frozen=True)
class QuestionWords:
    """The distinct words of a question, its pairs of adjacent words, its date terms with their shares.

    `names` are names of code, paths and versions as they are written, without capitals. `spellings` are other ways to
    write a name of the question, each with that of the question.
    """

    words: tuple[QuestionWord, ...]
    pairs: tuple[tuple[str, float], ...] = ()
    names: tuple[str, ...] = ()
    dates: Mapping[str, float] = field(default_factory=dict)
    spellings: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, pieces: Sequence[str]) -> QuestionWords:
        """Return the words of a question that was split at white space; those of a date are replaced by its terms."""
        return cls._of(tuple(pieces[:_MAX_PIECES]))

    @classmethod
    @lru_cache(64)  # an answer needs them several times
    def _of(cls, pieces: tuple[str, ...]) -> QuestionWords:
        dates = date_terms(" ".join(pieces))
        if dates:
            dated = pieces_with_dates(pieces)
        else:
            dated = set()
        by_start: dict[str, QuestionWord] = {}
        spelled: list[tuple[str, float]] = []
        german = detect(" ".join(pieces)) == "german"
        opening = True
        for place, piece in enumerate(pieces):
            for match in _WORD.finditer(without_contractions(piece)):
                if (
                    place in dated
                    or len(by_start) >= _MAX_WORDS
                    or len(spelled) >= _MAX_PIECES
                ):
                    break
                folded = _folded(match.group())
                words = list(
                    islice(
                        _words(match.group(), folded, place, opening=opening),
                        _MAX_PAIRS,
                    )
                )
                by_start |= {
                    word.start: by_start.get(word.start, word) for word in words
                }
                spelled.append((folded, words[0].weight))
                opening = german
            by_start |= {
                symbol: QuestionWord(symbol, _SPECIFIC, place=place)
                for symbol in _symbols(piece)
                if len(by_start) < _MAX_WORDS
            }
            opening = german or piece[-1:] in _SENTENCE_ENDS
        pairs = {
            f" {first} {second} ": min(weight, other)
            for (first, weight), (second, other) in pairwise(spelled)
        }
        stripped = (piece.strip(_SIGNS) for piece in pieces[:_MAX_WORDS])
        names = dict.fromkeys(
            piece.casefold() for piece in stripped if _IDENTIFIER.search(piece)
        )
        question = _folded(" ".join(pieces[:_MAX_WORDS]))
        return cls(
            tuple(by_start.values()),
            tuple(pairs.items()),
            tuple(names),
            dates,
            tuple(_spellings(question)),
        )

    @cached_property
    def identifiers(self) -> Sequence[re.Pattern[str]]:
        """What finds each of the names in a text without capitals. Most questions are not asked for it."""
        return [
            re.compile(f"{_NO_LETTER_BEFORE}{re.escape(name)}{_NO_LETTER_AFTER}")
            for name in self.names
        ]

    @cached_property
    def starts(self) -> Sequence[str]:
        """The beginnings of the words, which are looked for in each of many texts."""
        return [word.start for word in self.words]

    @cached_property
    def weight(self) -> float:
        """The weight of all words."""
        return sum(word.weight for word in self.words)

    def nearness(self, when: datetime) -> float:
        """Return how near a time is to the dates of the question, 0 to 1."""
        terms = (
            f"@{when:%Y-%m-%d}",
            f"@{when:%m-%d}",
            f"@{when:%Y-%m}",
            f"@{when:%m}",
            f"@{when:%Y}",
        )
        return max(self.dates.get(term, 0.0) for term in terms)

    def as_in_question(self, text: str) -> str:
        """Return a plain text with the names that it writes otherwise as the question does: `oncall` with `on call`."""
        if not self.spellings:
            return text
        spelled = [own for other, own in self.spellings if other in text]
        return text + "".join(spelled)

    def in_sequence(self, text: str) -> float:
        """Return the weight of the pairs of adjacent words that a plain text has in sequence, and of all pairs."""
        return sum([weight for pair, weight in self.pairs if pair in text])

    @cached_property
    def pair_weight(self) -> float:
        """The weight of all pairs."""
        return sum(weight for _, weight in self.pairs)

    def pattern(self, least: float) -> re.Pattern[str] | None:
        """Return what finds the forms of the words that weigh more than `least`; None if there is no such word."""
        forms = []
        for word in self.words:
            if word.weight > least:
                prefix = _NO_LETTER_BEFORE if word.start[0] == " " else ""
                if not prefix:
                    suffix = ""
                else:
                    suffix = _NO_LETTER_AFTER if word.start[-1] == " " else _LETTERS
                forms.append(f"{prefix}{re.escape(word.start.strip())}{suffix}")
        return re.compile("|".join(forms), re.IGNORECASE) if forms else None

    def places(self, text: str) -> list[tuple[int, int, str, float]]:
        """Return where a text holds words of the question, in order: begin, end, the word and its weight."""
        lower = text.lower()
        # a few letters have longer forms, and the places would be wrong
        if len(lower) != len(text):
            lower = text
        matches: list[tuple[int, int, str, float]] = []
        for word in self.words:
            start = word.start.strip()
            place = lower.find(start)
            while place >= 0 and len(matches) < _MAX_PLACES:
                if (
                    place == 0
                    or not lower[place - 1].isalnum()
                    or _UNSPACED.match(start)
                ):
                    matches.append((place, place + len(start), start, word.weight))
                place = lower.find(start, place + len(start))
        return sorted(matches)


def plain(text: str) -> str:
    """Return a text in lower case, without accents and punctuation, with one space around every word."""
    folded = _folded(text)
    if not folded.isascii():
        folded = _replaced(folded, _OTHER_PUNCTUATION, " ")
        folded = _replaced(folded, _VARIANTS, "")
        if _UNSPACED.search(folded):
            folded = _BORDER.sub(" ", folded)
    separated = (
        folded.encode("utf-8", "surrogatepass")
        .translate(_PUNCTUATION)
        .decode("utf-8", "surrogatepass")
    )
    return f" {' '.join(separated.split())} "


def without_contractions(text: str) -> str:
    """Return a text without the parts of English contractions that are no words: `we'll` is `we`, `isn't` nothing."""
    return _CONTRACTION.sub("", text)


def with_parts(text: str) -> str:
    """Return a text with the parts of names in code after each: `LoadMode` is `LoadMode Load Mode`."""
    cases = text.encode("ascii", "replace").translate(_CASES)  # a byte a character
    parts = []
    end = 0
    while (place := cases.find(b"aA", end)) >= 0:
        begin = cases.rfind(b" ", end, place) + 1
        parts.append(text[end:begin])
        end = cases.find(b" ", place)
        if end < 0:
            end = len(text)
        parts.append(_CAMEL.sub(_with_its_parts, text[begin:end]))
    return "".join(parts) + text[end:]


def _with_its_parts(name: re.Match[str]) -> str:
    return f"{name[0]} {_PART.sub(' ', name[0])}"


def joined_names(text: str) -> str:
    """Return the words of a text that have a hyphen or slash without it: `on-call` is `oncall`."""
    text = _replaced(text, _OTHER_HYPHENS, "-")
    if "-" not in text:
        return ""
    return " ".join(word for word in text.split() if "-" in word).replace("-", "")


def _replaced(text: str, signs: str, other: str) -> str:
    """Return a text with `other` in place of each of a few signs; `str.translate` takes a hundred times as long."""
    for sign in signs:
        text = text.replace(sign, other)
    return text


def _spellings(question: str) -> Iterable[tuple[str, str]]:
    """Yield other spellings of the names in a folded question, each with that of the question."""
    for pair in _PAIR.finditer(question):
        second = pair[2] or pair[3]
        yield f" {pair[1]}{second} ", f" {pair[1]} {second} "
    for name in _NUMBERED.finditer(question):
        yield f" {name[1]} {name[2]} ", f" {name[0]} "


def _symbols(piece: str) -> Iterable[str]:
    if piece.isascii():
        return ()
    return (
        sign.casefold() for sign in _SYMBOL.findall(_replaced(piece, _VARIANTS, ""))
    )


def _folded(text: str) -> str:
    folded = text.casefold()
    if folded.isascii():
        return folded
    return nfc(_ACCENTS.sub("", normal_form("NFKD", folded)))


def _words(
    text: str, folded: str, place: int, *, opening: bool
) -> Iterable[QuestionWord]:
    """Return a word of a question, or the pairs of letters of a script without spaces; `opening` may have a capital."""
    if not folded.isascii() and (runs := _UNSPACED.findall(folded)):
        pairs = (run[at : at + 2] for run in runs for at in range(max(len(run) - 1, 1)))
        others = _UNSPACED.sub(" ", text).split()
        return (
            *(QuestionWord(pair, len(pair), place=place) for pair in pairs),
            *(_word(other, _folded(other), place, opening=True) for other in others),
        )
    return [_word(text, folded, place, opening=opening)]


def _word(text: str, folded: str, place: int, *, opening: bool) -> QuestionWord:
    letters = len(folded)
    weight = max(float(min(letters, _LONGEST) - _SHORTEST), _LEAST)
    name = text[:1].isupper() and text[1:].islower() and not opening
    digits = any(char.isdigit() for char in folded)
    if name or digits or (not text[1:].islower() and letters > 1):
        weight = max(weight, _SPECIFIC)
    if digits or letters < _SHORTEST_STEM:
        return QuestionWord(f" {folded} ", weight, name, place)
    return QuestionWord(
        " " + folded[: max(_SHORTEST_STEM, math.ceil(_STEM * letters))],
        weight,
        name,
        place,
    )
