"""Errors of Folklore, a tree below FolkloreError.

Each edge translates in one place: errors of libraries into these, these into MCP errors, HTTP answers or exit codes.
Messages never contain a refused secret or the text of a memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError

# Characters of an unknown field's name that an error repeats, and names of the path to a wrong one.
_NAME = 60
_NAMES = 8
# What we say in place of pydantic, by a pattern for its name of the problem.
_MESSAGES: Mapping[str, str] = {
    "uuid": "must be the whole id of a memory, as memory_get shows it.",
    "string_type": "must be a text.",
    "string_too_short": "must have at least {min_length} characters.",
    "string_too_long": "must have at most {max_length} characters.",
    "string_pattern": "must match {pattern}.",
    "int_": "must be a whole number.",
    "float_": "must be a number.",
    "finite_number": "must be a finite number.",
    "bool_": "must be true or false.",
    "literal_error": "must be {expected}.",
    "(list|tuple)_type": "must be a list.",
    "(dict|dataclass|model|model_attributes)_type": "must be a JSON object.",
    "path_type": "must be a path.",
    "json_invalid": "must be JSON: {error}.",
    "missing": "is missing.",
    "too_short": "must hold at least {min_length}, got {actual_length}.",
    "too_long": "must hold at most {max_length}, got {actual_length}.",
    "greater_than_equal": "must be at least {ge}.",
    "greater_than": "must be more than {gt}.",
    "less_than_equal": "must be at most {le}.",
    "recursion_depth_exceeded": "is nested too deeply.",
    "extra_forbidden|unexpected_keyword": "unknown field; the schema lists the fields.",
}


class FolkloreError(Exception):
    """Base class. `code` is for programs, `exit_code` for the command line, `hint` is the next step for the caller.

    The code is the name of the class, as not_found for NotFound; that of its base for a class without one.
    """

    code = "failed"
    exit_code = 1
    namespace: str | None = (
        None  # that a denied access was to, if the caller may read there: for the audit log
    )

    def __init_subclass__(cls, *, has_code: bool = True) -> None:
        if has_code and "code" not in vars(cls):
            cls.code = re.sub(r"\B[A-Z]", r"_\g<0>", cls.__name__).lower()

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        if self.hint:
            return f"{self.message} {self.hint}"
        return self.message


class InvalidInput(FolkloreError):
    """Wrong argument. The message names the field and what is allowed."""

    exit_code = 2

    def __init__(self, field: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"{field}: {message}", hint=hint)
        self.field = field


class ConfigInvalid(InvalidInput):
    """Missing, unknown or wrong setting."""

    code = "invalid_config"


class NotFound(FolkloreError):
    """Namespace, memory, model or principal that does not exist."""

    exit_code = 4


class Conflict(FolkloreError):
    """Change of a record that has changed since it was read, or that contradicts another one."""


class ConcurrentChange(Conflict, has_code=False):
    """Change at the same time as another one of the same record. Nothing was written; a retry may succeed."""


class Refused(FolkloreError):
    """Call that the caller may not make here."""

    exit_code = 5


class RateLimited(Refused):
    """Call that the caller has made too often; it may be made later."""


class Unauthenticated(Refused):
    """Call without a valid token: `reason` is missing, other_user, unreadable, malformed, unknown, expired, revoked or untrusted.

    `principal` is the owner of the token if known, for the audit log and not for the caller.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        hint: str | None = None,
        principal: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason
        self.principal = principal


class Unavailable(FolkloreError):
    """Dependency that cannot be reached. A later call may succeed."""

    exit_code = 3


class DatabaseUnavailable(Unavailable):
    """Postgres that cannot be reached or reports a failure of its own."""


class DatabaseUnsuitable(DatabaseUnavailable):
    """Postgres whose encoding, locale or settings Folklore cannot work with."""


class EngineFailed(DatabaseUnavailable):
    """Embedded engine that could not be started, recovered or stopped."""


def still_starting(what: str) -> DatabaseUnavailable:
    """Return the error of a request that has waited long enough for a start."""
    return DatabaseUnavailable(
        f"The {what} is still being started.",
        hint="Try again in a minute; `folklore doctor` shows what is wrong.",
    )


class DataMissing(EngineFailed):
    """Data directory of the embedded engine that was removed, or replaced by another one."""


class DiskFull(EngineFailed):
    """Disk of the embedded engine without room for writes. Reads go on unless it has ended the engine."""


class SchemaBehind(DatabaseUnavailable):
    """Database that lacks migrations, which this role may not apply."""


class SchemaAhead(DatabaseUnavailable):
    """Database that a newer Folklore has migrated."""


class EmbedderUnavailable(Unavailable):
    """Embedding model that cannot be loaded, or whose service does not answer or answers with invalid vectors."""


class RerankerUnavailable(Unavailable):
    """Reranker whose service does not answer or answers with invalid scores."""


def error_from_code(code: str, message: str, hint: str | None = None) -> FolkloreError:
    """Return the error that another process raised, from its code, message and hint."""
    classes = _with_subclasses(FolkloreError)
    error_class = next((each for each in classes if each.code == code), FolkloreError)
    # the constructors of some classes take other arguments
    error = error_class.__new__(error_class)
    FolkloreError.__init__(error, message, hint=hint)
    return error


def _with_subclasses(error_class: type[FolkloreError]) -> list[type[FolkloreError]]:
    children = error_class.__subclasses__()
    return [
        error_class,
        *(each for child in children for each in _with_subclasses(child)),
    ]


def field_errors(error: ValidationError) -> list[tuple[str, str]]:
    """Return the first five wrong fields, each with its message, never with its value."""
    wrong = []
    for problem in error.errors(include_url=False, include_input=False)[:5]:
        text = next(
            (
                text
                for pattern, text in _MESSAGES.items()
                if re.match(pattern, problem["type"])
            ),
            None,
        )
        own = f"{problem['msg'].removeprefix('Value error, ')}."  # of a check of ours
        wrong.append(
            (
                _place(problem["loc"]),
                own if text is None else text.format_map(problem.get("ctx", {})),
            )
        )
    return wrong


def _place(path: Sequence[int | str]) -> str:
    parts = (
        f"[{part}]" if isinstance(part, int) else f".{part[:_NAME]}"
        for part in path[:_NAMES]
    )
    return "".join(parts).lstrip(".") or "arguments"
