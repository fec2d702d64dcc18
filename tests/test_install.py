"""`folklore install` and `uninstall`: which assistants, which files, and the entries in each one's own form."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from folklore.cli import main
from folklore.clients.known import CLIENTS, Machine

URL = "https://folklore.example.com"
TOKEN = "fk_abc123"
FILES = {
    "claude-code": ".claude.json",
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "windsurf": ".codeium/windsurf/mcp_config.json",
    "zed": ".config/zed/settings.json",
    "opencode": ".config/opencode/opencode.json",
}
PROJECT_FILES = {
    "claude-code": ".mcp.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "opencode": "opencode.json",
}
SECTIONS = {"vscode": "servers", "codex": "mcp_servers", "zed": "context_servers", "opencode": "mcp"}
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
REMOTE: dict[str, dict[str, Any]] = {
    "claude-code": {"type": "http", "url": f"{URL}/mcp", "headers": HEADERS},
    "cursor": {"url": f"{URL}/mcp", "headers": HEADERS},
    "vscode": {"type": "http", "url": f"{URL}/mcp", "headers": HEADERS},
    "codex": {"url": f"{URL}/mcp", "http_headers": HEADERS},
    "gemini": {"httpUrl": f"{URL}/mcp", "headers": HEADERS},
    "windsurf": {"serverUrl": f"{URL}/mcp", "headers": HEADERS},
    "zed": {"url": f"{URL}/mcp", "headers": HEADERS},
    "opencode": {"type": "remote", "url": f"{URL}/mcp", "headers": HEADERS, "enabled": True},
}
REFERENCES = {
    "claude-code": "${FOLKLORE_TOKEN}",
    "cursor": "${env:FOLKLORE_TOKEN}",
    "vscode": "${env:FOLKLORE_TOKEN}",
    "gemini": "${FOLKLORE_TOKEN}",
    "windsurf": "${env:FOLKLORE_TOKEN}",
    "opencode": "{env:FOLKLORE_TOKEN}",
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without settings, with a path on which no assistant is."""
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    for name in list(os.environ):
        if name.startswith(("FOLKLORE_", "XDG_", "CLAUDE", "CODEX_", "APPDATA", "GIT_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr("folklore.clients.known.sys.platform", "linux")
    monkeypatch.chdir(home)
    return home


@pytest.fixture(name="repository")
def a_repository(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the remote acme/shop; the working directory is a folder of it."""
    repository = home / "shop"
    (repository / "src").mkdir(parents=True)
    for command in (["init", "-q"], ["remote", "add", "origin", "git@example.com:acme/shop.git"]):
        subprocess.run(["git", "-C", str(repository), *command], check=True)
    monkeypatch.chdir(repository / "src")
    return repository


def entry(path: Path, client: str) -> Any:
    text = path.read_text(encoding="utf-8")
    document = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    return document[SECTIONS.get(client, "mcpServers")]["folklore"]


@pytest.mark.parametrize("client", FILES)
def test_each_assistant_starts_a_server_of_its_own(home: Path, client: str) -> None:
    assert main.outcome(["install", client]) == 0

    found = entry(home / FILES[client], client)
    command = found["command"] if client == "opencode" else [found["command"], *found["args"]]
    assert command[-1] == "serve"
    assert Path(command[0]).is_absolute()
    assert os.access(command[0], os.X_OK)
    started = subprocess.run([*command[:-1], "--version"], capture_output=True, text=True, timeout=60, check=True)
    assert "folklore, version" in started.stdout


@pytest.mark.parametrize("client", REMOTE)
def test_each_assistant_gets_the_address_and_the_token_in_its_own_form(home: Path, client: str) -> None:
    assert main.outcome(["install", client, "--server", f"{URL}/", "--token", TOKEN]) == 0

    path = home / FILES[client]
    assert entry(path, client) == REMOTE[client]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("client", REMOTE)
def test_a_token_of_the_environment_is_written_only_where_no_variable_can_be(
    home: Path, client: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FOLKLORE_TOKEN", TOKEN)

    assert main.outcome(["install", client, "--server", URL]) == 0

    found = entry(home / FILES[client], client)
    if client == "codex":
        assert found == {"url": f"{URL}/mcp", "bearer_token_env_var": "FOLKLORE_TOKEN"}
    else:
        assert found["headers"] == {"Authorization": f"Bearer {REFERENCES.get(client, TOKEN)}"}
    assert ("set FOLKLORE_TOKEN where" in capsys.readouterr().out) == (client != "zed")


def test_a_file_with_a_token_is_for_its_owner_alone(home: Path) -> None:
    path = home / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_text("{}")
    path.chmod(0o664)

    assert main.outcome(["install", "cursor", "--server", URL, "--token", TOKEN]) == 0
    assert path.stat().st_mode & 0o777 == 0o600
    assert main.outcome(["uninstall", "cursor"]) == 0
    assert path.stat().st_mode & 0o777 == 0o664


@pytest.mark.parametrize("client", PROJECT_FILES)
def test_settings_of_a_project_name_its_namespace_and_never_hold_the_token(repository: Path, client: str) -> None:
    assert main.outcome(["install", client, "--scope", "project", "--server", URL, "--token", TOKEN]) == 0

    path = repository / PROJECT_FILES[client]
    found = entry(path, client)
    assert TOKEN not in path.read_text()
    assert "FOLKLORE_TOKEN" in str(found)
    assert found.get("headers", found.get("http_headers"))["Folklore-Namespace"] == "repo:acme/shop"
    assert main.outcome(["uninstall", client, "--scope", "project"]) == 0
    assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["windsurf", "--scope", "project"], "--scope user"),
        (["claude-desktop", "--scope", "project"], "--scope user"),
        (["claude-desktop", "--server", URL], "Connectors"),
        (["zed", "--scope", "project", "--server", URL, "--token", TOKEN], "--scope user"),
    ],
)
def test_impossible_combinations_name_the_way_out(
    repository: Path, arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.outcome(["install", *arguments]) == 2

    assert word in capsys.readouterr().err
    assert [one.name for one in repository.iterdir() if one.name != ".git"] == ["src"]


def test_without_names_the_assistants_on_this_machine_are_chosen(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.outcome(["install"]) == 4
    assert "Name one of claude-code" in capsys.readouterr().err
    (home / ".gemini").mkdir()
    (home / "bin/codex").write_text("#!/bin/sh\n")
    (home / "bin/codex").chmod(0o755)

    assert main.outcome(["install"]) == 0
    installed = {name for name, file in FILES.items() if (home / file).exists()}
    assert installed == {"gemini", "codex"}
    assert main.outcome(["install", "all"]) == 0
    said = capsys.readouterr().out
    assert "Gemini CLI: ~/.gemini/settings.json has this entry already" in said


def test_unnamed_assistants_that_cannot_be_used_are_left_out(
    repository: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".config/Claude").mkdir(parents=True)
    (home / ".gemini").mkdir()

    assert main.outcome(["install", "--server", URL]) == 0
    assert "Claude Desktop: left out (server: Claude Desktop starts local servers only" in capsys.readouterr().out
    assert not (home / FILES["claude-desktop"]).exists()
    assert main.outcome(["install", "all", "--scope", "project"]) == 0
    said = capsys.readouterr().out
    assert "Claude Desktop: left out" in said
    assert "Do not commit this file" in said
    assert {one.name for one in repository.iterdir()} == {".git", "src", ".gemini"}
    assert main.outcome(["uninstall", "--scope", "project"]) == 0
    assert not (repository / ".gemini/settings.json").exists()
    assert (home / FILES["gemini"]).exists()


def test_one_faulty_file_does_not_hinder_the_others(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / ".cursor").mkdir()
    (home / ".cursor/mcp.json").write_text("{")

    assert main.outcome(["install", "cursor", "gemini"]) == 1

    assert "nothing was changed" in capsys.readouterr().out
    assert entry(home / FILES["gemini"], "gemini")["args"] == ["serve"]


def test_the_documents_of_json_name_files_and_errors(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / ".cursor").mkdir()
    (home / ".cursor/mcp.json").write_text("{")
    (home / ".gemini").mkdir()
    (home / ".gemini/settings.json").write_text("{}")

    assert main.outcome(["install", "cursor", "gemini", "--json"]) == 1

    cursor, gemini = json.loads(capsys.readouterr().out)
    assert (cursor["client"], cursor["action"]) == ("cursor", "failed")
    assert "not valid JSON" in cursor["error"]
    assert (gemini["action"], gemini["backup"]) == ("added", str(home / ".gemini/settings.json.before-folklore"))


def test_a_dry_run_shows_a_diff_without_the_token_and_writes_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_text('{\n  "mcpServers": {\n    "b": {}\n  }\n}\n')

    assert main.outcome(["install", "cursor", "--dry-run", "--server", URL, "--token", TOKEN]) == 0

    said = capsys.readouterr().out
    assert [line for line in said.splitlines() if line.startswith("-") and not line.startswith("---")] == []
    assert '+      "url": "https://folklore.example.com/mcp",' in said
    assert TOKEN not in said
    assert path.read_text() == '{\n  "mcpServers": {\n    "b": {}\n  }\n}\n'
    assert [one.name for one in path.parent.iterdir()] == ["mcp.json"]


def test_print_shows_entries_to_paste_and_writes_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.outcome(["install", "codex", "opencode", "--print"]) == 0

    said = capsys.readouterr().out
    assert "[mcp_servers.folklore]" in said
    assert '"type": "local"' in said
    assert [one for one in home.rglob("*") if one.is_file()] == []


def test_the_installed_server_uses_the_same_home_and_settings(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "my settings.yaml").write_text("namespace: notes\n")
    monkeypatch.setenv("FOLKLORE_DATABASE_URL", "postgresql://u:word@host/memory")

    assert main.outcome(["--config", "my settings.yaml", "--home", f"{home}/data", "install", "cursor"]) == 0

    options = entry(home / FILES["cursor"], "cursor")["args"]
    assert options[-5:] == ["--config", f"{home}/my settings.yaml", "--home", f"{home}/data", "serve"]
    assert "word" not in (home / FILES["cursor"]).read_text()
    assert "database_url" in capsys.readouterr().out


def test_switching_to_a_server_and_back_leaves_no_trace_of_the_other(home: Path) -> None:
    path = home / ".gemini/settings.json"
    path.parent.mkdir()
    path.write_text('{\n  "theme": "dark"\n}\n')
    assert main.outcome(["install", "gemini"]) == 0
    local = path.read_bytes()

    assert main.outcome(["install", "gemini", "--server", URL, "--token", TOKEN]) == 0
    assert entry(path, "gemini") == REMOTE["gemini"]
    assert main.outcome(["install", "gemini"]) == 0

    assert path.read_bytes() == local
    assert main.outcome(["uninstall", "gemini"]) == 0
    assert path.read_text() == '{\n  "theme": "dark"\n}\n'
    assert [one.name for one in path.parent.iterdir()] == ["settings.json"]


def test_headers_that_the_user_added_stay_with_a_new_token(home: Path) -> None:
    assert main.outcome(["install", "cursor", "--server", URL, "--token", TOKEN]) == 0
    path = home / FILES["cursor"]
    path.write_text(path.read_text().replace('"headers": {', '"headers": {"Folklore-Namespace": "notes",'))

    assert main.outcome(["install", "cursor", "--server", URL, "--token", "fk_new"]) == 0

    assert entry(path, "cursor")["headers"] == {"Folklore-Namespace": "notes", "Authorization": "Bearer fk_new"}


def test_uninstall_says_what_it_removed_and_what_it_left(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.outcome(["uninstall"]) == 0
    assert "No assistant has an entry" in capsys.readouterr().out
    assert main.outcome(["install", "cursor"]) == 0
    assert main.outcome(["uninstall", "cursor", "gemini"]) == 0

    said = capsys.readouterr().out
    assert "Cursor: removed; ~/.cursor/mcp.json held nothing else, so it was deleted" in said
    assert "Gemini CLI: no entry in ~/.gemini/settings.json" in said
    assert "Left: the memories and settings in ~/.folklore" in said


@pytest.mark.parametrize(
    ("system", "environ", "expected"),
    [
        ("darwin", {}, ("Library/Application Support/Claude/claude_desktop_config.json", ".config/zed/settings.json")),
        ("win32", {}, ("AppData/Roaming/Claude/claude_desktop_config.json", "AppData/Roaming/Zed/settings.json")),
        ("linux", {"XDG_CONFIG_HOME": "/h/cfg"}, ("cfg/Claude/claude_desktop_config.json", "cfg/zed/settings.json")),
    ],
)
def test_settings_are_where_each_system_keeps_them(
    system: str, environ: dict[str, str], expected: tuple[str, str]
) -> None:
    machine = Machine(home=Path("/h"), system=system, environ=environ)

    files = [CLIENTS[name].file(machine, None) for name in ("claude-desktop", "zed")]

    assert files == [Path("/h", *path.split("/")) for path in expected]


def test_variables_that_move_settings_are_followed() -> None:
    machine = Machine(home=Path("/h"), system="linux", environ={"CODEX_HOME": "/c", "CLAUDE_CONFIG_DIR": "/d"})

    assert CLIENTS["codex"].file(machine, None) == Path("/c/config.toml")
    assert CLIENTS["claude-code"].file(machine, None) == Path("/d/.claude.json")
