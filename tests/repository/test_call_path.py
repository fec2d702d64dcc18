"""Call paths: the functions from a tool to the statements and back, as docs/architecture.md lists them."""

import re
import sys
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import folklore
from folklore.app import App
from folklore.db.database import Database
from folklore.db.session import Session
from folklore.mcp import tools
from folklore.memory.recall import pipeline

PACKAGE = Path(folklore.__file__).parent
ARCHITECTURE = PACKAGE.parents[1] / "docs" / "architecture.md"
STATEMENTS = (Session.rows.__code__, Session.row.__code__)
# They only open a session, and are not on the path.
SESSIONS = (Database.rows.__code__, Database.row.__code__)
# Rooms whose functions are steps of a recall.
STEPS = ("memory/recall/", "ranking/")
LIMITS = {"memory_recall": 25, "memory_store": 14}


def place(code: CodeType) -> str:
    return f"{Path(code.co_filename).relative_to(PACKAGE)} {code.co_qualname}"


def is_ours(code: CodeType) -> bool:
    """True for a function of the package that has a name of its own, written by hand."""
    return code.co_filename.startswith(str(PACKAGE)) and not code.co_name.startswith("<")


@contextmanager
def traced(tool: CodeType) -> Iterator[set[CodeType]]:
    """Yield the functions of the call path of a tool, while the block runs.

    They are the functions that run while a statement is sent, up to the tool, and the steps that `ranked` calls. A
    branch runs in a task of its own, whose first function is a step or is called by one.
    """
    path: set[CodeType] = set()

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        if event != "call" or not is_ours(frame.f_code):
            return
        caller = frame.f_back and frame.f_back.f_code
        if caller is pipeline.ranked.__code__ and place(frame.f_code).startswith(STEPS):
            path.add(frame.f_code)
        if frame.f_code in STATEMENTS:
            running: FrameType | None = frame
            while running is not None and running.f_code is not tool:
                if running.f_code not in SESSIONS:
                    path.add(running.f_code)
                running = running.f_back
            path.add(tool)

    sys.setprofile(profile)
    try:
        yield path
    finally:
        sys.setprofile(None)


async def path_of(tool: Any, call: Awaitable[object]) -> list[str]:
    """Return the call path of one call, sorted."""
    with traced(tool.__code__) as path:
        await call
    return sorted(place(code) for code in path if is_ours(code))


def documented(tool: str) -> list[str]:
    """Return the functions that the section "Call paths" lists below the name of a tool."""
    text = ARCHITECTURE.read_text(encoding="utf-8").partition("\n## Call paths\n")[2].partition("\n## ")[0]
    listed = text.partition(f"\n### `{tool}`\n")[2].partition("\n### ")[0]
    return sorted(f"{module} {name}" for name, module in re.findall(r"^\d+\. `([\w.]+)` \(`([\w/.]+)`\)", listed, re.M))


async def test_the_call_path_of_a_recall_is_short_and_documented(app: App) -> None:
    store = tools.StoreArguments(content="The harbour office opens at nine.", namespace="notes")
    await tools.memory_store(app.service, store, {})
    await tools.memory_recall(app.service, tools.RecallArguments(query="harbour"), {})  # the model is known from now on
    await tools.memory_store(app.service, store.model_copy(update={"namespace": "others"}), {})
    asked = tools.RecallArguments(query="When does the harbour office open?", namespaces=("others",))

    path = await path_of(tools.memory_recall, tools.memory_recall(app.service, asked, {}))

    assert path == documented("memory_recall")
    assert len(path) <= LIMITS["memory_recall"]


async def test_the_call_path_of_a_store_is_short_and_documented(app: App) -> None:
    first = tools.StoreArguments(content="The harbour master is called Ines.", namespace="notes")
    await tools.memory_store(app.service, first, {})
    given = tools.StoreArguments(content="The harbour office opens at nine.", namespace="notes")

    path = await path_of(tools.memory_store, tools.memory_store(app.service, given, {}))

    assert path == documented("memory_store")
    assert len(path) <= LIMITS["memory_store"]
