"""Translation of a query expression to a Postgres tsquery, given the lexemes that its terms have in a language.

The database makes the lexemes (`to_tsvector`, which stems by language). This module joins and quotes them, so that the
result can be cast with `::tsquery` for any text.
"""

from collections.abc import Sequence

from folklore.text.query.parser import KeywordQuery, Term
from folklore.text.query.syntax import PAIRED, Column

# The labels that setweight gives each part of a memory in the generated column.
WEIGHTS: dict[Column, str] = {"tag": "A", "summary": "B", "source": "C", "content": "D"}
# Terms for any column leave the source out: it has its own filter.
_ANY_COLUMN = "ABD"
# A lexeme that is no stem, but a word as it is spelled, begins with this (folklore_words).
SPELLED = "="
_MAX_LEXEME_BYTES = 2_046  # Postgres rejects longer ones in a tsquery
_MAX_DISTANCE = 16_384  # of <N>

Forms = Sequence[Sequence[str]]


def to_tsquery_text(query: KeywordQuery, lexemes: Sequence[Forms]) -> str:
    """Return the tsquery of an expression, given the forms of each term: alternative lists of lexemes in order.

    The term `getUserById` may have the forms `[["getuserbyid"], ["get", "user", "=by", "id"]]`. "" in a form represents
    a missing word and widens the distance. A term without any lexeme is removed together with its operator, as Postgres
    does; the result is "" if no term remains.
    """
    return str(
        _evaluated(
            query,
            [
                _operand(term, forms)
                for term, forms in zip(query.terms, lexemes, strict=True)
            ],
        )
        or ""
    )


def to_negations(query: KeywordQuery, lexemes: Sequence[Forms]) -> str | None:
    """Return the tsquery of what an expression excludes, None if nothing: it holds for memories without excluded terms.

    It is the expression with every other term taken as found: `redis -cluster` becomes `!cluster`, and `redis OR NOT
    cluster` excludes nothing.
    """
    operands = [
        _operand(term, forms) if term.negated else True
        for term, forms in zip(query.terms, lexemes, strict=True)
    ]
    negations = _evaluated(query, operands)
    return negations if isinstance(negations, str) and negations else None


def function_word_text(word: str) -> str:
    """Return the tsquery of a function word, given after '=', which is a stem or tag elsewhere.

    A single character of a script without spaces is the beginning of a pair, or the last character of a text.
    """
    label = ("*" if word[1:] >= PAIRED and len(word) == 2 else "") + _ANY_COLUMN
    return f"({quoted(word)}:{label} | {quoted(word[1:])}:{label})"


def _evaluated(query: KeywordQuery, operands: Sequence[str | bool]) -> str | bool:
    """Return an expression over these operands, simplified where one is True or False; "" is no operand."""
    stack: list[str | bool] = []
    for step in query.program:
        if isinstance(step, int):
            stack.append(operands[step])
        elif step == "!":
            operand = stack.pop()
            stack.append(
                not operand if isinstance(operand, bool) else operand and f"!{operand}"
            )
        else:
            second = stack.pop()
            first = stack.pop()
            stack.append(_joined(step, first, second))
    return stack.pop() if stack else ""


def _joined(operator: str, first: str | bool, second: str | bool) -> str | bool:
    if isinstance(first, str) and isinstance(second, str):
        if first and second:
            return f"({first} {operator} {second})"
        return first or second
    constant, other = (first, second) if isinstance(first, bool) else (second, first)
    decides = operator == "|"  # True decides an OR, False an AND
    return constant if constant is decides or other == "" else other


def quoted(lexeme: str) -> str:
    """Quote a lexeme for a tsquery: in single quotes, with quotes and backslashes doubled."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def _operand(term: Term, forms: Forms) -> str:
    sequences = dict.fromkeys(filter(None, (_sequence(term, form) for form in forms)))
    if len(sequences) < 2:
        return next(iter(sequences), "")
    return "(" + " | ".join(sequences) + ")"


def _sequence(term: Term, form: Sequence[str]) -> str:
    """Write lexemes in order: `('a' <-> 'b' <2> 'd')`."""
    positions = [position for position, lexeme in enumerate(form) if _is_valid(lexeme)]
    text = ""
    weights = WEIGHTS[term.column] if term.column else _ANY_COLUMN
    for previous, position in zip([None, *positions], positions, strict=False):
        if previous is not None:
            distance = min(position - previous, _MAX_DISTANCE)
        else:
            distance = 0
        text += {0: "", 1: " <-> "}.get(distance, f" <{distance}> ")
        text += (
            quoted(form[position])
            + (":*" if term.prefix and position == positions[-1] else ":")
            + weights
        )
    return f"({text})" if len(positions) > 1 else text


def without_last_characters(form: Sequence[str]) -> list[str]:
    """Return a form of pairs of characters without the last character of each run, which the pair before it has."""
    predecessors = ["", *form]
    return [
        ""
        if word[:1] == SPELLED
        and word[1:] >= PAIRED
        and previous.endswith(word[1:])
        and len(word) == 2
        else word
        for previous, word in zip(predecessors, form, strict=False)
    ]


def _is_valid(lexeme: str) -> bool:
    return (
        bool(lexeme)
        and "\x00" not in lexeme
        and len(lexeme.encode("utf-8", "replace")) <= _MAX_LEXEME_BYTES
    )
