"""The `folklore` command: imports the module of one sub-command, and turns errors into a line and an exit code."""

import gc
import json
import os
import sys
from collections.abc import MutableMapping
from difflib import get_close_matches
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from folklore import __version__, phases
from folklore.cli import screen
from folklore.errors import FolkloreError, InvalidInput, field_errors

# Name -> (module below folklore.cli, one line for the overview), in groups. Imported when called: `serve` must answer
# at once. In its module, a command whose name is one of Python's has an underscore after it.
_GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Daily": {
        "status": (
            "daily.status",
            "The memory of this project; also without a command.",
        ),
        "open": ("daily.open", "Open the console in the browser."),
        "store": ("daily.write", "Store a memory."),
        "recall": ("daily.read", "Find memories by meaning and by word, best first."),
        "search": ("daily.read", "Find memories by exact words."),
        "list": ("daily.read", "List memories in order of time."),
        "show": ("daily.read", "Show memories whole, by id."),
        "stale": (
            "daily.stale",
            "List memories whose files changed since; confirm them.",
        ),
        "log": ("daily.status", "Show who stored, changed and forgot what, by day."),
        "injected": ("daily.injected", "Show what hooks gave to your assistants."),
        "pause": ("daily.injected", "Silence hooks for a while."),
        "history": ("daily.read", "Show the changes of a memory."),
        "review": (
            "daily.review",
            "Decide on what was said and not stored, near-duplicates, contradictions, unused memories.",
        ),
        "edit": ("daily.write", "Change a memory in your editor."),
        "forget": ("daily.write", "Forget memories; `undo` restores them for a while."),
        "undo": (
            "daily.undo",
            "Take back the last change of a memory, or your last one.",
        ),
        "redo": ("daily.undo", "Undo the last undo."),
        "merge": ("daily.write", "Merge memories into one."),
        "pin": ("daily.write", "Keep memories from expiring, and first."),
        "relate": ("daily.write", "Relate one memory to another."),
    },
    "Team": {
        "invite": ("team.onboarding", "Invite a person: print a line to send."),
        "join": (
            "team.onboarding",
            "Join a team's server by the line of an invitation.",
        ),
        "namespaces": (
            "team.admin",
            "Namespaces: list, create, rename, merge, delete, restore.",
        ),
        "tags": ("team.admin", "Tags of a namespace: rename."),
        "tokens": ("team.admin", "Tokens for people and agents: create, list, revoke."),
        "audit": ("team.admin", "Show writes and denied accesses."),
        "stats": ("team.admin", "Count what is stored."),
        "export": ("team.transfer", "Write memories as JSON Lines."),
        "import": (
            "team.importing",
            "Read memories from exports, pages, notes and conversations.",
        ),
    },
    "Operate": {
        "install": ("operate.install", "Install Folklore into assistants."),
        "uninstall": (
            "operate.install",
            "Remove Folklore from assistants; memories stay.",
        ),
        "serve": ("operate.serve", "Serve MCP over stdio, or over HTTP with --http."),
        "server": (
            "operate.server",
            "The server of your sessions and commands: status, log, restart, stop.",
        ),
        "backup": (
            "operate.backup",
            "Back up the whole database to a file, and verify it.",
        ),
        "restore": ("operate.backup", "Replace the whole database by a backup."),
        "backups": ("operate.backup", "Backups: list, prune."),
        "hook": ("operate.hook", "Answer hooks of assistants, which call it."),
        "jobs": ("operate.jobs", "Background jobs: run, status."),
        "embeddings": (
            "operate.embeddings",
            "The embedding model: status, backfill, switch, rollback, drop, fetch.",
        ),
        "db": ("operate.db", "The database: start, stop, status, migrate, role."),
        "doctor": (
            "operate.doctor",
            "Check that everything works, and show the next step if not.",
        ),
        "config": ("operate.config", "The settings in use."),
        "completion": (
            "operate.config",
            "Print what completes commands in bash, zsh or fish.",
        ),
    },
}
# New objects after which Python looks for cycles among them.
_GARBAGE_THRESHOLD = 50_000
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_COMMANDS = {
    name: command for group in _GROUPS.values() for name, command in group.items()
}


