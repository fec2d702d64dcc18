"""Words of a question as they are looked for in a text, with weights that do not depend on what else is stored."""

from __future__ import annotations

import math
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import compress, pairwise
from typing import NamedTuple

from folklore.text.clean import nfc, normal_form
from folklore.text.dates.date_terms import date_terms, tokens_with_dates
from folklore.text.languages import detect

_MAX_WORDS = 64
# Tokens of a question that are read: of a long text only the beginning.
_MAX_TOKENS = 2_000
# Pairs of letters of one run in a script without spaces.
_MAX_PAIRS = 200
# Occurrences in a long text that are compared.
_MAX_OCCURRENCES = 500
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

    The beginning has a space before it, and one after it if it is the whole word; pairs of letters and symbols have
    none. `position` is that of its token in the question.
    """

    start: str
    weight: float
    name: bool = False
    position: int = 0


class WordPair(NamedTuple):
    """Two adjacent words of a question as a plain text has them in sequence, and their weight.

    `first` and `second` are the indexes of the question's words that any text with the pair holds.
    """

    text: str
    weight: float
    first: int
    second: int


class HeldInText(NamedTuple):
    """For each word of a question whether a text holds it, and the weight of the pairs that it has in sequence."""

    words: tuple[bool, ...]
    sequence: float


class Occurrence(NamedTuple):
    """The range of a text with the beginning of a word of the question, that beginning, and the weight of the word."""

    begin: int
    end: int
    word: str
    weight: float


@dataclass(frozen=True)
class QuestionWords:
    """The distinct words of a question, its pairs of adjacent words, its date terms with their shares.

    `names` are names of code, paths and versions as they are written, without capitals. `spellings` are other ways to
    write a name of the question, each with that of the question.
    """

    distinct: tuple[QuestionWord, ...]
    pairs: tuple[WordPair, ...] = ()
    names: tuple[str, ...] = ()
    dates: Mapping[str, float] = field(default_factory=dict)
    spellings: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, tokens: Sequence[str]) -> QuestionWords:
        """Return the words of a question that was split at white space; those of a date are replaced by its terms."""
        return cls._of(tuple(tokens[:_MAX_TOKENS]))

    @classmethod
    @lru_cache(64)  # an answer needs them several times
    def _of(cls, tokens: tuple[str, ...]) -> QuestionWords:
        text = " ".join(tokens)
        dates = date_terms(text)
        dated = tokens_with_dates(tokens) if dates else set()
        reader = _Reader(is_german=detect(text) == "german")
        for position, token in enumerate(tokens):
            if position not in dated:
                reader.read_words(token, position)
            reader.read_symbols(token, position)
            reader.begin_next(token)
        opening = " ".join(tokens[:_MAX_WORDS])
        return cls(
            distinct=tuple(reader.words.values()),
            pairs=_pairs_of(reader.sequence, list(reader.words)),
            names=_names_of(tokens[:_MAX_WORDS]),
            dates=dates,
            spellings=tuple(dict.fromkeys(_spellings(_folded(opening)))),
        )

    @cached_property
    def identifiers(self) -> Sequence[re.Pattern[str]]:
        """The patterns of the names in a text without capitals."""
        return [
            re.compile(f"{_NO_LETTER_BEFORE}{re.escape(name)}{_NO_LETTER_AFTER}")
            for name in self.names
        ]

    @cached_property
    def starts(self) -> Sequence[str]:
        """The beginnings of the words, which are looked for in each of many texts."""
        return [word.start for word in self.distinct]

    @cached_property
    def weight(self) -> float:
        """The weight of all words."""
        return sum(word.weight for word in self.distinct)

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

    def held_by(self, texts: Sequence[str]) -> list[HeldInText]:
        """Return what each of many plain texts holds of the question."""
        if self.spellings:
            texts = [self._as_in_question(text) for text in texts]
        # Word by word: a loop over all texts is begun once for each word, not once for each text.
        columns = [[start in text for text in texts] for start in self.starts]
        if not columns:
            return [HeldInText((), 0.0)] * len(texts)

        # A text that has a pair holds the words which the pair begins with and ends with.
        holders = [set(compress(range(len(texts)), column)) for column in columns]
        weights: list[list[float]] = [[] for _ in texts]
        for pair in self.pairs:
            for index in holders[pair.first] & holders[pair.second]:
                if pair.text in texts[index]:
                    weights[index].append(pair.weight)
        return [
            HeldInText(words, sum(of_pairs))
            for words, of_pairs in zip(zip(*columns, strict=True), weights, strict=True)
        ]

    def _as_in_question(self, text: str) -> str:
        """Return a plain text with the names that it writes otherwise as the question does: `oncall` with `on call`."""
        own_spellings = [own for other, own in self.spellings if other in text]
        return text + "".join(own_spellings)

    @cached_property
    def pair_weight(self) -> float:
        """The weight of all pairs."""
        return sum(pair.weight for pair in self.pairs)

    def pattern(self, least: float) -> re.Pattern[str] | None:
        """Return what finds the forms of the words that weigh more than `least`; None if there is no such word."""
        words = [word for word in self.distinct if word.weight > least]
        if not words:
            return None
        return re.compile("|".join(map(_forms_of, words)), re.IGNORECASE)

    def occurrences(self, text: str) -> list[Occurrence]:
        """Return where a text has words of the question, in order."""
        lower = text.lower()
        if len(lower) != len(text):
            lower = (
                text  # a few letters have longer forms, and the offsets would be wrong
            )
        results: list[Occurrence] = []
        for word in self.distinct:
            letters = word.start.strip()
            may_be_within = _UNSPACED.match(letters) is not None
            begin = lower.find(letters)
            while begin >= 0 and len(results) < _MAX_OCCURRENCES:
                end = begin + len(letters)
                if begin == 0 or may_be_within or not lower[begin - 1].isalnum():
                    results.append(Occurrence(begin, end, letters, word.weight))
                begin = lower.find(letters, end)
        return sorted(results)


@dataclass(slots=True)
class _Reader:
    """Reader of the tokens of a question: its distinct words by their beginnings, and all in sequence.

    `sequence` has runs of letters as a plain text has them, each with its word, or the first of several.

    A capital at the `opening` of a sentence, and any in German, is no sign of a name.
    """

    is_german: bool
    opening: bool = True
    words: dict[str, QuestionWord] = field(default_factory=dict)
    sequence: list[tuple[str, QuestionWord]] = field(default_factory=list)

    def read_words(self, token: str, position: int) -> None:
        """Add the words of a token, as far as there is room."""
        for match in _WORD.finditer(without_contractions(token)):
            if len(self.words) >= _MAX_WORDS or len(self.sequence) >= _MAX_TOKENS:
                return
            folded = _folded(match[0])
            words = _words_of(match[0], folded, position, opening=self.opening)
            for word in words:
                self.words.setdefault(word.start, word)
            self.sequence.append((folded, words[0]))
            self.opening = self.is_german

    def read_symbols(self, token: str, position: int) -> None:
        """Add the emoji and other symbols of a token, if there is room."""
        if len(self.words) < _MAX_WORDS:
            for symbol in _symbols(token):
                self.words[symbol] = QuestionWord(symbol, _SPECIFIC, position=position)

    def begin_next(self, token: str) -> None:
        """Note whether the token after this one opens a sentence."""
        self.opening = self.is_german or token[-1:] in _SENTENCE_ENDS


def _pairs_of(
    sequence: Sequence[tuple[str, QuestionWord]], starts: Sequence[str]
) -> tuple[WordPair, ...]:
    """Return the pairs of adjacent words, each with the smaller of their weights."""
    indexes = {start: index for index, start in enumerate(starts)}
    pairs = {}
    for (first, word), (second, next_word) in pairwise(sequence):
        text = f" {first} {second} "
        weight = min(word.weight, next_word.weight)
        pairs[text] = WordPair(
            text, weight, indexes[word.start], indexes[next_word.start]
        )
    return tuple(pairs.values())


def _names_of(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return the names of code, paths and versions among tokens, without capitals and repetitions."""
    names: dict[str, None] = {}
    for token in tokens:
        name = token.strip(_SIGNS)
        if _IDENTIFIER.search(name):
            names[name.casefold()] = None
    return tuple(names)


