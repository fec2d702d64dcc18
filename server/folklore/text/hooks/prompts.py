"""Prompts: what a person asks in a long one, what is private in it, and remarks that ask nothing."""

import re

from folklore.text.hooks.assertions import alternatives

# Characters of a prompt that is asked as it is, and of the beginning and the end of a longer one.
_SHORT = 1_200
_PART = 600
_FENCED = re.compile(r"^(```|~~~).*?(?:^\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_PRIVATE = re.compile(r"<private>.*?(?:</private>|\Z)", re.DOTALL | re.IGNORECASE)

# What a prompt goes on, thanks or stops with. What follows a stop speaks of the work that goes on, unless it asks.
_ASSENT, _HALT, _CHOICE = map(alternatives, ("ASSENT", "HALT", "CHOICE"))
_ASSENT_UNSPACED, _HALT_UNSPACED = map(
    alternatives, ("ASSENT_UNSPACED", "HALT_UNSPACED")
)
_BEGINNING = re.compile(
    rf"(?:(?:(?:please )?(?:{_ASSENT}|(?P<halt>{_HALT}))(?!\w)|{_ASSENT_UNSPACED}|(?P<cut>{_HALT_UNSPACED}))"
    r"[\s,.;!?…、。，！]*)+",
    re.IGNORECASE,
)
# One or several of the things that the assistant has offered.
_CHOICES = re.compile(
    r"(?:(?:let's )?(?:take|pick|choose|use|do|go with|nimm)\s+)?(?:\W*(?:(?:the|option|die|das|den|la|el|le)\s+)*"
    rf"(?:{_CHOICE})(?:\s+(?:of them|one|option|two|please|bitte))*(?:\s+(?:and|und|y|et|e))?(?!\w))*\W*",
    re.IGNORECASE,
)
_SESSION = re.compile(alternatives("SESSION"), re.IGNORECASE)
# Words and characters of a remark, and words after phrases. A path, a number or a name asks something.
_WORDS = 10
_CHARACTERS = 80
_REST = 2
_CODE = re.compile(r"[\d_/`\\]|\w\.\w|[a-z][A-Z]")
# about a word of a script without spaces
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]{3}")


def question_in(prompt: str) -> str:
    """Return what a prompt asks: itself, or of a long one the beginning and the end without what was pasted."""
    if len(prompt) <= _SHORT:
        return prompt
    prose = _FENCED.sub("\n", prompt).strip() or prompt
    if len(prose) <= _SHORT:
        return prose
    beginning = _without_last_word(prose[:_PART])
    # The end, read backwards: its first word may be cut.
    end = _without_last_word(prose[-_PART:][::-1])[::-1]
    return f"{beginning}\n{end}"


def without_private(text: str) -> str:
    """Return a text without what its author marked as private: to the end if a mark is not closed, and from the
    beginning if it is not opened, since the middle of a long prompt is not read.
    """
    return _PRIVATE.sub("", text).rpartition("</private>")[2]


def is_remark(prompt: str) -> bool:
    """Return whether a prompt only goes on, stops, thanks or chooses: "continue", "yes do that", "no, the second one".

    What follows in it may be a task: "ok, add a retry".
    """
    text = prompt.strip().replace("\u2019", "'")
    if len(text) > _CHARACTERS or len(text.split()) > _WORDS:
        return False
    phrases = _BEGINNING.match(text)
    rest = text[phrases.end() :] if phrases else text
    if _CHOICES.fullmatch(rest) or _SESSION.match(text) or _SESSION.match(rest):
        return True
    if phrases is None or _CODE.search(text):
        return False
    asks = "?" in rest or "\uff1f" in rest
    if (phrases["halt"] or phrases["cut"]) and not asks:
        return True
    return len(rest.split()) <= _REST and len(_UNSPACED.findall(rest)) <= _REST


def _without_last_word(text: str) -> str:
    """Return a text without its last word, which may be cut."""
    if " " not in text.strip():
        return text
    return text.rsplit(maxsplit=1)[0]
