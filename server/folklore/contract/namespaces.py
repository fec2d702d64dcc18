"""Namespaces: list, create, rename, share, merge, delete."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from folklore.contract.compact import JsonDict, fields_of, without_unset
from folklore.contract.requests import Request, Returns
from folklore.model import Namespace, NamespaceStatus


class ListNamespacesRequest(Request, Returns[tuple[Namespace, ...]]):
    """List namespaces, or with `deleted` those that were deleted."""

    deleted: bool = False


def namespace_json(item: Namespace) -> JsonDict:
    """Serialize a namespace."""
    described = fields_of(item, "language description created_at deleted_at deleted_by")
    return without_unset(
        name=item.name,
        memories=item.memories or 0,
        shared=shared_json(item),
        **described,
    )


def shared_json(item: Namespace | NamespaceStatus) -> str | None:
    if item.shared == "never":
        return None
    return item.shared


class CreateNamespaceRequest(Request, Returns[str]):
    """Create an empty namespace. The result is its normalised name."""

    name: str
    language: str | None = None
    description: str | None = None


class RenameNamespaceRequest(Request, Returns[str]):
    """Rename a namespace. The result is its normalised name."""

    name: str
    to: str


class DescribeNamespaceRequest(Request, Returns[None]):
    """Set or remove the description of a namespace."""

    name: str
    description: str | None = None


class ShareNamespaceRequest(Request, Returns[None]):
    """Search a namespace in every project too, or with `off` no longer."""

    name: str
    off: bool = False


@dataclass(frozen=True, slots=True)
class DeletedNamespace:
    """A namespace that was deleted, and how long it can be restored."""

    name: str
    restorable_for: timedelta


class DeleteNamespaceRequest(Request, Returns[DeletedNamespace]):
    """Delete a namespace; it can be restored for a while."""

    name: str


class RestoreNamespaceRequest(Request, Returns[str]):
    """Restore a deleted namespace. The result is its name."""

    name: str


@dataclass(frozen=True, slots=True)
class MergedNamespaces:
    """Namespaces that were merged, or would be, and how many memories were moved.

    `duplicates` of them are superseded by a memory of the same text in the other namespace; `known` stayed behind,
    since the other namespace has them under the same id.
    """

    name: str
    into: str
    memories: int
    duplicates: int
    known: int


class MergeNamespacesRequest(Request, Returns[MergedNamespaces]):
    """Move all memories of a namespace into another, and delete it; with `undo`, take that back."""

    name: str
    into: str
    undo: bool = False
    dry_run: bool = False
    lasting = True


@dataclass(frozen=True, slots=True)
class ErasedNamespaces:
    """Namespaces of one name that were erased, or would be, and the memories in them.

    `remaining` counts those of that name that were deleted before and stay restorable.
    """

    name: str
    memories: int
    remaining: int
    ids: tuple[UUID, ...]


class EraseNamespaceRequest(Request, Returns[ErasedNamespaces]):
    """Erase a namespace permanently; with `only`, nothing unless it would erase exactly these ids."""

    name: str
    dry_run: bool = False
    only: tuple[UUID, ...] | None = None
    lasting = True
