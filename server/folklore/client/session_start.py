"""The start of a session, answered by the user's server. Imports the standard library only: assistants wait for it."""

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from folklore.client.local_server import LocalServer, home_of

# Clients drop the answer of a hook after five seconds.
SECONDS = 4.0
# What a start takes at most on a machine with much other work.
_START_SECONDS = 60.0
# Codes of errors of the request or its caller.
_REFUSALS = ("invalid_input", "not_found", "refused", "rate_limited", "unauthenticated")
_COMMANDS = (["hook", "session-start"], ["hook", "session-start", "--json"])
# How lines of a settings file begin that may lead a command to another server.
_OF_ANOTHER_SERVER = (b"server", b"home", b"read_only", b"{", b"'", b'"')


def leading_options(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return a command, and the options before it, which `folklore install` writes: --home and --config by name."""
    command = list(arguments)
    options = {}
    while command[:1] in (["--home"], ["--config"]) and len(command) > 1:
        options[command[0][2:]] = os.path.abspath(command[1])
        del command[:2]
    return command, options


def has_plain_settings(server: LocalServer, environ: Mapping[str, str]) -> bool:
    """Return whether the settings surely lead to this server, as far as is known without reading YAML."""
    if any(environ.get(name) for name in ("FOLKLORE_SERVER", "FOLKLORE_READ_ONLY")):
        return False
    lines = server.settings_file.splitlines()
    return not any(line.startswith(_OF_ANOTHER_SERVER) for line in lines)


def printed(text: str, as_json: bool) -> str:
    """Return what clients read; Gemini CLI shows a text that is not JSON to the user and not to the model."""
    output = {"hookEventName": "SessionStart", "additionalContext": text}
    if as_json:
        return json.dumps({"hookSpecificOutput": output}, ensure_ascii=False)
    return text


def away(reason: str) -> str:
    """Return the line for an assistant whose memory cannot be reached: the first of the reason, without a log."""
    line = reason.partition("\n")[0]
    return f"Folklore, the team's memory, is away: {line}"


def late(server: LocalServer) -> str:
    """Return the line for an assistant whose memory did not answer in time: it may be starting."""
    reason = f"it did not answer within {SECONDS:g} seconds"
    age = server.age()
    if age is None or age > _START_SECONDS:
        return away(f"{reason}.")
    return f"Folklore, the team's memory, is starting: {reason}. Its tools will answer."


def refused(reason: str) -> str:
    """Return the line for an assistant whose request the memory did not take: it is there."""
    line = reason.partition("\n")[0]
    return f"Folklore, the team's memory, gave no notes: {line}"


def read_event() -> dict[str, str]:
    """Return the session, the source and the directory of the event on standard input, empty where it has none."""
    event = read_json()
    names = {"session": "session_id", "source": "source", "directory": "cwd"}
    if not isinstance(event, dict):
        return dict.fromkeys(names, "")
    return {name: _storable(event.get(key)) for name, key in names.items()}


def read_json() -> Any:
    """Return the JSON on standard input; None if there is none."""
    # a closed stream is None
    with suppress(ValueError, OSError, RecursionError, AttributeError):
        if sys.stdin.isatty():
            return None
        return json.loads(sys.stdin.read())
    return None


def request_of_cursor(event: Any) -> dict[str, Any] | None:
    """Return the fields of a request for an event of Cursor; None for one at which it takes no notes."""
    names = {"sessionStart": "SessionStart", "postToolUse": "PostToolUse"}
    name = event.get("hook_event_name") if isinstance(event, dict) else None
    if not isinstance(name, str) or name not in names:
        return None
    roots = event.get("workspace_roots")
    root = roots[0] if isinstance(roots, list) and roots else ""
    return {
        "event": names[name],
        "session": _storable(event.get("conversation_id") or event.get("session_id")),
        "directory": _storable(event.get("cwd") or root),
        "tool": _storable(event.get("tool_name")),
        "tool_input": event.get("tool_input"),
        "tool_response": event.get("tool_output"),
    }


def _storable(value: object) -> str:
    """Return a value as a text that the server can store: without NUL and halves of surrogate pairs."""
    text = str(value or "").replace("\0", "")
    return text.encode("utf-8", "replace").decode("utf-8")


def answered(arguments: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Print the answer for a session that starts, within four seconds; False if another command or server is meant."""
    if list(arguments) not in _COMMANDS:
        return False
    home = home_of(environ)
    if home is None or os.name != "posix":
        return False
    lines = _settings(environ.get("FOLKLORE_CONFIG"), home)
    if environ.get("FOLKLORE_OWN") or environ.get("FOLKLORE_SERVER") or lines is None:
        return False
    # the first server creates it, and no hook can wait for that
    if not has_database(environ, home, lines):
        return True
    server = LocalServer(home, environ)
    try:
        server.connect(SECONDS).close()
    except OSError:
        # no socket or no process can be made here: the command does without
        return False
    limit_time()
    text = _text(server, environ)
    if text:
        write(printed(text, as_json="--json" in arguments))
    return True


def limit_time() -> None:
    """Raise TimeoutError in this thread when clients no longer wait for a hook."""
    signal.signal(signal.SIGALRM, _end)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)


