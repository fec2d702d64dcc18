"""Types of arguments that several requests share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field, JsonValue, ValidationInfo

from folklore.errors import InvalidInput
from folklore.model import FieldType, Number, Time, Whole

Words = tuple[str, ...]
# The type that a declared field has in JSON.
VALUE_TYPES: Mapping[FieldType, Any] = {
    "text": str, "kind": str, "language": str, "tags": Words, "paths": Words, "phrases": Words, "share": Number, "integer": Whole,
    "time": Time, "json": dict[str, JsonValue], "flag": bool, "blobs": Words,
}  # fmt: skip


def _not_empty(names: Words) -> Words:
    if not names:
        raise ValueError(
            'names none; leave it out for the default, or give ["*"] for all'
        )
    return names


# Names of namespaces, or ["*"] for all that the caller may read. An empty list would be taken for either none or all.
NamespaceNames = Annotated[Words, AfterValidator(_not_empty)]
# What people paste, however long: of more than 20,000 characters the beginning and the end.
_END = 10_000


def _ends(text: str) -> str:
    if len(text) <= 2 * _END:
        return text
    return f"{text[:_END]}\n{text[-_END:]}"


LongText = Annotated[str, AfterValidator(_ends)]


def _each_named(names: Words) -> Words:
    if not names or "*" in names:
        raise ValueError("must name each namespace; leave it out for the default")
    return names


# Names of namespaces in which memories are changed: never all at once.
ChangedNamespaces = Annotated[Words, AfterValidator(_each_named)]


def between(least: int, most: int) -> AfterValidator:
    def check(value: Any, info: ValidationInfo) -> Any:
        number = value if isinstance(value, int) else len(value)
        if not least <= number <= most:
            if number is value:
                words = f"be between {least} and {most}"
            else:
                words = f"hold {least:,} to {most:,}"
            raise InvalidInput(str(info.field_name), f"must {words}, got {number:,}.")
        return value

    return AfterValidator(check)


UseFlag = Annotated[
    bool, Field(description="count the answer as a use of its memories")
]
UpTo100 = Annotated[int, between(1, 100)]
UpTo200 = Annotated[int, between(1, 200)]
UpTo1000 = Annotated[int, between(1, 1_000)]
AnswerTokens = Annotated[int, between(50, 100_000)]
