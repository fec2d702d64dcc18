"""Probe of a server: its answer over the socket, and whether a process is a server of our data directory."""

import re
import subprocess
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from folklore.engine.binaries import Binaries, Outcome
from folklore.engine.endpoint import DATABASE, USER, Endpoint
from folklore.engine.files import EnginePaths

_CONNECT_SECONDS = 5
_ANSWER_SECONDS = 15

_APPLICATION = (
    "folklore engine"  # launchers, watcher and status: not counted as sessions
)

# A client that is still logging in is counted by its login. The data directory comes last: it may hold any character.
_QUESTION = f"""
select (select count(*) from pg_stat_activity
         where backend_type in ('client backend', 'walsender')
           and application_name <> '{_APPLICATION}' and state is distinct from 'starting'),
       (select sessions from pg_stat_database where datname = '{DATABASE}'),
       current_setting('server_version'),
       current_setting('data_directory')
"""  # noqa: S608  (a constant)


class State(Enum):
    """State of the server at an endpoint."""

    READY = auto()
    NO_DATABASE = auto()  # ready, but our database does not exist yet
    BUSY = auto()  # starting, recovering or shutting down
    SILENT = auto()  # no answer, or one that is not understood
    ABSENT = auto()  # no process listens
    FOREIGN = auto()  # a server of another data directory


_SIGNS = {
    State.NO_DATABASE: (f'database "{DATABASE}" does not exist',),
    State.BUSY: (
        "the database system is",
        "terminating connection",
        "server closed the connection",
    ),
    State.FOREIGN: (
        "authentication failed",
        "no pg_hba.conf entry",
        "pg_hba.conf rejects",
        f'role "{USER}" does not',
    ),
    State.ABSENT: ("No such file or directory", "Connection refused"),
}


