"""Tokens of the keyword query language: the rules that separate syntax from text.

Most queries are prose or code, where quotes, dashes, stars, brackets and capitals have other meanings. In doubt each
rule chooses text: text taken for syntax hides memories, syntax taken for text only finds a few more.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, cast

# From this character on, scripts without spaces are read as pairs of characters (folklore_words).
PAIRED = "\u0e00"
Column = Literal["content", "summary", "tag", "source"]
Kind = Literal["word", "phrase", "and", "or", "not", "open", "close", "column"]

_OPERATOR = re.compile(r'(AND|OR|NOT)(?=[\s()"]|$)')
_COLUMN = re.compile(r"(content|summary|tag|source):(?=[^\s)])")
_BEFORE_EXCLUSION = re.compile(r"[\s(]")
_EXCLUDED_WORD = re.compile(r"[^\W\d_][\w.'/:+#*-]*(?=[\s)]|$)")
_COMMAND_LINE = re.compile(
    r"(?:^|\s)(?:--[A-Za-z]|-[A-Za-z](?=\s|$)|-[A-Za-z]\w*[=\d])"
)
_PUNCTUATION_ONLY = re.compile(r"[!-/:-@\[-`{-~]+")
# fmt: off
_FLAGS = frozenset([
    "rf", "fr", "la", "al", "lah", "it", "ti", "itd", "aux", "ef", "xzf", "xvf", "xvzf", "zxvf", "czf", "cvf", "jar",
    "exec", "maxdepth",
])
# "NOT" is no operator before these words (SQL) and after those (emphasis: "must NOT restart").
_SQL_AFTER_NOT = frozenset([
    "NULL", "EXISTS", "IN", "LIKE", "ILIKE", "BETWEEN", "DISTINCT", "SIMILAR", "VALID", "DEFERRABLE", "MATERIALIZED",
    "FOUND",
])
_EMPHASIS_BEFORE_NOT = frozenset([
    "am", "is", "are", "was", "were", "be", "been", "do", "does", "did", "has", "have", "had", "must", "should",
    "shall", "can", "could", "will", "would", "may", "might", "if", "why", "it's", "please",
])
# fmt: on


@dataclass(frozen=True, slots=True)
class Token:
    """A token: `text` of a word, a phrase or an operator as written, `column` of a column, `prefix` of `word*`."""

    kind: Kind
    text: str = ""
    prefix: bool = False
    column: Column | None = None


def tokenise(text: str) -> tuple[Token, ...]:
    """Split one line of clean text into tokens in linear time.

    Returns nothing if no token is syntax, or if a quotation is never closed: such a text is no expression.
    """
    reader = _Reader(text)
    tokens = _without_capital_sentences(list(_without_emphasis(list(reader.read()))))
    is_syntax = any(
        token.prefix or token.kind not in ("word", "open", "close") for token in tokens
    )
    return tuple(tokens) if is_syntax and not reader.unclosed else ()


class _Reader:
    """A single pass over a query from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.unclosed = False
        self._code_brackets = 0  # opened inside words, as in `f(x, y)`
        self._emphasis = False  # between `*two` and `words*`
        self._command_line = bool(_COMMAND_LINE.search(text))

    def read(self) -> Iterator[Token]:
        """Yield the tokens in order."""
        while self.position < len(self.text):
            char = self.text[self.position]
            if char.isspace():
                self.position += 1
            elif char == "(":
                yield self._sign("open")
            elif char == ")":
                yield from self._closing()
            elif operator := _OPERATOR.match(self.text, self.position):
                self.position = operator.end()
                yield Token(cast("Kind", operator[1].lower()), operator[1])
            elif char == "-" and self._excludes():
                yield self._sign("not")
                if self.text[self.position] == "(":
                    yield self._sign("open")
                else:
                    yield from self._operand()
            else:
                yield from self._operand()

    def _sign(self, kind: Kind) -> Token:
        self.position += 1
        return Token(kind)

    def _closing(self) -> Iterator[Token]:
        self.position += 1
        if self._code_brackets:
            self._code_brackets -= 1
        else:
            yield Token("close")

    def _excludes(self) -> bool:
        """Return whether this dash excludes what follows: `-word`, `-"two words"`, `-(a b)`, `-tag:x`."""
        previous = self.text[max(self.position - 1, 0) : self.position]
        begins_word = not previous or _BEFORE_EXCLUSION.match(previous)
        if self._command_line or not begins_word:
            return False
        start = self.position + 1
        if self.text.startswith(("(", '"'), start) or _COLUMN.match(self.text, start):
            return True
        word = _EXCLUDED_WORD.match(self.text, start)
        return word is not None and word.group() not in _FLAGS

    def _operand(self) -> Iterator[Token]:
        """Read a word, a phrase, or a column and its operand."""
        if column := _COLUMN.match(self.text, self.position):
            self.position = column.end()
            yield Token("column", column=cast("Column", column[1]))
            if self.text[self.position] == "(":
                yield self._sign("open")
                return
        if self.text[self.position] == '"':
            yield from self._phrase(required=column is not None)
        else:
            yield from self._word(required=column is not None)

    def _phrase(self, *, required: bool) -> Iterator[Token]:
        if self.unclosed:
            end = -1
        else:
            end = self.text.find('"', self.position + 1)
        if end < 0:
            self.unclosed = True
            self.position += 1
            return
        words = self.text[self.position + 1 : end].strip()
        self.position = end + 1
        if required or any(char.isalnum() for char in words):
            yield Token("phrase", words)

    def _word(self, *, required: bool) -> Iterator[Token]:
        start = self.position
        self._skip_word()
        word = self.text[start : self.position]
        if required or not _PUNCTUATION_ONLY.fullmatch(word):
            yield self._starred(word.rstrip(",;.!?") or word)

    def _skip_word(self) -> None:
        """Skip to white space, a closing bracket that the word did not open, or a quotation that begins."""
        start = self.position
        depth = 0
        while self.position < len(self.text):
            char = self.text[self.position]
            if char.isspace() or (char == ")" and depth == 0):
                break
            if char == '"' and self.position > start:
                follows_word = self.text[self.position - 1].isalnum()
                if not follows_word:
                    break
            if char == "(":
                depth += 1
            elif char == ")":
                depth -= 1
            self.position += 1
        self._code_brackets += depth

    def _starred(self, word: str) -> Token:
        """Distinguish the prefix `word*` from `*emphasis*` and `*two words*`."""
        opens = word.startswith("*")
        closes = word.endswith("*")
        core = word.strip("*") if closes else word
        within = self._emphasis
        self._emphasis = (self._emphasis or opens) and not closes
        prefix = closes and not opens and not within and _is_selective(core)
        return Token("word", core or word, prefix)


