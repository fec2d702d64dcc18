"""Embedding models: coverage, backfill, and the switch from one to another."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from folklore.config import Provider
from folklore.contract.requests import Request, Returns
from folklore.model import Number

# Most memories to embed in a second, for a service with a limit.
Rate = Annotated[Number, Field(gt=0)] | None


@dataclass(frozen=True, slots=True)
class ModelCoverage:
    """An embedding model, and its embeddings in the namespaces that the caller may read."""

    model: str
    id: UUID
    role: str | None
    dimensions: int
    embedded: int
    pending: int
    url: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class NamespaceCoverage:
    """The embeddings of one namespace in one model, and the path of a search: exact or hnsw."""

    namespace: str
    model: str
    role: str | None
    dimensions: int
    memories: int
    embedded: int
    pending: int
    path: str


@dataclass(frozen=True, slots=True)
class EmbeddingsInfo:
    """The configured and the active model, a note on them, and the coverage of models and namespaces."""

    configured: str | None
    active: str | None
    note: str | None
    models: tuple[ModelCoverage, ...]
    namespaces: tuple[NamespaceCoverage, ...]


class EmbeddingsRequest(Request, Returns[EmbeddingsInfo]):
    """Read the embedding models and their coverage; counts exactly."""


@dataclass(frozen=True, slots=True)
class BackfillResult:
    """The model of a backfill, the embeddings made, and the number of texts without a word that it knows."""

    model: str
    made: int
    without_known_word: int


class BackfillRequest(Request, Returns[BackfillResult]):
    """Make the pending embeddings in the active model, at most `rate` a second."""

    rate: Rate = None
    lasting = True


# From a smaller sample nothing is concluded about a model.
SMALLEST_SAMPLE = 5


@dataclass(frozen=True, slots=True)
class Validation:
    """Of `sample` memories, the number that each generation finds among the ten nearest to their own first words.

    `shared` is the mean share of the ten that both generations have in common. `old` and `shared` are None if the old
    model could not be reached.
    """

    sample: int
    new: int
    old: int | None
    shared: float | None

    @property
    def passed(self) -> bool:
        """True if new >= old - max(1, old / 10); without the old model, if 2 · new >= sample."""
        if self.sample < SMALLEST_SAMPLE:
            return True
        if self.old is None:
            return 2 * self.new >= self.sample
        return self.new >= self.old - max(1, self.old // 10)


@dataclass(frozen=True, slots=True)
class SwitchResult:
    """The former model, None if there was none, the active one, and the embeddings made."""

    old: str | None
    new: str
    made: int
    validation: Validation | None


class SwitchModelRequest(Request, Returns[SwitchResult]):
    """Switch to the model of the server's settings with these properties; `force` switches to a worse one too."""

    provider: Provider | None = None
    model: str | None = None
    url: str | None = None
    force: bool = False
    rate: Rate = None
    lasting = True


class RestoreModelRequest(Request, Returns[SwitchResult]):
    """Switch back to the previous model; `at_once` before its missing embeddings are made."""

    at_once: bool = False
    rate: Rate = None
    lasting = True


@dataclass(frozen=True, slots=True)
class DropResult:
    """A model that was deleted, and the number of its embeddings."""

    model: str
    dropped: int


class DropModelRequest(Request, Returns[DropResult]):
    """Delete the embeddings of a model, given by its name or id, or by its role."""

    model: str | None = None
    role: Literal["previous", "next"] | None = None
    lasting = True


@dataclass(frozen=True, slots=True)
class ModelMeasure:
    """Share of the questions whose text is among the first five, and milliseconds that a text takes."""

    model: str
    hit_at_5: float
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Both models over the same sample, and the time and the bytes that a switch of all memories would take."""

    sample: int
    memories: int
    active: ModelMeasure
    other: ModelMeasure
    seconds: float
    bytes: int

    @property
    def recommended(self) -> bool:
        """True if the other model finds noticeably more."""
        return self.sample >= 20 and self.other.hit_at_5 >= self.active.hit_at_5 + 0.02


class RecommendModelRequest(Request, Returns[Recommendation]):
    """Measure on at most `sample` memories, for so many `seconds`, what a switch to MiniLM, or from it, would gain."""

    sample: Annotated[int, Field(ge=1, le=2000)] = 200
    seconds: Annotated[Number, Field(ge=0)] = 60.0
    lasting = True
