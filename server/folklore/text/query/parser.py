"""The keyword query language: bare words, or an expression of words, phrases, columns and operators.

    connection pool timeout              any of the words; rare words count most
    "connection pool" timeout            a phrase or a word
    redis AND (cluster OR sentinel)      AND has precedence over OR
    redis -cluster    redis NOT cluster  without a word, phrase, column or group
    authent*                             words with this prefix
    tag:billing  summary:"rate limit"    in one column only: content, summary, tag, source

Adjacent words are joined by OR, in an expression too. A negation directly after AND or OR is its operand; any other
negation excludes from its whole group: `redis cache -cluster` is `(redis OR cache) AND NOT cluster`. Operators are in
upper case. Prose and code are no expressions: `foo(bar)`, `--no-verify`, `grep -v`, `NOT NULL`, a sentence in capitals,
anything of several lines or over 2,000 characters.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from folklore.text.clean import clean
from folklore.text.query.syntax import PAIRED, Column, Kind, Token, tokenise

MAX_BAG = 32_000
MAX_EXPRESSION = 2_000
MAX_TERMS = 64
MAX_DEPTH = 32
_STRAIGHT_QUOTES = str.maketrans(dict.fromkeys("\u201c\u201d\u201e\u201f\uff02", '"'))

Operator = Literal["&", "|", "!"]
Program = tuple[Operator | int, ...]
Steps = list[Operator | int]


@dataclass(frozen=True, slots=True)
class Term:
    """An operand of an expression: words as typed, from which the database makes lexemes of its language.

    `prefix`: the last lexeme is a prefix, as is a single character of a script without spaces. `phrase`: the words were
    in quotes. `column`: the only column to search.
    `negated`: under an odd number of negations, so a match is no evidence for a memory.
    """

    text: str
    prefix: bool = False
    phrase: bool = False
    column: Column | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    """A parsed query.

    `bag` has the words that are evidence for a memory, to be joined by OR. `program` is the expression in postfix
    order, empty for bare words: a number is a position in `terms`, `&` and `|` take two operands, `!` takes one.
    """

    bag: str
    phrases: tuple[str, ...] = ()
    terms: tuple[Term, ...] = ()
    program: Program = ()

    @property
    def is_expression(self) -> bool:
        """True for an expression, False for bare words."""
        return bool(self.program)

    @property
    def only_alternatives(self) -> bool:
        """True for an OR of words and phrases in any column, which the bag finds too if no phrase is required."""
        if not self.is_expression or any(step in ("&", "!") for step in self.program):
            return False
        return not any(term.prefix or term.column for term in self.terms)


def parse(text: str) -> KeywordQuery:
    """Parse a query. Never fails: a malformed expression becomes the bag of all its words."""
    visible = clean(text[: MAX_BAG * 4]).text.strip()
    bag = KeywordQuery(_shortened(" ".join(visible.split())))
    if len(visible) > MAX_EXPRESSION or "\n" in visible:
        return bag
    parser = _Parser(tokenise(visible.translate(_STRAIGHT_QUOTES)))
    try:
        program = parser.parse()
    except _MalformedError:
        return bag
    positive = [term for term in parser.terms if not term.negated]
    phrases = dict.fromkeys(term.text for term in positive if term.phrase)
    words = " ".join(term.text for term in positive if term.text)
    return KeywordQuery(words, tuple(phrases), tuple(parser.terms), tuple(program))


class _MalformedError(Exception):
    """The tokens are no expression."""


class _Parser:
    """Recursive descent parser from tokens to postfix order, at most MAX_DEPTH groups deep."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.terms: list[Term] = []
        self._tokens = tokens
        self._position = 0

    def parse(self) -> Steps:
        """Parse all tokens as one group."""
        program = self._group(None, negated=False, depth=0)
        if self._position < len(self._tokens) or not program:
            raise _MalformedError
        return program

    def _kind(self) -> Kind | None:
        if self._position < len(self._tokens):
            return self._tokens[self._position].kind
        return None

    def _skip(self, kind: Kind) -> bool:
        """Skip a token of this kind; return False if the next token has another kind."""
        matches = self._kind() == kind
        self._position += matches
        return matches

    def _group(self, column: Column | None, *, negated: bool, depth: int) -> Steps:
        """Parse alternatives up to a closing bracket or the end; an empty group gives an empty program."""
        alternatives: list[Steps] = []
        excluded: list[Steps] = []
        while self._kind() not in (None, "close"):
            after_or = self._skip("or")
            operand, inverted = self._conjunction(column, negated=negated, depth=depth)
            if after_or and not (operand and (alternatives or excluded)):
                raise _MalformedError
            if not operand:
                continue
            if not inverted:
                alternatives.append(operand)
            elif after_or:
                alternatives.append(_inverted(operand))
            else:
                excluded.append(_inverted(operand))
        return _joined([_joined(alternatives, "|"), *excluded], "&")

    def _conjunction(
        self, column: Column | None, *, negated: bool, depth: int
    ) -> tuple[Steps, bool]:
        """Parse operands joined by AND. A single operand is returned as it is, with True if it must be inverted."""
        operands = [self._unary(column, negated=negated, depth=depth)]
        while self._skip("and"):
            operands.append(self._unary(column, negated=negated, depth=depth))
        if len(operands) == 1:
            return operands[0]
        programs = []
        for operand, inverted in operands:
            if not operand:
                raise _MalformedError
            programs.append(_inverted(operand) if inverted else operand)
        return _joined(programs, "&"), False

    def _unary(
        self, column: Column | None, *, negated: bool, depth: int
    ) -> tuple[Steps, bool]:
        inverted = False
        while self._skip("not"):
            inverted = not inverted
        return self._atom(column, negated=negated != inverted, depth=depth), inverted

    def _atom(self, column: Column | None, *, negated: bool, depth: int) -> Steps:
        """Parse a word, a phrase, a column with its operand, or a group."""
        if self._position >= len(self._tokens) or depth > MAX_DEPTH:
            raise _MalformedError
        token = self._tokens[self._position]
        self._position += 1
        if token.kind == "column":
            return self._atom(token.column, negated=negated, depth=depth)
        if token.kind == "open":
            group = self._group(column, negated=negated, depth=depth + 1)
            if not self._skip("close"):
                raise _MalformedError
            return group
        if token.kind not in ("word", "phrase") or len(self.terms) == MAX_TERMS:
            raise _MalformedError
        is_single_character = len(token.text) == 1 and token.text >= PAIRED
        term = Term(
            text=token.text,
            prefix=token.prefix or is_single_character,
            phrase=token.kind == "phrase",
            column=column,
            negated=negated,
        )
        self.terms.append(term)
        return [len(self.terms) - 1]


def _inverted(program: Steps) -> Steps:
    return [*program, "!"]


def _joined(programs: Iterable[Steps], operator: Operator) -> Steps:
    """Join programs by an operator from left to right, without the empty ones."""
    steps: Steps = []
    for program in filter(None, programs):
        is_first = not steps
        steps += program
        if not is_first:
            steps.append(operator)
    return steps


def _shortened(bag: str) -> str:
    """Cut a bag to its maximal length, at a blank if there is one."""
    if len(bag) <= MAX_BAG:
        return bag
    if " " in bag[: MAX_BAG + 1]:
        return bag[: bag.rfind(" ", 0, MAX_BAG + 1)]
    return bag[:MAX_BAG]
