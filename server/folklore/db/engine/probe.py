"""Asking a server who it is: the only proof of life that counts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from folklore.db.engine.binaries import Binaries, Outcome
from folklore.db.engine.endpoint import DATABASE, Endpoint
from folklore.db.engine.place import Place

CONNECT_SECONDS = 5
ANSWER_SECONDS = 15

# The data directory comes last, as it may hold any character.
_QUESTION = f"""
select (select count(*) from pg_stat_activity
         where backend_type in ('client backend', 'walsender') and pid <> pg_backend_pid()),
       (select sessions from pg_stat_database where datname = '{DATABASE}'),
       current_setting('server_version'),
       current_setting('data_directory')
"""  # noqa: S608  (a constant)


class State(Enum):
    """What stands behind an endpoint."""

    READY = auto()
    NO_DATABASE = auto()  # ready, but the database is yet to be created
    BUSY = auto()  # starting, recovering or shutting down
    SILENT = auto()  # accepts, but does not answer
    ABSENT = auto()  # nothing listens
    STRANGER = auto()  # a server, but not of this data directory


@dataclass(frozen=True, slots=True)
class Answer:
    """`sessions` are the clients connected now, `logins` those there have ever been."""

    state: State
    words: str = ""
    sessions: int = 0
    logins: int = 0
    version: str | None = None


def ask(binaries: Binaries, endpoint: Endpoint, place: Place, database: str) -> Answer:
    """Connect with psql, which takes 7 ms and needs no event loop; asyncpg's import alone takes 70."""
    outcome = _psql(binaries, endpoint, database, _QUESTION)
    if outcome.code == 0:
        return _read(outcome.output, place)
    words = outcome.output.strip()
    if "too many clients" in words or "remaining connection slots" in words:
        return Answer(State.READY, words, sessions=1)  # full, so it runs; the private directory vouches for it
    return Answer(_state_of_refusal(outcome.code, words), words)


def execute(binaries: Binaries, endpoint: Endpoint, statement: str) -> None:
    """Run a statement outside our database; whether it worked is asked afterwards."""
    _psql(binaries, endpoint, "postgres", statement)


def _psql(binaries: Binaries, endpoint: Endpoint, database: str, statement: str) -> Outcome:
    settings = {"PGCONNECT_TIMEOUT": str(CONNECT_SECONDS), "PGCLIENTENCODING": "UTF8", "PGAPPNAME": "folklore engine"}
    return binaries.run(
        "psql",
        *("--no-psqlrc", "--no-password", "--quiet", "--tuples-only", "--no-align", "--field-separator=\t"),
        *("--command", statement),
        settings=settings | endpoint.environment(database),
        timeout=ANSWER_SECONDS,
    )


def _read(output: str, place: Place) -> Answer:
    sessions, logins, version, data = output.removesuffix("\n").split("\t", 3)
    state = State.READY if _same_directory(data, place) else State.STRANGER
    return Answer(state, f"it serves {data}", int(sessions), int(logins or 0), version)


def _same_directory(data: str, place: Place) -> bool:
    try:
        return Path(data).samefile(place.data)
    except OSError:
        return False


def _state_of_refusal(code: int | None, words: str) -> State:
    if code is None or "timeout expired" in words:
        return State.SILENT
    if f'database "{DATABASE}" does not exist' in words:
        return State.NO_DATABASE
    if "the database system is" in words or "server closed the connection" in words:
        return State.BUSY
    return State.STRANGER if "FATAL:" in words else State.ABSENT
