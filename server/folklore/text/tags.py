"""Kinds, and tags: short lower-case labels with `:` and `/` as hierarchy (`entity:person:ada`, `area/payments`)."""

import re
from collections.abc import Iterable

from folklore.errors import InvalidInput
from folklore.text.arguments import is_null_word
from folklore.text.clean import clean, nfc

MAX_TAGS = 64
MAX_LENGTH = 100
_SEPARATORS = ":/"
# A tag is written with a number sign in a text: `#deploy` is the tag `deploy`.
_BEFORE_TAG = "#\uff03" + _SEPARATORS + " \t\n"
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\uff07", "'"))
_AROUND_SEPARATOR = re.compile(r"(?<![\s:/])[\s]*([:/])[\s:/]*")
_MAX_RAW_LENGTH = 2_000  # a longer tag is rejected without normalising it


def normalise(tags: Iterable[str], *, field: str = "tags") -> tuple[str, ...]:
    """Return the tags in normal form without repetitions, in the order given.

    Raises InvalidInput naming `field` for an empty or over-long tag (1 – 100 characters) and for more than 64 tags.
    """
    normal: dict[str, None] = {}
    for number, tag in enumerate(tags, start=1):
        normal[_checked(tag, number, field)] = None
    if len(normal) > MAX_TAGS:
        raise InvalidInput(
            field,
            f"{len(normal)} tags are more than the {MAX_TAGS} a memory may have.",
            hint="Keep the ones people will search by; put the rest into the text.",
        )
    return tuple(normal)


def refuse_null_words(tags: Iterable[str], field: str) -> None:
    """Raise InvalidInput for null, none and undefined: a program wrote them where it had no tag."""
    for tag in tags:
        if is_null_word(tag):
            problem = f"{tag!r} is how programs write that there is no tag."
            raise InvalidInput(field, problem, hint="Leave it out, or give a tag.")


def spell(tag: str) -> str:
    """Return one tag in normal form without checking its length; "" if it has no usable character.

    No `#` in front, lower case, composed characters, straight apostrophes, `-` for inner white space, one separator between levels.
    """
    text = nfc(nfc(clean(tag).text).lower()).translate(_APOSTROPHES)
    text = _AROUND_SEPARATOR.sub(r"\1", text.strip().lstrip(_BEFORE_TAG))
    return "-".join(text.strip(_SEPARATORS + " \t\n").split()).strip(_SEPARATORS)


def kind_of(kind: str, field: str) -> str:
    """Return a normalised kind: lower-case letters, digits, - and _, at most 40."""
    normalised = kind.strip().lower()
    if not _KIND.fullmatch(normalised):
        hint = "Use note, semantic, episodic, identity, procedural, decision, bug, or another lower-case word."
        raise InvalidInput(field, f"{kind[:60]!r} is not a kind.", hint=hint)
    return normalised


def _checked(raw: str, number: int, field: str) -> str:
    tag = spell(raw) if len(raw) <= _MAX_RAW_LENGTH else raw
    if not tag:
        raise InvalidInput(
            field, f"tag {number} is empty.", hint="Leave it out, or give it a word."
        )
    if len(tag) > MAX_LENGTH:
        raise InvalidInput(
            field,
            f"tag {number} has {len(tag)} characters; at most {MAX_LENGTH} are allowed.",
            hint="A tag is a label; put sentences into the text.",
        )
    return tag
