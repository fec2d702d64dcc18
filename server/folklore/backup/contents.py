"""Contents of a database that a copy must have: every row of every table, and the answers to fixed questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from folklore.db.database import Moment
from folklore.db.sql_loader import template

_QUESTIONS = 20
_WORDS = 6


@dataclass(frozen=True, slots=True)
class Table:
    """Number of rows of a table, and a digest of their texts that does not depend on their order."""

    rows: int
    digest: str


@dataclass(frozen=True, slots=True)
class Contents:
    """Applied migrations, all tables by name, and the ids of the memories that hold the words of each question."""

    migrations: tuple[str, ...]
    tables: Mapping[str, Table]
    answers: Mapping[str, tuple[str, ...]]

    @property
    def memories(self) -> int:
        """The number of memories, forgotten and superseded ones too."""
        return sum(
            table.rows
            for name, table in self.tables.items()
            if name.endswith(".memories")
        )

    def differences(self, other: Contents, *, answers: bool = True) -> list[str]:
        """Return in words what differs in another database, nothing if it is the same; `answers` may be left out."""
        if self.migrations == other.migrations:
            results = []
        else:
            results = ["the applied migrations"]
        for name in sorted({*self.tables, *other.tables}):
            if difference := _difference(
                name, self.tables.get(name), other.tables.get(name)
            ):
                results.append(difference)
        changed = sum(
            answers and other.answers.get(question) != ids
            for question, ids in self.answers.items()
        )
        if changed:
            return [*results, f"{changed} of {len(self.answers)} answers"]
        return results


def _difference(name: str, mine: Table | None, its: Table | None) -> str:
    if mine is None or its is None:
        return f"the table {name} is {'not expected' if mine is None else 'missing'}"
    if mine.rows != its.rows:
        return f"{name} has {its.rows:,} rows, not {mine.rows:,}"
    if mine.digest == its.digest:
        return ""
    return f"rows of {name}"


async def read_contents(moment: Moment, *, whole_rows: bool = False) -> Contents:
    """Read the contents of a database; the digests of `whole_rows` are those of the first backups."""
    async with moment.session() as session:
        migrations = tuple(
            row["name"] for row in await session.rows("server/migrations")
        )
        tables = {}
        for table in await session.rows("backup/tables"):
            # The names come quoted from the catalogue.
            columns = "r.*" if whole_rows else table["columns"]
            sql = (
                template("backup/content")
                .replace("{table}", table["name"])
                .replace("{columns}", columns)
            )
            row = await session.connection.fetchrow(sql)
            tables[table["name"]] = Table(row["rows"], row["digest"])
        answers = await session.rows(
            "backup/answers", questions=_QUESTIONS, words=_WORDS
        )
    return Contents(
        migrations, tables, {row["question"]: tuple(row["ids"]) for row in answers}
    )
