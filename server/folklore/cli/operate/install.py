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
from folklore.cli.options import context_and_json, one_of
from folklore.cli.output import print_either, print_line, wants_json
from folklore.client.assistants import changes, plugin
from folklore.client.assistants.entry import HOOKS, EditError
from folklore.client.assistants.known import (
    CLIENTS,
    TOKEN_VARIABLE,
    Client,
    Machine,
    Remote,
)
from folklore.client.credentials import normalised, read_token, save_token
from folklore.client.project import project_namespace, repository_root
from folklore.config import Settings, expanded, known_home
from folklore.errors import FolkloreError, InvalidInput, NotFound

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
_scope_help = "Settings of the user, for every repository, or of the repository around this directory."
_scope = one_of("--scope", ["user", "project"], "user", _scope_help)
_dry_run = click.option(
    "--dry-run",
    is_flag=True,
    help="Show the files that would change, and how; write nothing.",
)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Outcome for one assistant: the changes of its settings, of its file of hooks and of its folder.

    Or an error, or why it is left out.
    """

    client: Client
    path: Path | None = None
    change: changes.Change | None = None
    hooks: changes.Change | None = None
    folder: plugin.FolderChange | None = None
    error: str | None = None
    left_out: str | None = None

    @property
    def parts(self) -> list[changes.Change | plugin.FolderChange]:
        """The changes of the settings, of the hooks and of the folder."""
        parts = (self.change, self.hooks, self.folder)
        return [part for part in parts if part is not None]

    @property
    def action(self) -> str:
        """The action that counts: that of the folder, if the server is in it or the settings have no part in it."""
        parts = (self.folder, self.change, self.hooks)
        actions = [part.action for part in parts if part is not None]
        if not actions:
            return "failed" if self.error else "left out"
        for action in actions:
            if action not in ("absent", "unchanged"):
                return action
        return actions[0]

    @property
    def writes(self) -> list[changes.Change]:
        """The changes of files that there is anything to write for."""
        files = [self.change, self.hooks]
        if self.folder is not None:
            files += self.folder.files
        return [file for file in files if file is not None and file.writes]

    @property
    def left(self) -> Sequence[Path]:
        """The files of the folder that stay, since their owner changed them."""
        if self.folder is None:
            return ()
        return self.folder.remaining

    def write(self) -> None:
        """Write the changes."""
        if self.change is not None and self.change.writes:
            changes.write(self.change)
        if self.hooks is not None and self.hooks.writes:
            changes.write(self.hooks)
        if self.folder is not None and self.folder.writes:
            plugin.write_folder(self.folder)


@dataclass(frozen=True, slots=True)
class _Site:
    """Site of an installation: the user's settings on this machine, or those of a repository (`project`).

    `remote` is the server that the settings of a repository name, `command` Folklore's own.
    """

    machine: Machine
    project: Path | None
    remote: Remote | None = None
    command: Sequence[str] = ()

    def usable(
        self, clients: Sequence[Client], *, by_name: bool
    ) -> tuple[list[Client], list[_Outcome]]:
        """Return the assistants that can be used here, and those left out. Raises InvalidInput for named ones."""
        usable = []
        left_out = []
        for client in clients:
            obstacle = self._obstacle(client)
            if obstacle is None:
                usable.append(client)
            elif by_name:
                raise obstacle
            else:
                left_out.append(_Outcome(client, left_out=str(obstacle)))
        return usable, left_out

    def _obstacle(self, client: Client) -> InvalidInput | None:
        if self.project is not None and not client.project_files:
            return InvalidInput(
                "scope",
                f"{client.title} has no settings for a project.",
                hint="Use --scope user.",
            )
        if self.remote is not None and client.remote is None:
            problem = f"{client.title} reads no variables in a project's settings, which are no place for a token."
            return InvalidInput("server", problem, hint="Use --scope user.")
        return None

    def entry(self, client: Client) -> dict[str, Any]:
        """Return the entry of Folklore in the settings of an assistant."""
        if self.remote is not None and client.remote is not None:
            return client.remote(self.remote)
        entry = client.local([*self.command, "serve"])
        if self.project is None:
            if client.hooks and client.hooks_in is None:
                entry = entry | self.hooks(client)
        elif client.starts_elsewhere:
            namespace = project_namespace(self.project)
            entry = entry | {"env": {"FOLKLORE_NAMESPACE": namespace}}
        return entry

    def hooks(self, client: Client) -> dict[str, Any]:
        """Return the entry of Folklore's hooks."""
        return {HOOKS: plugin.hooks_of(client.hooks, self.command)}

    def next_step(self, client: Client) -> str:
        """Return what the user does after an installation."""
        if self.project is None:
            return client.next_of_plugin or client.next
        if self.remote is None:
            return f"{client.next}. Do not commit this file: it names a path of this machine"
        if self.remote.needs_token:
            return f"set {TOKEN_VARIABLE} where {client.title} starts; {client.next}"
        return client.next

    def installed(self, client: Client, path: Path, *, force: bool) -> _Outcome:
        """Return the changes that install Folklore into an assistant with these settings."""
        change: changes.Change | None = None
        former: Mapping[str, Any] = {}
        has_folder = self.project is None and client.folder is not None
        if has_folder and client.in_folder is not None:
            former = _our_entry(client, path)
            if former:  # of an earlier installation, which would start a second server
                change = changes.uninstall(path, client.section)
        else:
            entry = self.entry(client)
            change = changes.install(path, client.section, entry, force=force)
        folder: plugin.FolderChange | None = None
        if self.project is None and client.folder is not None:
            folder = plugin.install_folder(
                client.folder(self.machine),
                plugin.files_of(client.parts, self.command),
                server_in=client.in_folder,
                former=former,
                force=force,
            )
        hooks = self._installed_hooks(client, force=force)
        return _Outcome(client, path, change, hooks, folder)

    def _installed_hooks(self, client: Client, *, force: bool) -> changes.Change | None:
        """Return the change of the client's file of hooks; None without one, or for a repository."""
        if self.project is not None or client.hooks_in is None:
            return None
        path = client.hooks_in(self.machine)
        entry = self.hooks(client)
        return changes.install(path, client.hook_file, entry, force=force)

    def uninstalled(self, client: Client, path: Path) -> _Outcome:
        """Return the changes that remove Folklore from an assistant with these settings."""
        change = changes.uninstall(path, client.section)
        if self.project is not None:
            return _Outcome(client, path, change)
        hooks = folder = None
        if client.hooks_in is not None:
            hooks_path = client.hooks_in(self.machine)
            hooks = changes.uninstall(hooks_path, client.hook_file)
        if client.folder is not None:
            folder_path = client.folder(self.machine)
            folder = plugin.uninstall_folder(folder_path, client.in_folder)
        return _Outcome(client, path, change, hooks, folder)

    def carry_out(
        self,
        clients: Sequence[Client],
        plan: Callable[[Client, Path], _Outcome],
        *,
        dry_run: bool,
    ) -> list[_Outcome]:
        """Change one assistant after the other; an error of one is its outcome, and does not hinder the others."""
        outcomes = []
        for client in clients:
            path = client.file(self.machine, self.project)
            try:
                outcome = plan(client, path)
                if not dry_run:
                    outcome.write()
            except (FolkloreError, OSError) as error:
                if len(clients) == 1:
                    raise
                message = str(error)
                if isinstance(error, OSError):
                    message = f"{error.strerror or error}; nothing was changed."
                outcome = _Outcome(client, path, error=message)
            outcomes.append(outcome)
        return outcomes


