"""Ids by their last characters, as commands, the console and injected notes show them."""

from collections.abc import Sequence
from uuid import UUID

from folklore.contract.compact import beginning
from folklore.contract.memories import ResolvedId, ResolveRequest
from folklore.contract.requests import Operations
from folklore.errors import InvalidInput, NotFound
from folklore.model import Memory


async def whole_ids(
    operations: Operations, ids: Sequence[UUID | str], *, hint: str
) -> tuple[UUID, ...]:
    """Return ids with whole ones in place of ends. At most one operation. Raises InvalidInput, NotFound."""
    endings = dict.fromkeys(id_ for id_ in ids if isinstance(id_, str))
    resolved: dict[UUID | str, UUID] = {}
    if endings:
        request = ResolveRequest(endings=tuple(endings))
        for match in await operations.call(request):
            resolved[match.ending] = _only(match, hint)
    return tuple(id_ if isinstance(id_, UUID) else resolved[id_] for id_ in ids)


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
    text = beginning(memory.content).replace("\n", " ")
    return f"\n  {memory.id} in {memory.namespace}: {text}"
