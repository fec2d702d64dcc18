"""`folklore install` and `uninstall`: which assistants, which files, and the entries in each one's own form."""

import functools
import json
import os
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from folklore.cli import main
from folklore.cli.operate.install import own_command
from folklore.client.assistants.known import CLIENTS, Machine
from folklore.client.credentials import read_token
from tests.repositories import repository_of

URL = "https://folklore.example.com"
TOKEN = "fk_abc123"
FILES = {
    "claude-code": ".claude/skills/folklore/.mcp.json", "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "cursor": ".cursor/mcp.json", "vscode": ".config/Code/User/mcp.json", "codex": ".codex/config.toml",
    "gemini": ".gemini/extensions/folklore/gemini-extension.json", "windsurf": ".codeium/windsurf/mcp_config.json",
    "zed": ".config/zed/settings.json", "opencode": ".config/opencode/opencode.json",
}  # fmt: skip
PROJECT_FILES = {
    "claude-code": ".mcp.json", "cursor": ".cursor/mcp.json", "vscode": ".vscode/mcp.json",
    "codex": ".codex/config.toml", "gemini": ".gemini/settings.json", "opencode": "opencode.json",
}  # fmt: skip
SECTIONS = {
    "vscode": "servers",
    "codex": "mcp_servers",
    "zed": "context_servers",
    "opencode": "mcp",
}
REFERENCES = {
    "claude-code": "${FOLKLORE_TOKEN}", "cursor": "${env:FOLKLORE_TOKEN}", "vscode": "${env:FOLKLORE_TOKEN}",
    "gemini": "${FOLKLORE_TOKEN}", "opencode": "{env:FOLKLORE_TOKEN}",
}  # fmt: skip


@pytest.fixture(autouse=True, name="home")
def bare_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without settings, with a path on which no assistant is."""
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    for name in list(os.environ):
        if name.startswith(("FOLKLORE_", "XDG_", "CLAUDE", "CODEX_", "GIT_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr("folklore.client.assistants.known.sys.platform", "linux")
    monkeypatch.chdir(home)
    return home


def settings(home: Path, name: str, content: str | bytes) -> Path:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.fixture(name="repository")
def a_repository(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the remote acme/shop; the working directory is a folder of it."""
    repository = repository_of(home / "shop", "git@github.com:acme/shop.git")
    (repository / "src").mkdir()
    monkeypatch.chdir(repository / "src")
    return repository


def entry(path: Path, client: str) -> Any:
    text = path.read_text(encoding="utf-8")
    document = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    return document[SECTIONS.get(client, "mcpServers")]["folklore"]


@functools.cache
def version_of(command: tuple[str, ...]) -> str:
    """Run what an assistant starts; it is the same for all of them."""
    return subprocess.run(
        [*command, "--version"], capture_output=True, text=True, timeout=60, check=True
    ).stdout


@pytest.mark.parametrize("client", FILES)
def test_each_assistant_starts_a_server_of_its_own(home: Path, client: str) -> None:
    assert main.outcome(["install", client]) == 0

    found = entry(home / FILES[client], client)
    command = (
        found["command"] if client == "opencode" else [found["command"], *found["args"]]
    )
    assert command[-1] == "serve"
    assert Path(command[0]).is_absolute()
    assert os.access(command[0], os.X_OK)
    assert "folklore, version" in version_of(tuple(command[:-1]))


@pytest.mark.parametrize("client", FILES)
def test_with_a_server_each_assistant_starts_a_bridge_and_the_token_is_in_a_file_of_its_own(
    home: Path, client: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main.outcome(["install", client, "--server", f"{URL}/", "--token", TOKEN]) == 0
    )

    found = entry(home / FILES[client], client)
    command = (
        found["command"] if client == "opencode" else [found["command"], *found["args"]]
    )
    assert command[-3:] == ["--server", URL, "serve"]
    holding = [
        path
        for path in home.rglob("*")
        if path.is_file() and TOKEN in path.read_text(encoding="utf-8")
    ]
    assert [path.parent for path in holding] == [home / ".folklore/credentials"]
    assert holding[0].stat().st_mode & 0o777 == 0o600
    assert f"The token for {URL} is kept in {holding[0]}" in capsys.readouterr().out
    assert read_token(URL, home=home / ".folklore") == TOKEN


