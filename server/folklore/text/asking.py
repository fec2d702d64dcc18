"""Whether somebody asks something."""

from __future__ import annotations

import re

# A question mark that ends a sentence, not the one within an address or an expression.
_ASKS = re.compile("[?\uff1f\u061f](?=[\\s\"')\\]*\u201d\u2019\u00bb]|$)")


def asks(text: str) -> bool:
    """Whether any sentence of a text ends with a question mark, in the scripts that have one."""
    marked = "?" in text or "\uff1f" in text or "\u061f" in text  # a tenth of what the expression takes
    return marked and _ASKS.search(text) is not None
