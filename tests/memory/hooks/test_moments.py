"""Notes at moments at which nobody asks: reads, failures, questions to the person, tasks of sub-agents."""

import json
from typing import Any

import pytest
from mcp import Client

from folklore.app import App
from folklore.config import Settings
from folklore.mcp.server import build_server
from tests.conftest import connected
from tests.doors import own_service
from tests.memory.hooks.test_hooks import called, kept

FREEZE = "No module named freezegun: freeze time by time-machine."
ROUNDING = "Tax of an invoice is rounded per position and added up, since the tax office wants it so."
GENERATED = "Labels are generated, so edit the script and run make labels."
OTHERS = [
    f"Chapter {number} describes harbour number {number} and its lighthouse keeper."
    for number in range(40)
]
MISSING = "E   ModuleNotFoundError: No module named 'freezegun'\n1 error in 0.41s"
QUESTION = {"question": "Is the tax of an invoice rounded per position, or the sum?"}
TASK = {
    "description": "invoice tax",
    "prompt": "Find where the tax of an invoice is rounded per position.",
    "subagent_type": "general-purpose",
}


async def output(client: Client, event: str, **arguments: Any) -> dict[str, Any]:
    """Return what a client reads of the answer to an event; empty for silence."""
    answer = await called(client, event=event, **{"session": "s1", **arguments})
    if not answer:
        return {}
    result: dict[str, Any] = json.loads(answer)["hookSpecificOutput"]
    assert result["hookEventName"] == event
    return result


async def note(client: Client, event: str, **arguments: Any) -> str:
    """Return the text that an event injects; empty for silence."""
    return str((await output(client, event, **arguments)).get("additionalContext", ""))


async def failed(
    client: Client,
    error: str = MISSING,
    command: str = "pytest tests/returns",
    **arguments: Any,
) -> str:
    """Return what a command that failed injects."""
    called = {"command": command, "description": "Run it"}
    return await note(
        client,
        "PostToolUseFailure",
        tool="Bash",
        tool_input=json.dumps(called),
        error=f"Exit code 1\n{error}",
        **arguments,
    )


async def test_a_failure_is_asked_by_the_command_and_its_last_lines_once_a_session(
    client: Client,
) -> None:
    await kept(client, FREEZE, *OTHERS)

    assert "time-machine" in await failed(client)
    assert await failed(client) == ""
    assert "time-machine" in await failed(client, session="s2")


async def test_a_failure_that_no_memory_explains_gets_nothing(client: Client) -> None:
    await kept(client, FREEZE, *OTHERS)

    refused = "error: failed to push some refs: fetch first"
    assert await failed(client, refused, "git push origin main") == ""


@pytest.mark.parametrize(
    "response", [MISSING, json.dumps({"stdout": MISSING}), {"stderr": MISSING}]
)
async def test_an_output_that_tells_of_a_failure_is_one_without_an_exit_code(
    client: Client, response: object
) -> None:
    await kept(client, FREEZE, *OTHERS)
    call = {"tool": "Bash", "tool_input": {"command": "pytest -q | tail -3"}}

    assert "time-machine" in await note(
        client, "PostToolUse", tool_response=response, **call
    )
    assert (
        await note(
            client,
            "PostToolUse",
            session="s2",
            tool_response="freezegun and time-machine: 3 passed",
            **call,
        )
        == ""
    )


async def test_a_read_gets_the_memories_that_are_tied_to_its_file(
    client: Client,
) -> None:
    await kept(client, GENERATED, paths=["web/labels.json"])
    await kept(client, "Harbours open at noon.", paths=["web/other.txt"])

    text = await note(
        client,
        "PostToolUse",
        tool="Read",
        tool_input={"file_path": "/work/shop/web/labels.json"},
        tool_response={"type": "text", "file": {"content": "{}"}},
        cwd="/work/shop",
    )

    assert GENERATED in text
    assert "noon" not in text


async def test_a_read_gets_the_memory_of_which_a_cue_names_its_file(
    client: Client,
) -> None:
    await kept(client, GENERATED, cues=["change something in web/labels.json"])
    await kept(client, *OTHERS)
    call = {"tool": "Read", "tool_response": "{}"}

    assert GENERATED in await note(
        client, "PostToolUse", tool_input={"file_path": "web/labels.json"}, **call
    )
    assert (
        await note(
            client,
            "PostToolUse",
            session="s2",
            tool_input={"file_path": "src/harbours.py"},
            **call,
        )
        == ""
    )


async def test_a_command_that_prints_a_file_reads_it(client: Client) -> None:
    await kept(client, GENERATED, paths=["web/labels.json"])

    assert GENERATED in await note(
        client,
        "PostToolUse",
        tool="Bash",
        tool_input={"command": "sed -n '1,80p' web/labels.json"},
        tool_response="{}",
    )


