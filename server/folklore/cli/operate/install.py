"""`folklore install` and `folklore uninstall`: Folklore in the settings of assistants."""

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from folklore.cli.context import settings_of
from folklore.cli.options import context_and_json
from folklore.cli.output import print_json, print_line
from folklore.clients import plugin
from folklore.clients.changes import (
    Change,
    changed_lines,
    install as planned,
    is_ours,
    uninstall as planned_removal,
    write,
)
from folklore.clients.credentials import normalised, read_token, save_token
from folklore.clients.editing import HOOKS, EditError
from folklore.clients.known import CLIENTS, TOKEN_VARIABLE, Client, Machine, Remote
from folklore.config import Settings
from folklore.errors import FolkloreError, InvalidInput, NotFound
from folklore.project import project_namespace, repository_root

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
_SAYS_OF_FOLDER = {
    "added": "added {file}: {parts}",
    "updated": "updated {file}",
    "unchanged": "{file} is up to date already",
    "removed": "removed {file}",
    "absent": "nothing in {file}",
}

_CHANGING = ("added", "updated", "removed", "restored", "deleted", "foreign")

_names = click.argument("clients", nargs=-1, type=click.Choice([*CLIENTS, "all"]))
_scope = click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    show_default=True,
    help="Settings of the user, for every repository, or of the repository around this directory.",
)
_dry_run = click.option("--dry-run", is_flag=True, help="Show the files that would change, and how; write nothing.")


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Outcome for one assistant: the changes of its settings and of its folder, an error, or why it is left out."""

    client: Client
    path: Path | None = None
    change: Change | None = None
    folder: plugin.FolderChange | None = None
    error: str | None = None
    left_out: str | None = None

    @property
    def action(self) -> str:
        """The action that counts: that of the folder, if the server is in it or the settings have no part in it."""
        parts = [part.action for part in (self.folder, self.change) if part is not None]
        if not parts:
            return "failed" if self.error else "left out"
        return next((action for action in parts if action not in ("absent", "unchanged")), parts[0])

    @property
    def left(self) -> Sequence[Path]:
        """The files of the folder that stay, since their owner changed them."""
        return self.folder.remaining if self.folder is not None else ()


_Plan = Callable[[Client, Path], tuple[Change | None, plugin.FolderChange | None]]


@click.command()
@_names
@_scope
@_dry_run
@click.option("--print", "only_print", is_flag=True, help="Print the entries to paste and write nothing.")
@click.option("--force", is_flag=True, help="Replace an entry or a folder of the same name that is not Folklore's.")
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

    Each starts its own server on stdio; Claude Code, Codex and Gemini CLI get hooks and a skill too. With --server each
    starts a bridge to that server, and the token is kept in the system's keyring or a file of yours, never in the
    settings of an assistant. With --scope project, they connect to that server over HTTP, and refer to the token in
    FOLKLORE_TOKEN.
    """
    settings = settings_of(ctx)
    machine = Machine()
    project = repository_root(Path.cwd()) if scope == "project" else None
    flags = ctx.find_root().obj
    command = own_command(sys.executable, options_for_assistants(settings, flags["config"]))
    remote = _remote(settings, project)
    selected, left_out = _usable(_chosen(clients, machine), by_name=_are_named(clients), project=project, remote=remote)
    entry_of = partial(_entry, command=command, remote=remote, project=project)
    if only_print:
        for client in selected:
            print_line(f"{client.title}: {_shown(client.file(machine, project))}", bold=True)
            print_line(client.section.put("", entry_of(client)))
        return 0

    def plan(client: Client, path: Path) -> tuple[Change | None, plugin.FolderChange | None]:
        if project is not None or client.folder is None:
            return planned(path, client.section, entry_of(client), force=force), None
        former: Mapping[str, Any] = {}
        if client.in_folder is None:
            change: Change | None = planned(path, client.section, entry_of(client), force=force)
        else:  # an entry of an earlier installation would start a second server
            former = _our_entry(client, path)
            change = planned_removal(path, client.section) if former else None
        files = plugin.files_of(client.parts, command)
        place = client.folder(machine)
        return change, plugin.install_folder(place, files, server_in=client.in_folder, former=former, force=force)

    token_place = None if dry_run or project is not None else _keep_token(settings)
    outcomes = [*_carry_out(selected, machine, project, plan, dry_run=dry_run), *left_out]
    following = partial(_next, remote=remote, project=project)
    code = _report(outcomes, as_json=as_json, dry_run=dry_run, following=following)
    if not as_json:
        needs_database = flags["flags"]["database_url"] or os.environ.get("FOLKLORE_DATABASE_URL")
        _advise(settings, token_place, project, needs_database_url=bool(needs_database))
    return code


