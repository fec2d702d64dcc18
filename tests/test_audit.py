"""The audit log by its actions: those there are can be asked for, others are refused."""

from __future__ import annotations

import json

from folklore.db.stores.audit import WRITES
from folklore.http.auth import KNOWN
from folklore.mcp.server import tools
from folklore.memory.auth.audit import TRIED
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`


async def test_an_action_that_is_never_noted_is_refused_with_those_that_are(folklore: CommandLine) -> None:
    id_ = str((await folklore.json("store", "The gate is open."))["stored"][0]["id"])
    other = str((await folklore.json("store", "The gate was shut.", "--supersedes", id_))["stored"][0]["id"])
    await folklore.done("relate", id_, "causes", other)
    await folklore.done("relate", id_, "causes", other, "--remove")
    await folklore.done("forget", other)
    await folklore.done("undo", other)
    await folklore.done("forget", other, "--erase")
    await folklore.done("namespaces", "create", "team")
    await folklore.done("namespaces", "describe", "team", "What the team knows.")
    await folklore.done("namespaces", "rename", "team", "crew")
    await folklore.done("tokens", "create", "--name", "ann", "--grant", "crew:reader")
    await folklore.done("tokens", "revoke", "--name", "ann")
    await folklore.done("namespaces", "delete", "crew")
    await folklore.done("namespaces", "restore", "crew")
    await folklore.done("namespaces", "create", "rest")
    await folklore.done("namespaces", "delete", "rest", "--erase")

    ran = await folklore("audit", "--action", "stroe", "--json")
    error = json.loads(ran.err)["error"]
    written = {line["action"] for line in (await folklore.json("audit"))["audit"]}

    assert (ran.code, error["code"]) == (2, "invalid_input")
    assert error["message"].startswith("action: ")
    assert set(WRITES) - written == {"update", "import"}
    assert all(action in error["hint"] for action in (*WRITES, "memory_recall", "http /mcp", "listing"))
    for action in ("store", "import", "memory_recall", "http /mcp", "listing"):
        lines = (await folklore.json("audit", "--action", action))["audit"]
        assert (lines != []) == (action in written)


def test_what_a_refused_access_is_noted_under_is_known_to_the_audit() -> None:
    assert set(TRIED) >= {tool.name for tool in tools("all", read_only=False)}
    assert set(TRIED) >= {f"http {path}" for path in KNOWN}
