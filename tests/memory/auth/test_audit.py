"""The audit log filtered by action: known actions are accepted, others are refused."""

import json

from folklore.contract.operations import OPERATIONS
from folklore.contract.people import AuditRequest
from folklore.db.stores.events.audit import WRITES
from folklore.server.auth import PREFIXES
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.person import Person


async def test_an_action_that_is_never_logged_is_refused_with_the_known_ones(
    folklore: CommandLine,
) -> None:
    id_ = str((await folklore.json("store", "The gate is open."))["stored"][0]["id"])
    other = str(
        (await folklore.json("store", "The gate was shut.", "--supersedes", id_))[
            "stored"
        ][0]["id"]
    )
    await folklore.done("relate", id_, "causes", other)
    await folklore.done("relate", id_, "causes", other, "--remove")
    await folklore.done("forget", other)
    await folklore.done("undo", other)
    await folklore.done("forget", other, "--erase", "--yes")
    await folklore.done("namespaces", "create", "team")
    await folklore.done("namespaces", "describe", "team", "What the team knows.")
    await folklore.done("namespaces", "share", "team")
    await folklore.done("namespaces", "rename", "team", "crew")
    await folklore.done("tokens", "create", "--name", "ann", "--grant", "crew:reader")
    await folklore.done("tokens", "revoke", "--name", "ann")
    await folklore.done(
        "invite",
        "ben",
        "--grant",
        "crew:reader",
        "--url",
        "https://folklore.example.com",
    )
    await folklore.done("namespaces", "delete", "crew")
    await folklore.done("namespaces", "restore", "crew")
    for text in ("The crane is red.", "The crane is blue."):
        await folklore.done("store", text, "-n", "yard", "--tag", "crane")
    await folklore.done("tags", "rename", "crane", "lift", "-n", "yard")
    await folklore.done(
        "merge", *(await folklore.done("list", "-n", "yard", "--format", "ids")).split()
    )
    await folklore.done("namespaces", "merge", "yard", "--into", "crew")
    await folklore.done("namespaces", "create", "rest")
    await folklore.done("namespaces", "delete", "rest", "--erase", "--yes")

    ran = await folklore("audit", "--action", "stroe", "--json")
    error = json.loads(ran.err)["error"]
    written = {line["action"] for line in (await folklore.json("audit"))["audit"]}

    assert (ran.code, error["code"]) == (2, "invalid_input")
    assert error["message"].startswith("action: ")
    assert set(WRITES) - written == {
        "update", "import", "join", "link_create", "sign_in",
    }  # fmt: skip
    assert all(
        action in error["hint"] for action in (*WRITES, "recall", "http /mcp", "list")
    )
    for action in ("store", "import", "recall", "http /mcp", "list"):
        lines = (await folklore.json("audit", "--action", action))["audit"]
        assert (lines != []) == (action in written)


async def test_the_audit_log_can_be_filtered_by_every_action_of_a_denied_access(
    person: Person,
) -> None:
    paths = [f"http {path}" for path in (*PREFIXES, "other")]

    for action in (*OPERATIONS, "export", "api", *paths):
        assert await person.call(AuditRequest(action=action, denied=True)) == ()
