"""Translation of a query expression to a Postgres tsquery, given the lexemes that its terms have in a language.

The database makes the lexemes (`to_tsvector`, which stems by language). This module joins and quotes them, so that the
result can be cast with `::tsquery` for any text.
"""

from __future__ import annotations

from collections.abc import Sequence

from folklore.text.query.parser import KeywordQuery, Term
from folklore.text.query.syntax import Column

# The labels that setweight gives each part of a memory in the generated column.
WEIGHTS: dict[Column, str] = {"tag": "A", "summary": "B", "source": "C", "content": "D"}
_MAX_LEXEME_BYTES = 2_046  # Postgres rejects longer ones in a tsquery
_MAX_DISTANCE = 16_384  # of <N>

Forms = Sequence[Sequence[str]]


def to_tsquery_text(query: KeywordQuery, lexemes: Sequence[Forms]) -> str:
    """Return the tsquery of an expression, given the forms of each term: alternative lists of lexemes in order.

    The term `getUserById` may have the forms `[["getuserbyid"], ["get", "user", "by", "id"]]`. "" in a form represents
    a stop word and widens the distance. A term without any lexeme is removed together with its operator, as Postgres
    does; the result is "" if no term remains.
    """
    stack: list[str] = []
    for step in query.program:
        if isinstance(step, int):
            stack.append(_operand(query.terms[step], lexemes[step]))
        elif step == "!":
            operand = stack.pop()
            stack.append(f"!{operand}" if operand else "")
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(f"({left} {step} {right})" if left and right else left or right)
    return stack.pop() if stack else ""


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
    for before, position in zip([None, *positions], positions, strict=False):
        distance = min(position - before, _MAX_DISTANCE) if before is not None else 0
        text += {0: "", 1: " <-> "}.get(distance, f" <{distance}> ")
        text += quoted(form[position]) + _label(term, last=position == positions[-1])
    return f"({text})" if len(positions) > 1 else text


def _label(term: Term, *, last: bool) -> str:
    label = ("*" if term.prefix and last else "") + (WEIGHTS[term.column] if term.column else "")
    return f":{label}" if label else ""


def _is_valid(lexeme: str) -> bool:
    return bool(lexeme) and "\x00" not in lexeme and len(lexeme.encode("utf-8", "replace")) <= _MAX_LEXEME_BYTES
