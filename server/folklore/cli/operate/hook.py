"""`folklore hook`: answers of hooks that are commands. It never fails the session that calls it."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import click

from folklore.cli.context import operations_of, settings_of
from folklore.client.project import project_namespace
from folklore.client.session_start import (
    SECONDS,
    away,
    printed,
    read_event,
    read_json,
    refused,
    request_of_cursor,
)
from folklore.config import Settings
from folklore.contract.hooks import HookAnswer, HookRequest
from folklore.engine import EnginePaths
from folklore.errors import ConfigInvalid, FolkloreError, Unavailable
from folklore.log import get_logger

log = get_logger(__name__)

hook = click.Group(
    "hook",
    help="Answer hooks of assistants. The files that `folklore install` writes call it.",
)


@hook.command("session-start")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the JSON object that some clients demand.",
)
@click.pass_context
def session_start(ctx: click.Context, /, as_json: bool) -> None:
    """Print what an assistant should know when a session starts, in at most 350 tokens.

    Reads the client's JSON from standard input (session_id, cwd, source). Ends within four seconds with exit code 0:
    without an answer if there is no memory yet, with one line if the memory cannot be reached.
    """
    text = _answered(_within_time(ctx, as_json), _said_of_start)
    if text:
        click.echo(printed(text, as_json))


@hook.command("cursor")
@click.pass_context
def cursor(ctx: click.Context, /) -> None:
    """Answer a hook of Cursor: the start of a session, or the use of a tool.

    Reads Cursor's JSON from standard input (hook_event_name, tool_name, tool_input, tool_output) and prints one JSON
    object with additional_context, or nothing. Ends within four seconds with exit code 0.
    """
    fields = request_of_cursor(read_json())
    if fields is None:
        return
    text = _answered(_of_cursor(ctx, HookRequest(**fields)), _silent)
    if text:
        click.echo(json.dumps({"additional_context": text}, ensure_ascii=False))


def _answered(
    work: Coroutine[Any, Any, str], failed: Callable[[Exception], str]
) -> str:
    """Return the text of an answer, after a fault what `failed` says: ours must not be one of the session."""
    try:
        return asyncio.run(work)
    except Exception as error:
        if not isinstance(error, FolkloreError):
            log.exception("hook_crashed")
        return failed(error)


def _said_of_start(error: Exception) -> str:
    if not isinstance(error, FolkloreError):
        return away("it failed; its log has the reason.")
    is_away = isinstance(error, Unavailable | ConfigInvalid)
    if is_away:
        return away(error.message)
    return refused(error.message)


def _silent(error: Exception) -> str:
    if isinstance(error, FolkloreError):
        log.warning("hook_failed", reason=error.message)
    return ""


async def _of_cursor(ctx: click.Context, request: HookRequest) -> str:
    task = asyncio.create_task(_answer(ctx, settings_of(ctx), request))
    done, _ = await asyncio.wait({task}, timeout=SECONDS)
    if not done:  # Python would wait for the threads that start the engine
        os._exit(0)
    return task.result().text


async def _within_time(ctx: click.Context, as_json: bool) -> str:
    task = asyncio.create_task(_at_start(ctx))
    done, _ = await asyncio.wait({task}, timeout=SECONDS)
    # Python would wait for the threads that start the engine or read standard input
    if not done:
        text = away(f"it did not answer within {SECONDS:g} seconds.")
        click.echo(printed(text, as_json))
        sys.stdout.flush()
        os._exit(0)
    return task.result().text


async def _at_start(ctx: click.Context) -> HookAnswer:
    request = HookRequest(event="SessionStart", **await asyncio.to_thread(read_event))
    return await _answer(ctx, settings_of(ctx), request)


async def _answer(
    ctx: click.Context, settings: Settings, request: HookRequest
) -> HookAnswer:
    uses_engine = settings.server is None and settings.database_url is None
    if uses_engine and not EnginePaths(settings.home).data.exists():
        # the first server creates it, which takes longer than a hook may
        return HookAnswer()
    needs_namespace = settings.server is not None and settings.namespace is None
    if needs_namespace and request.directory:
        # the team's server cannot look at our directories
        namespace = project_namespace(Path(request.directory), settings.remote)
        settings = settings.model_copy(update={"namespace": namespace})
    async with operations_of(ctx, settings) as operations:
        return await operations.call(request)
