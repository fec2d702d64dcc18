"""`folklore install` and `uninstall` on many forms of settings files: what is not Folklore's stays byte by byte."""

import hashlib
import json
import re
import tomllib
from contextlib import chdir
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from folklore.cli import main
from folklore.client.assistants.changes import install, is_ours, write
from folklore.client.assistants.editing import HookFile, Section
from folklore.client.assistants.entry import NAME
from folklore.errors import Conflict
from tests.client.assistants.test_install import bare_home, settings  # noqa: F401 - the fixture `home`
from tests.repositories import repository_of

SERVERS = Section("mcpServers")
TABLES = Section("mcp_servers", toml=True)
HOOKS_OF_CURSOR = HookFile("hook cursor")
ENTRY = {"type": "stdio", "command": "/a b/folklore", "args": ["serve"]}

JSON_FILES: dict[str, str] = {
    "empty": "",
    "blank lines alone": "\n\n",
    "comments alone": "// settings of mine\n",
    "empty object": "{}",
    "empty object and line end": "{}\n",
    "empty object over two lines": "{\n}\n",
    "other settings": '{\n  "theme": "dark",\n  "size": 1.50\n}\n',
    "no line end": '{\n  "theme": "dark"\n}',
    "empty section": '{\n  "mcpServers": {}\n}\n',
    "empty section with a space": '{ "mcpServers": { } }',
    "empty section over two lines": '{\n  "mcpServers": {\n  }\n}\n',
    "comment in an empty section": '{\n  "mcpServers": {\n    // none yet\n  }\n}\n',
    "another server": '{\n  "mcpServers": {\n    "github": {"command": "gh-mcp", "args": []}\n  }\n}\n',
    "two servers, four spaces": (
        '{\n    "mcpServers": {\n        "b": {\n            "command": "b"\n        },\n'
        '        "a": {\n            "command": "a"\n        }\n    },\n    "z": 1,\n    "a": 2\n}\n'
    ),
    "tabs": '{\n\t"mcpServers": {\n\t\t"b": {\n\t\t\t"command": "b"\n\t\t}\n\t}\n}\n',
    "one line": '{"mcpServers":{"b":{"command":"b"}},"z":[1,2,{"y":null}]}',
    "one line and line end": '{"numStartups": 12, "projects": {}}\n',
    "servers on one line": '{\n  "z": true,\n  "mcpServers": { "b": { "command": "b" } }\n}\n',
    "line comments": (
        '// head\n{ // root\n  "mcpServers": { // mine\n    // about b\n    "b": {} // b\n  } // end\n}\n// foot\n'
    ),
    "block comments": '/* head */ {\n  /* a\n b */ "mcpServers": /* c */ {\n    "b": {} /* d */\n  }\n} /* foot */',
    "trailing commas": '{\n  "mcpServers": {\n    "b": {"args": ["x",],},\n  },\n}\n',
    "commented server of the same name": (
        '{\n  "mcpServers": {\n    // "folklore": {"command": "old"},\n    "b": {}\n  }\n}\n'
    ),
    "windows line ends": '{\r\n  "mcpServers": {\r\n    "b": {} // c\r\n  }\r\n}\r\n',
    "byte order mark": '\ufeff{\n  "mcpServers": {}\n}\n',
    "byte order mark alone": "\ufeff",
    "same key deeper": (
        '{\n  "projects": {"/x": {"mcpServers": {"folklore": {"command": "other"}}}},\n  "mcpServers": {"b": {}}\n}\n'
    ),
    "same key deeper alone": '{\n  "projects": {\n    "/x": {\n      "mcpServers": {"folklore": 1}\n    }\n  }\n}\n',
    "braces and marks in strings": (
        '{\n  "a": "{ // \\"mcpServers\\": { /* ,} ] \\\\",\n  "mcpServers": {"b": {"x": "}"}}\n}\n'
    ),
    "key with escapes": '{\n  "mcp\\u0053ervers": {\n    "b": {}\n  }\n}\n',
    "numbers as they were": '{"a": 1e400, "b": 0.10000000000000000001, "c": -0, "d": 123456789012345678901234567890}\n',
    "characters of all kinds": '{\n  "näme": "日本 \\u00e9 🦊",\n  "mcpServers": {"ü": {"args": ["–"]}}\n}\n',
    "spaces at the ends of lines": '{  \n  "a" : 1 ,\t\n\n\n  "mcpServers" : {   \n\n    "b" : { }\n  }\n\n}  \n\n',
}
TOML_FILES: dict[str, str] = {
    "empty": "",
    "byte order mark": '\ufeffmodel = "x"\n',
    "settings alone": 'model = "x"  # the large one\n',
    "no line end": 'model = "x"',
    "another server": (
        '# mine\nmodel = "x"\n\n[mcp_servers.github]\ncommand = "gh"   # here\nargs = []\n\n[tui]\nx = 1\n'
    ),
    "server with environment": "[mcp_servers.a]\ncommand='b'\n[mcp_servers.a.env]\nX='1'\n\n\n[[hooks.X]]\na=1\n# tail",
    "parent table": "[mcp_servers]\n# none yet\n\n[tui]\nx=1\n",
    "dotted keys": "mcp_servers.a.command = 'b'\n[x]\n",
    "windows line ends": "[mcp_servers.a]\r\ncommand='b'\r\n\r\n[tui]\r\nx=1\r\n",
    "header in a string": 'a = """\n[mcp_servers.folklore]\ncommand = 1\n"""\n',
    "hooks of others": (
        "[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype='command'\ncommand='beep'\n# end\n\n[tui]\nx=1\n"
        "[[hooks.UserPromptSubmit]]\nmatcher = ''\n[[hooks.UserPromptSubmit.hooks]]\ntype='mcp_tool'\nserver='notes'\n"
    ),
    "approvals between hooks": (
        "[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype='command'\ncommand='beep'\n\n[hooks.state.'a:stop:0:0']\n"
        "trusted_hash='x'\n\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype='command'\ncommand='ring'\n"
    ),
    "table of hooks": "[hooks.state.'a:stop:0:0']\ntrusted_hash='x'\n\n\n# tail\n",
    "empty table of hooks": "[hooks]\n\n[tui]\nx=1",
    "scattered servers": "[mcp_servers.a]\nc=1\n[tui]\nx=1\n[mcp_servers.b]\nc=2\n[z]\n\n\n",
}
FILES = [
    *(
        pytest.param(".cursor/mcp.json", text, id=f"json: {name}")
        for name, text in JSON_FILES.items()
    ),
    *(
        pytest.param(".codex/config.toml", text, id=f"toml: {name}")
        for name, text in TOML_FILES.items()
    ),
]
INVALID: dict[str, str | bytes] = {
    "truncated": '{"mcpServers": {',
    "no comma": '{"a": 1 "b": 2}',
    "two commas": '{"a": 1,, "b": 2}',
    "comma alone": "{,}",
    "list": "[1, 2]",
    "word": "mcpServers",
    "single quotes": "{'a': 1}",
    "open comment": '{"a": 1} /* no end',
    "section is a list": '{"mcpServers": []}',
    "section is null": '{"mcpServers": null}',
    "not a number": '{"a": NaN}',
    "too deep": "[" * 100_000,
    "two documents": '{"mcpServers": {}} {}',
    "not UTF-8": '{"a": "é"}'.encode("utf-16"),
}
INVALID_TOML = (
    'mcp_servers = { a = { command = "b" } }\n',
    "a = [\n",
    "[hooks]\nStop = []\n",
)
INLINE_ENTRY = (
    '[mcp_servers]\nfolklore = { command = "/old/folklore", args = ["serve"] }\n'
)
CLIENTS = {".cursor/mcp.json": "cursor", ".codex/config.toml": "codex"}


