"""Work that outlives the request that starts it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import Context
from typing import Any, TypeVar

Result = TypeVar("Result")


def in_background(work: Coroutine[Any, Any, Result], name: str) -> asyncio.Task[Result]:
    """Start a task in an empty context: its log lines carry no request's id, its spans have no parent."""
    return asyncio.create_task(work, name=name, context=Context())
