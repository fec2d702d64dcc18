"""Text cleaning: removal of invisible characters, Unicode composition, and digests for exact duplicates.

Invisible characters are the usual carrier of instructions that a model reads and a person does not see: Unicode tags,
bidirectional overrides, runs of variation selectors. Postgres rejects NUL and lone surrogates.
"""

import hashlib
import re
import textwrap
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

# A regular expression, not str.translate: 0.24 ms for 32,000 characters in any script, where translate needs 1.3 ms
# if a single character is not ASCII.
_INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"  # C0 and C1 controls; those that break a line are in _LINE_BREAKS
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180e\u3164\uffa0"  # soft hyphen, fillers and other letters without a shape
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional marks, embeddings, overrides, isolates
    "\u200b\u2060-\u2065\u206a-\u206f\ufeff"  # zero width, invisible operators, deprecated formats, byte order mark
    "\ufff9-\ufffb\U0001d173-\U0001d17a"  # interlinear annotations, musical formats
    "\U000e0000-\U000e007f"  # tags; the flag of a region loses its tags and becomes a plain black flag
    "\ud800-\udfff"  # lone surrogates
    "]+"
)
# Terminal escape sequences: colours, cursor moves, titles, hyperlinks. Without the whole sequence, "[0m" would remain.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_LINE_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_EMPTY_LINES = re.compile("\n{3,}")
_BLANK_LINE = re.compile(r"\n[ \t]+(?=\n)")
_NOT_A_TAB = re.compile("[^\t]")
_JOINERS = "\u200c\u200d"
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_JOINERS_AND_SELECTORS = re.compile(f"[{_JOINERS}{_SELECTORS}]+")
_JOINING_SCRIPT = re.compile("[\u0600-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u18af]")
_EMOJI = re.compile(
    "[\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff\U0001f000-\U0001faff]"
)
_VIRAMA = 9  # canonical combining class
# Normalising a run of combining marks takes quadratic time: 0.8 s for 32,000 marks. Readable text never has 30 in a row
# (UAX #15, stream-safe text), so such runs are not normalised.
_LONG_RUN = 30
_LONG_MARK_RUN = re.compile(rf"([^\w\s\x00-\x7f]{{{_LONG_RUN},}})")

_JSON_SURROGATES = re.compile(
    rb"\\\\"  # an escaped backslash: a following "u" is a plain letter
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a complete pair
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """Text without invisible characters, and the number of characters removed."""

    text: str
    removed: int


def clean(text: str) -> Cleaned:
    """Remove invisible characters: controls, escapes, overrides, zero-width characters, tags, lone surrogates.

    Every line break becomes a newline; tabs remain. A joiner remains between emoji and within Arabic, Indic and related
    scripts, where it changes the rendering. One variation selector may follow a visible character. Idempotent.
    """
    lines = _LINE_BREAKS.sub("\n", text)
    visible = _INVISIBLE.sub("", _ESCAPES.sub("", lines))
    visible = _JOINERS_AND_SELECTORS.sub(_meaningful, visible)
    return Cleaned(visible, len(lines) - len(visible))


def cleaned(value: Any) -> Any:
    """Return a JSON value with every text in it cleaned, keys too. Raises RecursionError for one nested too deep."""
    if isinstance(value, str):
        return clean(value).text
    if isinstance(value, Mapping):
        return {cleaned(str(key)): cleaned(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(cleaned(entry) for entry in value)
    return value


def nfc(text: str) -> str:
    """Compose characters (Unicode normal form C) in time linear in the length of any text."""
    return normal_form("NFC", text)


def normal_form(form: Literal["NFC", "NFKD"], text: str) -> str:
    """Return a text in a Unicode normal form, in time linear in its length."""
    bytes_beyond_ascii = len(text.encode("utf-8", "surrogatepass")) - len(text)
    if bytes_beyond_ascii < _LONG_RUN:
        return unicodedata.normalize(form, text)  # too few for a long run

    normal = ""
    end = 0
    for marks in _LONG_MARK_RUN.finditer(text):
        normal += unicodedata.normalize(form, text[end : marks.start()]) + marks[0]
        end = marks.end()
    return normal + unicodedata.normalize(form, text[end:])


def trimmed(text: str) -> str:
    """Return a text without blanks around it, and without the indentation that all of its lines share.

    A list that was pasted with an indent keeps the depth of its entries.
    """
    lines = _LINE_BREAKS.sub("\n", text)
    if lines[:1].isspace():
        lines = textwrap.dedent(lines)
    else:  # the first line has no indentation, so all share none
        lines = _BLANK_LINE.sub("\n", lines)
    return lines.strip()


def digest(text: str) -> bytes:
    """Return the SHA-256 of what a text says: composed, line by line.

    Texts share a digest that differ in the blanks around them, between words or at the end of a line, in the kind of
    line break, in the number of empty lines between two others, or in the encoding of accents. Indentation and the
    borders of lines count, as do case and punctuation: in a list or in code, they say what belongs to what.
    """
    lines = map(_with_single_blanks, nfc(trimmed(text)).split("\n"))
    canonical = _EMPTY_LINES.sub("\n\n", "\n".join(lines))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).digest()


def former_digest(text: str) -> bytes:
    """Return the digest that earlier versions gave a text, in which each run of white space was one blank."""
    words = " ".join(nfc(text).split())
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).digest()


def _with_single_blanks(line: str) -> str:
    """Return a line with one blank between words and its indentation, of which tabs alone differ from blanks."""
    words = " ".join(line.split())
    if not words or not line[0].isspace():
        return words
    indentation = line[: len(line) - len(line.lstrip())]
    return _NOT_A_TAB.sub(" ", indentation) + words


def replace_lone_surrogates(json: bytes) -> bytes:
    r"""Replace each escaped surrogate without its pair by an escaped NUL of the same length, which `clean` removes.

    JavaScript writes half of an emoji as "\ud83d" if a text was cut in the middle of it. Some JSON parsers accept it,
    others reject the whole document.
    """
    if b"\\ud" not in json and b"\\uD" not in json:
        return json
    return _JSON_SURROGATES.sub(_without_lone_surrogate, json)


def _without_lone_surrogate(match: re.Match[bytes]) -> bytes:
    is_lone = match[1] is not None
    return rb"\u0000" if is_lone else match[0]


def _meaningful(run: re.Match[str]) -> str:
    """Return the characters of a run of joiners and selectors that change how its two neighbours are rendered."""
    text = run.string
    previous = text[max(run.start() - 1, 0) : run.start()] or " "
    following = text[run.end() : run.end() + 1] or " "
    joiners = [char for char in run[0] if char in _JOINERS]
    selectors = [char for char in run[0] if char not in _JOINERS]

    meaningful = ""
    if selectors and not previous.isspace():
        meaningful += selectors[0]
    if joiners and _joins(previous, following, joiners[-1]):
        meaningful += joiners[-1]
    return meaningful


def _joins(previous: str, following: str, joiner: str) -> bool:
    """Return whether a joiner changes how the characters on both sides of it are rendered."""
    if _JOINING_SCRIPT.match(previous):
        makes_half_form = unicodedata.combining(previous) == _VIRAMA
        return makes_half_form or bool(_JOINING_SCRIPT.match(following))
    between_emoji = _EMOJI.match(previous) and _EMOJI.match(following)
    return joiner == "\u200d" and bool(between_emoji)
