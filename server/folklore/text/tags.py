"""Tags: short labels in lower case, with `:` and `/` as hierarchy (`entity:person:sarah`, `area/payments/refunds`)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from folklore.errors import InvalidInput
from folklore.text.clean import clean, nfc

MAX_TAGS = 64
MAX_LENGTH = 100
_SEPARATORS = ":/"
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\uff07", "'"))
_AROUND_SEPARATOR = re.compile(r"(?<![\s:/])[\s]*([:/])[\s:/]*")
_HARD_LIMIT = 2_000  # beyond this a tag is refused unread


def normalise(tags: Iterable[str], *, field: str = "tags") -> tuple[str, ...]:
    """Bring tags to their one spelling, each once, in the order given.

    Raises InvalidInput naming `field` for an empty or over-long tag (1 – 100 characters) and for more than 64 tags.
    """
    found = dict.fromkeys(_checked(raw, place, field) for place, raw in enumerate(tags, start=1))
    if len(found) > MAX_TAGS:
        raise InvalidInput(
            field,
            f"{len(found)} tags are more than the {MAX_TAGS} a memory may have.",
            hint="Keep the ones people will search by; put the rest into the text.",
        )
    return tuple(found)


def spell(tag: str) -> str:
    """Spell one tag the way it is stored, without judging its length; nothing usable gives an empty text.

    Lower case, composed characters, straight apostrophes, `-` for inner white space, one separator between levels.
    """
    text = nfc(nfc(clean(tag).text).lower()).translate(_APOSTROPHES)
    text = _AROUND_SEPARATOR.sub(r"\1", text.strip())
    return "-".join(text.strip(_SEPARATORS + " \t\n").split()).strip(_SEPARATORS)


def prefixes(tag: str) -> tuple[str, ...]:
    """List a tag with all its ancestors, shortest first: `a:b/c` gives `a`, `a:b`, `a:b/c`."""
    ends = [place for place, char in enumerate(tag) if char in _SEPARATORS and place]
    return tuple(tag[:end] for end in [*ends, len(tag)] if end)


def _checked(raw: str, place: int, field: str) -> str:
    tag = spell(raw) if len(raw) <= _HARD_LIMIT else raw
    if not tag:
        raise InvalidInput(field, f"tag {place} is empty.", hint="Leave it out, or give it a word.")
    if len(tag) > MAX_LENGTH:
        raise InvalidInput(
            field,
            f"tag {place} has {len(tag)} characters; at most {MAX_LENGTH} are allowed.",
            hint="A tag is a label; put sentences into the text.",
        )
    return tag
