"""Ids as people give them: whole, by their last characters, or by the number in the last printed list."""

import json
import os
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import click

from folklore.cli.context import settings_of, with_operations
from folklore.client import forked
from folklore.contract.endings import whole_ids
from folklore.contract.ids import id_or_ending
from folklore.contract.requests import Operations, Result, Returns
from folklore.errors import InvalidInput

Value = TypeVar("Value")

_NUMBER = re.compile(r"[1-9][0-9]{0,2}")
_HELP = "Give the whole id, at least its last 4 characters, or the number in the last list; `folklore list` shows them."
# A list is forgotten after 12 hours: its numbers must not meet a command that was meant for another one.
_KEPT_SECONDS = 12 * 60 * 60


def with_ids(
    ctx: click.Context,
    texts: Sequence[str],
    work: Callable[[Operations, tuple[UUID, ...]], Awaitable[Value]],
) -> Value:
    """Run operations on the memories that these texts name. Raises InvalidInput, NotFound."""
    parsed = [_parsed(ctx, text) for text in texts]

    async def resolved(operations: Operations) -> Value:
        return await work(operations, await whole_ids(operations, parsed, hint=_HELP))

    return with_operations(ctx, resolved)


def call_with_ids(
    ctx: click.Context,
    texts: Sequence[str],
    request: Callable[[tuple[UUID, ...]], Returns[Result]],
) -> Result:
    """Run one operation on the memories that these texts name. Raises InvalidInput, NotFound."""
    return with_ids(ctx, texts, lambda operations, ids: operations.call(request(ids)))


def ids_of(ctx: click.Context, texts: Sequence[str]) -> tuple[UUID, ...]:
    """Return the ids that these texts name. Raises InvalidInput, NotFound."""
    parsed = [_parsed(ctx, text) for text in texts]
    whole = tuple(id_ for id_ in parsed if isinstance(id_, UUID))
    if len(whole) == len(parsed):  # which needs no database
        return whole
    return with_operations(
        ctx, lambda operations: whole_ids(operations, parsed, hint=_HELP)
    )


def _parsed(ctx: click.Context, text: str) -> UUID | str:
    """Return an id, or the end of one. Raises InvalidInput."""
    if not _NUMBER.fullmatch(text):
        return id_or_ending(text, "ID", _HELP)
    listed = last_list(ctx)
    if int(text) <= len(listed):
        return listed[int(text) - 1]
    problem = "is empty, or was printed hours ago"
    if listed:
        problem = f"has {len(listed)} entries"
    raise InvalidInput(
        "ID", f"{text} is a number in the last list, which {problem}.", hint=_HELP
    )


def keep_list(ctx: click.Context, ids: Sequence[UUID]) -> None:
    """Keep a printed list of this terminal, for the numbers in the next commands; a home without room keeps none."""
    path = _path(ctx)
    lists = _lists(path)
    lists[_terminal()] = {"at": time.time(), "ids": [str(id_) for id_ in ids]}
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(lists), encoding="utf-8")
        draft.replace(path)


def last_list(ctx: click.Context) -> list[UUID]:
    """Return the ids of the last list that was printed on this terminal."""
    with suppress(ValueError, TypeError, KeyError, AttributeError):
        entry = _lists(_path(ctx))[_terminal()]
        return [UUID(text) for text in entry["ids"]]
    return []


def _lists(path: Path) -> dict[str, Any]:
    """Return the lists by terminal, without those of long ago."""
    try:
        lists = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(lists, dict):
        return {}
    return {terminal: entry for terminal, entry in lists.items() if _is_recent(entry)}


def _is_recent(entry: Any) -> bool:
    at = entry.get("at") if isinstance(entry, dict) else None
    return isinstance(at, float) and abs(time.time() - at) < _KEPT_SECONDS


def _path(ctx: click.Context) -> Path:
    return settings_of(ctx).home / "last-lists.json"


def _terminal() -> str:
    """Name the terminal: its session, which all commands of one shell share, and no other shell."""
    return str(os.getsid(forked.client_process))
