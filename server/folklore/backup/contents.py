"""Contents of a database that a copy must have: every row of every table, and the answers to fixed questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from folklore.db.database import Moment
from folklore.db.sql_loader import template
from folklore.memory.context import ALL, MemoryContext, RequestContext
from folklore.memory.operations import USE_CASES
from folklore.memory.requests import RecallRequest
from folklore.model import Caller

_QUESTIONS, _WORDS = 20, 12


@dataclass(frozen=True, slots=True)
class Table:
    """Number of rows of a table, and a digest of their texts that does not depend on their order."""

    rows: int
    digest: str


@dataclass(frozen=True, slots=True)
class Contents:
    """Applied migrations, all tables by name, and the ids that each question recalls by word, best first."""

    migrations: tuple[str, ...]
    tables: Mapping[str, Table]
    answers: Mapping[str, tuple[str, ...]]

    @property
    def memories(self) -> int:
        """The number of memories, forgotten and superseded ones too."""
        return sum(table.rows for name, table in self.tables.items() if name.endswith(".memories"))

    def differences(self, other: Contents) -> list[str]:
        """Return in words what differs in another database; nothing if it is the same."""
        found = [] if self.migrations == other.migrations else ["the applied migrations"]
        for name in sorted({*self.tables, *other.tables}):
            mine, its = self.tables.get(name), other.tables.get(name)
            if mine is None or its is None:
                found.append(f"the table {name} is {'not expected' if mine is None else 'missing'}")
            elif mine.rows != its.rows:
                found.append(f"{name} has {its.rows:,} rows, not {mine.rows:,}")
            elif mine.digest != its.digest:
                found.append(f"rows of {name}")
        changed = sum(other.answers.get(question) != ids for question, ids in self.answers.items())
        return [*found, f"{changed} of {len(self.answers)} answers"] if changed else found


async def read_contents(moment: Moment, at: datetime) -> Contents:
    """Read the contents of a database; `at` is the time for which the questions are asked."""
    async with moment.session() as session:
        migrations = tuple(row["name"] for row in await session.rows("server/migrations"))
        tables = {}
        for table in [row["name"] for row in await session.rows("backup/tables")]:
            # The name comes quoted from the catalogue.
            row = await session.connection.fetchrow(template("backup/content").replace("{table}", table))
            tables[table] = Table(row["rows"], row["digest"])
        texts = [row["content"] for row in await session.rows("backup/questions", limit=_QUESTIONS)]
    return Contents(migrations, tables, await _answers(moment, texts, at))


async def _answers(moment: Moment, texts: list[str], at: datetime) -> dict[str, tuple[str, ...]]:
    """Return what the first words of each text recall. Without vectors: an approximate index may differ in a copy."""
    context = RequestContext(MemoryContext.of(moment, None), Caller("backup"), at)
    answers = {}
    for question in dict.fromkeys(" ".join(text.split()[:_WORDS]) for text in texts):
        answer = await USE_CASES["recall"](context, RecallRequest(query=question, namespaces=(ALL,)))
        answers[question] = tuple(str(result.memory.id) for result in answer.memories)
    return answers
