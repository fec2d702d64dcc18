"""Benchmark commands for tests, run in this process against scratch databases of the test cluster."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner


def question(namespace: str, query: str, *evidence: str) -> dict[str, Any]:
    """Return the line of a question in a set."""
    return {
        "type": "question",
        "namespaces": [namespace],
        "query": query,
        "evidence": list(evidence),
    }


@dataclass(frozen=True, slots=True)
class Benchmarks:
    """`await benchmarks.output(retrieval, path)` runs a command and returns its output."""

    folder: Path

    def written(self, name: str, lines: Sequence[Mapping[str, Any]]) -> Path:
        """Return the path of a new set with these lines."""
        path = self.folder / name
        path.write_text("\n".join(map(json.dumps, lines)))
        return path

    async def output(self, command: click.Command, *arguments: object) -> str:
        """Run a command in a thread, since it runs its own event loop; it must succeed."""
        ran = await asyncio.to_thread(
            CliRunner().invoke,
            command,
            [str(argument) for argument in arguments],
            catch_exceptions=False,
        )
        assert ran.exit_code == 0, ran.output
        return ran.output

    async def json(self, command: click.Command, *arguments: object) -> Any:
        """Run a command with --json and return its document."""
        return json.loads(await self.output(command, *arguments, "--json"))


@pytest.fixture(name="benchmarks")
def benchmark_commands(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Benchmarks:
    monkeypatch.setenv("FOLKLORE_DATABASE_URL", database_url)
    monkeypatch.setenv("FOLKLORE_HOME", str(tmp_path / "home"))
    return Benchmarks(tmp_path)