@click.command()
@_names
@_scope
@_dry_run
@click.option(
    "--print",
    "only_print",
    is_flag=True,
    help="Print the entries to paste and write nothing.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Replace an entry or a folder of the same name that is not Folklore's.",
)
@context_and_json
def install(
    ctx: click.Context,
    /,
    clients: Sequence[str],
    scope: str,
    dry_run: bool,
    only_print: bool,
    force: bool,
) -> int:
    """Install Folklore into assistants; without names, or with `all`, into those found on this machine.

    Each starts its own server on stdio; Claude Code, Codex and Gemini CLI get hooks and a skill too, Cursor gets hooks.
    With --server each starts a bridge to that server, and the token is kept in the system's keyring or a file of yours,
    never in the settings of an assistant. With --scope project, they connect to that server over HTTP, and refer to the
    token in FOLKLORE_TOKEN.
    """
    settings = settings_of(ctx)
    flags = ctx.find_root().obj
    project = _project(scope)
    command = own_command(
        sys.executable, options_for_assistants(settings, flags["config"])
    )
    site = _Site(Machine(), project, _remote(settings, project), command)
    selected, left_out = site.usable(
        _chosen(clients, site.machine), by_name=_are_named(clients)
    )
    if only_print:
        for client in selected:
            _print_entries(site, client)
        return 0

    token_store = None
    if not dry_run and project is None:
        token_store = _keep_token(settings)
    plan = partial(site.installed, force=force)
    outcomes = site.carry_out(selected, plan, dry_run=dry_run) + left_out
    code = _report(outcomes, dry_run=dry_run, following=site.next_step)
    if not wants_json():
        in_environment = os.environ.get("FOLKLORE_DATABASE_URL")
        needs_database = bool(flags["flags"]["database_url"] or in_environment)
        _advise(settings, token_store, project, needs_database_url=needs_database)
    return code


