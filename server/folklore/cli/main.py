"""The `folklore` command: finds the sub-command, loads only that, and turns errors into one line and an exit code."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from folklore import __version__
from folklore.errors import FolkloreError

# Name -> (module, attribute, one line for the overview). Loaded when called: `serve` must answer at once.
_COMMANDS: dict[str, tuple[str, str, str]] = {
    "serve": ("folklore.cli.serve", "serve", "Serve MCP over stdio, or over HTTP with --http."),
    "store": ("folklore.cli.write", "store", "Store a memory."),
    "recall": ("folklore.cli.read", "recall", "Find memories by meaning and by word, best first."),
    "search": ("folklore.cli.read", "search", "Find memories by exact words."),
    "list": ("folklore.cli.read", "list_", "List memories in order of time."),
    "show": ("folklore.cli.read", "show", "Show memories whole, by id."),
    "history": ("folklore.cli.read", "history", "Show what was changed about a memory."),
    "edit": ("folklore.cli.write", "edit", "Change a memory in your editor."),
    "forget": ("folklore.cli.write", "forget", "Forget memories, to be undone for a while or for good."),
    "undo": ("folklore.cli.write", "undo", "Take back the last change of a memory."),
    "relate": ("folklore.cli.write", "relate", "Say what one memory has to do with another."),
    "namespaces": (
        "folklore.cli.namespaces",
        "namespaces",
        "Namespaces: list, create, rename, describe, delete, restore.",
    ),
    "tokens": ("folklore.cli.tokens", "tokens", "Tokens for people and agents: create, list, revoke."),
    "audit": ("folklore.cli.tokens", "audit", "Who wrote what and when, and who was refused."),
    "stats": ("folklore.cli.namespaces", "stats", "Count what is stored."),
    "export": ("folklore.cli.transfer", "export", "Write memories as JSON Lines."),
    "import": (
        "folklore.cli.transfer",
        "import_",
        "Read memories from JSON Lines, Markdown, or another system's export.",
    ),
    "jobs": ("folklore.cli.jobs", "jobs", "Background jobs: run, status."),
    "embeddings": (
        "folklore.cli.embeddings",
        "embeddings",
        "The embedding model: status, backfill, switch, rollback, drop, fetch.",
    ),
    "db": ("folklore.cli.db", "db", "The database: start, stop, status, migrate, role."),
    "doctor": ("folklore.cli.doctor", "doctor", "Check that everything works, and say what to do if not."),
    "config": ("folklore.cli.config", "config", "The settings in use."),
}


class _Lazy(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = _COMMANDS.get(cmd_name)
        if found is None:
            return None
        command = getattr(import_module(found[0]), found[1])
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader of our output has gone, as `| head` does; click would call it a failure
            _let_go_of_stdout()
            return 0
        return result

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, _, summary) in _COMMANDS.items()])


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="Settings file (YAML).")
@click.option("--database-url", help="Use this Postgres instead of the embedded engine.")
@click.option(
    "--server", help="Ask the Folklore server at this address (https://host:port) instead; may stand anywhere."
)
@click.option("--token", help="The token for it, likewise; better set as FOLKLORE_TOKEN.")
@click.option("--home", type=click.Path(path_type=Path, file_okay=False), help="Where Folklore keeps its files.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="What to log on stderr.")
@click.option("--debug", is_flag=True, help="Show tracebacks; may stand anywhere.")
@click.version_option(__version__, prog_name="folklore")
@click.pass_context
def cli(
    ctx: click.Context,
    config: Path | None,
    database_url: str | None,
    server: str | None,
    token: str | None,
    home: Path | None,
    log_level: str | None,
    debug: bool,
) -> None:
    """One long-term memory for AI coding assistants that a whole team shares."""
    ctx.obj = {
        "config": config,
        "flags": {
            "database_url": database_url,
            "server": server,
            "token": token,
            "home": home,
            "log_level": log_level,
        },
        "debug": debug,
    }


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 failed, 2 bad input, 3 not reachable, 4 not found, 5 refused."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # memories hold any character, whatever the terminal's locale says
            stream.reconfigure(encoding="utf-8", errors="replace")
    sys.exit(outcome(sys.argv[1:]))


def outcome(arguments: list[str]) -> int:
    """Run one command and return its exit code; what went wrong is told on stderr. Raises only with --debug."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    debug, as_json = "--debug" in options, "--json" in options
    arguments = _first([word for word in options if word != "--debug"]) + arguments[len(options) :]
    try:
        # Outside click's standalone mode an exit code is the answer of `main`, as is what a command returns.
        code = cli.main(args=arguments, prog_name="folklore", standalone_mode=False)
    except click.exceptions.Abort:
        return 130
    except click.ClickException as error:
        return _usage(error, as_json)
    except FolkloreError as error:
        if debug:
            raise
        _tell(error.code, error.message, error.hint, as_json)
        return error.exit_code
    except OSError as error:  # a disk that is full, a file that may not be read
        if debug:
            raise
        _let_go_of_stdout()
        _tell("failed", f"{error.filename or 'output'}: {error.strerror or error}.", None, as_json)
        return 1
    except Exception as error:  # the outermost edge: a person gets a line, not a traceback
        if debug:
            raise
        words = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(": ")
        _tell("internal", f"internal error ({words});", "run with --debug to see where.", as_json)
        return 1
    return code if isinstance(code, int) else 0


def _first(options: list[str]) -> list[str]:
    """The words with --server and --token, which may stand anywhere, before the command."""
    whose, rest = [], []
    words = iter(options)
    for word in words:
        if word in ("--server", "--token"):
            whose += [word, *[value for value in [next(words, None)] if value is not None]]
        elif word.startswith(("--server=", "--token=")):
            whose.append(word)
        else:
            rest.append(word)
    return whose + rest


def _let_go_of_stdout() -> None:
    """What is still to be written there would fail again when Python ends, and louder."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(error: click.ClickException, as_json: bool) -> int:
    if as_json:
        _tell("invalid_input", error.format_message(), None, as_json)
    else:
        error.show(file=sys.stderr)
    return 2


def _tell(code: str, message: str, hint: str | None, as_json: bool) -> None:
    if as_json:
        shown: dict[str, object] = {"code": code, "message": message}
        if hint:
            shown["hint"] = hint
        click.echo(json.dumps({"error": shown}, ensure_ascii=False), err=True)
    else:
        click.echo(f"folklore: {message}{' ' + hint if hint else ''}", err=True)


if __name__ == "__main__":
    main()
