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
    pairs = zip(query.terms, lexemes, strict=True)
    operands = [_operand(term, forms) for term, forms in pairs]
    return str(_evaluated(query, operands) or "")


def to_negations(query: KeywordQuery, lexemes: Sequence[Forms]) -> str | None:
    """Return the tsquery of what an expression excludes, None if nothing: it holds for memories without excluded terms.

    It is the expression with every other term taken as found: `redis -cluster` becomes `!cluster`, and `redis OR NOT
    cluster` excludes nothing.
    """
    operands: list[str | bool] = []
    for term, forms in zip(query.terms, lexemes, strict=True):
        operands.append(_operand(term, forms) if term.negated else True)
    negations = _evaluated(query, operands)
    if not negations or not isinstance(negations, str):
        return None
    return negations


def function_word_text(word: str) -> str:
    """Return the tsquery of a function word, given after '=', which is a stem or tag elsewhere.

    A single character of a script without spaces is the beginning of a pair, or the last character of a text.
    """
    begins_pair = len(word) == 2 and word[1:] >= PAIRED
    label = f"*{_ANY_COLUMN}" if begins_pair else _ANY_COLUMN
    return f"({quoted(word)}:{label} | {quoted(word[1:])}:{label})"


def _evaluated(query: KeywordQuery, operands: Sequence[str | bool]) -> str | bool:
    """Return an expression over these operands, simplified where one is True or False; "" is no operand."""
    stack: list[str | bool] = []
    for step in query.program:
        if isinstance(step, int):
            stack.append(operands[step])
        elif step == "!":
            stack.append(_negated(stack.pop()))
        else:
            second = stack.pop()
            first = stack.pop()
            stack.append(_joined(step, first, second))
    return stack.pop() if stack else ""


def _negated(operand: str | bool) -> str | bool:
    if isinstance(operand, bool):
        return not operand
    return f"!{operand}" if operand else ""


def _joined(operator: str, first: str | bool, second: str | bool) -> str | bool:
    if isinstance(first, bool):
        return _joined_with_constant(operator, first, second)
    if isinstance(second, bool):
        return _joined_with_constant(operator, second, first)
    if first and second:
        return f"({first} {operator} {second})"
    return first or second


def _joined_with_constant(
    operator: str, constant: bool, other: str | bool
) -> str | bool:
    decides = operator == "|"  # True decides an OR, False an AND
    if constant is decides or other == "":
        return constant
    return other


def quoted(lexeme: str) -> str:
    """Quote a lexeme for a tsquery: in single quotes, with quotes and backslashes doubled."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def _operand(term: Term, forms: Forms) -> str:
    """Write the alternatives of a term: `('a' | 'b')`."""
    alternatives = dict.fromkeys(_sequence(term, form) for form in forms)
    alternatives.pop("", None)
    text = " | ".join(alternatives)
    return f"({text})" if len(alternatives) > 1 else text


def _sequence(term: Term, form: Sequence[str]) -> str:
    """Write lexemes in order: `('a' <-> 'b' <2> 'd')`."""
    weights = WEIGHTS[term.column] if term.column else _ANY_COLUMN
    positions = [position for position, lexeme in enumerate(form) if _is_valid(lexeme)]
    text = ""
    for index, position in enumerate(positions):
        if index > 0:
            text += _distance_operator(position - positions[index - 1])
        is_last = index == len(positions) - 1
        label = f"*{weights}" if term.prefix and is_last else weights
        text += f"{quoted(form[position])}:{label}"
    return f"({text})" if len(positions) > 1 else text


def _distance_operator(distance: int) -> str:
    if distance == 1:
        return " <-> "
    return f" <{min(distance, _MAX_DISTANCE)}> "


def without_last_characters(form: Sequence[str]) -> list[str]:
    """Return a form of pairs of characters without the last character of each run, which the pair before it has."""
    results = []
    previous = ""
    for word in form:
        is_character = len(word) == 2 and word[0] == SPELLED and word[1] >= PAIRED
        ends_run = is_character and previous.endswith(word[1])
        results.append("" if ends_run else word)
        previous = word
    return results


def _is_valid(lexeme: str) -> bool:
    if not lexeme or "\x00" in lexeme:
        return False
    return len(lexeme.encode("utf-8", "replace")) <= _MAX_LEXEME_BYTES
