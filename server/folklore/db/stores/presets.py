"""The table presets: rankings that the owner saved for all."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from folklore.db.rows import made
from folklore.db.store import Store, each
from folklore.db.stores.events.audit import audit_entry
from folklore.model import Caller


@dataclass(frozen=True, slots=True)
class SavedPreset:
    """A preset of the ranking that the owner saved: the numbers in place of those of the preset `base`."""

    name: str
    base: str
    numbers: Mapping[str, float]
    author: str
    created_at: datetime


class Presets(Store):
    """Saved presets, as the server itself reads and writes them."""

    # All saved presets by name.
    list = each(lambda row: made(SavedPreset, row, numbers=json.loads(row["numbers"])))

    async def save(
        self,
        name: str,
        base: str,
        numbers: Mapping[str, float],
        *,
        caller: Caller,
        now: datetime,
    ) -> None:
        """Save a preset, in the place of one with the same name."""
        async with self._database.transaction() as session:
            values = {
                "name": name,
                "base": base,
                "numbers": numbers,
                "author": caller.author,
                "now": now,
            }
            await session.rows("presets/save", **values)
            await session.rows(
                "audit/insert",
                **audit_entry("preset_save", caller=caller, now=now, detail=name),
            )

    async def delete(self, name: str, *, caller: Caller, now: datetime) -> bool:
        """Delete a preset; return False without one."""
        async with self._database.transaction() as session:
            if not await session.rows("presets/delete", name=name):
                return False
            await session.rows(
                "audit/insert",
                **audit_entry("preset_delete", caller=caller, now=now, detail=name),
            )
            return True
