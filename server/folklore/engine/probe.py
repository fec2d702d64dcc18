"""Asking a server who it is: the only proof of life that counts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from folklore.engine.binaries import Binaries, Outcome
from folklore.engine.endpoint import DATABASE, USER, Endpoint
from folklore.engine.paths import Place

CONNECT_SECONDS = 5
ANSWER_SECONDS = 15

OURSELVES = "folklore engine"  # launchers, watcher and status, who are not sessions of clients

# A client that is still logging in is counted by its login. The data directory comes last: it may hold any character.
_QUESTION = f"""
select (select count(*) from pg_stat_activity
         where backend_type in ('client backend', 'walsender')
           and application_name <> '{OURSELVES}' and state is distinct from 'starting'),
       (select sessions from pg_stat_database where datname = '{DATABASE}'),
       current_setting('server_version'),
       current_setting('data_directory')
"""  # noqa: S608  (a constant)


class State(Enum):
    """What stands behind an endpoint."""

    READY = auto()
    NO_DATABASE = auto()  # ready, but the database is yet to be created
    BUSY = auto()  # starting, recovering or shutting down
    SILENT = auto()  # there is something, but it does not answer, or not what it should
    ABSENT = auto()  # nothing listens
    STRANGER = auto()  # a server, but not of this data directory


_SIGNS = {
    State.NO_DATABASE: (f'database "{DATABASE}" does not exist',),
    State.BUSY: ("the database system is", "terminating connection", "server closed the connection"),
    State.STRANGER: ("authentication failed", "no pg_hba.conf entry", "pg_hba.conf rejects", f'role "{USER}" does not'),
    State.ABSENT: ("No such file or directory", "Connection refused"),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """`sessions` are the clients connected now, `logins` those there have ever been."""

    state: State
    words: str = ""
    sessions: int = 0
    logins: int = 0
    version: str | None = None


def ask(binaries: Binaries, endpoint: Endpoint | None, place: Place, database: str) -> Answer:
    """Connect with psql, which takes 7 ms and needs no event loop; asyncpg's import alone takes 70."""
    if endpoint is None:
        return Answer(State.ABSENT, "no server has left word where it listens")
    outcome = _psql(binaries, endpoint, database, _QUESTION)
    words = outcome.complaint.strip()
    if outcome.code == 0 and "terminating connection" not in words:
        return _read(outcome.output, place)
    if "too many clients" in words or "remaining connection slots" in words:
        return Answer(State.READY, words, sessions=1)  # full, so it runs; the private directory vouches for it
    return Answer(state_of_refusal(words), words)


def execute(binaries: Binaries, endpoint: Endpoint, statement: str) -> None:
    """Run a statement outside our database; whether it worked is asked afterwards."""
    _psql(binaries, endpoint, "postgres", statement)


def _psql(binaries: Binaries, endpoint: Endpoint, database: str, statement: str) -> Outcome:
    settings = {"PGCONNECT_TIMEOUT": str(CONNECT_SECONDS), "PGCLIENTENCODING": "UTF8", "PGAPPNAME": OURSELVES}
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


def state_of_refusal(words: str) -> State:
    """What is not understood (out of memory, out of processes, a timeout) is SILENT: nobody is replaced for that."""
    for state, signs in _SIGNS.items():
        if any(sign in words for sign in signs):
            return state
    return State.SILENT
