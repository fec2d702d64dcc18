"""`folklore install` and `folklore uninstall`: Folklore in the settings of assistants."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from folklore.cli.context import quick_settings
from folklore.cli.options import context_and_json
from folklore.cli.output import print_json, print_line
from folklore.clients.changes import Change, changed_lines, write
from folklore.clients.changes import install as planned
from folklore.clients.changes import uninstall as planned_removal
from folklore.clients.known import CLIENTS, TOKEN_VARIABLE, Client, Machine, Remote
from folklore.config import Settings
from folklore.errors import FolkloreError, InvalidInput, NotFound
from folklore.project import project_namespace, repository_root

_Plan = Callable[[Client, Path], Change]

_SAYS = {
    "added": "added to {file}",
    "updated": "updated in {file}",
    "unchanged": "{file} has this entry already",
    "removed": "removed from {file}",
    "restored": "removed; {file} is as it was before",
    "deleted": "removed; {file} held nothing else, so it was deleted",
    "absent": "no entry in {file}",
    "foreign": "left the entry of {file}, which is not Folklore's",
}

_names = click.argument("clients", nargs=-1, type=click.Choice([*CLIENTS, "all"]))
_scope = click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    show_default=True,
    help="Settings of the user, for every repository, or of the repository around this directory.",
)
_dry_run = click.option("--dry-run", is_flag=True, help="Show the changes as a diff and write nothing.")


@dataclass(frozen=True, slots=True)
class _Outcome:
    client: Client
    path: Path | None = None
    change: Change | None = None
    error: str | None = None
    left_out: str | None = None


@click.command()
@_names
@_scope
@_dry_run
@click.option("--print", "only_print", is_flag=True, help="Print the entries to paste and write nothing.")
@click.option("--force", is_flag=True, help="Replace an entry of the same name that is not Folklore's.")
@context_and_json
def install(
    ctx: click.Context,
    /,
    clients: Sequence[str],
    scope: str,
    dry_run: bool,
    only_print: bool,
    force: bool,
    as_json: bool,
) -> int:
    """Install Folklore into assistants; without names, or with `all`, into those found on this machine.

    Each starts its own server on stdio; with --server it connects to that server over HTTP. A token given by --token is
    written into the settings of the user; one in FOLKLORE_TOKEN, or for a project, is only referred to, where the
    assistant can read variables.
    """
    settings, _ = quick_settings(ctx)
    machine = Machine()
    project = repository_root(Path.cwd()) if scope == "project" else None
    flags = ctx.find_root().obj
    local = local_command(sys.executable, options_for_stdio(settings, flags["config"]))
    remote = _remote(settings, project, given=flags["flags"]["token"])
    chosen, left_out = _usable(_chosen(clients, machine), named=_are_named(clients), project=project, remote=remote)
    if only_print:
        for client in chosen:
            print_line(f"{client.title}: {_shown(client.file(machine, project))}", bold=True)
            print_line(client.section.snippet(_entry(client, local, remote)))
        return 0

    def plan(client: Client, path: Path) -> Change:
        entry = _entry(client, local, remote)
        secret = remote is not None and remote.token is not None and remote.token in str(entry)
        return planned(path, client.section, entry, force=force, secret=secret)

    outcomes = [*_carry_out(chosen, machine, project, plan, dry_run=dry_run), *left_out]
    hidden = [remote.token] if remote is not None and remote.token else []
    following = partial(_next, remote=remote, project=project)
    code = _report(outcomes, as_json=as_json, dry_run=dry_run, hidden=hidden, following=following)
    if not as_json:
        needs_database = flags["flags"]["database_url"] or os.environ.get("FOLKLORE_DATABASE_URL")
        _advise(remote, needs_database_url=bool(needs_database))
    return code


@click.command()
@_names
@_scope
@_dry_run
@context_and_json
def uninstall(ctx: click.Context, /, clients: Sequence[str], scope: str, dry_run: bool, as_json: bool) -> int:
    """Remove Folklore's entry from assistants; without names, or with `all`, from each that has one.

    Memories stay.
    """
    settings, _ = quick_settings(ctx)
    machine = Machine()
    project = repository_root(Path.cwd()) if scope == "project" else None
    named = _are_named(clients)
    candidates = [CLIENTS[name] for name in dict.fromkeys(clients)] if named else list(CLIENTS.values())
    chosen, _ = _usable(candidates, named=named, project=project, remote=None)
    outcomes = _carry_out(
        chosen, machine, project, lambda client, path: planned_removal(path, client.section), dry_run=dry_run
    )
    if not named:
        outcomes = [one for one in outcomes if one.error or (one.change is not None and one.change.action != "absent")]
    code = _report(outcomes, as_json=as_json, dry_run=dry_run)
    if not as_json:
        if not outcomes:
            print_line("No assistant has an entry of Folklore.")
        print_line(f"Left: the memories and settings in {_shown(settings.home)}.")
    return code


def local_command(python: str, options: Sequence[str]) -> list[str]:
    """Return the command that starts a server on stdio: the `folklore` next to this Python, with these options."""
    scripts = [Path(python).with_name(name) for name in ("folklore", "folklore.exe")]
    script = next((str(path) for path in scripts if path.exists()), None)
    return [*([script] if script else [python, "-m", "folklore"]), *options, "serve"]


def options_for_stdio(settings: Settings, config: Path | None) -> list[str]:
    """Return the options by which a server that an assistant starts uses this home and this settings file."""
    file = config or os.environ.get("FOLKLORE_CONFIG")
    options = [] if not file else ["--config", os.path.abspath(Path(file).expanduser())]  # noqa: PTH100 - keeps links
    if settings.home != Path("~/.folklore").expanduser():
        options += ["--home", str(settings.home)]
    return options


def _remote(settings: Settings, project: Path | None, given: str | None) -> Remote | None:
    """Return the server to connect to over HTTP, if one is set."""
    if settings.server is None:
        return None
    token = settings.token.get_secret_value() if settings.token else None
    from_environment = token is not None and given is None and token == os.environ.get(TOKEN_VARIABLE)
    namespace = settings.namespace or (project_namespace(project) if project is not None else None)
    return Remote(
        url=f"{settings.server.rstrip('/')}/mcp",
        token=token,
        token_in_variable=from_environment or (token is not None and project is not None),
        namespace=namespace,
    )


def _are_named(names: Sequence[str]) -> bool:
    return bool(names) and "all" not in names


def _chosen(names: Sequence[str], machine: Machine) -> list[Client]:
    if _are_named(names):
        return [CLIENTS[name] for name in dict.fromkeys(names)]
    found = [client for client in CLIENTS.values() if client.is_here(machine)]
    if not found:
        raise NotFound("No assistant was found on this machine.", hint=f"Name one of {', '.join(CLIENTS)}.")
    return found


def _usable(
    clients: Sequence[Client], *, named: bool, project: Path | None, remote: Remote | None
) -> tuple[list[Client], list[_Outcome]]:
    """Return the assistants that can be used in this way, and those left out. Raises InvalidInput for named ones."""
    obstacles = [(client, _obstacle(client, project, remote)) for client in clients]
    errors = [error for _, error in obstacles if error is not None]
    if named and errors:
        raise errors[0]
    left_out = [_Outcome(client, left_out=str(error)) for client, error in obstacles if error is not None]
    return [client for client, error in obstacles if error is None], left_out


def _obstacle(client: Client, project: Path | None, remote: Remote | None) -> InvalidInput | None:
    if project is not None and not client.project_files:
        return InvalidInput("scope", f"{client.title} has no settings for a project.", hint="Use --scope user.")
    if remote is not None and client.remote is None:
        return InvalidInput(
            "server",
            f"{client.title} starts local servers only.",
            hint="Add the server under Settings > Connectors, or install without --server.",
        )
    if project is not None and remote is not None and remote.token is not None and client.variable is None:
        return InvalidInput(
            "token",
            f"{client.title} reads no variables, and a project's settings are no place for a token.",
            hint="Use --scope user.",
        )
    return None


def _entry(client: Client, local: Sequence[str], remote: Remote | None) -> dict[str, Any]:
    return client.local(local) if remote is None or client.remote is None else client.remote(remote)


def _carry_out(
    chosen: Sequence[Client], machine: Machine, project: Path | None, plan: _Plan, *, dry_run: bool
) -> list[_Outcome]:
    """Change one file after the other; an error of one is its outcome, and does not hinder the others."""
    outcomes = []
    for client in chosen:
        path = client.file(machine, project)
        try:
            change = plan(client, path)
            if change.writes and not dry_run:
                write(change)
            outcomes.append(_Outcome(client, path, change))
        except (FolkloreError, OSError) as error:
            if len(chosen) == 1:
                raise
            words = f"{error.strerror or error}; nothing was changed." if isinstance(error, OSError) else str(error)
            outcomes.append(_Outcome(client, path, error=words))
    return outcomes


def _report(
    outcomes: Sequence[_Outcome],
    *,
    as_json: bool,
    dry_run: bool,
    hidden: Sequence[str] = (),
    following: Callable[[Client], str] | None = None,
) -> int:
    """Print the outcomes; return 1 if an assistant that was asked for could not be changed."""
    if as_json:
        print_json([_document(one) for one in outcomes])
    else:
        for one in outcomes:
            if dry_run and one.change is not None and one.change.writes:
                click.echo(changed_lines(one.change, str(one.change.path), hidden), nl=False)
            else:
                _show(one, following)
    return int(any(one.error for one in outcomes))


def _show(outcome: _Outcome, following: Callable[[Client], str] | None) -> None:
    """Print the outcome for one assistant, where the former content is, and the next step."""
    change = outcome.change
    if change is None:
        colour = {"fg": "red"} if outcome.error else {}
        print_line(f"{outcome.client.title}: {outcome.error or f'left out ({outcome.left_out})'}", **colour)
        return
    colour = {"fg": "green"} if change.writes else {}
    print_line(f"{outcome.client.title}: {_SAYS[change.action].format(file=_shown(change.path))}", **colour)
    if change.backup is not None:
        print_line(f"  The file as it was before: {_shown(change.backup)}")
    if following is not None and change.writes:
        print_line(f"  Next: {following(outcome.client)}.")


def _document(outcome: _Outcome) -> dict[str, object]:
    change = outcome.change
    backup = str(change.backup) if change is not None and change.backup else None
    return {
        "client": outcome.client.name,
        "file": str(outcome.path) if outcome.path else None,
        "action": change.action if change is not None else "failed" if outcome.error else "left out",
        "backup": backup,
        "error": outcome.error or outcome.left_out,
    }


def _next(client: Client, *, remote: Remote | None, project: Path | None) -> str:
    if remote is not None and remote.token_in_variable and client.variable is not None:
        return f"set {TOKEN_VARIABLE} where {client.title} starts; {client.next}"
    if remote is None and project is not None:
        return f"{client.next}. Do not commit this file: it names a path of this machine"
    return client.next


def _advise(remote: Remote | None, *, needs_database_url: bool) -> None:
    """Print what the settings of assistants do not hold, and what to do about it."""
    if remote is None and needs_database_url:
        print_line("The address of your database is not written there, as it may hold a password.")
        print_line("  Next: put it into ~/.folklore/config.yaml as `database_url`, else assistants use another memory.")
    if remote is not None and remote.namespace is None:
        print_line("Memories go to the namespace of the token, if it has one.")
        print_line("  Next: run this with --scope project in a repository, to use the repository's namespace there.")


def _shown(path: Path) -> str:
    """Return a path with ~ for the home."""
    home = Path.home()
    return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else str(path)
