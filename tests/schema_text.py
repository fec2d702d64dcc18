"""Write the schema as one readable text: `python -m tests.schema_text > schema.sql`.

pg_dump says what the migrations have made; this puts a table's keys and indexes beside it and drops the noise.
"""

from __future__ import annotations

import asyncio
import re
import sys
from dataclasses import dataclass

from folklore.db.migrate import migrate
from folklore.engine.binaries import find_binaries
from tests.temporary_engine import temporary_engine

HEADER = """\
-- The whole schema, as the migrations in server/folklore/db/migrations make it; they say why it is so.
-- Written by `make schema`, never by hand. A test proves that it is what the migrations make, and that it runs.
"""

_ENTRY = re.compile(r"^--\n-- Name: (?P<name>.*); Type: (?P<type>[A-Z ]+); Schema: .*\n--\n", re.MULTILINE)
_NOISE = re.compile(r"^(SET |\\|SELECT pg_catalog\.set_config|--).*\n", re.MULTILINE)
_ON = re.compile(r" ON (?:ONLY )?(?:public\.)?(\w+) ")
_INLINE = re.compile(r"ALTER TABLE ONLY [\w.]+ ADD (CONSTRAINT .*);", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Entry:
    """One object of a dump. `table` is what it belongs to, if it is best read there."""

    type: str
    name: str
    sql: str

    @property
    def table(self) -> str | None:
        if self.type in ("CONSTRAINT", "TABLE"):
            return self.name.split()[0]
        if self.type == "INDEX" and (found := _ON.search(self.sql)):
            return found[1]
        return None


def schema_text(dsn: str) -> str:
    """The schema of a database, the same text for the same schema."""
    dumped = find_binaries().run(
        "pg_dump", "--schema-only", "--no-owner", "--no-privileges", "--no-comments", "--no-sync", dsn, timeout=60
    )
    if dumped.code != 0:
        raise RuntimeError(dumped.output)
    entries = _entries(dumped.output)
    tables = sorted(entry.name for entry in entries if entry.type == "TABLE")
    made = [entry.sql for entry in entries if entry.type in ("EXTENSION", "SCHEMA", "TYPE", "DOMAIN", "FUNCTION")]
    # What asks the tables comes after them, and before the policies that ask it.
    later = [sql for sql in made if " STABLE " in sql]
    before = [sql for sql in made if sql not in later]
    rest = [
        entry.sql
        for entry in entries
        if entry.sql not in before and entry.sql not in later and entry.table not in tables
    ]
    return "\n".join([HEADER, *before, *(_table(name, entries) for name in tables), *later, "".join(rest)])


def _entries(dump: str) -> list[Entry]:
    pieces = _ENTRY.split(dump)[1:]
    return [
        Entry(type=kind, name=name, sql=_quiet(body))
        for name, kind, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True)
    ]


def _quiet(body: str) -> str:
    shorter = _NOISE.sub("", body).replace(" WITH SCHEMA public", "").replace("public.", "")
    return shorter.replace("\n    ADD CONSTRAINT", " ADD CONSTRAINT").strip() + "\n"


def _table(name: str, entries: list[Entry]) -> str:
    own = [entry for entry in entries if entry.table == name]
    text = next(entry.sql for entry in own if entry.type == "TABLE")
    for entry in own:
        if entry.type == "CONSTRAINT" and (found := _INLINE.match(entry.sql)):
            text = text.replace("\n);", f",\n    {found[1]}\n);", 1)
    return text + "".join(entry.sql for entry in own if entry.type == "INDEX")


def main() -> None:
    with temporary_engine() as dsn:
        asyncio.run(migrate(dsn))
        sys.stdout.write(schema_text(dsn))


if __name__ == "__main__":
    main()
