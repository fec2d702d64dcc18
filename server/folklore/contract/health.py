"""The state of the memory: status, counts, checks, sizes, backups."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NotRequired, TypedDict

from folklore.contract.argument_types import NamespaceNames
from folklore.contract.compact import JsonDict, fields_of, without_unset
from folklore.contract.namespaces import shared_json
from folklore.contract.requests import Request, Returns
from folklore.model import Degraded, NamespaceStats, NamespaceStatus


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The active embedding model."""

    provider: str
    name: str
    dimensions: int


@dataclass(frozen=True, slots=True)
class Status:
    """State of the memory as far as the caller may see it. `model` is the active one if it is reachable."""

    version: str
    engine: str
    namespaces: tuple[NamespaceStatus, ...]
    model: ModelInfo | None
    degraded: tuple[Degraded, ...]

    @property
    def pending_embeddings(self) -> int:
        """Memories without a vector of the active model."""
        return sum(item.pending_embeddings for item in self.namespaces)


class StatusRequest(Request, Returns[Status]):
    """Read the state of the memory; with `check_model`, the embedding model is asked for a vector."""

    check_model: bool = True


class StatusJson(TypedDict):
    """State of the memory."""

    version: str
    engine: str
    model: NotRequired[JsonDict]
    namespaces: list[JsonDict]
    embedding_debt: NotRequired[int]
    degraded: NotRequired[list[JsonDict]]


def status_json(state: Status) -> StatusJson:
    """Serialize the state of the memory."""
    namespaces = [
        fields_of(item, "name memories role") | without_unset(shared=shared_json(item))
        for item in state.namespaces
    ]
    value: StatusJson = {
        "version": state.version,
        "engine": state.engine,
        "model": {},
        "namespaces": namespaces,
    }
    if state.model is None:
        del value["model"]
    else:
        value["model"] = fields_of(state.model, "provider name dimensions")
        value["embedding_debt"] = state.pending_embeddings
    if state.degraded:
        value["degraded"] = [
            fields_of(item, "branch reason") for item in state.degraded
        ]
    return value


@dataclass(frozen=True, slots=True)
class Stats:
    """Exact counts; without a reachable `model`, `without_vector` is not meaningful."""

    namespaces: tuple[NamespaceStats, ...]
    model: str | None
    engine: str


class StatsRequest(Request, Returns[Stats]):
    """Count the memories of namespaces."""

    namespaces: NamespaceNames = ()


@dataclass(frozen=True, slots=True)
class Check:
    """Outcome of one check of `folklore doctor`. `hint` is the next step."""

    name: str
    status: Literal["ok", "warning", "failed", "skipped"]
    detail: str
    hint: str | None = None


class ChecksRequest(Request, Returns[tuple[Check, ...]]):
    """Check the caller's token, its grants and the memory; for the owner also the jobs and the backups."""


@dataclass(frozen=True, slots=True)
class BackupInfo:
    """A backup file: the memories in it, its size in bytes, and when a copy restored from it was compared."""

    name: str
    created_at: datetime
    memories: int
    size: int
    verified_at: datetime | None = None


class BackupsRequest(Request, Returns[tuple[BackupInfo, ...]]):
    """List the backups of the database that the server can see, newest first."""


@dataclass(frozen=True, slots=True)
class TableSize:
    """A table: its rows as the planner estimates them, if it did yet, and the bytes of the table and of its indexes."""

    name: str
    rows: int | None
    table_bytes: int
    index_bytes: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """The size of the database in bytes, and of its tables, the largest first."""

    database_bytes: int
    tables: tuple[TableSize, ...]


class SizesRequest(Request, Returns[Sizes]):
    """Read the sizes of the database and its tables."""
