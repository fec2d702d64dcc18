"""Secrets of a text: their kinds and positions. Pure: no network, no randomness tests.

A hash, a UUID or base64 text is no secret by itself. A secret has the form that an issuer gives its keys
(key_formats.py), or a context that announces it (context.py).
"""

from collections.abc import Iterable

from folklore.text.secrets.values import SearchEnded as SearchEnded, Secret


def find(text: str) -> tuple[Secret, ...]:
    """Return the secrets of a text in order, without overlaps. Linear in the length of the text.

    Raises SearchEnded if the text holds too many beginnings of keys to be searched to its end.
    """
    # Their patterns take long to compile, and a question is answered before one is searched.
    from folklore.text.secrets import context, key_formats

    # "İ" is the one letter whose lower case has two characters.
    lower = text.replace("İ", "i").lower()
    by_form = key_formats.find_keys(text, lower)
    by_context = context.find_by_context(text, lower)
    return _merged([*by_form, *by_context])


def redact(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text with a marker in place of each secret, and the kinds of the secrets. Idempotent.

    Raises SearchEnded.
    """
    secrets = find(text)
    redacted = ""
    end = 0
    for secret in secrets:
        redacted += f"{text[end : secret.start]}[redacted: {secret.kind}]"
        end = secret.end
    return redacted + text[end:], tuple(secret.kind for secret in secrets)


def _merged(secrets: Iterable[Secret]) -> tuple[Secret, ...]:
    """Merge overlapping secrets; the one that begins first, or else is the longest, determines the kind."""
    merged: list[Secret] = []
    for secret in sorted(secrets, key=lambda secret: (secret.start, -secret.end)):
        previous = merged[-1] if merged else None
        if previous is None or secret.start >= previous.end:
            merged.append(secret)
        else:
            merged[-1] = previous._replace(end=max(previous.end, secret.end))
    return tuple(merged)