@click.command()
@_names
@_scope
@_dry_run
@context_and_json
def uninstall(ctx: click.Context, /, clients: Sequence[str], scope: str, dry_run: bool, as_json: bool) -> int:
    """Remove Folklore from assistants; without names, or with `all`, from each that has it.

    Memories and tokens stay.
    """
    settings = settings_of(ctx)
    machine = Machine()
    project = repository_root(Path.cwd()) if scope == "project" else None
    by_name = _are_named(clients)
    candidates = [CLIENTS[name] for name in dict.fromkeys(clients)] if by_name else list(CLIENTS.values())
    selected, _ = _usable(candidates, by_name=by_name, project=project, remote=None)

    def plan(client: Client, path: Path) -> tuple[Change, plugin.FolderChange | None]:
        change = planned_removal(path, client.section)
        if project is not None or client.folder is None:
            return change, None
        return change, plugin.uninstall_folder(client.folder(machine), client.in_folder)

    outcomes = _carry_out(selected, machine, project, plan, dry_run=dry_run)
    if not by_name:
        outcomes = [one for one in outcomes if one.error or one.action != "absent"]
    code = _report(outcomes, as_json=as_json, dry_run=dry_run)
    if not as_json:
        if not outcomes:
            print_line("No assistant has an entry of Folklore.")
        print_line(f"Left: the memories, settings and tokens in {_shown(settings.home)} and in the system's keyring.")
    return code


def own_command(python: str, options: Sequence[str]) -> list[str]:
    """Return the command line that starts this installation of Folklore, with these options.

    An environment that `uvx` or `pipx run` made for one call may be deleted at any time: these make it again.
    """
    folder = Path(python).parent
    if {"archive-v0", "environments-v2"} & set(folder.parts):
        return [shutil.which("uvx") or "uvx", "folklore-mcp", *options]
    if "pipx" in folder.parts and ".cache" in folder.parts and "venvs" not in folder.parts:
        return [shutil.which("pipx") or "pipx", "run", "folklore-mcp", *options]
    script = folder / "folklore"
    return [*([str(script)] if script.exists() else [python, "-m", "folklore"]), *options]


def options_for_assistants(settings: Settings, config: Path | None) -> list[str]:
    """Return the options by which a process of an assistant uses this home, this settings file and this server."""
    file = config or os.environ.get("FOLKLORE_CONFIG")
    options = [] if not file else ["--config", os.path.abspath(Path(file).expanduser())]  # noqa: PTH100 - keeps links
    if settings.home != Path("~/.folklore").expanduser():
        options += ["--home", str(settings.home)]
    if settings.server is not None:
        options += ["--server", normalised(settings.server)]
    return options


def _remote(settings: Settings, project: Path | None) -> Remote | None:
    """Return the server that a repository's settings file names, if one is set."""
    if settings.server is None or project is None:
        return None
    return Remote(
        url=f"{normalised(settings.server)}/mcp",
        needs_token=settings.token is not None,
        namespace=settings.namespace or project_namespace(project),
    )