def _forms_of(word: QuestionWord) -> str:
    """Return the pattern of the forms of a word, by the spaces around its beginning (see QuestionWord)."""
    letters = re.escape(word.start.strip())
    if word.start[0] != " ":
        return letters
    if word.start[-1] == " ":
        return f"{_NO_LETTER_BEFORE}{letters}{_NO_LETTER_AFTER}"
    return f"{_NO_LETTER_BEFORE}{letters}{_LETTERS}"


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
    border = cases.find(b"aA")
    while border >= 0:
        begin = cases.rfind(b" ", end, border) + 1
        parts.append(text[end:begin])
        end = cases.find(b" ", border)
        if end < 0:
            end = len(text)
        parts.append(_CAMEL.sub(_with_its_parts, text[begin:end]))
        border = cases.find(b"aA", end)
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


def _symbols(token: str) -> Iterable[str]:
    if token.isascii():
        return ()
    plain_token = _replaced(token, _VARIANTS, "")
    return (symbol.casefold() for symbol in _SYMBOL.findall(plain_token))


def _folded(text: str) -> str:
    folded = text.casefold()
    if folded.isascii():
        return folded
    return nfc(_ACCENTS.sub("", normal_form("NFKD", folded)))


def _words_of(
    text: str, folded: str, position: int, *, opening: bool
) -> Sequence[QuestionWord]:
    """Return a run of letters as one word; of a script without spaces the pairs of letters, and what is between them."""
    runs = [] if folded.isascii() else _UNSPACED.findall(folded)
    if not runs:
        return [_word(text, folded, position, opening=opening)]
    words = []
    for run in runs:
        for begin in range(max(len(run) - 1, 1)):
            pair = run[begin : begin + 2]
            words.append(QuestionWord(pair, len(pair), position=position))
    for other in _UNSPACED.sub(" ", text).split():
        words.append(_word(other, _folded(other), position, opening=True))
    return words[:_MAX_PAIRS]


def _word(text: str, folded: str, position: int, *, opening: bool) -> QuestionWord:
    letters = len(folded)
    is_lower_after_first = text[1:].islower()
    is_name = text[:1].isupper() and is_lower_after_first and not opening
    has_digits = any(char.isdigit() for char in folded)

    weight = max(float(min(letters, _LONGEST) - _SHORTEST), _LEAST)
    if is_name or has_digits or (letters > 1 and not is_lower_after_first):
        weight = max(weight, _SPECIFIC)

    if has_digits or letters < _SHORTEST_STEM:
        start = f" {folded} "
    else:
        stem_length = max(_SHORTEST_STEM, math.ceil(_STEM * letters))
        start = f" {folded[:stem_length]}"
    return QuestionWord(start, weight, is_name, position)
