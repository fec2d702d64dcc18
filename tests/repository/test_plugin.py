"""The plugin: one tree for several assistants, whose parts agree and hold nothing of a machine."""

import json
import re
import tomllib
from typing import Any

import pytest

from folklore import __version__
from folklore.client.assistants.known import CLIENTS
from folklore.client.assistants.plugin import files_of, hooks_of
from folklore.mcp.hook import HIDDEN_TOOLS, HookArguments
from tests import ROOT

PLUGIN = ROOT / "plugin"
FILES = [path for path in PLUGIN.rglob("*") if path.is_file()]
HOOKS = ("hooks/claude-code.json", "hooks/codex.json")
COMMANDS = ("recall", "remember", "forget", "memory")


def read(name: str) -> Any:
    return json.loads((PLUGIN / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "name",
    [
        ".claude-plugin/plugin.json",
        ".codex-plugin/plugin.json",
        ".cursor-plugin/plugin.json",
        "agent-plugin/plugin.json",
        "gemini-extension.json",
    ],
)
def test_each_manifest_has_the_version_of_the_package(name: str) -> None:
    manifest = read(name)

    assert (manifest["name"], manifest["version"]) == ("folklore", __version__)


@pytest.mark.parametrize(
    "name", [".mcp.json", "agent-plugin/mcp.json", "gemini-extension.json"]
)
def test_each_manifest_starts_the_command_on_the_path(name: str) -> None:
    server = read(name)["mcpServers"]["folklore"]

    assert (server["command"], server["args"]) == ("folklore", ["serve"])


def test_hooks_call_the_hidden_tool_with_arguments_that_it_takes() -> None:
    for name in HOOKS:
        for event, groups in read(name)["hooks"].items():
            [handler] = [handler for group in groups for handler in group["hooks"]]
            assert handler["tool"] in [tool.name for tool in HIDDEN_TOOLS]
            assert set(handler["input"]) <= set(HookArguments.model_fields)
            assert handler["input"]["event"] == event


def test_hooks_of_claude_code_and_codex_differ_in_the_name_of_the_server_and_in_tools_alone() -> (
    None
):
    claude, codex = (read(name)["hooks"] for name in HOOKS)
    failures = claude.pop("PostToolUseFailure")
    tools = [
        [hooks[event][0].pop("matcher") for event in ("PreToolUse", "PostToolUse")]
        for hooks in (claude, codex)
    ]

    assert json.dumps(claude).replace(
        '"plugin:folklore:folklore"', '"folklore"'
    ) == json.dumps(codex)
    assert tools == [
        ["Edit|Write|NotebookEdit|AskUserQuestion|Agent|Task", "Read|Bash"],
        ["apply_patch|request_user_input|spawn_agent", "Bash"],
    ]
    assert [group["matcher"] for group in failures] == ["Bash"]


def test_the_skill_is_the_same_in_both_packages() -> None:
    skill = "skills/folklore/SKILL.md"

    assert (PLUGIN / skill).read_bytes() == (
        PLUGIN / "agent-plugin" / skill
    ).read_bytes()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_the_same_in_both_forms(name: str) -> None:
    page = (PLUGIN / f"commands/{name}.md").read_text(encoding="utf-8")
    table = tomllib.loads(
        (PLUGIN / f"commands/{name}.toml").read_text(encoding="utf-8")
    )

    _, head, text = page.split("---\n")
    assert f"description: {table['description']}\n" in head
    assert text.strip() == table["prompt"].strip().replace("{{args}}", "$ARGUMENTS")


def test_no_file_names_a_path_of_a_machine() -> None:
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert (
            re.search(
                r"(?<![\w.~])/(?:home|Users|root|tmp|usr|opt|work)\b|[A-Z]:\\\\", text
            )
            is None
        ), path


@pytest.mark.parametrize(
    "client",
    [client for client in CLIENTS.values() if client.parts],
    ids=lambda one: one.name,
)
def test_installed_files_hold_the_full_command_and_nothing_else_new(
    client: Any,
) -> None:
    command = ["/a b/folklore", "--home", "/c"]

    files = files_of(client.parts, command)

    for name, content in files.items():
        text = content.decode()
        original = (PLUGIN / client.parts[name]).read_text(encoding="utf-8")
        if not name.endswith(".json"):
            assert text == original
            continue
        text = text.replace("'/a b/folklore' --home /c hook", "folklore hook").replace(
            '"/a b/folklore"', '"folklore"'
        )
        expected = json.loads(original)
        found = json.loads(text)
        if "mcpServers" in expected:
            assert found["mcpServers"]["folklore"]["args"] == ["--home", "/c", "serve"]
            found["mcpServers"]["folklore"]["args"] = ["serve"]
        assert found == expected


def test_the_hooks_of_codex_are_those_of_its_plugin() -> None:
    found = hooks_of(CLIENTS["codex"].hooks, ["folklore"])

    assert (
        found == read("hooks/hooks.json")["hooks"] | read("hooks/codex.json")["hooks"]
    )
    assert [f"./{name}" for name in CLIENTS["codex"].hooks] == read(
        ".codex-plugin/plugin.json"
    )["hooks"]
