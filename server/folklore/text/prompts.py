"""Prompts: what a person asks in a long one."""

from __future__ import annotations

import re

# Characters of a prompt that is asked as it is, and of the beginning and the end of a longer one.
_SHORT, _PART = 1_200, 600
_FENCED = re.compile(r"^(```|~~~).*?(?:^\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)


def asked(prompt: str) -> str:
    """Return what a prompt asks: itself, or of a long one the beginning and the end without what was pasted."""
    if len(prompt) <= _SHORT:
        return prompt
    written = _FENCED.sub("\n", prompt).strip() or prompt
    if len(written) <= _SHORT:
        return written
    return f"{_to_word(written[:_PART])}\n{_to_word(written[-_PART:][::-1])[::-1]}"


def _to_word(text: str) -> str:
    """Return a text without its last word, which may be cut."""
    return text.rsplit(maxsplit=1)[0] if " " in text else text
