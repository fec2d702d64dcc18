"""Secrets of a text: their kinds and positions. Pure: no network, no randomness tests.

A hash, a UUID or base64 text is no secret by itself. A secret has the form that an issuer gives its keys
(key_formats.py), or a context that announces it (context.py).
"""

from collections.abc import Iterable

from folklore.text.secrets.context import find_by_context
from folklore.text.secrets.key_formats import find_keys
from folklore.text.secrets.values import Secret


def find(text: str) -> tuple[Secret, ...]:
    """Return the secrets of a text in order, without overlaps. Linear in the length of the text."""
    lower = _lower(text)
    return _merged([*find_keys(text, lower), *find_by_context(text, lower)])


def redact(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text with a marker in place of each secret, and the kinds of the secrets. Idempotent."""
    secrets = find(text)
    pieces, end = [], 0
    for secret in secrets:
        pieces += [text[end : secret.start], f"[redacted: {secret.kind}]"]
        end = secret.end
    return "".join([*pieces, text[end:]]), tuple(secret.kind for secret in secrets)


def _lower(text: str) -> str:
    """Return the text in lower case with every character at its position: of two characters for one, the first."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(char.lower()[0] for char in text)


def _merged(secrets: Iterable[Secret]) -> tuple[Secret, ...]:
    """Merge overlapping secrets; the one that begins first, or else is the longest, determines the kind."""
    merged: list[Secret] = []
    for secret in sorted(secrets, key=lambda secret: (secret.start, -secret.end)):
        if not merged or secret.start >= merged[-1].end:
            merged.append(secret)
        elif secret.end > merged[-1].end:
            merged[-1] = Secret(merged[-1].kind, merged[-1].start, secret.end)
    return tuple(merged)
