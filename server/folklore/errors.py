"""Every error Folklore raises on purpose, drawn as a tree.

    FolkloreError
    ├── InvalidInput            a field, a limit and the next step
    │   └── ConfigInvalid
    ├── NotFound
    ├── Conflict                somebody else changed it first
    │   └── Raced               at this very moment: trying again may do
    ├── Refused                 not permitted, read-only, holds a secret
    │   └── Unauthenticated     no token, or none that is good
    └── Unavailable             database, engine or embedding service not reachable
        ├── DatabaseUnavailable
        │   ├── EngineFailed
        │   ├── SchemaBehind
        │   └── SchemaAhead
        ├── EmbedderUnavailable
        └── RerankerUnavailable

Foreign errors become ours in one place per edge; ours become MCP's, HTTP's or an exit code in one place per edge.
Messages never carry a refused secret or the text of a memory.
"""

from __future__ import annotations


class FolkloreError(Exception):
    """Base of the family: `code` for machines, `exit_code` for the command line, `hint` is the next step."""

    code = "failed"
    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class InvalidInput(FolkloreError):
    """An argument is wrong; the message names the field and the limit, the hint what to do instead."""

    code = "invalid_input"
    exit_code = 2

    def __init__(self, field: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"{field}: {message}", hint=hint)
        self.field = field


class ConfigInvalid(InvalidInput):
    """A setting is missing, unknown or wrong."""

    code = "invalid_config"


class NotFound(FolkloreError):
    """No such namespace or memory."""

    code = "not_found"
    exit_code = 4


class Conflict(FolkloreError):
    """The record changed since it was read, or the change collides with another one."""

    code = "conflict"


class Raced(Conflict):
    """Somebody else changed the same at this very moment; nothing was written, and trying again may do."""


class Refused(FolkloreError):
    """The caller may not do this here."""

    code = "refused"
    exit_code = 5


class Unauthenticated(Refused):
    """Nobody is let in on this token: `reason` is missing, malformed, unknown, expired, revoked or untrusted.

    `who` is the principal whose token it was, where that is known: for the audit log, not for the caller.
    """

    code = "unauthenticated"

    def __init__(self, reason: str, message: str, *, hint: str | None = None, who: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason
        self.who = who


class Unavailable(FolkloreError):
    """Something Folklore depends on cannot be reached; trying again later may work."""

    code = "unavailable"
    exit_code = 3


class DatabaseUnavailable(Unavailable):
    """Postgres cannot be reached or answers with a failure of its own."""

    code = "database_unavailable"


class EngineFailed(DatabaseUnavailable):
    """The embedded engine could not be started, recovered or stopped."""

    code = "engine_failed"


class SchemaBehind(DatabaseUnavailable):
    """The database lacks migrations that this role may not apply."""

    code = "schema_behind"


class SchemaAhead(DatabaseUnavailable):
    """A newer Folklore migrated the database."""

    code = "schema_ahead"


class EmbedderUnavailable(Unavailable):
    """The embedding model could not be loaded or its service does not answer usefully."""

    code = "embedder_unavailable"


class RerankerUnavailable(Unavailable):
    """The reranker's service does not answer usefully."""

    code = "reranker_unavailable"


def told(code: str, message: str, hint: str | None = None) -> FolkloreError:
    """The error that was told by its code and words, as it would have been raised where it came from."""
    kind = next((kind for kind in _family(FolkloreError) if kind.code == code), FolkloreError)
    error = kind.__new__(kind)
    FolkloreError.__init__(error, message, hint=hint)
    return error


def _family(kind: type[FolkloreError]) -> list[type[FolkloreError]]:
    return [kind, *(one for child in kind.__subclasses__() for one in _family(child))]
