"""Marks that name a speaker to clients and models: no text that a writer of memories wrote may have one.

Marks of XML (`</system-reminder>`), of chat templates (`<|im_end|>`, `[/INST]`, `<<SYS>>`), and our own
(`<folklore-notes>`), in any case, width and spacing, with invisible characters between their letters.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import islice

from folklore.text.clean import clean

# The bracket that begins a mark, and those that look like it; what ends one.
_ANGLE = re.compile(
    "[<\uff1c\ufe64\u2039\u3008\u27e8\u2329\u276c\u276e\u2770\u02c2\u1438]"
)
_SQUARE = re.compile(r"[\[\uff3b\u3014\u3010\u27e6\u301a\u2772]")
_ANGLE_END = re.compile("[>\uff1e\ufe65\u203a\u3009\u27e9\u232a\u276d\u276f\u2771]")
_SQUARE_END = re.compile(r"[\]\uff3d\u3015\u3011\u27e7\u301b\u2773]")
_PIPE = re.compile(r"\s*(?:[/\u2044\u2215]\s*)?[|\uff5c\u2223\u01c0]")
_CLOSING = re.compile(r"\s*[/\u2044\u2215\uff0f]")
# The letters of marks that may be followed by anything, such as attributes.
_BEGINNINGS = ("folklorenotes", "systemreminder")
_PREFIX = "antml"
# The letters of marks, also before attributes.
_ANGLE_MARKS = frozenset(
    """
    system systemprompt systemmessage systeminstruction systeminstructions systemnote systemwarning sys
    assistant developer human think thinking
    functioncalls functioncall functionresults functionresult functions invoke
    tooluse toolcall toolcalls toolresult toolresults toolresponse tooluseerror
    userpromptsubmithook userpromptsubmit localcommandstdout localcommandstderr localcommandcaveat
    commandname commandmessage commandargs bashinput bashstdout bashstderr additionalcontext
    environmentdetails environmentcontext userinstructions userquery
    imstart imend imsep startofturn endofturn startheaderid endheaderid eotid eomid beginoftext endoftext
    beginofsentence endofsentence bos eos pythontag
    """.split()
)
# Words that are marks only where they end something: code and placeholders have them as they begin.
_ANGLE_ENDS = frozenset(("s", "user", "tool", "instructions", "context"))
_SQUARE_MARKS = frozenset(
    "inst sys systemprompt toolcalls toolresults availabletools endofturn".split()
)
# More letters than any mark has.
_MOST = 40
# A sign that no text should hold. It stands before a character that is escaped when the text is JSON.
_SIGN = "\ufdd0"
_AFTER_SIGN = re.compile(f"{_SIGN}(.)")


def encoded(text: str) -> str:
    """Return a text in one line in which nothing reads as a mark, ours or another's. Takes its own result as it is."""
    return neutralised(" ".join(clean(text).text.split()))


def neutralised(line: str) -> str:
    """Return a text in which nothing reads as a mark: the bracket of what could is written `&lt;` or `&#91;`.

    Other brackets stay, so that code and HTML remain readable. Takes its own result as it is.
    """
    text = line
    while brackets := mark_indexes(text):  # the letters of an escape may make a mark
        escaped = list(text)
        for index in brackets:
            escaped[index] = "&lt;" if _ANGLE.match(text, index) else "&#91;"
        text = "".join(escaped)
    return text


def json_text(value: object, separators: tuple[str, str] | None = None) -> str:
    """Return a value as JSON in which no text reads as a mark: the bracket is written as `\\u003c`, which means it."""
    text = json.dumps(_with_signs(value), ensure_ascii=False, separators=separators)
    return _AFTER_SIGN.sub(lambda match: f"\\u{ord(match[1]):04x}", text)


