"""Ids by their last characters, as commands, the console and injected notes show them."""

import re
from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

from folklore.errors import InvalidInput, NotFound
from folklore.memory import serializers
from folklore.memory.requests import ResolveRequest
from folklore.memory.results import ResolvedId
from folklore.memory.service import Operations
from folklore.model import Memory

_ENDING = re.compile(r"[0-9a-f]{4,31}")


def id_or_ending(text: str, field: str, hint: str) -> UUID | str:
    """Return an id, or the end of one as it is looked up. Raises InvalidInput."""
    with suppress(ValueError):
        return UUID(text)
    ending = text.lower().lstrip("…").replace("-", "")
    if _ENDING.fullmatch(ending):
        return ending
    raise InvalidInput(field, f"{text[:60]!r} is not an id.", hint=hint)


async def whole_ids(
    operations: Operations, ids: Sequence[UUID | str], *, hint: str
) -> tuple[UUID, ...]:
    """Return ids with whole ones in place of ends. At most one operation. Raises InvalidInput, NotFound."""
    endings = tuple(dict.fromkeys(id_ for id_ in ids if isinstance(id_, str)))
    matches = await operations.call(ResolveRequest(endings=endings)) if endings else ()
    resolved = {item.ending: _only(item, hint) for item in matches}
    return tuple(resolved[id_] if isinstance(id_, str) else id_ for id_ in ids)


def _only(resolved: ResolvedId, hint: str) -> UUID:
    if not resolved.found:
        raise NotFound(
            f"There is no memory whose id ends in {resolved.ending}.", hint=hint
        )
    if len(resolved.found) > 1:
        candidates = "".join(map(_candidate, resolved.found))
        raise InvalidInput(
            "ID",
            f"several ids end in {resolved.ending}:{candidates}\n",
            hint="Give more characters.",
        )
    return resolved.found[0].id


def _candidate(memory: Memory) -> str:
    text = serializers.beginning(memory.content).replace("\n", " ")
    return f"\n  {memory.id} in {memory.namespace}: {text}"