def _keep_token(settings: Settings) -> str | None:
    """Keep the token for the bridge; return in words where it is, None if none was given."""
    if settings.server is None or settings.token is None:
        return None
    return save_token(settings.server, settings.token.get_secret_value(), home=settings.home)


def _has_token(settings: Settings) -> bool:
    try:
        return settings.token is not None or read_token(str(settings.server), home=settings.home) is not None
    except FolkloreError:  # it is kept, and cannot be read now
        return True


def _are_named(names: Sequence[str]) -> bool:
    return bool(names) and "all" not in names


def _chosen(names: Sequence[str], machine: Machine) -> list[Client]:
    if _are_named(names):
        return [CLIENTS[name] for name in dict.fromkeys(names)]
    present = [client for client in CLIENTS.values() if client.is_here(machine)]
    if not present:
        raise NotFound("No assistant was found on this machine.", hint=f"Name one of {', '.join(CLIENTS)}.")
    return present


def _usable(
    clients: Sequence[Client], *, by_name: bool, project: Path | None, remote: Remote | None
) -> tuple[list[Client], list[_Outcome]]:
    """Return the assistants that can be used in this way, and those left out. Raises InvalidInput for named ones."""
    obstacles = [(client, _obstacle(client, project, remote)) for client in clients]
    errors = [error for _, error in obstacles if error is not None]
    if by_name and errors:
        raise errors[0]
    left_out = [_Outcome(client, left_out=str(error)) for client, error in obstacles if error is not None]
    return [client for client, error in obstacles if error is None], left_out


def _obstacle(client: Client, project: Path | None, remote: Remote | None) -> InvalidInput | None:
    if project is not None and not client.project_files:
        return InvalidInput("scope", f"{client.title} has no settings for a project.", hint="Use --scope user.")
    if remote is not None and client.remote is None:
        return InvalidInput(
            "server",
            f"{client.title} reads no variables in a project's settings, which are no place for a token.",
            hint="Use --scope user.",
        )
    return None


def _entry(client: Client, *, command: Sequence[str], remote: Remote | None, project: Path | None) -> dict[str, Any]:
    if remote is not None and client.remote is not None:
        return client.remote(remote)
    entry = client.local([*command, "serve"])
    if project is not None:
        return entry | ({"env": {"FOLKLORE_NAMESPACE": project_namespace(project)}} if client.starts_elsewhere else {})
    return entry | ({HOOKS: plugin.hooks_of(client.hooks, command)} if client.hooks else {})


def _our_entry(client: Client, path: Path) -> Mapping[str, Any]:
    """Return Folklore's entry of a settings file; empty without one, or if the file cannot be read."""
    try:
        entry = client.section.find(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, EditError):
        return {}
    return entry if entry is not None and is_ours(entry) else {}


def _carry_out(
    clients: Sequence[Client], machine: Machine, project: Path | None, plan: _Plan, *, dry_run: bool
) -> list[_Outcome]:
    """Change one assistant after the other; an error of one is its outcome, and does not hinder the others."""
    outcomes = []
    for client in clients:
        path = client.file(machine, project)
        try:
            change, folder = plan(client, path)
            if change is not None and change.writes and not dry_run:
                write(change)
            if folder is not None and folder.writes and not dry_run:
                plugin.write_folder(folder)
            outcomes.append(_Outcome(client, path, change, folder))
        except (FolkloreError, OSError) as error:
            if len(clients) == 1:
                raise
            words = f"{error.strerror or error}; nothing was changed." if isinstance(error, OSError) else str(error)
            outcomes.append(_Outcome(client, path, error=words))
    return outcomes


def _report(
    outcomes: Sequence[_Outcome], *, as_json: bool, dry_run: bool, following: Callable[[Client], str] | None = None
) -> int:
    """Print the outcomes; return 1 if an assistant that was asked for could not be changed."""
    if as_json:
        print_json([_document(one) for one in outcomes])
    else:
        for one in outcomes:
            changes = [*([one.change] if one.change else []), *(one.folder.files if one.folder else [])]
            writes = [change for change in changes if change.writes]
            if dry_run and writes:
                _show_planned(one.client, writes)
            else:
                _show(one, following)
        if dry_run:
            print_line("Nothing was written. Leave out --dry-run to make these changes.")
    return int(any(one.error for one in outcomes))


