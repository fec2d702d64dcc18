"""Names of the Postgres text search configurations."""

from __future__ import annotations

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