def entries(path: Path) -> dict[str, object]:
    text = path.read_text(encoding="utf-8")
    section = TABLES if path.suffix == ".toml" else SERVERS
    found = section.find(text)
    return dict(found) if found is not None else {}


@pytest.mark.parametrize(("name", "text"), FILES)
def test_uninstall_restores_every_byte_and_leaves_no_file(
    home: Path, name: str, text: str
) -> None:
    path = settings(home, name, text)

    assert main.outcome(["install", CLIENTS[name]]) == 0
    installed = path.read_bytes()
    assert entries(path)["args"] == ["serve"]
    assert is_one_insertion(text, installed.decode())
    assert main.outcome(["install", CLIENTS[name]]) == 0
    assert path.read_bytes() == installed
    assert main.outcome(["uninstall", CLIENTS[name]]) == 0

    assert path.read_bytes() == text.encode()
    assert [one for one in path.parent.rglob("*") if one.is_file()] == [path]


@pytest.mark.parametrize(
    ("name", "text"), [one for one in FILES if one.id != "toml: header in a string"]
)
def test_uninstall_without_the_backup_keeps_all_but_spaces(
    home: Path, name: str, text: str
) -> None:
    path = settings(home, name, text)
    assert main.outcome(["install", CLIENTS[name]]) == 0
    path.with_name(f"{path.name}.before-folklore").unlink(missing_ok=True)

    assert main.outcome(["uninstall", CLIENTS[name]]) == 0

    left = path.read_text(encoding="utf-8") if path.exists() else ""
    assert without_spaces(left) == without_spaces(text)


