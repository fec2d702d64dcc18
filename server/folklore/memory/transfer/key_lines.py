"""The field `idempotency_keys` of a memory line: the keys it answers beside its own, and what was asked under each."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator

from folklore.memory.validation import MAX_KEY
from folklore.text.clean import clean

FIELD = "idempotency_keys"

# As many as transfer_entries.sql gives: together with a memory of any size they fit a line, and the search for secrets.
MAX_KEYS = 300
_DIGEST = re.compile(r"[0-9a-f]{64}")


def _requests(value: object) -> object:
    """By key a digest of what was asked; the messages repeat neither."""
    if not (isinstance(value, dict) and all(map(_is_digest, value.values()))):
        raise ValueError("is not an object that has a digest of 64 hexadecimal digits for each key")
    if len(value) > MAX_KEYS:
        raise ValueError(f"holds {len(value):,} keys; the limit is {MAX_KEYS}")
    cleaned = {clean(key).text.strip(): request for key, request in value.items()}
    if not all(0 < len(key) <= MAX_KEY for key in cleaned):
        raise ValueError(f"holds a key that is not of 1 to {MAX_KEY} characters")
    return cleaned


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


KeysField = Annotated[dict[str, str], BeforeValidator(_requests)]
