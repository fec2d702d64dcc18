"""Presets of the ranking: built-in ones, and those of the settings."""

from folklore.contract.recall import ListPresetsRequest, Preset
from folklore.memory.context import RequestContext
from folklore.ranking.weights import numbers_of, setting_of


async def list_presets(
    context: RequestContext, _request: ListPresetsRequest
) -> tuple[Preset, ...]:
    """List all presets with their numbers. No statement."""
    return tuple(
        Preset(name, numbers_of(ranking), setting_of(ranking))
        for name, ranking in context.memory.presets.items()
    )