async def test_a_question_to_the_person_waits_for_the_notes_and_goes_through_when_put_again(
    client: Client,
) -> None:
    await kept(client, ROUNDING, *OTHERS)
    call = {"tool": "AskUserQuestion", "tool_input": {"questions": [QUESTION]}}

    first = await output(client, "PreToolUse", **call)
    again = await output(client, "PreToolUse", **call)

    assert ROUNDING in first["additionalContext"]
    assert first["permissionDecision"] == "deny"
    assert "ask the same question again" in first["permissionDecisionReason"]
    assert again == {}


async def test_a_question_that_no_memory_answers_goes_through(client: Client) -> None:
    await kept(client, *OTHERS)
    questions = [{"question": "Do you prefer blue or green for the button?"}]

    assert (
        await output(
            client,
            "PreToolUse",
            tool="AskUserQuestion",
            tool_input={"questions": questions},
        )
        == {}
    )


@pytest.mark.parametrize(
    ("tool", "argument", "decision"),
    [("Agent", "prompt", None), ("spawn_agent", "message", "allow")],
)
async def test_the_task_of_a_sub_agent_carries_the_notes(
    client: Client, tool: str, argument: str, decision: str | None
) -> None:
    await kept(client, ROUNDING, *OTHERS)
    arguments = {argument: TASK["prompt"], "description": "invoice tax"}

    answer = await output(client, "PreToolUse", tool=tool, tool_input=arguments)

    assert ROUNDING in answer["additionalContext"]
    assert answer["updatedInput"]["description"] == "invoice tax"
    assert answer["updatedInput"][argument] == (
        f"{TASK['prompt']}\n\n{answer['additionalContext']}"
    )
    assert answer.get("permissionDecision") == decision


async def test_an_edit_gets_its_notes_before_it_is_made_in_the_arguments_of_each_client(
    client: Client,
) -> None:
    await kept(client, GENERATED, paths=["web/labels.json"])
    patch = "*** Begin Patch\n*** Update File: web/labels.json\n+{}\n*** End Patch"
    calls: list[tuple[str, dict[str, Any]]] = [
        ("Write", {"file_path": "web/labels.json", "content": "{}"}),
        ("Edit", {"file_path": "web/labels.json", "new_string": "{}"}),
        ("MultiEdit", {"file_path": "web/labels.json", "edits": [{"new_string": "{"}]}),
        ("apply_patch", {"command": patch}),
    ]

    for number, (tool, arguments) in enumerate(calls):
        assert GENERATED in await note(
            client,
            "PreToolUse",
            tool=tool,
            tool_input=arguments,
            session=f"e{number}",
        )


@pytest.mark.parametrize(
    "arguments",
    [
        {"tool_input": "no JSON"},
        {"tool_input": {"command": 5, "file_path": ["a"], "questions": "none"}},
        {"tool_input": {"questions": [1, {"question": None}]}, "tool_response": 7},
        {"tool_input": {"command": "cat 'a"}, "tool_response": None},
    ],
)
@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "PostToolUseFailure"])
async def test_a_call_that_no_client_makes_is_answered_with_silence(
    client: Client, event: str, arguments: dict[str, Any]
) -> None:
    await kept(client, FREEZE)

    assert await output(client, event, **arguments) == {}


async def test_private_text_and_notes_of_ours_are_not_asked(client: Client) -> None:
    await kept(client, ROUNDING, *OTHERS)
    hidden = f"Go on. <private>{TASK['prompt']}</private>"

    assert (
        await output(client, "PreToolUse", tool="Agent", tool_input={"prompt": hidden})
        == {}
    )


@pytest.mark.parametrize("moment", ["failure", "question", "subagent", "read"])
async def test_only_the_moments_of_the_setting_get_notes(
    settings: Settings, moment: str
) -> None:
    app = App(settings.model_copy(update={"moments": (moment,)}))
    async with connected(build_server(own_service(app))) as client:
        await kept(client, FREEZE, ROUNDING, *OTHERS)
        await kept(client, GENERATED, paths=["web/labels.json"])
        spoken = {
            "failure": await failed(client),
            "question": await note(
                client,
                "PreToolUse",
                tool="AskUserQuestion",
                tool_input={"questions": [QUESTION]},
                session="s2",
            ),
            "subagent": await note(
                client, "PreToolUse", tool="Agent", tool_input=TASK, session="s3"
            ),
            "read": await note(
                client,
                "PostToolUse",
                tool="Read",
                tool_input={"file_path": "web/labels.json"},
                session="s4",
            ),
        }
    await app.close()

    assert [name for name, text in spoken.items() if text] == [moment]
