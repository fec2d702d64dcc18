"""Errors of Folklore, a tree below FolkloreError.

Each edge translates in one place: errors of libraries into these, these into MCP errors, HTTP answers or exit codes.
Messages never contain a refused secret or the text of a memory.
"""

import re


class FolkloreError(Exception):
    """Base class. `code` is for programs, `exit_code` for the command line, `hint` is the next step for the caller.

    The code is the name of the class, as not_found for NotFound; that of its base for a class without one.
    """

    code = "failed"
    exit_code = 1

    def __init_subclass__(cls, *, has_code: bool = True) -> None:
        if has_code and "code" not in vars(cls):
            cls.code = re.sub(r"\B[A-Z]", r"_\g<0>", cls.__name__).lower()

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


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
    """Call without a valid token: `reason` is missing, malformed, unknown, expired, revoked or untrusted.

    `principal` is the owner of the token if known, for the audit log and not for the caller.
    """

    def __init__(self, reason: str, message: str, *, hint: str | None = None, principal: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason
        self.principal = principal


class Unavailable(FolkloreError):
    """Dependency that cannot be reached. A later call may succeed."""

    exit_code = 3


class DatabaseUnavailable(Unavailable):
    """Postgres that cannot be reached or reports a failure of its own."""


class EngineFailed(DatabaseUnavailable):
    """Embedded engine that could not be started, recovered or stopped."""


def still_starting(what: str) -> DatabaseUnavailable:
    """Return the error of a request that has waited long enough for a start."""
    return DatabaseUnavailable(
        f"The {what} is still being started.", hint="Try again in a minute; `folklore doctor` shows what is wrong."
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
    error = error_class.__new__(error_class)  # the constructors of some classes take other arguments
    FolkloreError.__init__(error, message, hint=hint)
    return error


def _with_subclasses(error_class: type[FolkloreError]) -> list[type[FolkloreError]]:
    children = error_class.__subclasses__()
    return [error_class, *(each for child in children for each in _with_subclasses(child))]
