"""`folklore hook`: answers of hooks that are commands. It never fails the session that calls it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from folklore.cli.context import operations_of, settings_of
from folklore.config import Settings
from folklore.engine.files import EnginePaths
from folklore.errors import FolkloreError
from folklore.log import get_logger
from folklore.memory.requests import HookRequest
from folklore.memory.results import HookAnswer
from folklore.project import project_namespace

log = get_logger(__name__)

# Clients drop the answer of a hook after five seconds.
_SECONDS = 4.0


@click.group()
def hook() -> None:
    """Answer hooks of assistants. The files that `folklore install` writes call it."""


@hook.command("session-start")
@click.option("--json", "as_json", is_flag=True, help="Print the JSON object that some clients demand.")
@click.pass_context
def session_start(ctx: click.Context, /, as_json: bool) -> None:
    """Print what an assistant should know when a session starts, in at most 350 tokens.

    Reads the client's JSON from standard input (session_id, cwd, source). Ends within four seconds with exit code 0:
    without an answer if there is no memory yet, with one line if the memory cannot be reached.
    """
    try:
        text = asyncio.run(_within_time(ctx, as_json))
    except FolkloreError as error:
        text = _away(error.message)
    except Exception:  # a fault of ours must not be one of the session
        log.exception("hook_crashed")
        text = _away("it failed; its log has the reason.")
    if text:
        click.echo(_printed(text, as_json))


def _printed(text: str, as_json: bool) -> str:
    """Return what clients read; Gemini CLI shows a text that is not JSON to the user and not to the model."""
    output = {"hookEventName": "SessionStart", "additionalContext": text}
    return json.dumps({"hookSpecificOutput": output}, ensure_ascii=False) if as_json else text


async def _within_time(ctx: click.Context, as_json: bool) -> str:
    task = asyncio.create_task(_answer(ctx, settings_of(ctx)))
    done, _ = await asyncio.wait({task}, timeout=_SECONDS)
    if not done:  # Python would wait for the threads that start the engine or read standard input
        click.echo(_printed(_away(f"it did not answer within {_SECONDS:g} seconds."), as_json))
        sys.stdout.flush()
        os._exit(0)
    return task.result().text


def _away(reason: str) -> str:
    return f"Folklore, the team's memory, is away: {reason}"


async def _answer(ctx: click.Context, settings: Settings) -> HookAnswer:
    given = await asyncio.to_thread(_given)
    directory = str(given.get("cwd") or "")
    request = HookRequest(
        event="SessionStart",
        session=str(given.get("session_id") or ""),
        source=str(given.get("source") or ""),
        directory=directory,
    )
    if settings.server is None:
        if settings.database_url is None and not EnginePaths(settings.home).data.exists():
            return HookAnswer()  # the first server creates it, which takes longer than a hook may
    elif directory and settings.namespace is None:  # the team's server cannot look at our directories
        settings = settings.model_copy(update={"namespace": project_namespace(Path(directory))})
    async with operations_of(ctx, settings) as operations:
        return await operations.call(request)


def _given() -> dict[str, Any]:
    """Return the JSON object on standard input; without one, nothing is given."""
    with suppress(ValueError, OSError, RecursionError):
        if not sys.stdin.isatty() and isinstance(given := json.loads(sys.stdin.read()), dict):
            return given
    return {}
