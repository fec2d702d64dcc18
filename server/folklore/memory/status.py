"""How the memory is doing: what it holds, what it owes, what it must do without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from folklore.db.stores.namespaces import Holding
from folklore.embedding.protocol import Model
from folklore.errors import EmbedderUnavailable
from folklore.memory.context import MemoryContext
from folklore.memory.permissions import role_in
from folklore.model import Caller, Degraded, Role


@dataclass(frozen=True, slots=True)
class Status:
    """Counts end at 50,000 a namespace; `model` is None where there is none or it is down."""

    namespaces: tuple[Holding, ...]
    roles: Mapping[str, Role]
    model: Model | None
    degraded: tuple[Degraded, ...]

    @property
    def owed(self) -> int:
        """How many memories still owe their vector."""
        return sum(item.without_vector for item in self.namespaces)


async def status(library: MemoryContext, *, caller: Caller) -> Status:
    """What there is, as far as the caller may see it. One statement."""
    model: Model | None = None
    degraded: tuple[Degraded, ...] = ()
    if library.embedder is None:
        degraded = (Degraded("dense", "Embedding is switched off (embedding.provider: none)."),)
    else:
        try:
            model = await library.embedder.model()
        except EmbedderUnavailable as error:
            degraded = (Degraded("dense", error.message),)
    holdings = await library.namespaces.holdings(None if model is None else model.id)
    roles = {item.name: role_in(caller, item.name) or "reader" for item in holdings}
    return Status(tuple(holdings), roles, model, degraded)