class _Lazy(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        location = _COMMANDS.get(cmd_name)
        if location is None:
            return None
        # What is imported is no garbage, and a command ends before it makes some that is worth a search.
        gc.set_threshold(_GARBAGE_THRESHOLD)
        module = import_module(f"folklore.cli.{location[0]}")
        command = getattr(module, cmd_name, None) or getattr(module, f"{cmd_name}_")
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader of our output has ended, as `| head` does; click would report a failure
            _discard_output()
            return 0
        return result

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        for group, commands in _GROUPS.items():
            with formatter.section(group):
                formatter.write_dl(
                    [(name, summary) for name, (_, summary) in commands.items()]
                )

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[CompletionItem]:
        """Complete names without the import of every command."""
        items = [
            CompletionItem(name, help=summary)
            for name, (_, summary) in _COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in _COMMANDS and not name.startswith("-"):
            message = f"No such command {name!r}."
            near = get_close_matches(name, _COMMANDS)
            if near:
                message += f" Did you mean {' or '.join(near)}?"
            ctx.fail(message)
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Lazy,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Settings file (YAML).",
)
@click.option(
    "--database-url", help="Use this Postgres instead of the embedded engine."
)
@click.option(
    "--server",
    help="Use the Folklore server at this address (https://host:port); allowed anywhere in the command.",
)
@click.option(
    "--token",
    help="The token for the server; FOLKLORE_TOKEN keeps it out of the list of processes.",
)
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory of the engine's data, logs and models.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="What to log on stderr.",
)
@click.option(
    "--utc",
    is_flag=True,
    help='Show times in UTC and never as "3 days ago"; allowed anywhere.',
)
@click.option(
    "--debug", is_flag=True, help="Show tracebacks; allowed anywhere in the command."
)
@click.version_option(__version__, prog_name="folklore")
@click.pass_context
def cli(
    ctx: click.Context, /, config: Path | None, debug: bool, utc: bool, **flags: Any
) -> None:
    """Long-term memory for AI coding assistants, shared by a whole team.

    Without a command: the status of the memory of this project.
    """
    ctx.obj = {"config": config, "flags": flags, "debug": debug, "utc": utc}
    if ctx.invoked_subcommand is None:
        status = cli.get_command(ctx, "status")
        assert status is not None
        ctx.invoke(status)


def main() -> None:
    """Run the command line. The exit codes are those of the errors; 130 after Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        # memories hold any character, whatever the terminal's locale says
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    # Looking for plugins of pydantic reads the metadata of every installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    _exempt_loopback(os.environ)
    code = outcome(sys.argv[1:])
    gc.freeze()  # at its end, Python would look for cycles among all objects, whose memory the system takes back anyway
    sys.exit(code)


def _exempt_loopback(environ: MutableMapping[str, str]) -> None:
    """Let no library send a request for this machine to a proxy, if the environment sets one."""
    names = {name.lower() for name in environ}
    if names.isdisjoint({"http_proxy", "https_proxy", "all_proxy"}):
        return
    # The lower case comes first.
    given = environ.get("no_proxy", environ.get("NO_PROXY", ""))
    hosts = [host.strip() for host in given.split(",") if host.strip()]
    hosts += [host for host in _LOOPBACK if host not in hosts]
    environ["no_proxy"] = environ["NO_PROXY"] = ",".join(hosts)


def outcome(arguments: list[str]) -> int:
    """Run one command and return its exit code; errors are reported on stderr. Raises only with --debug."""
    phases.show_phases(None)
    options = arguments
    if "--" in arguments:
        options = arguments[: arguments.index("--")]
    debug = "--debug" in options
    as_json = "--json" in options
    if not as_json and "serve" not in options and screen.has_progress():
        phases.show_phases(screen.Progress().phase)
    arguments = _global_first(options) + arguments[len(options) :]
    try:
        # Without click's standalone mode, `main` returns an exit code or the value that a command returned.
        code = cli.main(args=arguments, prog_name="folklore", standalone_mode=False)
    except click.exceptions.Abort:
        return 130
    except click.ClickException as error:
        return _misuse(error, as_json)
    except Exception as error:
        if debug:
            raise
        return _failure(error, as_json)
    return code if isinstance(code, int) else 0


def _misuse(error: click.ClickException, as_json: bool) -> int:
    if as_json:
        return _report(
            "invalid_input", error.format_message(), as_json=True, exit_code=2
        )
    error.show(file=sys.stderr)
    return 2


def _failure(error: Exception, as_json: bool) -> int:
    from pydantic import ValidationError  # a command that succeeds may need none

    # of a request that a command makes of its arguments
    if isinstance(error, ValidationError):
        error = InvalidInput(*field_errors(error)[0])
    if isinstance(error, FolkloreError):
        return _report(
            error.code,
            error.message,
            error.hint,
            as_json=as_json,
            exit_code=error.exit_code,
        )
    # a disk that is full, a file without read permission
    if isinstance(error, OSError):
        _discard_output()
        return _report(
            "failed",
            f"{error.filename or 'output'}: {error.strerror or error}.",
            as_json=as_json,
        )
    words = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(": ")
    return _report(
        "internal",
        f"internal error ({words});",
        "run with --debug to see its place.",
        as_json=as_json,
    )


def _global_first(options: list[str]) -> list[str]:
    """Move --server, --token and --utc, which are allowed anywhere, before the command; leave --debug out."""
    first = []
    rest = []
    words = iter(options)
    for word in words:
        if word in ("--server", "--token"):
            first.append(word)
            first += islice(words, 1)  # its value, unless that is missing
        elif word == "--utc" or word.startswith(("--server=", "--token=")):
            first.append(word)
        elif word != "--debug":
            rest.append(word)
    return first + rest


def _discard_output() -> None:
    """Redirect stdout to nowhere: the write that failed would be repeated, with a traceback, when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(
    code: str,
    message: str,
    hint: str | None = None,
    *,
    as_json: bool,
    exit_code: int = 1,
) -> int:
    """Report an error on stderr, and return its exit code."""
    if as_json:
        error = {"code": code, "message": message}
        if hint:
            error["hint"] = hint
        click.echo(json.dumps({"error": error}, ensure_ascii=False), err=True)
    else:
        text = f"{message} {hint}" if hint else message
        screen.print_error(f"folklore: {text}")
    return exit_code


if __name__ == "__main__":
    main()
