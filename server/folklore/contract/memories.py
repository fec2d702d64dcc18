"""Memories and their relations: store, read, change, forget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypedDict, cast
from uuid import UUID

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    GetPydanticSchema,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from folklore.contract.anchors import stale_json as stale_json
from folklore.contract.argument_types import (
    ChangedNamespaces,
    NamespaceNames,
    UpTo1000,
    Words,
    between,
)
from folklore.contract.arguments import given
from folklore.contract.compact import (
    NOT_LISTED,
    JsonDict,
    beginning,
    fields_of,
    plain,
    without_unset,
)
from folklore.contract.filters import FiltersRequest
from folklore.contract.requests import Part, Request, Returns, with_fields
from folklore.errors import FolkloreError, field_errors
from folklore.model import (
    DEFAULT_RELATION,
    FIELDS,
    VISIBLE,
    Answer,
    Draft,
    Memory,
    Number,
    Relation,
    Revision,
    Stale,
    StoreItem,
    SupersededMemory,
    Unreadable,
    Whole,
)

# Declared fields that a caller may change.
CHANGEABLE = [name for name, field in FIELDS.items() if not field.imported]
# Fields of a memory that only an import may state.
_IMPORTED = ("id", "author", "created_at", "position")


def _readable(value: object, read: ValidatorFunctionWrapHandler) -> object:
    """Return a memory, or what is wrong with it: one of a batch is refused without the others."""
    if isinstance(value, Unreadable):
        return value
    try:
        draft = read(value)
    except ValidationError as error:
        [(field, reason), *_] = field_errors(error)
        return Unreadable("" if field == "arguments" else field, reason)
    if draft is value:
        return draft  # made by this program, not read from what a client wrote
    for name in _IMPORTED:
        if getattr(draft, name) is not None:
            return Unreadable(
                name, "is set by the server. Only an import may state it."
            )
    return draft


def _given(value: object) -> object:
    return given(Draft, value)


_READ_DRAFT = Annotated[Draft, BeforeValidator(_given), WrapValidator(_readable)]
# A memory of a batch; one that cannot be read is refused without the others.
NewMemory = Annotated[
    Draft | Unreadable,
    GetPydanticSchema(lambda _union, schema_of: schema_of(_READ_DRAFT)),
]


@dataclass(frozen=True, slots=True)
class RefusedMemory:
    """A memory of a batch that was not stored: its index, the wrong field, the reason, and the code of the error."""

    index: int
    field: str
    reason: str
    code: str

    @classmethod
    def of(cls, index: int, error: FolkloreError) -> RefusedMemory:
        """Read the field from the message of an error: `memories[2].kind: …` or `kind: …`."""
        message = error.message.removeprefix(f"memories[{index}]").lstrip(".")
        field, _, reason = message.partition(": ")
        if error.hint:
            reason = f"{reason} {error.hint}"
        return cls(index, field, reason, error.code)


@dataclass(frozen=True, slots=True)
class StoreResult:
    """Outcome for each memory that was stored, in the order given, and the refused ones.

    `note` reports what was stored otherwise than given, and what could not be checked.
    """

    namespace: str
    stored: tuple[StoreItem, ...]
    note: str | None = None
    refused: tuple[RefusedMemory, ...] = ()


class StoreRequest(Request, Returns[StoreResult]):
    """Store memories in one namespace. With `single`, errors name fields without an index in `memories`.

    With `client_session`, the answer to a store without cues says once in that session how to add them; the empty text
    stands for the sessions of a caller that names none.
    """

    memories: tuple[NewMemory, ...]
    namespace: str | None = None
    single: bool = False
    client_session: str | None = None


# The question about older memories on the subject of a new one.
_REPLACES = (
    "Does it replace one in same_subject? Store it again with supersedes and that id; "
    "if both hold, relate them (relates_to)."
)


class StoredJson(TypedDict):
    """Outcome for a memory of a batch."""

    id: str
    status: str
    cues: NotRequired[Annotated[str, NOT_LISTED]]
    similar: NotRequired[list[Any]]
    same_subject: NotRequired[Annotated[list[Any], NOT_LISTED]]
    superseded: NotRequired[Annotated[JsonDict, NOT_LISTED]]


class StoreJson(TypedDict):
    """Outcome of a store."""

    namespace: str
    stored: list[StoredJson]
    refused: NotRequired[list[Any]]
    note: NotRequired[str]


def stored_json(result: StoreResult) -> StoreJson:
    """Serialize the outcome of a store."""
    value: StoreJson = {
        "namespace": result.namespace,
        "stored": [_stored_item_json(item) for item in result.stored],
    }
    if result.refused:
        value["refused"] = [
            fields_of(item, "index field reason") for item in result.refused
        ]
    notes = []
    if any(item.same_subject for item in result.stored):
        notes.append(_REPLACES)
    if result.note:
        notes.append(result.note)  # last: it may end with how to add cues
    if notes:
        value["note"] = " ".join(notes)
    return value


def _stored_item_json(item: StoreItem) -> StoredJson:
    value: StoredJson = {"id": str(item.id), "status": item.status}
    if item.cues is not None:
        value["cues"] = item.cues
    if item.similar:
        value["similar"] = []
        for near in item.similar:
            row = fields_of(near, "id similarity")
            row["content"] = beginning(near.content)
            row["author"] = near.author
            value["similar"].append(row | without_unset(changed_by=near.changed_by))
    if item.same_subject:
        value["same_subject"] = []
        for older in item.same_subject:
            row = fields_of(older, "id when")
            row["content"] = beginning(older.content)
            value["same_subject"].append(row)
    if item.superseded is not None:
        value["superseded"] = superseded_json(item.superseded)
    return value


def superseded_json(memory: SupersededMemory) -> JsonDict:
    """Serialize a memory that a call superseded, so that a wrong id is seen."""
    return fields_of(memory, "id author") | {"content": beginning(memory.content)}


@dataclass(frozen=True, slots=True)
class MemoryDetails:
    """A memory, its relations in both directions, the number of its revisions, and files that changed since."""

    memory: Memory
    relations: tuple[Relation, ...]
    revisions: int
    stale: tuple[Stale, ...] = ()


@dataclass(frozen=True, slots=True)
class GetResult:
    """Memories in the order of the request, and the ids that no readable namespace holds.

    An id that an import brought into several namespaces is found once in each.
    """

    found: tuple[MemoryDetails, ...]
    missing: tuple[UUID, ...]


class GetRequest(Request, Returns[GetResult]):
    """Read memories by id; with `forgotten`, those too that the caller could restore."""

    ids: Annotated[tuple[UUID, ...], between(1, 100)]
    forgotten: bool = False
    client_session: str | None = None


class MemoryJson(TypedDict):
    """A memory; the format of the answer decides which fields it has besides."""

    id: Annotated[str, NOT_LISTED]
    stale: NotRequired[JsonDict]
    content: NotRequired[Annotated[str, NOT_LISTED]]
    namespace: NotRequired[Annotated[str, NOT_LISTED]]
    elsewhere: NotRequired[Annotated[bool, NOT_LISTED]]
    variants: NotRequired[Annotated[list[JsonDict], NOT_LISTED]]
    replaces: NotRequired[Annotated[list[JsonDict], NOT_LISTED]]
    contradicts: NotRequired[Annotated[list[str], NOT_LISTED]]


class GetJson(TypedDict):
    """Memories that were read by id."""

    memories: list[MemoryJson]
    missing: NotRequired[list[str]]
    truncated: NotRequired[bool]
    note: NotRequired[str]


def got_json(result: GetResult) -> GetJson:
    """Serialize memories that were read by id."""
    memories = [details_json(item) for item in result.found]
    value: GetJson = {"memories": cast("list[MemoryJson]", memories)}
    if result.missing:
        value["missing"] = [str(id_) for id_ in result.missing]
    return value


def details_json(item: MemoryDetails) -> JsonDict:
    """Serialize a whole memory with its relations, seen from it, and the number of its revisions."""
    value = record_json(item.memory)
    if item.relations:
        value["relations"] = [
            relation_json(entry, item.memory.id) for entry in item.relations
        ]
    value["revisions"] = item.revisions
    return value | without_unset(stale=stale_json(item.stale))


def record_json(memory: Memory) -> JsonDict:
    """Serialize a whole memory without unset values. `source` is always there."""
    return without_unset(
        **fields_of(memory, "id content namespace"),
        **{name: plain(getattr(memory, name)) for name in VISIBLE if name != "content"},
        **fields_of(
            memory,
            "author agent quality when created_at updated_at forgotten_at superseded_at superseded_by",
        ),
        **changed_json(memory),
        recall_count=memory.recall_count or None,
        revision=memory.revision,
    ) | {"source": memory.source or ""}


class UpdatedJson(TypedDict):
    """A whole memory after a change; its other fields are there if they are set."""

    id: str
    content: str
    revision: int


def updated_json(memory: Memory) -> UpdatedJson:
    """Serialize a memory after a change, as record_json does."""
    return cast("UpdatedJson", record_json(memory))


def changed_json(memory: Memory) -> JsonDict:
    """Return who changed the text last, and when, unless that is its author."""
    return without_unset(**fields_of(memory, "changed_by changed_at"))


@dataclass(frozen=True, slots=True)
class ResolvedId:
    """The end of an id, and the memories that it may mean, newest first; at most six are shown."""

    ending: str
    found: tuple[Memory, ...]


class ResolveRequest(Request, Returns[tuple[ResolvedId, ...]]):
    """Find memories by the last characters of their ids."""

    endings: Annotated[Words, between(1, 100)]


ListSort = Literal["time_desc", "time_asc", "updated_desc", "updated_asc", "score"]


class ListRequest(Request, Returns[Answer]):
    """List memories in order of time."""

    namespaces: NamespaceNames = Field((), description="default: all you may read")
    filters: FiltersRequest = Field(default_factory=FiltersRequest)
    sort: ListSort = "time_desc"
    limit: UpTo1000 = 20
    max_tokens: Whole | None = None
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class History:
    """A memory as it is now, and its changes, the last one first."""

    memory: Memory
    revisions: tuple[Revision, ...]


class HistoryRequest(Request, Returns[History]):
    """Read the changes of a memory."""

    id: UUID
    namespaces: NamespaceNames = ()


_HIDDEN = {*FIELDS, "changed_by", "changed_at"} - {*VISIBLE}


def revision_json(item: Revision) -> JsonDict:
    """Serialize a change with the former values of the changed columns."""
    return without_unset(
        **fields_of(item, "revision action author agent changed_at reason undoes"),
        before={
            name: entry
            for name, entry in item.before.items()
            if entry is not None and name not in _HIDDEN
        },
    )


@with_fields(CHANGEABLE)
class Changes(Part):
    """New values of the fields that are set."""


class UpdateRequest(Request, Returns[Memory]):
    """Change fields of a memory; `clear` names fields to empty, `merge` memories to be merged into it."""

    id: UUID
    changes: Changes = Field(default_factory=Changes)
    clear: Words = Field((), description="fields to empty")
    merge: Annotated[tuple[UUID, ...], between(0, 50)] = Field(
        (),
        description="memories that this one replaces; it gets the newest text and all tags, unless given",
    )
    if_revision: Whole | None = Field(
        None, description="refuse if it changed since this revision"
    )
    namespaces: ChangedNamespaces = ()
    client_session: str | None = None


@dataclass(frozen=True, slots=True)
class Undone:
    """A memory after an undo, and the change that was taken back.

    `superseded` are the memories that forgetting it had restored, and that it supersedes again.
    """

    memory: Memory
    revision: Revision
    superseded: tuple[UUID, ...] = ()


class UndoRequest(Request, Returns[Undone]):
    """Take back the last change of a memory, or with `redo` its last undo; only if it is at `revision`, if given."""

    id: UUID
    revision: Whole | None = None
    redo: bool = False
    namespaces: ChangedNamespaces = ()


@dataclass(frozen=True, slots=True)
class ForgetResult:
    """Memories that were forgotten, or would be; `already` were forgotten before.

    `more`: the filters match more memories than one call takes. `restored` were superseded by them, and are in force
    again.
    """

    memories: tuple[Memory, ...]
    already: tuple[UUID, ...] = ()
    more: bool = False
    restored: tuple[Memory, ...] = ()


class ForgetRequest(Request, Returns[ForgetResult]):
    """Forget memories by id, or those that match filters; `only` limits the filters to these ids.

    `undoes_store`: it takes back their store, so that a redo restores them.
    """

    ids: Annotated[tuple[UUID, ...], between(0, 1_000)] = ()
    filters: FiltersRequest | None = None
    namespaces: ChangedNamespaces = Field(
        (), description="for filters; default: the project's"
    )
    erase: bool = Field(False, description="delete permanently")
    dry_run: bool = Field(False, description="only list what would be forgotten")
    only: Annotated[tuple[UUID, ...], between(0, 1_000)] | None = None
    undoes_store: bool = False


class ForgottenJson(TypedDict):
    """A memory that was forgotten, without its text if it was erased."""

    id: Annotated[str, NOT_LISTED]
    namespace: Annotated[str, NOT_LISTED]
    content: NotRequired[Annotated[str, NOT_LISTED]]


class ForgetJson(TypedDict):
    """Outcome of a forget."""

    forgotten: list[ForgottenJson]
    already_forgotten: NotRequired[list[str]]
    erased: NotRequired[bool]
    dry_run: NotRequired[bool]
    more: NotRequired[bool]
    restored: NotRequired[list[ForgottenJson]]


def forgotten_json(result: ForgetResult, *, erase: bool, dry_run: bool) -> ForgetJson:
    """Serialize forgotten memories. The text of erased ones is not repeated."""
    erased = erase and not dry_run
    value: ForgetJson = {
        "forgotten": [_short(memory, erased=erased) for memory in result.memories]
    }
    if result.already:
        value["already_forgotten"] = [str(id_) for id_ in result.already]
    if erased:
        value["erased"] = True
    if dry_run:
        value["dry_run"] = True
    if result.more:
        value["more"] = True
    if result.restored:
        value["restored"] = [_short(memory) for memory in result.restored]
    return value


def _short(memory: Memory, *, erased: bool = False) -> ForgottenJson:
    value: ForgottenJson = {"id": str(memory.id), "namespace": memory.namespace}
    if not erased:
        value["content"] = beginning(memory.content)
    return value


class RelationChange(Part):
    """A relation to write, or with `remove` to remove."""

    from_id: Annotated[UUID, Field(alias="from")]
    to_id: Annotated[UUID, Field(alias="to")]
    type: str = DEFAULT_RELATION
    strength: Annotated[Number, Field(description="0 to 1")] = 1.0
    remove: bool = False

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)


@dataclass(frozen=True, slots=True)
class FailedRelation:
    """A relation that could not be written, the reason, and the code of the error."""

    relation: Relation
    reason: str
    code: str


@dataclass(slots=True)
class RelateResult:
    """Outcome for each relation; `updated` existed and took the new strength.

    `superseded` are the memories that new relations hide.
    """

    created: list[Relation] = field(default_factory=list)
    updated: list[Relation] = field(default_factory=list)
    removed: list[Relation] = field(default_factory=list)
    failed: list[FailedRelation] = field(default_factory=list)
    superseded: list[SupersededMemory] = field(default_factory=list)


class RelateRequest(Request, Returns[RelateResult]):
    """Write and remove relations."""

    relations: Annotated[tuple[RelationChange, ...], between(1, 500)]
    namespaces: ChangedNamespaces = Field(
        (), description="where the memories are; default: all"
    )


def relation_json(item: Relation, seen_from: UUID | None = None) -> JsonDict:
    """Serialize a relation; the end that it is seen from is left out."""
    value: JsonDict = {
        "from": str(item.from_id),
        "type": item.type,
        "to": str(item.to_id),
        "strength": item.strength,
    }
    if seen_from is not None:
        del value["from" if item.from_id == seen_from else "to"]
    return value


class RelateJson(TypedDict):
    """Outcome for relations."""

    created: list[JsonDict]
    updated: NotRequired[list[JsonDict]]
    removed: NotRequired[list[JsonDict]]
    failed: NotRequired[list[JsonDict]]
    superseded: NotRequired[list[JsonDict]]


def related_json(result: RelateResult) -> RelateJson:
    """Serialize the outcome for relations; empty parts are left out, except `created`."""
    value: RelateJson = {"created": [relation_json(item) for item in result.created]}
    if result.updated:
        value["updated"] = [relation_json(item) for item in result.updated]
    if result.removed:
        value["removed"] = [relation_json(item) for item in result.removed]
    if result.superseded:
        value["superseded"] = [superseded_json(item) for item in result.superseded]
    if result.failed:
        value["failed"] = [
            relation_json(item.relation) | {"reason": item.reason}
            for item in result.failed
        ]
    return value


@dataclass(frozen=True, slots=True)
class RenamedTag:
    """Tags that were renamed in a namespace, or would be, each with its new name, and the number of memories.

    `kept` counts memories that an undo left as they are, since they were changed in between.
    """

    namespace: str
    tags: Mapping[str, str]
    memories: int
    kept: int = 0


class RenameTagRequest(Request, Returns[RenamedTag]):
    """Rename a tag, and those below it, on the memories of a namespace; with `undo`, take the last such call back."""

    tag: str
    to: str
    namespace: str | None = None
    undo: bool = False
    dry_run: bool = False
    lasting = True
