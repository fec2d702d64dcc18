"""Names of the Postgres text search configurations, and detection of the language of a text."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
_LEAST_WORDS, _LEAST_WORDS_OF_ASCII, _LEAST_WORDS_OF_ENGLISH = 3, 5, 12
# Least share of words of prose.
_LEAST_PROSE = 2 / 3
# Share of the text, in percent, that must be in the language.
_LEAST_SHARE = 80
# Frequent words, for platforms without pycld2. Of languages without a configuration, so that they are not mistaken.
_FREQUENT = {name: frozenset(words.split()) for name, words in {
    "english": "the and of to is in that for with are this be not it we on was by from have has as at or an but you",
    "german": "der die das und ist nicht ein eine mit für auf wird werden von dem den im wir nach zur auch wenn wurde",
    "french": "le la les des un se et est une pour dans que qui sur pas avec sont du nous chaque ce au après cette aux",
    "spanish": "el la los las es una para que en se del por con no como está son cada después todos al desde",
    "italian": "il la le gli una per che di non sono con del della alla ogni dopo nella viene dei si da vengono",
    "portuguese": "os uma para que não em do da com na são cada depois todas dos numa desde por",
    "dutch": "de het een en is niet van voor met op zijn wordt worden wij dat te naar elke werd sinds bij ook in",
    "swedish": "och är att det som en inte på för med den av ett vi till efter varje från har",
    "danish": "og er at det som en ikke på for med den af et vi til efter hver fra har bliver",
    "norwegian": "og er at det som en ikke på for med den av et vi til etter hver fra har blir",
    "finnish": "ja on ei että se kun mutta tai ovat jos joka jälkeen myös sekä kaikki",
    "hungarian": "az és nem egy hogy meg minden után ha csak vagy kell lehet",
    "romanian": "și este în nu un cu pe pentru sunt care din după fiecare se",
    "turkish": "ve bir bu için ile de da her sonra değil olarak daha olan gibi",
    "indonesian": "yang dan di ke dari untuk dengan ini itu tidak pada adalah setiap setelah kami",
    "catalan": "el la els les és una per que en amb no del són cada després dels al",
    "greek": "και το του της με για σε από είναι δεν που στο στη κάθε μετά",
    "russian": "и в не на что с после мы по из для каждого это всё как от за при каждой",
    "serbian": "и у на се је за да са од не што као после сваког",
    "bulgarian": "и на да се не за от по са след всеки ще как при с в",
    "ukrainian": "і в на не що з після ми по для кожного це як від за при та",
    "polish": "i w na z do że się nie jest są po od jak dla po",
    "czech": "a v na je se z do že po od jako jsou pro ne",
    "arabic": "في من على إلى أن هذا هذه التي الذي كل بعد عن لا ما",
    "hindi": "है के में की और को से नहीं का हैं पर यह",
}.items()}  # fmt: skip


def language(name: str, *, field: str = "language") -> str:
    """Return a configuration's name, given that name or an ISO 639-1 code (`de`, `de-AT`). Raises InvalidInput."""
    lower = name.strip().lower()
    known = _BY_CODE.get(lower.replace("_", "-").split("-")[0], lower)
    if known not in LANGUAGES:
        raise InvalidInput(
            field,
            f"{name[:40]!r} is not a language Postgres can read.",
            hint=f"Use 'simple' for any other, or one of: {', '.join(sorted(LANGUAGES))}.",
        )
    return known


def detect(text: str) -> str | None:
    """Return the configuration of the language that a text is clearly in; None for code, a few words, or a mixture."""
    tokens = _CODE.sub(" ", text[:_READ]).split()
    prose = [word for token in tokens if _is_prose(word := token.strip(_AROUND_WORDS))]
    text = " ".join(prose)
    least = _LEAST_WORDS_OF_ASCII if text.isascii() else _LEAST_WORDS
    if len(prose) < least or len(prose) < _LEAST_PROSE * len(tokens):
        return None
    try:
        import pycld2  # only stores need it, and not every platform has it
    except ImportError:
        return _of_frequent_words(prose)
    reliable, _, found = pycld2.detect(text, bestEffort=True)
    _, code, share, _ = found[0]
    clear = reliable and share >= _LEAST_SHARE and (code != "en" or len(prose) >= _LEAST_WORDS_OF_ENGLISH)
    return _BY_CODE.get(code) if clear else None


def _of_frequent_words(prose: Sequence[str]) -> str | None:
    """Return the language with the most different frequent words in a text: two or more, of six words one."""
    words = {word.lower() for word in prose}
    (most, name), (second, _) = sorted(((len(words & some), name) for name, some in _FREQUENT.items()), reverse=True)[
        :2
    ]
    clear = most > max(second, 1) and most * 6 >= len(words) and name in LANGUAGES
    return name if clear and (name != "english" or len(prose) >= _LEAST_WORDS_OF_ENGLISH) else None


def _is_prose(word: str) -> bool:
    """Return whether a word has letters alone, in lower case after the first: no name, number or abbreviation."""
    letters = word.translate(_WITHIN_WORDS)
    return letters.isalpha() and word[0] != "-" and not any(map(str.isupper, letters[1:]))
