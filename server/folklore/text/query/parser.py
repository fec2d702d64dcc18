"""The keyword query language: bare words, or an expression of words, phrases, columns and operators.

    connection pool timeout              any of the words; the rare ones count most
    "connection pool" timeout            a phrase or a word
    redis AND (cluster OR sentinel)      AND binds closer than OR
    redis -cluster    redis NOT cluster  without a word, phrase, column or group
    authent*                             every word that begins so
    tag:billing  summary:"rate limit"    in one column only: content, summary, tag, source

Words side by side are joined by OR, in an expression too. A negation right after AND or OR is an operand of it; any
other one excludes from its whole group: `redis cache -cluster` is `(redis OR cache) AND NOT cluster`. Operators are
upper case. Prose and code are no expressions: `foo(bar)`, `--no-verify`, `grep -v`, `NOT NULL`, a shouted sentence,
anything of several lines or over 2,000 characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from folklore.text.clean import clean
from folklore.text.query.syntax import Column, Token, tokenise

MAX_BAG = 32_000
MAX_EXPRESSION = 2_000
MAX_TERMS = 64
MAX_DEPTH = 32

Operator = Literal["&", "|", "!"]
Program = tuple[Operator | int, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """One operand of an expression: words as typed, which the database cuts into lexemes of its language.

    `prefix`: the last lexeme may go on. `phrase`: the words stood in quotes. `column`: only there. `negated`: under an
    odd number of negations, so it is no evidence that a memory fits.
    """

    text: str
    prefix: bool = False
    phrase: bool = False
    column: Column | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    """A parsed query. `bag` holds the words that speak for a memory, to be joined by OR.

    `program` is the expression in postfix order over `terms`, empty for bare words: numbers are places in `terms`,
    `&` and `|` take two operands, `!` one. `malformed`: there was syntax, but broken, so only the bag counts.
    """

    bag: str
    phrases: tuple[str, ...] = ()
    terms: tuple[Term, ...] = ()
    program: Program = ()
    malformed: bool = False

    @property
    def expert(self) -> bool:
        """True when an expression is to be obeyed."""
        return bool(self.program)

    @property
    def only_negative(self) -> bool:
        """True when a memory with none of the words satisfies the expression (`-a`, `a OR NOT b`).

        No index can serve it alone: the caller needs other filters, or ranks by another branch.
        """
        return bool(self.program) and _holds_without_words(self.program)

    @property
    def only_alternatives(self) -> bool:
        """True for an OR of words and phrases anywhere: the bag finds the same, and more if a phrase is no demand."""
        steps = {step for step in self.program if not isinstance(step, int)}
        return self.expert and steps <= {"|"} and not any(term.prefix or term.column for term in self.terms)


def parse(text: str) -> KeywordQuery:
    """Understand a query. Never fails: a malformed expression becomes the bag of all its words, and says so."""
    seen = clean(text[: MAX_BAG * 4]).text.strip()
    bag = _shortened(" ".join(seen.split()))
    if len(seen) > MAX_EXPRESSION or "\n" in seen:
        return KeywordQuery(bag)
    read = tokenise(seen.translate(_STRAIGHT_QUOTES))
    if read.unclosed:
        return KeywordQuery(bag, malformed=True)
    if not read.expert:
        return KeywordQuery(bag)
    try:
        parser = _Parser(read.tokens)
        program = parser.whole()
    except _Broken:
        return KeywordQuery(bag, malformed=True)
    wanted = [term for term in parser.terms if not term.negated]
    phrases = tuple(dict.fromkeys(term.text for term in wanted if term.phrase))
    return KeywordQuery(
        " ".join(term.text for term in wanted if term.text), phrases, tuple(parser.terms), tuple(program)
    )


_STRAIGHT_QUOTES = str.maketrans(dict.fromkeys("\u201c\u201d\u201e\u201f\uff02", '"'))


class _Broken(Exception):
    """The tokens are no expression."""


class _Parser:
    """Recursive descent to postfix, at most MAX_DEPTH groups deep."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.terms: list[Term] = []
        self._tokens = tokens
        self._place = 0

    def whole(self) -> list[Operator | int]:
        """Read everything as one group."""
        program = self._group(None, negated=False, depth=0)
        if self._place < len(self._tokens) or not program:
            raise _Broken
        return program

    def _kind(self) -> str | None:
        return self._tokens[self._place].kind if self._place < len(self._tokens) else None

    def _group(self, column: Column | None, *, negated: bool, depth: int) -> list[Operator | int]:
        """Read alternatives up to a closing bracket or the end; nothing in it gives an empty program."""
        wanted: list[list[Operator | int]] = []
        excluded: list[list[Operator | int]] = []
        while (kind := self._kind()) not in (None, "close"):
            explicit = kind == "or"
            if explicit:
                if not wanted and not excluded:
                    raise _Broken
                self._place += 1
            operand, inverted = self._conjunction(column, negated=negated, depth=depth)
            if not operand:
                if explicit:
                    raise _Broken
            elif inverted and not explicit:
                excluded.append(operand)
            else:
                wanted.append([*operand, "!"] if inverted else operand)
        program = _folded(wanted, "|")
        return _folded([program, *([*operand, "!"] for operand in excluded)] if program else _inverted(excluded), "&")

    def _conjunction(self, column: Column | None, *, negated: bool, depth: int) -> tuple[list[Operator | int], bool]:
        """Read operands joined by AND; a lone one is given back as it is, with whether it is to be inverted."""
        operands = [self._unary(column, negated=negated, depth=depth)]
        while self._kind() == "and":
            self._place += 1
            operands.append(self._unary(column, negated=negated, depth=depth))
        if len(operands) == 1:
            return operands[0]
        if not all(operand for operand, _ in operands):
            raise _Broken
        return _folded([[*operand, "!"] if inverted else operand for operand, inverted in operands], "&"), False

    def _unary(self, column: Column | None, *, negated: bool, depth: int) -> tuple[list[Operator | int], bool]:
        inverted = False
        while self._kind() == "not":
            inverted = not inverted
            self._place += 1
        before = self._place
        operand = self._atom(column, negated=negated != inverted, depth=depth)
        if not operand and inverted and before == self._place:
            raise _Broken
        return operand, inverted

    def _atom(self, column: Column | None, *, negated: bool, depth: int) -> list[Operator | int]:
        """Read a word, a phrase, a column with its operand, or a group."""
        if self._place >= len(self._tokens) or depth > MAX_DEPTH:
            raise _Broken
        token = self._tokens[self._place]
        self._place += 1
        if token.kind == "column":
            return self._atom(_column(token.text), negated=negated, depth=depth)
        if token.kind == "open":
            group = self._group(column, negated=negated, depth=depth + 1)
            if self._kind() != "close":
                raise _Broken
            self._place += 1
            return group
        if token.kind not in ("word", "phrase") or len(self.terms) == MAX_TERMS:
            raise _Broken
        self.terms.append(Term(token.text, token.prefix, token.kind == "phrase", column, negated))
        return [len(self.terms) - 1]


def _column(name: str) -> Column:
    columns: dict[str, Column] = {"content": "content", "summary": "summary", "tag": "tag", "source": "source"}
    return columns[name]


def _inverted(operands: Sequence[list[Operator | int]]) -> list[list[Operator | int]]:
    return [[*operand, "!"] for operand in operands]


def _folded(operands: Sequence[list[Operator | int]], operator: Operator) -> list[Operator | int]:
    """Join programs by an operator, the first two first."""
    program: list[Operator | int] = []
    for operand in operands:
        program += [*operand, operator] if program else operand
    return program


def _holds_without_words(program: Program) -> bool:
    stack: list[bool] = []
    for step in program:
        if step == "!":
            stack.append(not stack.pop())
        elif step == "&":
            stack.append(stack.pop() & stack.pop())
        elif step == "|":
            stack.append(stack.pop() | stack.pop())
        else:
            stack.append(False)
    return stack.pop()


def _shortened(bag: str) -> str:
    """Cut a bag to its maximal length at a blank, if there is one."""
    if len(bag) <= MAX_BAG:
        return bag
    return bag[: bag.rfind(" ", 0, MAX_BAG + 1)] if " " in bag[: MAX_BAG + 1] else bag[:MAX_BAG]