def test_a_token_of_the_environment_is_kept_too(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLKLORE_TOKEN", TOKEN)

    assert main.outcome(["install", "zed", "--server", URL]) == 0

    assert TOKEN not in (home / FILES["zed"]).read_text()
    assert read_token(URL, home=home / ".folklore") == TOKEN


def test_a_server_without_a_token_is_installed_with_the_way_to_add_one(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.outcome(["install", "zed", "--server", URL]) == 0

    assert "run this again with FOLKLORE_TOKEN" in capsys.readouterr().out
    assert not (home / ".folklore/credentials").exists()


def test_a_dry_run_keeps_no_token(home: Path) -> None:
    assert (
        main.outcome(["install", "zed", "--server", URL, "--token", TOKEN, "--dry-run"])
        == 0
    )

    assert [one for one in home.rglob("*") if one.is_file()] == []


@pytest.mark.parametrize("client", PROJECT_FILES)
def test_settings_of_a_project_name_its_namespace_and_never_hold_the_token(
    repository: Path, client: str
) -> None:
    assert (
        main.outcome(
            ["install", client, "--scope", "project", "--server", URL, "--token", TOKEN]
        )
        == 0
    )

    path = repository / PROJECT_FILES[client]
    found = entry(path, client)
    assert TOKEN not in path.read_text()
    assert "FOLKLORE_TOKEN" in str(found)
    headers = found.get("headers", found.get("http_headers"))
    assert headers["Folklore-Namespace"] == "repo:acme/shop"
    assert (
        client == "codex" or headers["Authorization"] == f"Bearer {REFERENCES[client]}"
    )
    assert read_token(URL, home=repository.parent / ".folklore") is None
    assert main.outcome(["uninstall", client, "--scope", "project"]) == 0
    assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["windsurf", "--scope", "project"], "--scope user"),
        (["claude-desktop", "--scope", "project"], "--scope user"),
        (["windsurf", "--scope", "project", "--server", URL], "--scope user"),
        (
            ["zed", "--scope", "project", "--server", URL, "--token", TOKEN],
            "--scope user",
        ),
    ],
)
def test_impossible_combinations_name_the_way_out(
    repository: Path,
    arguments: list[str],
    word: str,
    capsys: pytest.CaptureFixture[str],
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
    assert "Gemini CLI: ~/.gemini/extensions/folklore is up to date already" in said


def test_unnamed_assistants_that_cannot_be_used_are_left_out(
    repository: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".config/Claude").mkdir(parents=True)
    (home / ".gemini").mkdir()

    assert main.outcome(["install"]) == 0
    assert main.outcome(["install", "all", "--scope", "project"]) == 0
    said = capsys.readouterr().out
    assert "Claude Desktop: left out" in said
    assert "Do not commit this file" in said
    assert {one.name for one in repository.iterdir()} == {".git", "src", ".gemini"}
    assert main.outcome(["uninstall", "--scope", "project"]) == 0
    assert not (repository / ".gemini/settings.json").exists()
    assert (home / FILES["gemini"]).exists()


def test_the_documents_of_json_name_files_and_errors(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings(home, ".cursor/mcp.json", "{")
    settings(home, ".codex/config.toml", "")

    assert main.outcome(["install", "cursor", "codex", "--json"]) == 1

    cursor, codex = json.loads(capsys.readouterr().out)
    assert (cursor["client"], cursor["action"]) == ("cursor", "failed")
    assert "not valid JSON" in cursor["error"]
    assert (codex["action"], codex["backup"]) == (
        "added",
        str(home / ".codex/config.toml.before-folklore"),
    )
    assert codex["folder"] == str(home / ".codex/skills/folklore")
    assert main.outcome(["install", "cursor", "codex"]) == 1
    assert "nothing was changed" in capsys.readouterr().out


def test_a_dry_run_shows_a_diff_without_a_former_token_and_writes_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = json.dumps(
        {
            "mcpServers": {
                "folklore": {
                    "url": f"{URL}/mcp",
                    "headers": {"Authorization": f"Bearer {TOKEN}"},
                }
            }
        },
        indent=2,
    )
    path = settings(home, ".cursor/mcp.json", before)

    assert main.outcome(["install", "cursor", "claude-code", "--dry-run"]) == 0

    said = capsys.readouterr().out
    assert '-      "url": "https://folklore.example.com/mcp",' in said
    assert '+        "serve"' in said
    assert "  make ~/.claude/skills/folklore/hooks/claude-code.json" in said
    assert said.count("\n") < 40
    assert said.endswith(
        "Nothing was written. Leave out --dry-run to make these changes.\n"
    )
    assert TOKEN not in said
    assert path.read_text() == before
    assert [one for one in home.rglob("*") if one.is_file()] == [path]


def test_print_shows_entries_to_paste_and_writes_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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

    assert (
        main.outcome(
            [
                "--config",
                "my settings.yaml",
                "--home",
                f"{home}/data",
                "install",
                "cursor",
            ]
        )
        == 0
    )

    options = entry(home / FILES["cursor"], "cursor")["args"]
    assert options[-5:] == [
        "--config",
        f"{home}/my settings.yaml",
        "--home",
        f"{home}/data",
        "serve",
    ]
    assert "word" not in (home / FILES["cursor"]).read_text()
    assert "database_url" in capsys.readouterr().out


def test_switching_to_a_server_and_back_leaves_no_trace_of_the_other(
    home: Path,
) -> None:
    path = settings(home, ".cursor/mcp.json", '{\n  "theme": "dark"\n}\n')
    assert main.outcome(["install", "cursor"]) == 0
    local = path.read_bytes()

    assert main.outcome(["install", "cursor", "--server", URL, "--token", TOKEN]) == 0
    assert entry(path, "cursor")["args"] == ["--server", URL, "serve"]
    assert main.outcome(["install", "cursor"]) == 0

    assert path.read_bytes() == local
    assert main.outcome(["uninstall", "cursor"]) == 0
    assert path.read_text() == '{\n  "theme": "dark"\n}\n'
    assert [one.name for one in path.parent.iterdir()] == ["mcp.json"]


def test_headers_that_a_member_added_to_a_project_stay(repository: Path) -> None:
    project = ["--scope", "project", "--server", URL]
    assert main.outcome(["install", "cursor", *project]) == 0
    path = repository / PROJECT_FILES["cursor"]
    path.write_text(
        path.read_text().replace(
            '"headers": {', '"headers": {"Folklore-Time-Zone": "UTC",'
        )
    )

    assert main.outcome(["install", "cursor", *project, "--token", TOKEN]) == 0

    assert entry(path, "cursor")["headers"] == {
        "Folklore-Time-Zone": "UTC",
        "Authorization": "Bearer ${env:FOLKLORE_TOKEN}",
        "Folklore-Namespace": "repo:acme/shop",
    }


def test_a_project_of_cursor_names_its_namespace_since_its_server_starts_elsewhere(
    repository: Path,
) -> None:
    assert main.outcome(["install", "cursor", "vscode", "--scope", "project"]) == 0

    assert entry(repository / PROJECT_FILES["cursor"], "cursor")["env"] == {
        "FOLKLORE_NAMESPACE": "repo:acme/shop"
    }
    assert "env" not in entry(repository / PROJECT_FILES["vscode"], "vscode")


@pytest.mark.parametrize(
    ("python", "command"),
    [
        ("/h/.cache/uv/archive-v0/Ab12/bin/python", ["uvx", "folklore-mcp"]),
        (
            "/h/.local/share/pipx/.cache/0123456789abcde/bin/python",
            ["pipx", "run", "folklore-mcp"],
        ),
        (
            "/h/.local/share/pipx/venvs/folklore-mcp/bin/python",
            ["PYTHON", "-m", "folklore"],
        ),
        (
            "/h/.local/share/uv/tools/folklore-mcp/bin/python",
            ["PYTHON", "-m", "folklore"],
        ),
    ],
)
def test_a_command_of_an_environment_that_may_be_deleted_makes_it_again(
    python: str, command: list[str]
) -> None:
    expected = [python if word == "PYTHON" else word for word in command]

    assert own_command(python, ["--home", "/x"]) == [*expected, "--home", "/x"]


def test_uninstall_says_what_it_removed_and_what_it_left(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.outcome(["uninstall"]) == 0
    assert "No assistant has an entry" in capsys.readouterr().out
    assert main.outcome(["install", "cursor"]) == 0
    assert main.outcome(["uninstall", "cursor", "gemini"]) == 0

    said = capsys.readouterr().out
    assert (
        "Cursor: removed; ~/.cursor/mcp.json held nothing else, so it was deleted"
        in said
    )
    assert "Gemini CLI: no entry in ~/.gemini/settings.json" in said
    assert "Left: the memories, settings and tokens in ~/.folklore" in said


@pytest.mark.parametrize(
    ("system", "environ", "expected"),
    [
        (
            "darwin",
            {},
            (
                "Library/Application Support/Claude/claude_desktop_config.json",
                ".config/zed/settings.json",
            ),
        ),
        (
            "linux",
            {"XDG_CONFIG_HOME": "/h/cfg"},
            ("cfg/Claude/claude_desktop_config.json", "cfg/zed/settings.json"),
        ),
    ],
)
def test_settings_are_where_each_system_keeps_them(
    system: str, environ: dict[str, str], expected: tuple[str, str]
) -> None:
    machine = Machine(home=Path("/h"), system=system, environ=environ)

    files = [CLIENTS[name].file(machine, None) for name in ("claude-desktop", "zed")]

    assert files == [Path("/h", *path.split("/")) for path in expected]


def test_variables_that_move_settings_are_followed() -> None:
    machine = Machine(
        home=Path("/h"),
        system="linux",
        environ={"CODEX_HOME": "/c", "CLAUDE_CONFIG_DIR": "/d"},
    )

    assert CLIENTS["codex"].file(machine, None) == Path("/c/config.toml")
    assert CLIENTS["claude-code"].file(machine, None) == Path("/d/.claude.json")
