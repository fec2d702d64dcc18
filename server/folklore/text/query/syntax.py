"""The marks of the keyword query language: which characters of a query are syntax and which are only text.

Most queries are prose or code, where quotes, dashes, stars, brackets and capitals mean something else. Each rule here
decides for text when in doubt: taking text for syntax loses memories, taking syntax for text only finds a few more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, cast

Column = Literal["content", "summary", "tag", "source"]
Kind = Literal["word", "phrase", "and", "or", "not", "open", "close", "column"]

_OPERATOR = re.compile(r'(AND|OR|NOT)(?=[\s()"]|$)')
_COLUMN = re.compile(r"(content|summary|tag|source):(?=[^\s)])")
_OPENS = re.compile(r"[\s(]")
_EXCLUDED_WORD = re.compile(r"[^\W\d_][\w.'/:+#*-]*(?=[\s)]|$)")
_COMMAND_LINE = re.compile(r"(?:^|\s)(?:--[A-Za-z]|-[A-Za-z](?=\s|$)|-[A-Za-z]\w*[=\d])")
_PUNCTUATION_ONLY = re.compile(r"[!-/:-@\[-`{-~]+")
# fmt: off
_FLAGS = frozenset([
    "rf", "fr", "la", "al", "lah", "it", "ti", "itd", "aux", "ef", "xzf", "xvf", "xvzf", "zxvf", "czf", "cvf", "jar",
    "exec", "maxdepth",
])
# "NOT" is no operator before these (SQL) and after those (emphasis: "must NOT restart").
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
    """One mark or piece of text. `text` is a column's name for a column; `prefix` marks `word*`."""

    kind: Kind
    text: str = ""
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Tokens:
    """A query in pieces. `expert` says some piece is syntax, `unclosed` that a quotation was never closed."""

    tokens: tuple[Token, ...]
    expert: bool
    unclosed: bool


def tokenise(text: str) -> Tokens:
    """Tell syntax from text in one line of clean text. Linear in its length, and never fails."""
    reader = _Reader(text)
    tokens = _without_shouting(list(_without_emphasis(list(reader.read()))))
    expert = any(token.prefix or token.kind not in ("word", "open", "close") for token in tokens)
    return Tokens(tuple(tokens), expert, reader.unclosed)


class _Reader:
    """Walks once over a query from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.unclosed = False
        self._code_brackets = 0  # opened inside words, as in `f(x, y)`
        self._emphasis = False  # between `*two` and `words*`
        self._command_line = bool(_COMMAND_LINE.search(text))

    def read(self) -> Iterator[Token]:
        """Give the tokens in order."""
        while self.place < len(self.text):
            char = self.text[self.place]
            if char.isspace():
                self.place += 1
            elif char == "(":
                yield self._mark("open")
            elif char == ")":
                yield from self._closing()
            elif operator := _OPERATOR.match(self.text, self.place):
                self.place = operator.end()
                yield Token(cast("Kind", operator[1].lower()), operator[1])
            elif char == "-" and self._excludes():
                yield self._mark("not")
                yield from self._operand() if self.text[self.place] != "(" else [self._mark("open")]
            else:
                yield from self._operand()

    def _mark(self, kind: Kind) -> Token:
        self.place += 1
        return Token(kind)

    def _closing(self) -> Iterator[Token]:
        self.place += 1
        if self._code_brackets:
            self._code_brackets -= 1
        else:
            yield Token("close")

    def _excludes(self) -> bool:
        """Say whether the dash here excludes what follows: `-word`, `-"two words"`, `-(a b)`, `-tag:x`."""
        start = self.place + 1
        if self._command_line or (self.place and not _OPENS.match(self.text, self.place - 1)):
            return False
        if self.text[start : start + 1] in ("(", '"') or _COLUMN.match(self.text, start):
            return True
        word = _EXCLUDED_WORD.match(self.text, start)
        return word is not None and word.group() not in _FLAGS

    def _operand(self) -> Iterator[Token]:
        """Read a word, a phrase, or a column's name and what stands right after it."""
        if column := _COLUMN.match(self.text, self.place):
            self.place = column.end()
            yield Token("column", column[1])
            if self.text[self.place] == "(":
                yield self._mark("open")
                return
        if self.text[self.place] == '"':
            yield from self._phrase(needed=column is not None)
        else:
            yield from self._word(needed=column is not None)

    def _phrase(self, *, needed: bool) -> Iterator[Token]:
        end = -1 if self.unclosed else self.text.find('"', self.place + 1)
        if end < 0:
            self.unclosed = True
            self.place += 1
            return
        words = self.text[self.place + 1 : end].strip()
        self.place = end + 1
        if needed or any(char.isalnum() for char in words):
            yield Token("phrase", words)

    def _word(self, *, needed: bool) -> Iterator[Token]:
        start, depth = self.place, 0
        while self.place < len(self.text):
            char = self.text[self.place]
            if char == "(":
                depth += 1
            elif char == ")":
                if not depth:
                    break
                depth -= 1
            elif char.isspace() or (char == '"' and not self.text[self.place - 1].isalnum() and self.place > start):
                break
            self.place += 1
        self._code_brackets += depth
        word = self.text[start : self.place]
        if needed or not _PUNCTUATION_ONLY.fullmatch(word):
            yield self._starred(word.rstrip(",;.!?") or word)

    def _starred(self, word: str) -> Token:
        """Tell `word*` from `*emphasis*`. A prefix has two letters or digits at least, or one that is not ASCII."""
        opens, closes = word.startswith("*"), word.endswith("*")
        core = word.strip("*") if closes else word
        within, self._emphasis = self._emphasis, (self._emphasis or opens) and not closes
        letters = sum(char.isalnum() for char in core)
        long_enough = letters > 1 or (letters == 1 and not core.isascii())
        prefix = closes and not opens and not within and long_enough and (core[-1].isalnum() or core[-1] == "_")
        return Token("word", core or word, prefix)


def _without_emphasis(tokens: list[Token]) -> Iterator[Token]:
    """Turn a NOT of SQL or of emphasis into a word."""
    for place, token in enumerate(tokens):
        before = tokens[place - 1] if place else None
        after = tokens[place + 1] if place + 1 < len(tokens) else None
        if token.kind == "not" and token.text and (_is_sql(after) or _emphasises(before)):
            yield replace(token, kind="word")
        else:
            yield token


def _is_sql(after: Token | None) -> bool:
    return after is not None and after.kind == "word" and after.text in _SQL_AFTER_NOT


def _emphasises(before: Token | None) -> bool:
    return before is not None and before.kind == "word" and before.text.lower() in _EMPHASIS_BEFORE_NOT


def _without_shouting(tokens: list[Token]) -> list[Token]:
    """Turn the operators of an all-capitals sentence into words: two words side by side and not one lower-case letter.

    `GPU OR CPU` stays an expression, since its words alternate with operators.
    """
    words = "".join(token.text for token in tokens if token.kind == "word")
    side_by_side = any(a.kind == b.kind == "word" for a, b in pairwise(tokens))
    if not (side_by_side and words.isupper()):
        return tokens
    return [
        replace(token, kind="word") if token.kind in ("and", "or", "not") and token.text else token for token in tokens
    ]
