"""The functions between the tool memory_store and its SQL statements, as docs/architecture.md lists them.

A function is on the path if it is on the call stack while a statement is sent: the request passes through it on its way
to the database, and the answer on its way back. Helpers that return before, such as a text cleaner, are not.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

import asyncpg
from mcp import Client

import folklore

PACKAGE = Path(folklore.__file__).parent
ARCHITECTURE = Path(__file__).parents[1] / "docs" / "architecture.md"
SENDING = {"fetch", "fetchrow", "fetchval", "execute", "executemany"}
DRIVER = str(Path(asyncpg.__file__).parent / "connection.py")


@contextmanager
def traced() -> Iterator[dict[CodeType, None]]:
    """Collect the code of our functions on the call stack of each statement, in the order of their first call."""
    found: dict[CodeType, None] = {}

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name in SENDING and code.co_filename == DRIVER:
            found.update(dict.fromkeys(reversed(list(callers(frame)))))

    sys.setprofile(profile)
    try:
        yield found
    finally:
        sys.setprofile(None)


def callers(frame: FrameType | None) -> Iterator[CodeType]:
    """Yield the code of our functions on the stack, without comprehensions and lambdas."""
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(str(PACKAGE)) and not code.co_name.startswith("<"):
            yield code
        frame = frame.f_back


def listed() -> list[str]:
    """Return the path that the document lists, as `module.py` `function`."""
    section = ARCHITECTURE.read_text(encoding="utf-8").partition("\n## A store\n")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\. `([\w/]+\.py [\w.]+)`", section, re.MULTILINE)


async def test_a_store_passes_the_functions_that_the_document_lists(client: Client) -> None:
    memory = {"content": "The deploy runs at noon on Mondays.", "tags": ["deploy"], "kind": "decision"}
    await client.call_tool("memory_store", {"content": "Caches of namespaces and statements are filled now."})

    with traced() as found:
        result = await client.call_tool("memory_store", memory)

    path = [f"{Path(code.co_filename).relative_to(PACKAGE)} {code.co_qualname}" for code in found]
    assert not result.is_error
    assert path == listed()
    assert len(path) <= 20
