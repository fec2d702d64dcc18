"""The `folklore` command: finds the sub-command, loads only that, and turns errors into one line and an exit code."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import click

from folklore import __version__
from folklore.errors import FolkloreError

# Name -> (module, attribute, one line for the overview). Loaded when called: `serve` must answer at once.
_COMMANDS: dict[str, tuple[str, str, str]] = {
    "serve": ("folklore.cli.serve", "serve", "Serve MCP over stdio, or over HTTP with --http."),
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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, _, summary) in _COMMANDS.items()])


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="Settings file (YAML).")
@click.option("--database-url", help="Use this Postgres instead of the embedded engine.")
@click.option("--home", type=click.Path(path_type=Path, file_okay=False), help="Where Folklore keeps its files.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="What to log on stderr.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.version_option(__version__, prog_name="folklore")
@click.pass_context
def cli(
    ctx: click.Context,
    config: Path | None,
    database_url: str | None,
    home: Path | None,
    log_level: str | None,
    debug: bool,
) -> None:
    """One long-term memory for AI coding assistants that a whole team shares."""
    ctx.obj = {
        "config": config,
        "flags": {"database_url": database_url, "home": home, "log_level": log_level},
        "debug": debug,
    }


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 failed, 2 bad input, 3 not reachable, 4 not found, 5 refused."""
    arguments = sys.argv[1:]
    try:
        cli.main(args=arguments, prog_name="folklore", standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.exceptions.Exit as exit_:
        sys.exit(exit_.exit_code)
    except click.ClickException as error:
        if "--json" in arguments:
            _fail("invalid_input", error.format_message(), None, as_json=True)
        else:
            error.show(file=sys.stderr)
        sys.exit(2)
    except FolkloreError as error:
        if "--debug" in arguments:
            raise
        _fail(error.code, error.message, error.hint, as_json="--json" in arguments)
        sys.exit(error.exit_code)
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        sys.stderr.close()
        sys.exit(0)


def _fail(code: str, message: str, hint: str | None, *, as_json: bool) -> None:
    if as_json:
        shown: dict[str, object] = {"code": code, "message": message}
        if hint:
            shown["hint"] = hint
        click.echo(json.dumps({"error": shown}, ensure_ascii=False), err=True)
    else:
        click.echo(f"folklore: {message}{' ' + hint if hint else ''}", err=True)


if __name__ == "__main__":
    main()