def _print_entries(site: _Site, client: Client) -> None:
    """Print what an installation would write into the settings of an assistant."""
    file = client.file(site.machine, site.project)
    print_line(f"{client.title}: {_shown(file)}", bold=True)
    print_line(client.section.put("", site.entry(client)))
    if client.hooks_in is not None and site.project is None:
        print_line(_shown(client.hooks_in(site.machine)), bold=True)
        print_line(client.hook_file.put("", site.hooks(client)))


@click.command()
@_names
@_scope
@_dry_run
@context_and_json
def uninstall(
    ctx: click.Context, /, clients: Sequence[str], scope: str, dry_run: bool
) -> int:
    """Remove Folklore from assistants; without names, or with `all`, from each that has it.

    Memories and tokens stay.
    """
    settings = settings_of(ctx)
    by_name = _are_named(clients)
    site = _Site(Machine(), _project(scope))
    names = dict.fromkeys(clients) if by_name else CLIENTS
    selected, _ = site.usable([CLIENTS[name] for name in names], by_name=by_name)
    outcomes = site.carry_out(selected, site.uninstalled, dry_run=dry_run)
    if not by_name:
        outcomes = [each for each in outcomes if each.error or each.action != "absent"]
    code = _report(outcomes, dry_run=dry_run)
    if not wants_json():
        if not outcomes:
            print_line("No assistant has an entry of Folklore.")
        home = _shown(settings.home)
        print_line(
            f"Left: the memories, settings and tokens in {home} and in the system's keyring."
        )
    return code


def _project(scope: str) -> Path | None:
    return repository_root(Path.cwd()) if scope == "project" else None


def own_command(python: str, options: Sequence[str]) -> list[str]:
    """Return the command line that starts this installation of Folklore, with these options.

    An environment that `uvx` or `pipx run` made for one call may be deleted at any time: these make it again.
    """
    folder = Path(python).parent
    if {"archive-v0", "environments-v2"} & set(folder.parts):
        return [shutil.which("uvx") or "uvx", "folklore-mcp", *options]
    is_pipx_cache = {"pipx", ".cache"} <= set(folder.parts)
    if is_pipx_cache and "venvs" not in folder.parts:
        return [shutil.which("pipx") or "pipx", "run", "folklore-mcp", *options]
    script = folder / "folklore"
    if script.exists():
        return [str(script), *options]
    return [python, "-m", "folklore", *options]


def options_for_assistants(settings: Settings, config: Path | None) -> list[str]:
    """Return the options by which a process of an assistant uses this home, this settings file and this server."""
    options: list[str] = []
    file = config or os.environ.get("FOLKLORE_CONFIG")
    if file:
        options += ["--config", os.path.abspath(expanded(Path(file)))]  # noqa: PTH100 - keeps links
    user = known_home()
    if user is None or settings.home != user / ".folklore":
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
        namespace=settings.namespace or project_namespace(project, settings.remote),
    )


def _keep_token(settings: Settings) -> str | None:
    """Keep the token for the bridge; return in words where it is, None if none was given."""
    if settings.server is None or settings.token is None:
        return None
    return save_token(
        settings.server, settings.token.get_secret_value(), home=settings.home
    )


def _has_token(settings: Settings) -> bool:
    if settings.token is not None:
        return True
    try:
        return read_token(str(settings.server), home=settings.home) is not None
    except FolkloreError:  # it is kept, and cannot be read now
        return True


def _are_named(names: Sequence[str]) -> bool:
    return bool(names) and "all" not in names


def _chosen(names: Sequence[str], machine: Machine) -> list[Client]:
    if _are_named(names):
        return [CLIENTS[name] for name in dict.fromkeys(names)]
    present = [client for client in CLIENTS.values() if client.is_here(machine)]
    if not present:
        raise NotFound(
            "No assistant was found on this machine.",
            hint=f"Name one of {', '.join(CLIENTS)}.",
        )
    return present