def write(text: str) -> None:
    """Print a line. That its reader is gone, or its disk full, is no failure of the session."""
    if sys.stdout is not None:
        with suppress(OSError):
            os.write(sys.stdout.fileno(), f"{text}\n".encode())


def has_database(environ: Mapping[str, str], home: str, lines: Sequence[bytes]) -> bool:
    """Return whether a server of these settings would find a database, and need not create one."""
    if environ.get("FOLKLORE_DATABASE_URL"):
        return True
    if any(line.startswith(b"database_url") for line in lines):
        return True
    return os.path.exists(f"{home}/engine/data")


def _settings(config: str | None, home: str) -> list[bytes] | None:
    """Return the lines of the settings file; None if it names another server or home, or cannot be read."""
    try:
        with open(config or f"{home}/config.yaml", "rb") as file:
            lines = file.readlines()
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not config:
            return []
        return None  # the command says what is wrong with it
    if any(line.startswith(_OF_ANOTHER_SERVER) for line in lines):
        return None
    return lines


def _end(*_signal: object) -> None:
    raise TimeoutError


def _text(server: LocalServer, environ: Mapping[str, str]) -> str:
    try:
        fields = {"event": "SessionStart", **read_event()}
        value = json.loads(exchange(server, environ, fields))
        signal.setitimer(signal.ITIMER_REAL, 0)
        if "result" in value:
            return str(value["result"]["text"])
        error = value["error"]
        message = str(error["message"])
        if error.get("code") in _REFUSALS:
            return refused(message)
        return away(message)
    except TimeoutError:
        return late(server)
    except OSError as error:
        return away(f"{error.strerror or error}.")
    except (ValueError, LookupError, TypeError):
        return away(f"its server gave no answer; {server.log} has the reason.")


def _percent_encoded(value: str) -> str:
    encoded = ""
    for byte in os.fsencode(value):
        is_plain = 32 < byte < 127 and byte != ord("%")
        encoded += chr(byte) if is_plain else f"%{byte:02X}"
    return encoded


def exchange(
    server: LocalServer, environ: Mapping[str, str], fields: Mapping[str, Any]
) -> bytes:
    """Return the body of the answer to a hook with these fields. Raises OSError."""
    body = json.dumps(fields).encode()
    head = [
        "POST /api/hook HTTP/1.0",
        "host: localhost",
        "content-type: application/json",
    ]
    for name in ("author", "namespace", "time-zone"):
        value = environ.get(f"FOLKLORE_{name.upper().replace('-', '_')}")
        if value:
            head.append(f"folklore-{name}: {_percent_encoded(value)}")
    head += [f"content-length: {len(body)}", "", ""]
    with server.connect(SECONDS) as connection:
        connection.sendall("\r\n".join(head).encode() + body)
        with connection.makefile("rb") as answer:
            return answer.read().partition(b"\r\n\r\n")[2]
