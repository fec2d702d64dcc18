"""Assistants that Folklore installs into: their settings files, and the form of an MCP server in each."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from folklore.client.assistants.editing import HookFile, Section
from folklore.config import user_home

TOKEN_VARIABLE = "FOLKLORE_TOKEN"  # noqa: S105 - the name of a variable
SKILL = "skills/folklore/SKILL.md"


_OF_ASSISTANTS = (
    "the settings of assistants are in that folder (FOLKLORE_HOME is Folklore's own)."
)


@dataclass(frozen=True, slots=True)
class Machine:
    """Home, system and environment of the user, which decide where settings are."""

    home: Path = field(default_factory=lambda: user_home(_OF_ASSISTANTS))
    system: str = field(default_factory=lambda: sys.platform)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def config(self, *parts: str) -> Path:
        """Return a path below ~/.config or its substitute."""
        return Path(
            self.environ.get("XDG_CONFIG_HOME") or self.home / ".config", *parts
        )

    def application(self, *parts: str) -> Path:
        """Return a path below the folder in which this system keeps the settings of applications."""
        if self.system == "darwin":
            return self.home.joinpath("Library", "Application Support", *parts)
        return self.config(*parts)

    def folder(self, variable: str, default: str) -> Path:
        """Return the folder that a variable names, else one in the home."""
        return Path(self.environ.get(variable) or self.home / default)


@dataclass(frozen=True, slots=True)
class Remote:
    """Server over HTTP, as a repository's settings file names it: its address, and the namespace of the repository.

    `needs_token`: each request refers to the token in FOLKLORE_TOKEN, since such files are committed.
    """

    url: str
    needs_token: bool = False
    namespace: str | None = None

    def headers(self, variable: str | None) -> dict[str, str]:
        """Return the headers; `variable` is the client's form of a reference to FOLKLORE_TOKEN."""
        headers = {}
        if self.needs_token:
            headers["Authorization"] = f"Bearer {variable}"
        return headers | self.other_headers()

    def other_headers(self) -> dict[str, str]:
        """Return the headers other than that of the token."""
        if self.namespace:
            return {"Folklore-Namespace": quote(self.namespace, safe=":/@")}
        return {}


def _plain(command: Sequence[str]) -> dict[str, Any]:
    return {"command": command[0], "args": list(command[1:])}


@dataclass(frozen=True, slots=True)
class Client:
    """Assistant: where it keeps its servers, how an entry looks, and how to recognise that it is here.

    `files` are the candidates of the user, of which the first that exists is used; `project_files` those of a
    repository. `folders` show that the client is here, if those of its files do not. `remote` is the form of a server
    over HTTP in a repository's file, and `variable` a reference to FOLKLORE_TOKEN that the client replaces in headers.
    A client that `starts_elsewhere` starts a project's server in another directory.

    `folder` takes the `parts` of the plugin; the one that is named `in_folder` holds the server, in place of the user's
    settings file. `hooks` are files of the plugin that become a part of the settings file, or of the file `hooks_in`, which
    has the form of `hook_file`. `next` is the next step
    after an installation of the server, `next_of_plugin` after one of the plugin.
    """

    name: str
    title: str
    files: Callable[[Machine], Sequence[Path]]
    next: str
    commands: Sequence[str] = ()
    folders: Callable[[Machine], Sequence[Path]] | None = None
    section: Section = Section("mcpServers")
    project_files: Sequence[str] = ()
    local: Callable[[Sequence[str]], dict[str, Any]] = _plain
    remote: Callable[[Remote], dict[str, Any]] | None = None
    variable: str | None = None
    folder: Callable[[Machine], Path] | None = None
    parts: Mapping[str, str] = field(default_factory=dict)
    in_folder: str | None = None
    hooks: Sequence[str] = ()
    hooks_in: Callable[[Machine], Path] | None = None
    hook_file: HookFile = HookFile("hook cursor")
    starts_elsewhere: bool = False
    next_of_plugin: str | None = None

    def is_here(self, machine: Machine) -> bool:
        """Return whether this user has the client: a command of it, or a folder of its settings."""
        search_path = machine.environ.get("PATH")
        for command in self.commands:
            if shutil.which(command, path=search_path):
                return True
        files = self.files(machine)
        if self.folders is None:
            folders: Sequence[Path] = [file.parent for file in files]
        else:
            folders = self.folders(machine)
        return any(path.exists() for path in (*folders, *files))

    def file(self, machine: Machine, project: Path | None) -> Path:
        """Return the settings file of the user, or of a project, for which the client must have one."""
        if project is None:
            files = self.files(machine)
        else:
            files = [project / name for name in self.project_files]
        for file in files:
            if file.exists():
                return file
        return files[0]


def _typed(command: Sequence[str]) -> dict[str, Any]:
    return {"type": "stdio", **_plain(command)}


def _over_http(
    key: str, variable: str, **more: object
) -> Callable[[Remote], dict[str, Any]]:
    def entry(remote: Remote) -> dict[str, Any]:
        values = {**more, key: remote.url}
        headers = remote.headers(variable)
        if headers:
            values["headers"] = headers
        return values

    return entry


def _codex(remote: Remote) -> dict[str, Any]:
    values: dict[str, Any] = {"url": remote.url}
    if remote.needs_token:
        values["bearer_token_env_var"] = TOKEN_VARIABLE
    headers = remote.other_headers()
    if headers:
        values["http_headers"] = headers
    return values


def _same(*names: str) -> dict[str, str]:
    """Return files that have the same name in a folder as in the plugin."""
    return {name: name for name in names}


