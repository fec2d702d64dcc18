"""HNSW indexes over the vectors of large namespaces: which are wanted, and building them beside everybody's work."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from folklore.db.database import Database
from folklore.errors import Refused

# Before it, an index that was built in parallel or vacuumed could be corrupt.
_SOUND = (0, 8, 4)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The commands that drop what nobody needs or what is broken, and those that build, to be run in that order."""

    drops: Sequence[str]
    builds: Sequence[str]


class VectorIndexes:
    """The indexes of one database. Building one reads all vectors of its namespace and waits for whoever was there
    before it; nobody waits for it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def wanted(self, threshold: int) -> Wanted:
        """What must be done for namespaces with at least so many vectors (0: none). One statement."""
        async with self._database.session("fresh") as session:
            rows = await session.rows("hnsw_wanted", threshold=threshold)
        commands = {
            action: tuple(row["command"] for row in rows if row["action"] == action) for action in ("drop", "build")
        }
        return Wanted(commands["drop"], commands["build"])

    async def require_sound(self) -> None:
        """Raises Refused where pgvector may build indexes that lose rows."""
        async with self._database.session("fresh") as session:
            row = await session.row("server/info")
        version = "" if row is None else row["pgvector"] or ""
        if tuple(map(int, re.findall(r"\d+", version)[:3])) < _SOUND:
            raise Refused(
                f"pgvector {version} may build HNSW indexes that are corrupt; search stays exact.",
                hint="Install pgvector 0.8.4 or newer and run `alter extension vector update`, or set hnsw_from to 0.",
            )

    async def carry_out(self, command: str) -> None:
        """Run one of the wanted commands; cut off, it leaves an index that is not valid, and is wanted again."""
        async with self._database.build_session() as session:
            await session.execute(command)
