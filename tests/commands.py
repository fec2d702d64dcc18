"""Command line for tests: run in this process, or as a separate process."""

import asyncio
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from folklore.cli.main import outcome
from tests import forks


@dataclass(frozen=True, slots=True)
class Ran:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return stdout, which must be one JSON document."""
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class CommandLine:
    """`await folklore("recall", "…")` runs a command against one database."""

    capsys: pytest.CaptureFixture[str]
    environment: Mapping[str, str]

    async def __call__(self, *arguments: object) -> Ran:
        """Run in a thread, as a command runs a loop of its own."""
        self.capsys.readouterr()
        code = await asyncio.to_thread(
            outcome, [str(argument) for argument in arguments]
        )
        said = self.capsys.readouterr()
        return Ran(code, said.out, said.err)

    async def done(self, *arguments: object) -> str:
        """Run, insist that it went well, and return stdout."""
        ran = await self(*arguments)
        assert ran.code == 0, ran.err
        return ran.out

    async def json(self, *arguments: object) -> Any:
        """Run with --json, insist that it went well, and return the document."""
        return json.loads(await self.done(*arguments, "--json"))

    async def keep(self, text: str, *options: object) -> str:
        """Store a text, and return the id of its memory."""
        return str((await self.json("store", text, *options))["stored"][0]["id"])

    def process(self, *arguments: object, stdin: bytes = b"", **more: str) -> Ran:
        """Run as a process of its own."""
        done = subprocess.run(
            [*forks.command(), *map(str, arguments)],
            input=stdin,
            capture_output=True,
            timeout=60,
            env=os.environ | self.environment | more,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def answers(monkeypatch: pytest.MonkeyPatch, *replies: bool) -> list[str]:
    """Answer the questions of a terminal in this order, then by yes; return the list that they are added to."""
    asked = list[str]()
    left = iter(replies)

    def confirm(text: str, **_: object) -> bool:
        asked.append(text)
        return next(left, True)

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("click.confirm", confirm)
    return asked


@pytest.fixture(name="folklore")
def command_line(
    capsys: pytest.CaptureFixture[str],
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> CommandLine:
    """The command line over a fresh database, as `tester`, writing to `notes`."""
    environment = {
        "FOLKLORE_DATABASE_URL": database_url,
        "FOLKLORE_HOME": str(tmp_path / "home"),
        "FOLKLORE_AUTHOR": "tester",
        "FOLKLORE_NAMESPACE": "notes",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return CommandLine(capsys, environment)
