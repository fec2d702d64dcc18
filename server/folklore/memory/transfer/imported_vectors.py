"""Vectors that memories carry from one store to another, so that the same model need not read a text twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from folklore.db.stores.memories import Vectors
from folklore.db.stores.models import KnownModel
from folklore.db.stores.transfer import Transfers
from folklore.db.stores.transfer_rows import HALF_BYTES, Arrival, Carried
from folklore.errors import EmbedderUnavailable
from folklore.memory.context import MemoryContext
from folklore.memory.models.active_model import model_of
from folklore.memory.records.store import embed
from folklore.memory.transfer.report import Report
from folklore.memory.transfer.vector_lines import FIELD

# How far from 1 the length of a vector may be. Rounding to half floats moves that of a unit vector by less than 0.1 %.
_TOLERANCE = 0.01


class CarriedVectors:
    """Takes the vectors that arrivals carry where they are of the model that counts here, and has the others made."""

    def __init__(self, library: MemoryContext, transfers: Transfers, report: Report) -> None:
        self._library = library
        self._transfers = transfers
        self._report = report
        self._model: KnownModel | None = None

    async def sift(self, arrivals: Sequence[Arrival]) -> list[Arrival]:
        """The arrivals, without the vectors that cannot be used here, which are reported. At most one statement.

        A vector is used if its model is the active one, and it is of that dimension, finite and of length 1 within 1 %.
        Where nothing was ever embedded, the embedder's model is about to become the active one.
        """
        if all(arrival.carried is None for arrival in arrivals):
            return list(arrivals)
        model = self._model = await self._active()
        usable = frozenset[int]() if model is None else _usable(arrivals, model)
        for place, arrival in enumerate(arrivals):
            if arrival.carried is not None and place not in usable:
                self._report.ignore(FIELD)
        return [item if place in usable else replace(item, carried=None) for place, item in enumerate(arrivals)]

    async def vectors(self, arrivals: Sequence[Arrival]) -> tuple[Vectors | None, frozenset[UUID]]:
        """The vectors of sifted arrivals, and who owes one because the embedder is off or down.

        Only the texts of those that carry none are embedded.
        """
        lacking = [arrival for arrival in arrivals if arrival.carried is None]
        made = await embed(self._library, [arrival.prepared.draft.content for arrival in lacking]) if lacking else None
        owing = frozenset(arrival.id for arrival in lacking) if made is None else frozenset()
        if self._model is None or len(lacking) == len(arrivals):
            return made, owing
        if made is not None and made.model != self._model.id:  # another one counts since they were sifted
            return await self.vectors([replace(arrival, carried=None) for arrival in arrivals])
        others = iter([None] * len(lacking) if made is None else made.vectors)
        vectors = [next(others) if item.carried is None else _rows([item.carried])[0] for item in arrivals]
        return Vectors(self._model, vectors), owing

    async def _active(self) -> KnownModel | None:
        if (model := await self._transfers.active_model()) is not None:
            return model
        await self._library.active_model.refresh()
        if (embedder := self._library.embedder) is None:
            return None
        try:
            return await model_of(embedder)
        except EmbedderUnavailable:
            return None


def _usable(arrivals: Sequence[Arrival], model: KnownModel) -> frozenset[int]:
    """The places of the arrivals that carry a vector of this model."""
    held = [
        (place, carried)
        for place, arrival in enumerate(arrivals)
        if (carried := arrival.carried) is not None
        and _identity(carried) == _identity(model)
        and len(carried.vector) == model.dimensions * HALF_BYTES
    ]
    if not held:
        return frozenset()
    with np.errstate(invalid="ignore"):  # what holds no number, or an infinite one, has no length near 1 either
        lengths = np.linalg.norm(_rows([carried for _, carried in held]), axis=1)
    return frozenset(place for (place, _), length in zip(held, lengths, strict=True) if abs(length - 1) <= _TOLERANCE)


def _identity(item: Carried | KnownModel) -> tuple[str, str, int, str, str, str]:
    """What the id of a model follows from (`Model.id`): equal where the ids are."""
    return item.provider, item.name, item.dimensions, item.query_prefix, item.document_prefix, item.revision


def _rows(carried: Sequence[Carried]) -> NDArray[np.float32]:
    """Vectors of one dimension, (n, dimensions)."""
    halves = np.frombuffer(b"".join(item.vector for item in carried), dtype="<f2")
    return halves.astype(np.float32).reshape(len(carried), -1)
