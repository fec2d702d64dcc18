"""Prompts: what a person asks in a long one, what is private in it, and remarks that ask nothing."""

import re

# Characters of a prompt that is asked as it is, and of the beginning and the end of a longer one.
_SHORT, _PART = 1_200, 600
_FENCED = re.compile(r"^(```|~~~).*?(?:^\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_PRIVATE = re.compile(r"<private>.*?(?:</private>|\Z)", re.DOTALL | re.IGNORECASE)

# What a person says to go on, to stop or to thank, in the languages of text/hooks/statements.py.
_PHRASES = (
    "yes|yep|yeah|yup|ok|okay|sure|no|nope|thanks|thank you|thx|great|good|nice|cool|perfect|fine|continue|go on|"
    "go ahead|proceed|next|next one|stop|wait|hold on|undo|revert|again|try again|do it|do that|keep going|"
    "sounds good|looks good|lgtm|that's it|that's all|that's fine|never mind|forget it|hello|hi|hey|hmm?|"
    "ja|nein|nee|doch|danke|weiter|mach weiter|mach das|nochmal|noch mal|stopp|warte|moment|super|gut|passt|genau|"
    "perfekt|hallo|was hast du|sí|si|vale|gracias|sigue|continúa|adelante|perfecto|otra vez|espera|hazlo|bien|hola|oui|"
    "non|merci|vas-y|d'accord|parfait|encore|attends|salut|sim|não|obrigad[oa]|continua|segue|perfeito|de novo|olá|sì|"
    "grazie|vai|vai avanti|perfetto|ancora|aspetta|va bene|ciao|bedankt|dank je|ga door|ga verder|verder|prima|goed|"
    "nog een keer|wacht|doe maar|doe dat|да|нет|спасибо|продолжай|дальше|давай|хорошо|отлично|ещё раз|стоп|подожди|"
    "ладно|привет"
)
_UNSPACED = (
    "好的?|好吧|是的?|对|继续|繼續|谢谢|謝謝|停|等等|再来|可以|行|嗯|下一个|はい|いいえ|ありがとう|続けて|お願い|了解|次|"
    "やめて|待って|もう一度"
)
_PHRASE = rf"(?:(?:please )?(?:{_PHRASES})(?!\w)|{_UNSPACED})"
# Phrases with a pause after them, phrases alone, and questions about the session itself.
_PAUSE = re.compile(rf"(?:{_PHRASE}\s*)+(?:[,.;!?…、。，！]|\Z)", re.IGNORECASE)
_BEGINNING = re.compile(rf"(?:{_PHRASE}[\s,]*)+", re.IGNORECASE)
_SESSION = re.compile(
    r"what (?:did|have) you|what were we doing|are you (?:still|there|done|ready)|summari[sz]e what you|that's it for",
    re.IGNORECASE,
)
# Words and characters of a remark, and words after phrases without a pause. A path, a number or a name asks something.
_WORDS, _CHARACTERS, _REST = 10, 80, 2
_CODE = re.compile(r"[\d_/`\\]|\w\.\w|[a-z][A-Z]")


def asked(prompt: str) -> str:
    """Return what a prompt asks: itself, or of a long one the beginning and the end without what was pasted."""
    if len(prompt) <= _SHORT:
        return prompt
    prose = _FENCED.sub("\n", prompt).strip() or prompt
    if len(prose) <= _SHORT:
        return prose
    return f"{_to_word(prose[:_PART])}\n{_to_word(prose[-_PART:][::-1])[::-1]}"


def without_private(text: str) -> str:
    """Return a text without what its author marked as private: to the end if a mark is not closed, and from the
    beginning if it is not opened, since the middle of a long prompt is not read.
    """
    return _PRIVATE.sub("", text).rpartition("</private>")[2]


def is_remark(prompt: str) -> bool:
    """Return whether a prompt only goes on, stops or thanks: "continue", "yes do that", "no, the second option"."""
    text = prompt.strip().replace("\u2019", "'")
    if not text or len(text) > _CHARACTERS or _CODE.search(text):
        return False
    if len(text.split()) > _WORDS:
        return False
    if _PAUSE.match(text) or _SESSION.match(text):
        return True
    phrases = _BEGINNING.match(text)
    return phrases is not None and len(text[phrases.end() :].split()) <= _REST


def _to_word(text: str) -> str:
    """Return a text without its last word, which may be cut."""
    return text.rsplit(maxsplit=1)[0] if " " in text.strip() else text
