"""A Postgres tsquery, written out from an expression and the lexemes its words have in a language.

The database says which lexemes a term has (`to_tsvector`, so stemming follows the language); this module puts them
together, quoted, so that the result may be cast with `::tsquery` whatever the words were.
"""

from __future__ import annotations

from collections.abc import Sequence

from folklore.text.query.parser import KeywordQuery, Term
from folklore.text.query.syntax import Column

# The labels under which the generated column holds each part of a memory (setweight).
WEIGHTS: dict[Column, str] = {"tag": "A", "summary": "B", "source": "C", "content": "D"}
_LONGEST_LEXEME = 2_046  # bytes; Postgres refuses longer ones in a tsquery
_FARTHEST = 16_384  # the greatest distance <N> may have

Forms = Sequence[Sequence[str]]


def to_tsquery_text(query: KeywordQuery, lexemes: Sequence[Forms]) -> str:
    """Write the query's expression as a tsquery, given for each term its forms: alternative lists of lexemes in order.

    `query getUserById` may give the term `getUserById` the forms `[["getuserbyid"], ["get", "user", "by", "id"]]`. An
    empty text in a list stands for a word without a lexeme (a stop word) and widens the distance. A term without any
    lexeme leaves the expression together with its operator, as in Postgres; with none left the result is "".
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
    """Quote a lexeme for a tsquery: single quotes around it, quotes and backslashes inside doubled."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def _operand(term: Term, forms: Forms) -> str:
    written = dict.fromkeys(filter(None, (_sequence(term, form) for form in forms)))
    if len(written) < 2:
        return next(iter(written), "")
    return "(" + " | ".join(written) + ")"


def _sequence(term: Term, form: Sequence[str]) -> str:
    """Write lexemes in order: `('a' <-> 'b' <2> 'd')`."""
    places = [place for place, lexeme in enumerate(form) if _usable(lexeme)]
    text = ""
    for before, place in zip([None, *places], places, strict=False):
        distance = min(place - before, _FARTHEST) if before is not None else 0
        text += {0: "", 1: " <-> "}.get(distance, f" <{distance}> ")
        text += quoted(form[place]) + _label(term, last=place == places[-1])
    return f"({text})" if len(places) > 1 else text


def _label(term: Term, *, last: bool) -> str:
    label = ("*" if term.prefix and last else "") + (WEIGHTS[term.column] if term.column else "")
    return f":{label}" if label else ""


def _usable(lexeme: str) -> bool:
    return bool(lexeme) and "\x00" not in lexeme and len(lexeme.encode("utf-8", "replace")) <= _LONGEST_LEXEME
