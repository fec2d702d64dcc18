"""Whether the schema of a database that is in use is still the one this installation knows."""

from __future__ import annotations

from functools import cache

from folklore.db.database import Database
from folklore.db.migrate import migrations
from folklore.errors import SchemaAhead, SchemaBehind


async def check_schema(database: Database) -> None:
    """One statement. Raises SchemaBehind, SchemaAhead."""
    async with database.session() as session:
        applied = {row["name"] for row in await session.rows("migrations_applied")}
    known = _names()
    if newer := applied - known:
        raise SchemaAhead(f"The database was migrated by a newer Folklore ({max(newer)}).")
    if lacking := known - applied:
        raise SchemaBehind(f"The database lacks {min(lacking)}.", hint="Run `folklore db migrate`.")


@cache
def _names() -> frozenset[str]:
    return frozenset(migration.name for migration in migrations())