def _show_planned(client: Client, changes: Sequence[Change]) -> None:
    """Print the files that would be made or deleted, and the differences of those that would change."""
    counts = Counter(change.planned for change in changes)
    print_line(f"{client.title}: {', '.join(f'{count} to {verb}' for verb, count in counts.items())}", bold=True)
    for change in changes:
        if change.planned == "change":
            click.echo(changed_lines(change), nl=False)
        else:
            print_line(f"  {change.planned} {_shown(change.path)}")


def _show(outcome: _Outcome, following: Callable[[Client], str] | None) -> None:
    """Print the outcome for one assistant, where the former content is, and the next step."""
    title, change, folder = outcome.client.title, outcome.change, outcome.folder
    if change is None and folder is None:
        _say(f"{title}: {outcome.error or f'left out ({outcome.left_out})'}", "red" if outcome.error else "")
        return
    parts = [part for part in (change, folder) if part is not None and part.action in (outcome.action, *_CHANGING)]
    for part in parts:
        says = _SAYS_OF_FOLDER if part is folder else _SAYS
        text = says[part.action].format(file=_shown(part.path), parts=_parts(outcome.client))
        _say(f"{title}: {text}", "green" if part.writes else "")
    if change is not None and change.backup is not None:
        print_line(f"  The file as it was before: {_shown(change.backup)}")
    for path in outcome.left:
        print_line(f"  Left as you changed it: {_shown(path)}")
    if following is not None and any(part.writes for part in parts):
        print_line(f"  Next: {following(outcome.client)}.")


def _say(text: str, colour: str) -> None:
    print_line(text, **({"fg": colour} if colour else {}))


def _parts(client: Client) -> str:
    commands = sum(name.startswith("commands/") for name in client.parts)
    parts = {
        "the server": client.in_folder is not None,
        "hooks": any(name.startswith("hooks/") for name in client.parts),
        "a skill": True,
        f"{commands} commands": commands > 0,
    }
    return ", ".join(name for name, there in parts.items() if there)


def _document(outcome: _Outcome) -> dict[str, object]:
    change, folder = outcome.change, outcome.folder
    return {
        "client": outcome.client.name,
        "file": str(outcome.path) if outcome.path else None,
        "folder": str(folder.path) if folder is not None else None,
        "action": outcome.action,
        "backup": str(change.backup) if change is not None and change.backup else None,
        "left": [str(path) for path in outcome.left],
        "error": outcome.error or outcome.left_out,
    }


def _next(client: Client, *, remote: Remote | None, project: Path | None) -> str:
    if remote is not None and remote.needs_token:
        return f"set {TOKEN_VARIABLE} where {client.title} starts; {client.next}"
    if project is not None:
        return (
            f"{client.next}. Do not commit this file: it names a path of this machine"
            if remote is None
            else client.next
        )
    return client.next_of_plugin or client.next


def _advise(settings: Settings, token_place: str | None, project: Path | None, *, needs_database_url: bool) -> None:
    """Print where the token is, what the settings of assistants do not hold, and what to do about it."""
    if token_place is not None:
        print_line(f"The token for {normalised(str(settings.server))} is kept in {token_place}.")
    elif settings.server is not None and project is None and not _has_token(settings):
        print_line(f"No token for {settings.server} is kept here.")
        print_line("  Next: if that server has tokens, run this again with --token fk_….")
    if settings.server is None and needs_database_url:
        print_line("The address of your database is not written there, as it may hold a password.")
        print_line("  Next: put it into ~/.folklore/config.yaml as `database_url`, else assistants use another memory.")


def _shown(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else str(path)