def _is_selective(prefix: str) -> bool:
    """Return whether a prefix has two letters or digits, or one beyond ASCII, and ends with a word character."""
    letters = sum(char.isalnum() for char in prefix)
    long_enough = letters > 1 or (letters == 1 and not prefix.isascii())
    return long_enough and (prefix[-1].isalnum() or prefix[-1] == "_")


def _without_emphasis(tokens: list[Token]) -> Iterator[Token]:
    """Turn a NOT of SQL or of emphasis into a word."""
    words = [token.text if token.kind == "word" else "" for token in tokens]
    triples = zip(["", *words], tokens, [*words[1:], ""], strict=False)
    for previous, token, following in triples:
        is_sql = following in _SQL_AFTER_NOT
        is_emphasis = previous.lower() in _EMPHASIS_BEFORE_NOT
        if token.kind == "not" and token.text and (is_sql or is_emphasis):
            yield replace(token, kind="word")
        else:
            yield token


def _without_capital_sentences(tokens: list[Token]) -> list[Token]:
    """Turn the operators of a sentence in capitals into words.

    Such a sentence has adjacent words and no lower-case letter. `GPU OR CPU` remains an expression, because its words
    alternate with operators.
    """
    words = "".join(token.text for token in tokens if token.kind == "word")
    has_adjacent = any(a.kind == b.kind == "word" for a, b in pairwise(tokens))
    if not has_adjacent or not words.isupper():
        return tokens
    results = []
    for token in tokens:
        is_operator = token.kind in ("and", "or", "not") and token.text
        results.append(replace(token, kind="word") if is_operator else token)
    return results
