"""JSON in which half of a character is spelled.

Who cuts a text between the two halves of an emoji and spells it as JSON, as JavaScript does, spells half a character:
"\\ud83d" without its "\\udc4d". It is no text, and readers of JSON differ in what they make of it: some take it, others
give up on the whole.
"""

from __future__ import annotations

import re

_SPELLED = re.compile(
    rb"\\\\"  # a backslash, after which a u is a letter
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # both halves
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
# As long as what it stands for, and taken out of a text wherever a half is (clean.py).
_NOTHING = rb"\u0000"


def without_halves(json: bytes) -> bytes:
    """The same JSON, as many bytes, with NUL for each surrogate that is spelled without its other half."""
    if b"\\ud" not in json and b"\\uD" not in json:
        return json
    return _SPELLED.sub(lambda found: _NOTHING if found[1] else found[0], json)