def _commands(form: str) -> list[str]:
    return [
        f"commands/{name}.{form}" for name in ("recall", "remember", "forget", "memory")
    ]


# Claude Code waits for the server, so that the first turn has its tools and instructions.
_ALWAYS = {"alwaysLoad": True}
_BRACES = f"{{env:{TOKEN_VARIABLE}}}"
_ENV = f"${{env:{TOKEN_VARIABLE}}}"
_DOLLAR = f"${{{TOKEN_VARIABLE}}}"

CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        Client(
            name="claude-code",
            title="Claude Code",
            files=lambda machine: [
                machine.folder("CLAUDE_CONFIG_DIR", "") / ".claude.json"
            ],
            project_files=[".mcp.json"],
            local=lambda command: _typed(command) | _ALWAYS,
            remote=lambda remote: (
                _over_http("url", _DOLLAR, type="http")(remote) | _ALWAYS
            ),
            variable=_DOLLAR,
            commands=["claude"],
            folders=lambda machine: [machine.folder("CLAUDE_CONFIG_DIR", ".claude")],
            next="start a new session; `/mcp` lists folklore",
            folder=lambda machine: (
                machine.folder("CLAUDE_CONFIG_DIR", ".claude") / "skills" / "folklore"
            ),
            parts=_same(
                ".claude-plugin/plugin.json",
                ".mcp.json",
                "hooks/hooks.json",
                "hooks/claude-code.json",
                SKILL,
                *_commands("md"),
            ),
            in_folder=".mcp.json",
            next_of_plugin="start a new session; `/mcp` and `/hooks` list folklore, `/folklore:recall` recalls",
        ),
        Client(
            name="claude-desktop",
            title="Claude Desktop",
            files=lambda machine: [
                machine.application("Claude", "claude_desktop_config.json")
            ],
            next="quit Claude Desktop and start it again",
        ),
        Client(
            name="cursor",
            title="Cursor",
            files=lambda machine: [machine.home / ".cursor" / "mcp.json"],
            project_files=[".cursor/mcp.json"],
            remote=_over_http("url", _ENV),
            variable=_ENV,
            commands=["cursor", "cursor-agent"],
            starts_elsewhere=True,
            hooks=["hooks/cursor.json"],
            hooks_in=lambda machine: machine.home / ".cursor" / "hooks.json",
            next="enable folklore in Cursor's settings under MCP, if it is not on",
        ),
        Client(
            name="vscode",
            title="VS Code",
            section=Section("servers"),
            files=lambda machine: [machine.application("Code", "User", "mcp.json")],
            project_files=[".vscode/mcp.json"],
            local=_typed,
            remote=_over_http("url", _ENV, type="http"),
            variable=_ENV,
            commands=["code"],
            folders=lambda machine: [machine.application("Code")],
            next="run `MCP: List Servers` and start folklore; confirm that you trust it",
        ),
        Client(
            name="codex",
            title="Codex",
            section=Section("mcp_servers", toml=True),
            files=lambda machine: [
                machine.folder("CODEX_HOME", ".codex") / "config.toml"
            ],
            project_files=[".codex/config.toml"],
            remote=_codex,
            variable=TOKEN_VARIABLE,
            commands=["codex"],
            next="start a new session; `/mcp` lists folklore",
            folder=lambda machine: (
                machine.folder("CODEX_HOME", ".codex") / "skills" / "folklore"
            ),
            parts={"SKILL.md": SKILL},
            hooks=["hooks/hooks.json", "hooks/codex.json"],
            next_of_plugin="start a new session and approve folklore's hooks in `/hooks`; until then they do not run",
        ),
        Client(
            name="gemini",
            title="Gemini CLI",
            files=lambda machine: [machine.home / ".gemini" / "settings.json"],
            project_files=[".gemini/settings.json"],
            remote=_over_http("httpUrl", _DOLLAR),
            variable=_DOLLAR,
            commands=["gemini"],
            next="start a new session in a folder that it trusts; `/mcp` lists folklore",
            folder=lambda machine: machine.home / ".gemini" / "extensions" / "folklore",
            parts=_same(
                "gemini-extension.json", "hooks/hooks.json", SKILL, *_commands("toml")
            ),
            in_folder="gemini-extension.json",
        ),
        Client(
            name="windsurf",
            title="Windsurf",
            files=lambda machine: [
                machine.home / ".codeium" / "windsurf" / "mcp_config.json"
            ],
            commands=["windsurf"],
            next="press Refresh in the list of MCP servers of Cascade",
        ),
        Client(
            name="zed",
            title="Zed",
            section=Section("context_servers"),
            files=lambda machine: [machine.config("zed", "settings.json")],
            project_files=[".zed/settings.json"],
            commands=["zed", "zeditor"],
            next="the Agent Panel's settings list folklore with a green dot",
        ),
        Client(
            name="opencode",
            title="OpenCode",
            section=Section("mcp"),
            files=lambda machine: [
                machine.config("opencode", name)
                for name in ("opencode.json", "opencode.jsonc")
            ],
            project_files=["opencode.json", "opencode.jsonc"],
            local=lambda command: {
                "type": "local",
                "command": list(command),
                "enabled": True,
            },
            remote=lambda remote: (
                _over_http("url", _BRACES, type="remote")(remote) | {"enabled": True}
            ),
            variable=_BRACES,
            commands=["opencode"],
            next="start it again; `opencode mcp list` shows folklore",
        ),
    )
}
