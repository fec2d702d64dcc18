"""Presets of the ranking: built-in ones, those of the settings, and those that the owner saved for all."""

import re
from collections.abc import Mapping

from folklore.db.stores.presets import Presets, SavedPreset
from folklore.errors import Conflict, InvalidInput, NotFound
from folklore.memory.context import MemoryContext, RequestContext
from folklore.memory.permissions import require_owner
from folklore.memory.requests import (
    DeletePresetRequest,
    ListPresetsRequest,
    SavePresetRequest,
)
from folklore.memory.results import Preset
from folklore.ranking.weights import Ranking, numbers_of, with_numbers

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


async def presets_with(memory: MemoryContext, name: str) -> Mapping[str, Ranking]:
    """Return the presets among which a name is looked up. One statement, unless it is built in or of the settings."""
    if name in memory.presets:
        return memory.presets
    return {
        **memory.presets,
        **_rankings(memory, await Presets(memory.root.database).list()),
    }


async def list_presets(
    context: RequestContext, _request: ListPresetsRequest
) -> tuple[Preset, ...]:
    """List all presets with their numbers. One statement."""
    memory = context.memory
    saved = {item.name: item for item in await Presets(memory.root.database).list()}
    rankings = {**memory.presets, **_rankings(memory, list(saved.values()))}
    return tuple(
        Preset(name, numbers_of(ranking), saved[name].author if name in saved else None)
        for name, ranking in rankings.items()
    )


async def save_preset(context: RequestContext, request: SavePresetRequest) -> Preset:
    """Save a ranking under a name for all: the numbers of the request in place of those of another preset.

    Raises InvalidInput, Conflict for a name that is built in or of the settings, Refused.
    """
    require_owner(context.caller)
    memory = context.memory
    if not _NAME.fullmatch(request.name):
        raise InvalidInput(
            "name",
            "must be 1 to 40 of a-z, 0-9, _ and -, and begin with a letter or digit.",
        )
    if request.name in memory.presets:
        raise Conflict(
            f"The preset {request.name} is built in, or in the settings.",
            hint="Choose another name.",
        )
    store = Presets(memory.root.database)
    saved = {item.name: item for item in await store.list()}
    base, numbers = request.base, dict(request.numbers)
    if (
        base in saved
    ):  # so that the new preset does not depend on one that can be deleted
        base, numbers = saved[base].base, {**saved[base].numbers, **numbers}
    if base not in memory.presets:
        raise InvalidInput(
            "base",
            f"unknown preset {base[:60]!r}.",
            hint=f"Use {', '.join(memory.presets)}.",
        )
    ranking = with_numbers(memory.presets[base], numbers, "numbers")
    await store.save(
        request.name, base, numbers, caller=context.caller, now=context.now
    )
    return Preset(request.name, numbers_of(ranking), context.caller.author)


async def delete_preset(context: RequestContext, request: DeletePresetRequest) -> None:
    """Delete a saved preset. Raises NotFound, Refused."""
    require_owner(context.caller)
    deleted = await Presets(context.memory.root.database).delete(
        request.name, caller=context.caller, now=context.now
    )
    if not deleted:
        raise NotFound(
            f"No preset {request.name[:60]!r} was saved.",
            hint="Built-in ones cannot be deleted.",
        )


def _rankings(memory: MemoryContext, saved: list[SavedPreset]) -> dict[str, Ranking]:
    """Return the saved presets as rankings; one whose base is no longer in the settings is left out."""
    return {
        item.name: with_numbers(
            memory.presets[item.base], item.numbers, f"ranking.presets.{item.name}"
        )
        for item in saved
        if item.base in memory.presets and item.name not in memory.presets
    }