def without_spaces(text: str) -> str:
    """Return a text without spaces, an empty section and an empty document."""
    return re.sub(
        r'"mcpServers":\{\},?|^\{\}$', "", re.sub(r"[\s\ufeff]", "", text)
    ).replace("{}", "")


def is_one_insertion(before: str, after: str) -> bool:
    """Return whether `after` is `before` with text inserted at one place."""
    more = len(after) - len(before)
    return any(
        before == after[:place] + after[place + more :]
        for place in range(len(before) + 1)
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(
            pytest.param(".cursor/mcp.json", text, id=key)
            for key, text in INVALID.items()
        ),
        *((".codex/config.toml", text) for text in (*INVALID_TOML, INLINE_ENTRY)),
    ],
)
def test_a_file_that_cannot_be_edited_stays_with_a_clear_error(
    home: Path, name: str, text: str | bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    path = settings(home, name, text)
    before = path.read_bytes()

    assert main.outcome(["install", CLIENTS[name]]) == 2
    message = capsys.readouterr().err
    assert main.outcome(["uninstall", CLIENTS[name]]) == (
        2 if text == INLINE_ENTRY else 0
    )

    assert isinstance(text, str) or "not UTF-8" in message
    assert str(path) in message
    assert "nothing was changed" in message

    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_two_entries_of_the_name_stay(home: Path) -> None:
    ours = '"folklore": {"command": "folklore", "args": ["serve"]}'
    text = f'{{"mcpServers": {{{ours}, {ours}}}}}'
    path = settings(home, ".cursor/mcp.json", text)

    assert (
        main.outcome(["install", "cursor"]),
        main.outcome(["uninstall", "cursor"]),
    ) == (2, 2)

    assert path.read_text() == text


def test_a_missing_file_is_made_and_deleted(home: Path) -> None:
    assert main.outcome(["install", "cursor", "codex"]) == 0
    assert json.loads((home / ".cursor/mcp.json").read_bytes())["mcpServers"][NAME][
        "args"
    ] == ["serve"]
    assert tomllib.loads((home / ".codex/config.toml").read_text())["mcp_servers"][
        NAME
    ]["args"] == ["serve"]

    assert main.outcome(["uninstall"]) == 0

    assert [one for one in home.rglob("*") if one.is_file()] == []


def test_a_file_that_was_made_and_then_used_by_others_stays(home: Path) -> None:
    assert main.outcome(["install", "cursor"]) == 0
    path = home / ".cursor/mcp.json"
    document = json.loads(path.read_bytes())
    document["mcpServers"]["b"] = {"command": "b"}
    path.write_text(json.dumps(document))

    assert main.outcome(["uninstall", "cursor"]) == 0

    assert json.loads(path.read_bytes()) == {"mcpServers": {"b": {"command": "b"}}}


def test_changes_of_others_after_the_installation_stay(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = settings(home, ".cursor/mcp.json", JSON_FILES["line comments"])
    assert main.outcome(["install", "cursor"]) == 0
    path.write_text(changed_by_others(path.read_text()))

    assert main.outcome(["uninstall", "cursor"]) == 0

    assert path.read_text() == changed_by_others(JSON_FILES["line comments"])
    assert (
        path.with_name("mcp.json.before-folklore").read_text()
        == JSON_FILES["line comments"]
    )
    assert (
        "The file as it was before: ~/.cursor/mcp.json.before-folklore"
        in capsys.readouterr().out
    )


def changed_by_others(text: str) -> str:
    return text.replace("// about b", "// about b and c").replace(
        '"b": {}', '"b": {}, "c": {}'
    )


def test_a_change_of_others_at_the_same_moment_is_not_lost(home: Path) -> None:
    path = settings(home, ".cursor/mcp.json", "{}")
    change = install(path, SERVERS, ENTRY, force=False)
    path.write_text('{"mcpServers": {}}')

    with pytest.raises(Conflict, match="has changed at this moment"):
        write(change)

    assert path.read_text() == '{"mcpServers": {}}'
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_comment_below_the_table_stays(home: Path) -> None:
    path = settings(home, ".codex/config.toml", "")
    assert main.outcome(["install", "codex"]) == 0
    path.write_text(path.read_text() + "\n# about the interface\n[tui]\nx = 1\n")

    assert main.outcome(["uninstall", "codex"]) == 0

    assert path.read_text() == "\n# about the interface\n[tui]\nx = 1\n"


def test_a_last_member_goes_with_the_comma_before_it(home: Path) -> None:
    path = settings(
        home,
        ".cursor/mcp.json",
        '{"mcpServers": {\n  "b": {}, // b\n  "folklore": {"command": "folklore", "args": ["serve"]}\n}}',
    )

    assert main.outcome(["uninstall", "cursor"]) == 0

    assert path.read_text() == '{"mcpServers": {\n  "b": {} // b\n}}'


def test_a_read_only_file_stays(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = settings(home, ".cursor/mcp.json", "{}")
    path.chmod(0o444)

    assert main.outcome(["install", "cursor"]) == 5

    assert "read-only" in capsys.readouterr().err
    assert path.read_bytes() == b"{}"


def test_a_symbolic_link_stays_one_and_the_mode_is_kept(home: Path) -> None:
    target = settings(home, "dotfiles/cursor.json", JSON_FILES["another server"])
    target.chmod(0o640)
    (home / ".cursor").mkdir()
    link = home / ".cursor/mcp.json"
    link.symlink_to("../dotfiles/cursor.json")

    assert main.outcome(["install", "cursor"]) == 0

    assert link.is_symlink()
    assert NAME in target.read_text()
    assert target.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in target.parent.iterdir()] == ["cursor.json"]
    assert main.outcome(["uninstall", "cursor"]) == 0
    assert link.is_symlink()
    assert target.read_text() == JSON_FILES["another server"]
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_dangling_link_is_followed(home: Path) -> None:
    (home / ".cursor").mkdir()
    (home / ".cursor/mcp.json").symlink_to(home / "elsewhere/mcp.json")

    assert main.outcome(["install", "cursor"]) == 0

    assert entries(home / "elsewhere/mcp.json")["args"] == ["serve"]


def test_a_foreign_entry_of_the_name_is_replaced_by_force_alone(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        '{"mcpServers": {"folklore": {"command": "npx", "args": ["folklore-stories"]}}}'
    )
    path = settings(home, ".cursor/mcp.json", text)

    assert main.outcome(["install", "cursor"]) == 1
    assert "--force" in capsys.readouterr().err
    assert main.outcome(["uninstall", "cursor"]) == 0
    assert "not Folklore's" in capsys.readouterr().out
    assert path.read_text() == text
    assert main.outcome(["install", "cursor", "--force"]) == 0
    assert entries(path)["args"] == ["serve"]
    assert main.outcome(["uninstall", "cursor"]) == 0

    assert path.read_text() == text


@pytest.mark.parametrize(
    ("entry", "ours"),
    [
        (
            {"command": "/a b/.venv/bin/folklore", "args": ["--home", "/x", "serve"]},
            True,
        ),
        ({"command": "/usr/bin/python3", "args": ["-m", "folklore", "serve"]}, True),
        ({"command": "uvx", "args": ["folklore-mcp", "serve"]}, True),
        (
            {"type": "local", "command": ["/x/folklore", "serve"], "enabled": False},
            True,
        ),
        ({"httpUrl": "https://folklore.example.com/mcp?namespace=notes"}, True),
        ({"command": "folklore", "args": ["stories"]}, False),
        ({"command": "node", "args": ["folklore.js", "serve"]}, False),
        ({"command": "folklore-server", "args": 5}, False),
        ({"url": "https://tales.example.com/folklore"}, False),
        ({"": 1}, False),
        ({}, False),
    ],
)
def test_an_entry_is_known_by_what_it_starts(
    entry: dict[str, object], ours: bool
) -> None:
    assert is_ours(entry) == ours


def test_an_entry_of_an_earlier_installation_is_updated_and_keeps_what_its_owner_added(
    home: Path,
) -> None:
    path = settings(
        home,
        ".cursor/mcp.json",
        '{\n  "mcpServers": {\n    "b": {},\n    "folklore": {\n      "command": "/old/folklore",\n'
        '      "args": ["serve"],\n      "env": {"FOLKLORE_NAMESPACE": "shop"}\n    } // mine\n  }\n}\n',
    )

    assert main.outcome(["install", "cursor"]) == 0

    found = entries(path)
    assert found["env"] == {"FOLKLORE_NAMESPACE": "shop"}
    assert found["command"] != "/old/folklore"
    assert "} // mine\n" in path.read_text()


PLUGIN = ".claude/skills/folklore"


def test_a_plugin_that_was_installed_is_removed_to_the_last_file(home: Path) -> None:
    for _ in range(2):
        assert main.outcome(["install", "claude-code", "gemini", "codex"]) == 0
    assert main.outcome(["uninstall"]) == 0

    assert list(home.iterdir()) == [home / "bin"]


def test_a_folder_of_the_name_that_is_not_ours_is_replaced_by_force_alone(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = settings(home, f"{PLUGIN}/SKILL.md", "Tales of the forest")

    assert main.outcome(["install", "claude-code"]) == 1
    assert "is not Folklore's" in capsys.readouterr().err
    assert main.outcome(["uninstall", "claude-code"]) == 0
    assert [one for one in home.rglob("*") if one.is_file()] == [own]
    assert main.outcome(["install", "claude-code", "--force"]) == 0
    assert main.outcome(["uninstall", "claude-code"]) == 0

    assert [one for one in home.rglob("*") if one.is_file()] == [own]
    assert own.read_text() == "Tales of the forest"


def test_a_file_of_the_plugin_that_its_owner_changed_stays(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.outcome(["install", "claude-code"]) == 0
    skill = home / PLUGIN / "skills/folklore/SKILL.md"
    skill.write_text("Recall before lunch.")

    assert main.outcome(["--home", f"{home}/data", "install", "claude-code"]) == 0
    assert skill.read_text() == "Recall before lunch."
    assert (
        "Left as you changed it: ~/.claude/skills/folklore/skills/folklore/SKILL.md"
        in capsys.readouterr().out
    )
    assert main.outcome(["uninstall", "claude-code"]) == 0

    assert [one for one in home.rglob("*") if one.is_file()] == [skill]
    assert "Left as you changed it" in capsys.readouterr().out
    assert main.outcome(["install", "claude-code"]) == 0
    assert skill.read_text() == "Recall before lunch."


def test_the_server_of_a_plugin_keeps_what_its_owner_added(home: Path) -> None:
    assert main.outcome(["install", "claude-code"]) == 0
    path = home / PLUGIN / ".mcp.json"
    path.write_text(
        path.read_text().replace(
            '"args"', '"env": {"FOLKLORE_NAMESPACE": "shop"}, "args"'
        )
    )

    assert main.outcome(["--home", f"{home}/data", "install", "claude-code"]) == 0
    found = json.loads(path.read_bytes())["mcpServers"][NAME]
    assert found["env"] == {"FOLKLORE_NAMESPACE": "shop"}
    assert found["args"] == ["--home", f"{home}/data", "serve"]
    assert main.outcome(["uninstall", "claude-code"]) == 0

    assert not (home / PLUGIN).exists()


def test_an_entry_of_an_earlier_installation_moves_into_the_plugin(home: Path) -> None:
    path = settings(
        home,
        ".claude.json",
        '{\n  "numStartups": 3,\n  "mcpServers": {\n    "b": {},\n'
        '    "folklore": {"command": "folklore", "args": ["serve"], "env": {"FOLKLORE_NAMESPACE": "shop"}}\n  }\n}\n',
    )

    assert main.outcome(["install", "claude-code"]) == 0

    assert (
        path.read_text()
        == '{\n  "numStartups": 3,\n  "mcpServers": {\n    "b": {}\n  }\n}\n'
    )
    found = json.loads((home / PLUGIN / ".mcp.json").read_bytes())["mcpServers"][NAME]
    assert found["env"] == {"FOLKLORE_NAMESPACE": "shop"}


def test_a_record_of_files_elsewhere_deletes_none_of_them(home: Path) -> None:
    other = settings(home, "notes.txt", "")
    assert main.outcome(["install", "claude-code"]) == 0
    record = home / PLUGIN / ".folklore.json"
    names = ["../../../notes.txt", str(other), "hooks/../../../../notes.txt"]
    empty = hashlib.sha256(b"").hexdigest()
    record.write_text(
        json.dumps(json.loads(record.read_bytes()) | dict.fromkeys(names, empty))
    )

    assert main.outcome(["uninstall", "claude-code"]) == 0

    assert other.exists()
    assert not (home / PLUGIN).exists()


def test_a_file_that_the_plugin_no_longer_has_is_removed_at_an_update(
    home: Path,
) -> None:
    assert main.outcome(["install", "claude-code"]) == 0
    former = settings(home, f"{PLUGIN}/commands/former.md", "x")
    record = home / PLUGIN / ".folklore.json"
    digest = hashlib.sha256(b"x").hexdigest()
    record.write_text(
        json.dumps(json.loads(record.read_bytes()) | {"commands/former.md": digest})
    )

    assert main.outcome(["install", "claude-code"]) == 0

    assert not former.exists()


def test_hooks_of_codex_are_appended_and_removed_alone(home: Path) -> None:
    before = TOML_FILES["hooks of others"]
    path = settings(home, ".codex/config.toml", before)

    assert main.outcome(["install", "codex"]) == 0
    hooks = tomllib.loads(path.read_text())["hooks"]
    assert sorted(hooks) == [
        "PostToolUse",
        "PreCompact",
        "PreToolUse",
        "SessionStart",
        "Stop",
        "UserPromptSubmit",
    ]
    assert [group["hooks"][0]["type"] for group in hooks["Stop"]] == [
        "command",
        "mcp_tool",
    ]
    assert hooks["SessionStart"][0]["hooks"][0]["command"].endswith(
        " hook session-start --json"
    )
    # as an approval is kept
    path.write_text(f"{path.read_text()}\n[hooks.state.'x']\ntrusted_hash = 'y'\n")
    assert main.outcome(["uninstall", "codex"]) == 0

    assert path.read_text() == f"{before}\n[hooks.state.'x']\ntrusted_hash = 'y'\n"


SAME_IN_ANY_FILE = (
    "empty", "blank lines alone", "comments alone", "empty object", "empty object over two lines", "other settings",
    "no line end", "one line and line end", "byte order mark alone", "numbers as they were",
)  # fmt: skip
HOOK_FILES: dict[str, str] = {
    **{name: JSON_FILES[name] for name in SAME_IN_ANY_FILE},
    "version alone": '{"version": 1}',
    "hooks of other events": '{\n  "version": 1,\n  "hooks": {\n    "stop": [{"command": "beep"}]\n  }\n}\n',
    "hooks of the same events": (
        '{\n\t"version": 1,\n\t"hooks": {\n\t\t"postToolUse": [\n\t\t\t{\n\t\t\t\t"command": "./log.sh"\n\t\t\t}\n\t\t],\n'
        '\t\t"sessionStart": [ {"command": "a"}, {"command": "b"} ]\n\t}\n}\n'
    ),
    "one line": '{"hooks":{"sessionStart":[{"command":"a"}]},"version":1}',
    "empty list": '{"version": 1, "hooks": {"sessionStart": []}}\n',
    "empty list over two lines": '{\n  "version": 1,\n  "hooks": {\n    "sessionStart": [\n    ]\n  }\n}\n',
    "comments": (
        '// head\n{\n  "hooks": { // mine\n    "postToolUse": [ // first\n      // about a\n'
        '      {"command": "a"}, // a\n    ],\n  },\n}\n'
    ),
    "comment in a list": '{\n  "version": 1,\n  "hooks": {\n    "postToolUse": [\n      // none yet\n    ]\n  }\n}\n',
    "windows line ends": '{\r\n  "hooks": {\r\n    "stop": []\r\n  }\r\n}\r\n',
    "brackets in strings": '{"version": 1, "hooks": {"sessionStart": [{"command": "echo ]} // \\" ["}]}}',
}  # fmt: skip


@pytest.mark.parametrize("text", HOOK_FILES.values(), ids=HOOK_FILES)
def test_hooks_of_cursor_stand_beside_those_of_others_and_go_to_the_last_byte(
    home: Path, text: str
) -> None:
    path = settings(home, ".cursor/hooks.json", text)

    assert main.outcome(["install", "cursor"]) == 0
    installed = path.read_bytes()
    entry = HOOKS_OF_CURSOR.find(installed.decode())
    assert entry is not None
    assert {
        event: [hook["command"].endswith("/folklore hook cursor") for hook in hooks]
        for event, hooks in entry["hooks"].items()
    } == {"sessionStart": [True], "postToolUse": [True]}
    assert re.search(r'"version": ?1\b', installed.decode())
    assert main.outcome(["install", "cursor"]) == 0
    assert path.read_bytes() == installed
    assert main.outcome(["uninstall", "cursor"]) == 0

    assert path.read_bytes() == text.encode()
    assert [one for one in path.parent.rglob("*") if one.is_file()] == [path]


@pytest.mark.parametrize("text", HOOK_FILES.values(), ids=HOOK_FILES)
def test_hooks_of_cursor_go_alone_from_a_file_that_others_changed_meanwhile(
    home: Path, text: str
) -> None:
    path = settings(home, ".cursor/hooks.json", text)
    assert main.outcome(["install", "cursor"]) == 0
    path.with_name("hooks.json.before-folklore").unlink(missing_ok=True)

    assert main.outcome(["uninstall", "cursor"]) == 0

    def without_empty_parts(left: str) -> str:
        left = re.sub(r"[\s\ufeff]", "", left)
        left = re.sub(r'"version":1,?|"\w+":\[\],?', "", left)
        left = re.sub(r'"hooks":\{\},?', "", left)
        return re.sub(r",(?=[}\]])|\{\}", "", left)

    left = path.read_text(encoding="utf-8") if path.exists() else ""
    assert without_empty_parts(left) == without_empty_parts(text)


def test_a_file_of_hooks_is_made_and_deleted_with_the_settings(home: Path) -> None:
    assert main.outcome(["install", "cursor", "--server", "https://f.example"]) == 0
    hooks = json.loads((home / ".cursor/hooks.json").read_bytes())
    assert hooks["version"] == 1
    assert hooks["hooks"]["postToolUse"][0]["matcher"] == "Read|Write|Shell"
    command = hooks["hooks"]["sessionStart"][0]["command"]
    assert command.endswith(" --server https://f.example hook cursor")

    assert main.outcome(["uninstall"]) == 0

    assert [one for one in (home / ".cursor").rglob("*") if one.is_file()] == []


@pytest.mark.parametrize(
    "text",
    ['{"hooks": []}', '{"hooks": {"stop": {}}}', '{"hooks": {', "[]"],
)
def test_hooks_that_cannot_be_edited_stay_and_nothing_else_is_written(
    home: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = settings(home, ".cursor/hooks.json", text)

    assert main.outcome(["install", "cursor"]) == 2

    assert str(path) in capsys.readouterr().err
    assert path.read_text() == text
    assert [one.name for one in path.parent.iterdir()] == ["hooks.json"]


def test_a_repository_gets_no_hooks_of_a_person(home: Path) -> None:
    repository = repository_of(home / "shop", "git@github.com:acme/shop.git")

    with chdir(repository):
        assert main.outcome(["install", "cursor", "--scope", "project"]) == 0

    assert [one.name for one in home.rglob("hooks.json")] == []


def test_an_unfinished_write_leaves_the_file_whole(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = settings(home, ".cursor/mcp.json", JSON_FILES["another server"])

    def fails(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fails)
    assert main.outcome(["install", "cursor"]) == 1

    assert path.read_text() == JSON_FILES["another server"]
    assert [one.name for one in path.parent.iterdir()] == [path.name]


_SPACE = st.sampled_from(["", " ", "\n  ", "\t", ' // c, { " }\n', ' /* [ " */ '])
_KEYS = st.sampled_from(["mcpServers", "a", "b", 'q"{', "ü"])


def _objects(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Texts of objects with comments, spaces and trailing commas at every place that allows them."""
    member = st.tuples(_SPACE, _KEYS, _SPACE, _SPACE, inner, _SPACE)

    def joined(parts: tuple[list[tuple[str, ...]], bool, str]) -> str:
        members, trailing, end = parts
        unique = {one[1]: one for one in members}.values()
        texts = [
            f"{a}{json.dumps(key)}{b}:{c}{value}{d}"
            for a, key, b, c, value, d in unique
        ]
        return "{" + ",".join(texts) + ("," if trailing and texts else "") + end + "}"

    return st.tuples(st.lists(member, max_size=4), st.booleans(), _SPACE).map(joined)


_VALUES = st.recursive(
    st.sampled_from(
        ["1", "null", '"x // y"', "[]", "[1,]", '[{"mcpServers": {}}, 2]', '"\\\\"']
    ),
    _objects,
    max_leaves=8,
)


@given(document=_objects(_VALUES), newline=st.sampled_from(["\n", "\r\n"]))
def test_any_document_gains_and_loses_the_entry_alone(
    document: str, newline: str
) -> None:
    text = document.replace("\n", newline)
    try:
        assert SERVERS.find(text) is None
    except ValueError:  # mcpServers is no object here
        return

    put = SERVERS.put(text, ENTRY)

    assert SERVERS.find(put) == ENTRY
    assert is_one_insertion(text, put)
    dropped = SERVERS.drop(put, keep_section=SERVERS.has(text))
    assert re.sub(r"\s", "", dropped) == re.sub(r"\s", "", text)
