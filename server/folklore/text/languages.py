"""Names of the Postgres text search configurations, and detection of the language of a text."""

import re
from collections.abc import Sequence
from pathlib import Path

from folklore.errors import InvalidInput

# The configurations of Postgres 15. Newer servers add some, which a stored memory must not depend on.
_BY_CODE = {
    "ar": "arabic", "hy": "armenian", "eu": "basque", "ca": "catalan", "da": "danish", "nl": "dutch", "en": "english",
    "fi": "finnish", "fr": "french", "de": "german", "el": "greek", "hi": "hindi", "hu": "hungarian",
    "id": "indonesian", "ga": "irish", "it": "italian", "lt": "lithuanian", "ne": "nepali", "no": "norwegian",
    "nb": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "es": "spanish",
    "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
LANGUAGES = frozenset({"simple", *_BY_CODE.values()})

_CODE = re.compile(r"```.*?(?:```|$)|`[^`\n]*`|https?://\S+", re.DOTALL)
_AROUND_WORDS = "\"'`“”‘’„«»([{)]}.,;:!?¿¡—…–"
_WITHIN_WORDS = str.maketrans("", "", "'’-")
# Characters that are read.
_READ = 2_000
# Least number of words of prose: more where no letter is a sign of a language, and for English, which short texts in
# other languages are taken for. Of 36,000 texts in English about software or people, 3 were taken for another.
_LEAST_WORDS = 3
_LEAST_WORDS_OF_ASCII = 5
_LEAST_WORDS_OF_ENGLISH = 12
# Least share of words of prose.
_LEAST_PROSE = 2 / 3
# Share of the text, in percent, that must be in the language.
_LEAST_SHARE = 80
# Frequent words, for platforms without pycld2. Of languages without a configuration, so that they are not mistaken.
_TABLE = Path(__file__).with_name("frequent_words.txt").read_text(encoding="utf-8")
_FREQUENT: dict[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in re.findall(r"^(.+): (.+)$", _TABLE, re.MULTILINE)
}
# Those of every language.
FREQUENT_WORDS = frozenset[str]().union(*_FREQUENT.values())


def language(name: str, *, field: str = "language") -> str:
    """Return a configuration's name, given that name or an ISO 639-1 code (`de`, `de-AT`). Raises InvalidInput."""
    lower = name.strip().lower()
    configuration = _BY_CODE.get(lower.replace("_", "-").split("-")[0], lower)
    if configuration not in LANGUAGES:
        raise InvalidInput(
            field,
            f"{name[:40]!r} is not a language Postgres can read.",
            hint=f"Use 'simple' for any other, or one of: {', '.join(sorted(LANGUAGES))}.",
        )
    return configuration


def detect(text: str) -> str | None:
    """Return the configuration of the language that a text is clearly in; None for code, a few words, or a mixture."""
    tokens = _CODE.sub(" ", text[:_READ]).split()
    words = [token.strip(_AROUND_WORDS) for token in tokens]
    prose = list(filter(_is_prose, words))
    text = " ".join(prose)
    least = _LEAST_WORDS_OF_ASCII if text.isascii() else _LEAST_WORDS
    if len(prose) < max(least, _LEAST_PROSE * len(tokens)):
        return None
    try:
        import pycld2  # not every platform has it
    except ImportError:
        return _of_frequent_words(prose)
    reliable, _, details = pycld2.detect(text, bestEffort=True)
    _, code, share, _ = details[0]
    is_short_english = code == "en" and len(prose) < _LEAST_WORDS_OF_ENGLISH
    if not reliable or share < _LEAST_SHARE or is_short_english:
        return None
    return _BY_CODE.get(code)


def _of_frequent_words(prose: Sequence[str]) -> str | None:
    """Return the language with the most different frequent words in a text: two or more, of six words one."""
    words = {word.lower() for word in prose}
    counts = [(len(words & frequent), name) for name, frequent in _FREQUENT.items()]
    counts.sort(reverse=True)
    most, name = counts[0]
    second, _ = counts[1]
    is_clear = most > max(second, 1) and most * 6 >= len(words)
    is_short_english = name == "english" and len(prose) < _LEAST_WORDS_OF_ENGLISH
    if not is_clear or is_short_english or name not in LANGUAGES:
        return None
    return name


def _is_prose(word: str) -> bool:
    """Return whether a word has letters alone, in lower case after the first: no name, number or abbreviation."""
    if word.isalpha():
        letters = word
    else:
        letters = word.translate(_WITHIN_WORDS)
        if not letters.isalpha() or word[0] == "-":
            return False
    rest = letters[1:]
    return rest.islower() or not any(map(str.isupper, rest))