def _our_entry(client: Client, path: Path) -> Mapping[str, Any]:
    """Return Folklore's entry of a settings file; empty without one, or if the file cannot be read."""
    try:
        entry = client.section.find(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, EditError):
        return {}
    if entry is None or not changes.is_ours(entry):
        return {}
    return entry


def _report(
    outcomes: Sequence[_Outcome],
    *,
    dry_run: bool,
    following: Callable[[Client], str] | None = None,
) -> int:
    """Print the outcomes; return 1 if an assistant that was asked for could not be changed."""

    def show() -> None:
        for outcome in outcomes:
            title = outcome.client.title
            if dry_run and outcome.writes:
                _show_planned(outcome.client, outcome.writes)
            elif outcome.error:
                print_line(f"{title}: {outcome.error}", fg="red")
            elif outcome.left_out:
                print_line(f"{title}: left out ({outcome.left_out})")
            else:
                _show(outcome, following)
        if dry_run:
            print_line(
                "Nothing was written. Leave out --dry-run to make these changes."
            )

    print_either([_document(outcome) for outcome in outcomes], show)
    return int(any(outcome.error for outcome in outcomes))


def _show_planned(client: Client, planned: Sequence[changes.Change]) -> None:
    """Print the files that would be made or deleted, and the differences of those that would change."""
    counts = Counter(change.planned for change in planned)
    files = ", ".join(f"{count} to {verb}" for verb, count in counts.items())
    print_line(f"{client.title}: {files}", bold=True)
    for change in planned:
        if change.planned == "change":
            click.echo(changes.changed_lines(change), nl=False)
        else:
            print_line(f"  {change.planned} {_shown(change.path)}")


def _show(outcome: _Outcome, following: Callable[[Client], str] | None) -> None:
    """Print the outcome for one assistant, where the former content is, and the next step."""
    title = outcome.client.title
    for part in outcome.parts:
        if part.action not in (outcome.action, *_CHANGING):
            continue
        messages = _SAYS_OF_FOLDER if part is outcome.folder else _SAYS
        text = messages[part.action].format(
            file=_shown(part.path), parts=_parts(outcome.client)
        )
        if part.writes:
            print_line(f"{title}: {text}", fg="green")
        else:
            print_line(f"{title}: {text}")
    for file in (outcome.change, outcome.hooks):
        if file is not None and file.backup is not None:
            print_line(f"  The file as it was before: {_shown(file.backup)}")
    for path in outcome.left:
        print_line(f"  Left as you changed it: {_shown(path)}")
    if following is not None and outcome.writes:
        print_line(f"  Next: {following(outcome.client)}.")


def _parts(client: Client) -> str:
    """Return in words what is in the folder of an assistant."""
    names = client.parts
    commands = sum(name.startswith("commands/") for name in names)
    parts = []
    if client.in_folder is not None:
        parts.append("the server")
    if any(name.startswith("hooks/") for name in names):
        parts.append("hooks")
    parts.append("a skill")
    if commands:
        parts.append(f"{commands} commands")
    return ", ".join(parts)


def _document(outcome: _Outcome) -> dict[str, object]:
    change = outcome.change
    hooks = outcome.hooks
    folder = outcome.folder
    return {
        "client": outcome.client.name,
        "file": str(outcome.path) if outcome.path else None,
        "hooks": None if hooks is None else str(hooks.path),
        "folder": None if folder is None else str(folder.path),
        "action": outcome.action,
        "backup": str(change.backup) if change and change.backup else None,
        "left": [str(path) for path in outcome.left],
        "error": outcome.error or outcome.left_out,
    }


def _advise(
    settings: Settings,
    token_store: str | None,
    project: Path | None,
    *,
    needs_database_url: bool,
) -> None:
    """Print where the token is, what the settings of assistants do not hold, and what to do about it."""
    if token_store is not None:
        server = normalised(str(settings.server))
        print_line(f"The token for {server} is kept in {token_store}.")
    elif settings.server is not None and project is None and not _has_token(settings):
        print_line(f"No token for {settings.server} is kept here.")
        print_line(
            "  Next: if that server has tokens, run this again with FOLKLORE_TOKEN=fk_… before it."
        )
    if settings.server is None and needs_database_url:
        print_line(
            "The address of your database is not written there, as it may hold a password."
        )
        print_line(
            "  Next: put it into ~/.folklore/config.yaml as `database_url`, else assistants use another memory."
        )


def _shown(path: Path) -> str:
    home = known_home()
    if home is None or not path.is_relative_to(home):
        return str(path)
    return f"~/{path.relative_to(home).as_posix()}"
