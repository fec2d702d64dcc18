"""Ids as people and models write them: whole ones, and their last characters."""

import re
from uuid import UUID

from folklore.errors import InvalidInput

# An id ends at random; its beginning is a time, which memories stored on one day share.
_DIGITS = 8
# Of a text that names one memory, with what surrounds the id.
_LONGEST = 300
_HYPHENS = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"))
_WHOLE = re.compile(
    "(?<![0-9a-z])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-z])"
)
_DIGITS_OF_ID = re.compile("[0-9a-f]{32}")
_ENDING = re.compile("[0-9a-f]{4,31}")
_NAMED = re.compile(
    r"^(?:urn:uuid:|uuid:|(?:memory)?[\s_-]*ids?\s*[:=]?|memory\s*[:/=#]?|#)\s*"
)
_AROUND = " \t\r\n\"'`“”‘’«»()[]{}<>,;:.|*"


def id_of(text: str, field: str, hint: str) -> UUID:
    """Parse a whole id in any spelling. Raises InvalidInput that names the field."""
    id_ = id_in(text)
    if isinstance(id_, UUID):
        return id_
    raise InvalidInput(field, f"{text[:60]!r} is not an id.", hint=hint)


def id_or_ending(text: str, field: str, hint: str) -> UUID | str:
    """Return an id, or the end of one as it is looked up. Raises InvalidInput."""
    id_ = id_in(text)
    if id_ is not None:
        return id_
    if text.replace("...", "…").strip(_AROUND).endswith("…"):
        problem = f"{text[:60]!r} is the beginning of an id, which others share."
        raise InvalidInput(field, problem, hint=hint)
    raise InvalidInput(field, f"{text[:60]!r} is not an id.", hint=hint)


def id_in(text: str) -> UUID | str | None:
    """Return the id that a text spells, or the end of one in lower case without hyphens; None for another text.

    People and models copy an id with quotes, brackets, a name, an ellipsis for what they leave out, or `urn:uuid:`.
    """
    if len(text) > _LONGEST:
        return None
    lower = text.lower().translate(_HYPHENS).replace("...", "…")
    whole_ids = set(_WHOLE.findall(lower))
    if len(whole_ids) == 1:
        return UUID(whole_ids.pop())
    if whole_ids:
        return None
    _, _, ending = lower.strip(_AROUND).rpartition("…")
    digits = _NAMED.sub("", ending).strip(_AROUND).replace("-", "")
    if _DIGITS_OF_ID.fullmatch(digits):
        return UUID(digits)
    if _ENDING.fullmatch(digits):
        return digits
    return None


def short(id_: UUID) -> str:
    """Return the end of an id, which commands and the console show, and commands take in place of the whole."""
    return id_.hex[-_DIGITS:]