def _with_signs(value: object) -> object:
    """Return a JSON value with the sign before each bracket that begins a mark, and before the sign itself."""
    if isinstance(value, str):
        return _text_with_signs(value)
    if isinstance(value, dict):
        return {_with_signs(name): _with_signs(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_signs(item) for item in value]
    return value


def _text_with_signs(text: str) -> str:
    if text.isascii() and "<" not in text and "[" not in text:
        return text  # most texts, and many times faster than the search for marks
    signs = [match.start() for match in re.finditer(_SIGN, text)]
    indexes = mark_indexes(text) + signs
    if not indexes:
        return text
    chars = list(text)
    for index in indexes:
        chars[index] = _SIGN + chars[index]
    return "".join(chars)


def mark_indexes(text: str) -> list[int]:
    """Return the indexes of the brackets with which a mark begins."""
    angles = _marks_of(text, _ANGLE, _is_angle_mark)
    squares = _marks_of(text, _SQUARE, _is_square_mark)
    return sorted([*angles, *squares])


def _marks_of(
    text: str, bracket: re.Pattern[str], is_mark: Callable[[str], bool]
) -> list[int]:
    """Return the indexes of the brackets with which a mark begins.

    The text that makes a bracket a mark ends at the next bracket. But one that begins a mark will be escaped, so the
    text of the bracket before it then goes on to the one after: that bracket is looked at again. A mark has at most
    forty letters, so that few go on beyond several.
    """
    begins = [match.start() for match in bracket.finditer(text)]
    ends = [*begins[1:], len(text)]
    # The numbers of brackets that begin no mark; a dictionary without values is a set that keeps its order.
    harmless = dict.fromkeys(range(len(begins)))
    candidates = list(harmless)
    while candidates:
        marks = []
        for number in candidates:
            if is_mark(text[begins[number] + 1 : ends[number]]):
                marks.append(number)

        extended: dict[int, None] = {}
        for number in reversed(marks):
            del harmless[number]
            before = number - 1
            while before >= 0 and before not in harmless:
                before -= 1
            if before >= 0:
                ends[before] = ends[number]
                extended[before] = None
        candidates = [number for number in extended if number in harmless]
    return [begin for number, begin in enumerate(begins) if number not in harmless]


def _is_square_mark(part: str) -> bool:
    """Return whether the text after a square bracket makes it a mark, such as `/INST]`."""
    inner = _SQUARE_END.split(part, maxsplit=1)[0]
    return _is_one_of(_letters_of(inner), _SQUARE_MARKS)


def _is_angle_mark(part: str) -> bool:
    """Return whether the text after an angle bracket makes it a mark, such as `/system>`."""
    inner, *after_end = _ANGLE_END.split(part, maxsplit=1)
    letters = _letters_of(inner)
    if letters.startswith(_PREFIX):
        return True
    if any(_begins(letters, beginning) for beginning in _BEGINNINGS):
        return True
    if _PIPE.match(inner) and 0 < len(letters) < _MOST and after_end:
        ends_with_pipe = inner.rstrip().endswith(("|", "\uff5c"))
        return ends_with_pipe or _is_one_of(letters, _ANGLE_MARKS)

    names = _ANGLE_MARKS
    if _CLOSING.match(inner):
        names |= _ANGLE_ENDS
    first_word = _letters_of(" ".join(inner.split(maxsplit=1)[:1]))
    return _is_one_of(letters, names) or _is_one_of(first_word, names)


def _letters_of(text: str) -> str:
    return "".join(islice(_letters(text), _MOST))


def _letters(text: str) -> Iterator[str]:
    for char in text:
        if not char.isascii():
            char = unicodedata.normalize("NFKD", char)[0]
        if char.isalnum():
            yield char.lower()[0]


def _begins(letters: str, name: str) -> bool:
    """Return whether letters begin as a long name does. A letter of another alphabet may look like any of it."""
    if len(letters) < len(name):
        return False
    pairs = zip(letters, name, strict=False)
    return all(letter == other or not letter.isascii() for letter, other in pairs)


def _is_one_of(letters: str, names: frozenset[str]) -> bool:
    """Return whether letters are those of a name, with at most every other one of another alphabet."""
    if letters in names:
        return True
    foreign = sum(not letter.isascii() for letter in letters)
    if foreign == 0 or 2 * foreign > len(letters):
        return False
    return any(len(name) == len(letters) and _begins(letters, name) for name in names)
