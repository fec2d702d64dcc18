"""The table presets: rankings that the owner saved for all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from folklore.db.database import Database
from folklore.db.rows import made
from folklore.db.stores.events.audit import log_entry
from folklore.model import Caller


@dataclass(frozen=True, slots=True)
class SavedPreset:
    """A preset of the ranking that the owner saved: the numbers in place of those of the preset `base`."""

    name: str
    base: str
    numbers: Mapping[str, float]
    author: str
    created_at: datetime


class Presets:
    """Saved presets, as the server itself reads and writes them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> list[SavedPreset]:
        """Return all saved presets by name. One statement."""
        rows = await self._database.rows("presets/list")
        return [made(SavedPreset, row, numbers=json.loads(row["numbers"])) for row in rows]

    async def save(self, name: str, base: str, numbers: Mapping[str, float], *, caller: Caller, now: datetime) -> None:
        """Save a preset, in the place of one with the same name."""
        async with self._database.transaction() as session:
            values = {"name": name, "base": base, "numbers": numbers, "author": caller.author, "now": now}
            await session.rows("presets/save", **values)
            await log_entry(session, "preset_save", caller=caller, now=now, detail=name)

    async def delete(self, name: str, *, caller: Caller, now: datetime) -> bool:
        """Delete a preset; return False without one."""
        async with self._database.transaction() as session:
            if not await session.rows("presets/delete", name=name):
                return False
            await log_entry(session, "preset_delete", caller=caller, now=now, detail=name)
            return True