# in the titles of the processes that recover a server
_RECOVERS = re.compile(rb" (startup|checkpointer|io worker) ")
_BUSY = re.compile(rb"State:\t[RD]")
_WAITS = re.compile(rb"switches:\t(\d+)")
_TIMERS = 2  # waits of an idle process between two looks at most
_SIGNS_OF_RECOVERY = (
    "is starting up",
    "in recovery mode",
    "not yet accepting connections",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """State of a server. `sessions` counts the clients connected now, `logins` all since the statistics began."""

    state: State
    message: str = ""
    sessions: int = 0
    logins: int = 0
    version: str | None = None

    @property
    def recovering(self) -> bool:
        """True if the server says that it replays its log."""
        return self.state is State.BUSY and any(
            sign in self.message for sign in _SIGNS_OF_RECOVERY
        )


def probe(
    binaries: Binaries, endpoint: Endpoint | None, paths: EnginePaths, database: str
) -> Answer:
    """Connect with psql and return the server's state. This takes 7 ms; importing asyncpg alone would take 70 ms."""
    if endpoint is None:
        return Answer(State.ABSENT, "no server has recorded an endpoint")
    outcome = psql(binaries, endpoint, database, _QUESTION)
    message = outcome.stderr.strip()
    if outcome.code == 0 and "terminating connection" not in message:
        return _parse(outcome.stdout, paths)
    if "too many clients" in message or "remaining connection slots" in message:
        # only our own server can use the private directory
        return Answer(State.READY, message, sessions=1)
    return Answer(state_of_refusal(message), message)


def state_of_refusal(message: str) -> State:
    """Return the state that a message of psql means.

    SILENT for an unknown message (out of memory, out of processes, a timeout): such a server must not be replaced.
    """
    for state, signs in _SIGNS.items():
        if any(sign in message for sign in signs):
            return state
    return State.SILENT


def is_server(pid: int, paths: EnginePaths) -> bool:
    """Return true if the process certainly is a postgres of this data directory. Ask before you signal a process.

    macOS and the BSDs have no /proc. The launcher passes the tag to the server, and Postgres shows it in all titles.
    """
    if _HAS_PROC:
        return _is_server_by_proc(pid, paths)
    return "postgres" in (title := _title(pid)) and paths.tag in title


def may_be_server(pid: int, paths: EnginePaths) -> bool:
    """Return false if the process certainly is no server of this data directory."""
    if _HAS_PROC:
        return _is_server_by_proc(pid, paths)
    return "postgres" in _title(pid)


def server_processes(paths: EnginePaths) -> list[int]:
    """Return all processes of a server of this data directory, orphans included; none on systems without /proc."""
    if not _HAS_PROC:
        return []
    numbers = (
        int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()
    )
    return [pid for pid in numbers if _is_server_by_proc(pid, paths)]


class Recovery:
    """Work of the processes that recover a server, compared with the last look at them.

    Postgres 18 waits forever after a crash if a process fails that recovers it: if the one that replays the log fails,
    nothing does; if the checkpointer fails, the former waits for a checkpoint that its successor was not asked for.
    """

    def __init__(self, paths: EnginePaths) -> None:
        self._paths = paths
        self._waits: dict[int, int] = {}

    def shows_work(self, answer: Answer) -> bool:
        """Return false if a server that recovers replays no log, or did nothing for it since the last look.

        A process is at work that runs, waits for the disk or has waited several times; a timer wakes an idle one, too.
        True where /proc is missing.
        """
        if not _HAS_PROC or not answer.recovering:
            return True
        commands = {pid: _read(pid, "cmdline") for pid in server_processes(self._paths)}
        status = {
            pid: _read(pid, "status")
            for pid, command in commands.items()
            if _RECOVERS.search(command)
        }
        previous = self._waits
        self._waits = {
            pid: sum(map(int, _WAITS.findall(text))) for pid, text in status.items()
        }
        return b" startup " in b"\0".join(commands.values()) and any(
            _BUSY.search(status[pid]) or count > previous.get(pid, -_TIMERS) + _TIMERS
            for pid, count in self._waits.items()
        )


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


_HAS_PROC = Path("/proc/self/exe").exists()


def _is_server_by_proc(pid: int, paths: EnginePaths) -> bool:
    """Compare the working directory, which for Postgres is its data directory, as a file: it may have been renamed."""
    process = Path(f"/proc/{pid}")
    try:
        program = (process / "exe").readlink().name.removesuffix(" (deleted)")
        return program == "postgres" and (process / "cwd").samefile(paths.data)
    except OSError:  # ended, a zombie, or of another user
        return False


def _title(pid: int) -> str:
    listed = subprocess.run(  # noqa: S603
        ["ps", "-p", str(pid), "-o", "command="],  # noqa: S607
        capture_output=True,
        check=False,
    )
    return listed.stdout.decode("utf-8", "replace")


def psql(
    binaries: Binaries, endpoint: Endpoint, database: str, statement: str
) -> Outcome:
    """Run a statement in a database, with a limit for the answer."""
    variables = {
        "PGCONNECT_TIMEOUT": str(_CONNECT_SECONDS),
        "PGCLIENTENCODING": "UTF8",
        "PGAPPNAME": _APPLICATION,
    }
    return binaries.run(
        "psql",
        *(
            "--no-psqlrc",
            "--no-password",
            "--quiet",
            "--tuples-only",
            "--no-align",
            "--field-separator=\t",
        ),
        *("--command", statement),
        variables=variables | endpoint.variables(database),
        timeout=_ANSWER_SECONDS,
    )


def _parse(output: str, paths: EnginePaths) -> Answer:
    sessions, logins, version, data = output.removesuffix("\n").split("\t", 3)
    try:
        if Path(data).samefile(paths.data):
            state = State.READY
        else:
            state = State.FOREIGN
    except OSError:
        state = State.FOREIGN
    return Answer(state, f"it serves {data}", int(sessions), int(logins or 0), version)
