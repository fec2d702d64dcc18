"""`folklore hook session-start` and `folklore injected`."""

import json
import subprocess
from pathlib import Path

import pytest

from folklore.client import session_start
from tests.commands import CommandLine, Ran, command_line  # noqa: F401 - the fixture `folklore`
from tests.servers import on_http, watched


@pytest.mark.parametrize(
    "line", ["read_only: true", "server: https://x.example", "home: /elsewhere"]
)
def test_a_start_whose_settings_lead_to_another_server_is_left_to_the_command(
    tmp_path: Path, line: str
) -> None:
    (tmp_path / "config.yaml").write_text(f"{line}\n")
    environ = {"FOLKLORE_HOME": str(tmp_path)}
    assert not session_start.answered(["hook", "session-start"], environ)


STARTED = {"session_id": "s1", "source": "startup", "hook_event_name": "SessionStart"}


def start(
    folklore: CommandLine, *options: str, given: object = STARTED, **more: str
) -> Ran:
    return folklore.process(
        *options, "hook", "session-start", stdin=json.dumps(given).encode(), **more
    )


async def test_a_session_starts_with_the_notes_of_the_project(
    folklore: CommandLine,
) -> None:
    await folklore.done("store", "The queue is NATS.", "--kind", "decision")

    ran = start(folklore)

    assert (ran.code, ran.err) == (0, "")
    assert "1 note of notes, all below" in ran.out
    assert "The queue is NATS." in ran.out
    assert start(folklore).out == ran.out
    assert start(folklore, given={**STARTED, "session_id": "s2"}).out == ran.out


async def test_the_project_is_that_of_the_clients_directory(
    folklore: CommandLine, tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "shop")], check=True)

    ran = start(
        folklore,
        given={**STARTED, "cwd": str(tmp_path / "shop")},
        FOLKLORE_NAMESPACE="",
    )

    assert "no notes of repo:shop@" in ran.out


async def test_a_session_whose_id_cannot_be_stored_gets_its_notes(
    folklore: CommandLine,
) -> None:
    await folklore.done("store", "The queue is NATS.")

    for session in ("half \ud83d", "nul \0"):
        ran = start(folklore, given={**STARTED, "session_id": session})
        assert "The queue is NATS." in ran.out
        assert "away" not in ran.out


@pytest.mark.parametrize("given", [None, [], "text", {"session_id": 7, "cwd": None}])
async def test_unexpected_input_does_not_fail_a_session(
    folklore: CommandLine, given: object
) -> None:
    ran = start(folklore, given=given)

    assert (ran.code, ran.err) == (0, "")
    assert "no notes of notes yet" in ran.out


@pytest.mark.parametrize(
    "wrong", [{"DATABASE_URL": "postgresql://127.0.0.1:1/none"}, {"SECRETS": "perhaps"}]
)
async def test_a_database_that_is_away_and_wrong_settings_are_one_line(
    folklore: CommandLine, wrong: dict[str, str]
) -> None:
    ran = start(
        folklore, **{f"FOLKLORE_{name}": value for name, value in wrong.items()}
    )

    assert ran.code == 0
    assert ran.out.startswith("Folklore, the team's memory, is away: ")
    assert ran.out.count("\n") == 1


async def test_a_home_without_a_database_is_met_with_silence(
    folklore: CommandLine, tmp_path: Path
) -> None:
    ran = start(folklore, FOLKLORE_DATABASE_URL="", FOLKLORE_HOME=str(tmp_path / "new"))

    assert (ran.code, ran.out) == (0, "")
    assert not (tmp_path / "new" / "engine").exists()


async def test_both_commands_work_at_a_server(
    folklore: CommandLine, database_url: str, tmp_path: Path
) -> None:
    await folklore.done("store", "The queue is NATS.", "--kind", "decision")
    (tmp_path / "server").mkdir()
    async with on_http(
        watched(tmp_path / "server", database_url=database_url, author="tester")
    ) as server:
        ran = start(folklore, "--server", server.url)
        listed = await folklore.json("injected", "--server", server.url)

    assert ran.code == 0
    assert "The queue is NATS." in ran.out
    assert [entry["text"] for entry in listed["injected"]] == [ran.out.rstrip("\n")]

    away = start(folklore, "--server", "http://127.0.0.1:1")
    assert away.code == 0
    assert "is away" in away.out


async def test_what_was_injected_is_shown_with_its_text_and_use(
    folklore: CommandLine,
) -> None:
    await folklore.done("store", "The queue is NATS.", "--kind", "decision")
    given = start(folklore).out
    await folklore.done("recall", "Which queue do we use?")

    shown = await folklore.done("injected")
    [entry] = (await folklore.json("injected", "--session", "s1"))["injected"]

    assert given in shown
    assert "session s1 of tester: 1 note, " in shown
    assert "recalled" in shown
    assert entry["text"] == given.rstrip("\n")
    assert entry["memories"][0]["used"] == "recalled"
    assert (await folklore.json("injected", "--session", "another")) == {"injected": []}
    assert "injected" in await folklore.done("stats")


async def test_hooks_are_silent_until_a_pause_ends(folklore: CommandLine) -> None:
    await folklore.done("store", "The queue is NATS.", "--kind", "decision")
    assert "in every session until" in await folklore.done("pause")
    assert start(folklore).out == ""

    assert "no more" in await folklore.done("pause", "--minutes", "0")

    assert "The queue is NATS." in start(folklore).out
    assert (await folklore.json("pause", "--session"))["session"] == "s1"
    assert start(folklore).out == ""
    assert (
        "The queue is NATS."
        in start(folklore, given={**STARTED, "session_id": "s2"}).out
    )


def of_cursor(folklore: CommandLine, event: object) -> Ran:
    """Answer an event as Cursor gives it."""
    return folklore.process("hook", "cursor", stdin=json.dumps(event).encode())


async def test_cursor_gets_the_start_of_a_session_and_the_notes_of_a_read_as_one_object(
    folklore: CommandLine,
) -> None:
    await folklore.done("store", "Labels are generated.", "--path", "web/labels.json")
    read = {
        "hook_event_name": "postToolUse",
        "conversation_id": "c1",
        "tool_name": "Read",
        "tool_input": {"file_path": "web/labels.json"},
        "tool_output": json.dumps({"content": "{}"}),
    }

    started = of_cursor(
        folklore, {"hook_event_name": "sessionStart", "session_id": "c0"}
    )
    given = of_cursor(folklore, read)
    again = of_cursor(folklore, read)

    assert list(json.loads(started.out)) == ["additional_context"]
    assert "Labels are generated." in json.loads(given.out)["additional_context"]
    assert (again.out, again.code) == ("", 0)


@pytest.mark.parametrize(
    "event", [None, [], {"hook_event_name": "stop"}, {"hook_event_name": ["a"]}, "x"]
)
def test_an_event_at_which_cursor_takes_no_notes_is_answered_with_nothing(
    folklore: CommandLine, event: object
) -> None:
    ran = of_cursor(folklore, event)

    assert (ran.code, ran.out, ran.err) == (0, "", "")
