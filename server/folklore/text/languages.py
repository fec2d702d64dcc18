"""The languages Postgres can read: its text search configurations, by name."""

from __future__ import annotations

from folklore.errors import InvalidInput

# Those of Postgres 15; newer servers add some, which a stored memory must not depend on.
LANGUAGES = frozenset(
    {
        "simple", "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "finnish", "french",
        "german", "greek", "hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali", "norwegian",
        "portuguese", "romanian", "russian", "serbian", "spanish", "swedish", "tamil", "turkish", "yiddish",
    }
)  # fmt: skip

_CODES = {
    "ar": "arabic", "hy": "armenian", "eu": "basque", "ca": "catalan", "da": "danish", "nl": "dutch", "en": "english",
    "fi": "finnish", "fr": "french", "de": "german", "el": "greek", "hi": "hindi", "hu": "hungarian",
    "id": "indonesian", "ga": "irish", "it": "italian", "lt": "lithuanian", "ne": "nepali", "no": "norwegian",
    "nb": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "es": "spanish",
    "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip


def language(name: str, *, field: str = "language") -> str:
    """The configuration's name, from itself or from an ISO 639-1 code (`de`, `de-AT`). Raises InvalidInput."""
    lower = name.strip().lower()
    spelled = _CODES.get(lower.replace("_", "-").split("-")[0], lower)
    if spelled not in LANGUAGES:
        raise InvalidInput(
            field,
            f"{name[:40]!r} is not a language Postgres can read.",
            hint=f"Use 'simple' for any other, or one of: {', '.join(sorted(LANGUAGES))}.",
        )
    return spelled
