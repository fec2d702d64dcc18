"""Requests: one type for each operation, shared by the MCP tools, the command line and the HTTP API."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    Self,
    TypeVar,
    get_args,
)
from uuid import UUID

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    create_model,
    model_validator,
)

from folklore.config import Provider
from folklore.errors import InvalidInput, field_errors
from folklore.memory import results
from folklore.memory.arguments import given
from folklore.memory.transfer.report import Report
from folklore.model import (
    DEFAULT_RELATION,
    FIELDS,
    Answer,
    AuditEntry,
    Draft,
    FieldType,
    Memory,
    Namespace,
    Number,
    Sort,
    TagMatch,
    TagMode,
    Time,
    Token,
    Unreadable,
    Whole,
)
from folklore.text.clean import replace_lone_surrogates

Result = TypeVar("Result")
Words = tuple[str, ...]
# The time after which a new token ends unless another is requested; `never` is one too.
TOKEN_PERIOD = "90d"  # noqa: S105 - a time
NO_END = "never"
ListSort = Literal["time_desc", "time_asc", "updated_desc", "updated_asc", "score"]
# How a review remembers what is kept: the relation of two memories, and the key of metadata with the day.
DISTINCT = "distinct_from"
REVIEWED = "reviewed"
Reflections = Literal["include", "exclude", "only", "boost"]
Expansion = Literal["relations", "entities"]
OnConflict = Literal["skip", "overwrite", "fail"]

# The type that a declared field has in JSON.
VALUE_TYPES: Mapping[FieldType, Any] = {
    "text": str, "kind": str, "language": str, "tags": Words, "paths": Words, "phrases": Words, "share": Number, "integer": Whole,
    "time": Time, "json": dict[str, JsonValue], "flag": bool, "blobs": Words,
}  # fmt: skip


def without_nulls(value: object) -> object:
    """Drop keys with null."""
    if isinstance(value, Mapping):
        return {name: entry for name, entry in value.items() if entry is not None}
    return value


def _not_empty(names: Words) -> Words:
    if not names:
        raise ValueError(
            'names none; leave it out for the default, or give ["*"] for all'
        )
    return names


# Names of namespaces, or ["*"] for all that the caller may read. An empty list would be taken for either none or all.
NamespaceNames = Annotated[Words, AfterValidator(_not_empty)]


def _ends(text: str) -> str:
    if len(text) <= 2 * _END:
        return text
    return f"{text[:_END]}\n{text[-_END:]}"


# What people paste, however long: of more than 20,000 characters the beginning and the end.
_END = 10_000
LongText = Annotated[str, AfterValidator(_ends)]


def _each_named(names: Words) -> Words:
    if not names or "*" in names:
        raise ValueError("must name each namespace; leave it out for the default")
    return names


# Most memories to embed in a second, for a service with a limit.
Rate = Annotated[Number, Field(gt=0)] | None

# Names of namespaces in which memories are changed: never all at once.
ChangedNamespaces = Annotated[Words, AfterValidator(_each_named)]


def _between(least: int, most: int) -> AfterValidator:
    def check(value: Any, info: ValidationInfo) -> Any:
        number = value if isinstance(value, int) else len(value)
        if not least <= number <= most:
            if number is value:
                words = f"be between {least} and {most}"
            else:
                words = f"hold {least:,} to {most:,}"
            raise InvalidInput(str(info.field_name), f"must {words}, got {number:,}.")
        return value

    return AfterValidator(check)


UseFlag = Annotated[
    bool, Field(description="count the answer as a use of its memories")
]
UpTo100 = Annotated[int, _between(1, 100)]
UpTo200 = Annotated[int, _between(1, 200)]
UpTo1000 = Annotated[int, _between(1, 1_000)]
AnswerTokens = Annotated[int, _between(50, 100_000)]

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
        imported = None
    else:
        imported = next(
            (name for name in _IMPORTED if getattr(draft, name) is not None), None
        )
    if imported is None:
        return draft
    return Unreadable(imported, "is set by the server. Only an import may state it.")


def _given(value: object) -> object:
    return given(Draft, value)


if TYPE_CHECKING:
    NewMemory = Draft | Unreadable
else:
    NewMemory = Annotated[Draft, BeforeValidator(_given), WrapValidator(_readable)]


class Part(BaseModel):
    """A part of a request. Unknown keys are errors: a misspelt filter must not widen a search."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _as_given(cls, value: object) -> object:
        return given(cls, value)


class Returns(Generic[Result]):
    """Declares the type of an operation's result."""


_CLEANED = ("query", "queries", "prompt", "message")


class Request(Part):
    """A request; `operation` names its use case and the path of the HTTP API: list_tokens for ListTokensRequest.

    One that is `lasting` may take hours: the API reports its progress.
    """

    operation: ClassVar[str]
    lasting: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.operation = re.sub(
            r"\B[A-Z]", r"_\g<0>", cls.__name__.removesuffix("Request")
        ).lower()

    @model_validator(mode="after")
    def _storable(self) -> Self:
        """Refuse a NUL in a name. What people write at length is cleaned instead."""
        for name, value in self:
            texts = value if isinstance(value, tuple) else (value,)
            if name not in _CLEANED and any(
                isinstance(text, str) and "\0" in text for text in texts
            ):
                raise InvalidInput(
                    name,
                    "holds a NUL or half of a surrogate pair, which no text can hold.",
                )
        return self


def _moment(value: object) -> object:
    """Return a time, or a text that is read with the clock and the zone of the request."""
    if isinstance(value, str | datetime):
        return value
    raise ValueError(
        "must be an ISO 8601 time such as 2025-06-30, or words such as yesterday"
    )


# A time of a filter: a day is the whole day.
Moment = Annotated[
    datetime | str, BeforeValidator(_moment), WithJsonSchema({"type": "string"})
]


class _Filters(Part):
    kinds: Words = ()
    tags: Words = ()
    tag_mode: TagMode = "any"
    tag_match: TagMatch = "prefix"
    exclude_tags: Words = ()
    source_prefix: str | None = None
    author: str | None = None
    paths: Words = ()
    metadata: Annotated[
        dict[str, JsonValue],
        Field(description='by path: {"team": "x", "ticket.id": {"in": [1, 2]}}'),
    ] = {}
    time: Annotated[
        str | None,
        Field(description="last week, March 2025, 2025-03-01..2025-03-09"),
    ] = None
    since: Moment | None = None
    until: Moment | None = None
    as_of: Moment | None = None
    include_superseded: bool = False
    faded: bool = False
    time_zone: Annotated[str | None, Field(description="default: yours")] = None


def _with_fields(name: str, base: type[BaseModel], fields: list[str], doc: str) -> Any:
    optional: dict[str, Any] = {
        field: (VALUE_TYPES[FIELDS[field].type] | None, None) for field in fields
    }
    return create_model(
        name, __base__=base, __doc__=doc, __module__=__name__, **optional
    )


# Declared fields that a caller may change.
CHANGEABLE = [name for name, field in FIELDS.items() if not field.imported]
if TYPE_CHECKING:
    FiltersRequest = _Filters
    Changes = Part
else:
    FiltersRequest = _with_fields(
        "FiltersRequest",
        _Filters,
        [name for name, field in FIELDS.items() if field.filter],
        "Conditions on the memories of an answer. Times without an offset are in the caller's time zone.",
    )
    Changes = _with_fields(
        "Changes", Part, CHANGEABLE, "New values of the fields that are set."
    )


class RankingRequest(Part):
    """A preset of the ranking, and the numbers that differ from it."""

    preset: Annotated[
        str,
        Field(description="or keyword, semantic, roaming, rrf, a configured one"),
    ] = "balanced"
    weights: Annotated[
        dict[str, Number],
        Field(
            description="of dense, keyword, exact, neighbours, relations or a signal"
        ),
    ] = {}
    min_score: Annotated[
        Number | None,
        Field(description="least confidence, 0 to 1"),
    ] = None
    mmr_lambda: Number | None = None
    reflections: Reflections = "include"
    expand: tuple[Expansion, ...] = ()
    hops: Annotated[int, Field(ge=1, le=3)] = 1
    least_strength: Number = 0.0
    embedding: tuple[Number, ...] | None = None
    embedding_model: str | None = None


class RelationChange(Part):
    """A relation to write, or with `remove` to remove."""

    from_id: Annotated[UUID, Field(alias="from")]
    to_id: Annotated[UUID, Field(alias="to")]
    type: str = DEFAULT_RELATION
    strength: Annotated[Number, Field(description="0 to 1")] = 1.0
    remove: bool = False

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)


class StoreRequest(Request, Returns[results.StoreResult]):
    """Store memories in one namespace. With `single`, errors name fields without their place in `memories`.

    With `client_session`, the answer to a store without cues says once in that session how to add them; the empty text
    stands for the sessions of a caller that names none.
    """

    memories: tuple[NewMemory, ...]
    namespace: str | None = None
    single: bool = False
    client_session: str | None = None


class RecallRequest(Request, Returns[Answer]):
    """Find memories that answer a question, or several: `query` or `queries`.

    With `client_session`, which the tool memory_recall gives, a question may become a cue of a memory that the session
    uses or stores after it.
    """

    query: str | None = Field(
        None, description="A question in plain words; * lists what is trending"
    )
    queries: Words = Field(
        (), max_length=8, description="Instead of query: up to 8 questions at once"
    )
    namespaces: NamespaceNames = Field(
        (),
        description='default: the project\'s, others only where clearly better; ["*"]: all',
    )
    limit: UpTo100 = 10
    filters: FiltersRequest = Field(default_factory=FiltersRequest)
    ranking: RankingRequest = Field(default_factory=RankingRequest)
    sort: Sort = "score"
    max_tokens: Whole | None = None
    explain: bool = False
    cursor: str | None = None
    counted: UseFlag = True
    client_session: str | None = None

    @property
    def questions(self) -> Words:
        """The questions."""
        return self.queries or (self.query or "",)


class SearchRequest(Request, Returns[Answer]):
    """Find memories by exact words."""

    query: str
    namespaces: NamespaceNames = ()
    limit: UpTo100 = 10
    filters: FiltersRequest = Field(default_factory=FiltersRequest)
    max_tokens: Whole | None = None
    cursor: str | None = None
    counted: UseFlag = True

    @property
    def questions(self) -> Words:
        """The question."""
        return (self.query,)


class ExplainRequest(Request, Returns[results.Explanation]):
    """Explain the recall of a question: the lists of both branches, all candidates, and where each one ended."""

    query: str
    namespaces: NamespaceNames = ()
    limit: UpTo100 = 10
    filters: FiltersRequest = Field(default_factory=FiltersRequest)
    ranking: RankingRequest = Field(default_factory=RankingRequest)


class ListPresetsRequest(Request, Returns[tuple[results.Preset, ...]]):
    """List the presets of the ranking: built-in ones, and those of the settings."""


class ListRequest(Request, Returns[Answer]):
    """List memories in order of time."""

    namespaces: NamespaceNames = Field((), description="default: all you may read")
    filters: FiltersRequest = Field(default_factory=FiltersRequest)
    sort: ListSort = "time_desc"
    limit: UpTo1000 = 20
    max_tokens: Whole | None = None
    cursor: str | None = None


class GetRequest(Request, Returns[results.GetResult]):
    """Read memories by id; with `forgotten`, those too that the caller could restore."""

    ids: Annotated[tuple[UUID, ...], _between(1, 100)]
    forgotten: bool = False
    client_session: str | None = None


class ResolveRequest(Request, Returns[tuple[results.ResolvedId, ...]]):
    """Find memories by the last characters of their ids."""

    endings: Annotated[Words, _between(1, 100)]


class HistoryRequest(Request, Returns[results.History]):
    """Read the changes of a memory."""

    id: UUID
    namespaces: NamespaceNames = ()


class UpdateRequest(Request, Returns[Memory]):
    """Change fields of a memory; `clear` names fields to empty, `merge` memories to be merged into it."""

    id: UUID
    changes: Changes = Field(default_factory=Changes)
    clear: Words = Field((), description="fields to empty")
    merge: Annotated[tuple[UUID, ...], _between(0, 50)] = Field(
        (),
        description="memories that this one replaces; it gets the newest text and all tags, unless given",
    )
    if_revision: Whole | None = Field(
        None, description="refuse if it changed since this revision"
    )
    namespaces: ChangedNamespaces = ()
    client_session: str | None = None


class UndoRequest(Request, Returns[results.Undone]):
    """Take back the last change of a memory, or with `redo` its last undo; only if it is at `revision`, if given."""

    id: UUID
    revision: Whole | None = None
    redo: bool = False
    namespaces: ChangedNamespaces = ()


class ForgetRequest(Request, Returns[results.ForgetResult]):
    """Forget memories by id, or those that match filters; `only` limits the filters to these ids.

    `undoes_store`: it takes back their store, so that a redo restores them.
    """

    ids: Annotated[tuple[UUID, ...], _between(0, 1_000)] = ()
    filters: FiltersRequest | None = None
    namespaces: ChangedNamespaces = Field(
        (), description="for filters; default: the project's"
    )
    erase: bool = Field(False, description="delete permanently")
    dry_run: bool = Field(False, description="only list what would be forgotten")
    only: Annotated[tuple[UUID, ...], _between(0, 1_000)] | None = None
    undoes_store: bool = False


class RelateRequest(Request, Returns[results.RelateResult]):
    """Write and remove relations."""

    relations: Annotated[tuple[RelationChange, ...], _between(1, 500)]
    namespaces: ChangedNamespaces = Field(
        (), description="where the memories are; default: all"
    )


class RenameTagRequest(Request, Returns[results.RenamedTag]):
    """Rename a tag, and those below it, on the memories of a namespace; with `undo`, take the last such call back."""

    tag: str
    to: str
    namespace: str | None = None
    undo: bool = False
    dry_run: bool = False
    lasting = True


def _from_json(value: object) -> object:
    """Return what a text of JSON means: clients pass objects on as such, or as texts."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _arguments_of_tool(value: object) -> object:
    parsed = _from_json(value)
    return parsed if isinstance(parsed, Mapping) else {}


# Arguments of a tool, empty if they are none, and what it returned.
ToolArguments = Annotated[dict[str, JsonValue], BeforeValidator(_arguments_of_tool)]
ToolResponse = Annotated[JsonValue, BeforeValidator(_from_json)]


class HookRequest(Request, Returns[results.HookAnswer]):
    """Answer an event of an assistant's session, such as UserPromptSubmit, PreToolUse or Stop.

    `directory` is the one that the assistant works in; `message` its last words, `source` what started the session. A
    call of a tool has the `tool`, its arguments as `tool_input`, and afterwards what it returned or the `error`; an
    edit may have a `path` with the new `text`, or the `content` of a new file, or a patch as `command` instead. With
    `client_session`, a question of that session may become a cue of a memory that the prompt or the message quotes.
    """

    event: str = "UserPromptSubmit"
    prompt: LongText = ""
    session: str = ""
    directory: str = ""
    message: LongText = ""
    source: str = ""
    path: str = ""
    text: LongText = ""
    content: LongText = ""
    command: LongText = ""
    tool: str = ""
    tool_input: ToolArguments = {}
    tool_response: ToolResponse = None
    error: LongText = ""
    client_session: str | None = None


class StatementsRequest(Request, Returns[tuple[results.Statement, ...]]):
    """List what the caller said in a project, or everywhere, and was not stored; sentences to `drop` are forgotten."""

    namespace: str | None = None
    everywhere: bool = False
    drop: tuple[str, ...] = ()


class PauseRequest(Request, Returns[results.Paused]):
    """Silence the caller's hooks for some minutes, with `session` in the last session of the project alone."""

    minutes: Annotated[Whole, _between(0, 10_080)] = 60
    session: bool = False


class InjectedRequest(Request, Returns[tuple[results.InjectedText, ...]]):
    """Read what hooks injected, newest first: the caller's own, or with `everyone`, as the owner, of every author.

    `session` is the name of a session, or the beginning of it.
    """

    namespaces: NamespaceNames = ()
    session: str | None = None
    everyone: bool = False
    limit: UpTo1000 = 20


class StatusRequest(Request, Returns[results.Status]):
    """Read the state of the memory; with `check_model`, the embedding model is asked for a vector."""

    check_model: bool = True


class StatsRequest(Request, Returns[results.Stats]):
    """Count the memories of namespaces."""

    namespaces: NamespaceNames = ()


class ListNamespacesRequest(Request, Returns[tuple[Namespace, ...]]):
    """List namespaces, or with `deleted` those that were deleted."""

    deleted: bool = False


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


class DeleteNamespaceRequest(Request, Returns[results.DeletedNamespace]):
    """Delete a namespace; it can be restored for a while."""

    name: str


class MergeNamespacesRequest(Request, Returns[results.MergedNamespaces]):
    """Move all memories of a namespace into another, and delete it; with `undo`, take that back."""

    name: str
    into: str
    undo: bool = False
    dry_run: bool = False
    lasting = True


class EraseNamespaceRequest(Request, Returns[results.ErasedNamespaces]):
    """Erase a namespace permanently; with `only`, nothing unless it would erase exactly these ids."""

    name: str
    dry_run: bool = False
    only: tuple[UUID, ...] | None = None
    lasting = True


class RestoreNamespaceRequest(Request, Returns[str]):
    """Restore a deleted namespace. The result is its name."""

    name: str


class CreateTokenRequest(Request, Returns[results.CreatedToken]):
    """Create a token; `grants` are written namespace:role or pattern:role, `expires` 12h, 90d, 8w, 1y or never."""

    name: str
    grants: Words = ()
    owner: bool = False
    namespace: str | None = None
    agent: str | None = None
    expires: str = TOKEN_PERIOD


class InviteRequest(Request, Returns[results.Invitation]):
    """Invite a person by a code that can be exchanged once, `within` a period, for a token (CreateTokenRequest)."""

    name: str
    grants: Words = ()
    namespace: str | None = None
    agent: str | None = None
    expires: str = TOKEN_PERIOD
    within: str = "3d"


class JoinRequest(Request, Returns[results.Membership]):
    """Exchange the code of an invitation: its token gets the secret with this digest (hexadecimal).

    The caller makes the secret, so that it travels nowhere, and a repeated request has no further effect.
    """

    code: str
    digest: str = Field(pattern="^[0-9a-f]{64}$")


class CreateLinkRequest(Request, Returns[results.Link]):
    """Create a link that signs the caller in to the console, once, within two minutes."""


class CallerRequest(Request, Returns[results.CallerInfo]):
    """Describe the caller, as `folklore doctor` shows it."""


class ChecksRequest(Request, Returns[tuple[results.Check, ...]]):
    """Check the caller's token, its grants and the memory; for the owner also the jobs and the backups."""


class BackupsRequest(Request, Returns[tuple[results.BackupInfo, ...]]):
    """List the backups of the database that the server can see, newest first."""


class SizesRequest(Request, Returns[results.Sizes]):
    """Read the sizes of the database and its tables."""


class JobsRequest(Request, Returns[results.JobsInfo]):
    """Read the last run of each background job."""


class RunJobsRequest(Request, Returns[tuple[results.RunReport, ...]]):
    """Run background jobs now, due or not; without `jobs`, those that the server runs. `dry_run` counts the work."""

    jobs: Words = ()
    dry_run: bool = False
    lasting = True


class EmbeddingsRequest(Request, Returns[results.EmbeddingsInfo]):
    """Read the embedding models and their coverage; counts exactly."""


class BackfillRequest(Request, Returns[results.BackfillResult]):
    """Make the pending embeddings in the active model, at most `rate` a second."""

    rate: Rate = None
    lasting = True


class SwitchModelRequest(Request, Returns[results.SwitchResult]):
    """Switch to the model of the server's settings with these properties; `force` switches to a worse one too."""

    provider: Provider | None = None
    model: str | None = None
    url: str | None = None
    force: bool = False
    rate: Rate = None
    lasting = True


class RestoreModelRequest(Request, Returns[results.SwitchResult]):
    """Switch back to the previous model; `at_once` before its missing embeddings are made."""

    at_once: bool = False
    rate: Rate = None
    lasting = True


class DropModelRequest(Request, Returns[results.DropResult]):
    """Delete the embeddings of a model, given by its name or id, or by its role."""

    model: str | None = None
    role: Literal["previous", "next"] | None = None
    lasting = True


class RecommendModelRequest(Request, Returns[results.Recommendation]):
    """Measure on at most `sample` memories, for so many `seconds`, what a switch to MiniLM, or from it, would gain."""

    sample: Annotated[int, Field(ge=1, le=2000)] = 200
    seconds: Annotated[Number, Field(ge=0)] = 60.0
    lasting = True


class ListTokensRequest(Request, Returns[tuple[Token, ...]]):
    """List tokens; with `all`, those too that expired or were revoked."""

    principal: str | None = None
    all: bool = False


class RevokeTokensRequest(Request, Returns[tuple[results.RevokedToken, ...]]):
    """Revoke tokens by id, or all of a principal."""

    ids: tuple[UUID, ...] = ()
    principal: str | None = None


class AuditRequest(Request, Returns[tuple[AuditEntry, ...]]):
    """Read the audit log, newest first; `since` is a period such as 7d, `after` the last entry of the page before."""

    namespaces: NamespaceNames = ()
    principal: str | None = None
    denied: bool = False
    action: str | None = None
    since: str | None = None
    after: UUID | None = None
    limit: UpTo1000 = 50


class LogRequest(Request, Returns[tuple[results.Event, ...]]):
    """Read who stored, changed and forgot memories, newest first; with `mine`, only the caller's own writes."""

    namespaces: NamespaceNames = ()
    kinds: Words = ()
    tags: Words = ()
    author: str | None = None
    time: str | None = None
    mine: bool = False
    limit: UpTo1000 = 50


class OverviewRequest(Request, Returns[results.Overview]):
    """Count what happened in the last `days`, in the caller's time zone, and what wants attention."""

    namespaces: NamespaceNames = ()
    days: Annotated[Whole, _between(1, 365)] = 30


class ActivityRequest(Request, Returns[results.Activity]):
    """Read writes and recalls, newest first: the latest, those `before` a cursor or, oldest first, those `after` one.

    `actions` limits them to some, such as store, forget or recall. Of one author, recalls of the last 30 days are read.
    """

    namespaces: NamespaceNames = ()
    author: str | None = None
    actions: tuple[results.Action, ...] = ()
    after: str | None = None
    before: str | None = None
    limit: UpTo200 = 50


class UsesRequest(Request, Returns[tuple[results.Use, ...]]):
    """Read in which answers a memory was, and in which texts that hooks injected, newest first.

    Injected texts are the caller's own; the owner reads those of every author.
    """

    id: UUID
    namespaces: NamespaceNames = ()
    limit: UpTo200 = 50


class ReviewRequest(Request, Returns[results.Review]):
    """List memories of a namespace that want a decision for a reason, near-duplicates page by page (`after`)."""

    reason: results.ReviewReason
    namespace: str | None = None
    after: UUID | None = None
    unused_days: Annotated[Whole, _between(1, 36_500)] = 180
    limit: UpTo1000 = 50


class ExportRequest(Request):
    """Export namespaces, or all that the caller may read; the result is a stream of JSON Lines."""

    namespaces: NamespaceNames = ()
    embeddings: bool = False


class PagesRead(Part):
    """Pages of one origin that were read before an import, as `transfer.formats.pages.Pages` describes them."""

    origin: str
    below: Words
    ids: frozenset[UUID]
    unread: frozenset[str]


class ImportRequest(Request):
    """Import lines into `namespace`, or each into the namespace that it names. Its counts are added to `report`."""

    namespace: str | None = None
    on_conflict: OnConflict = "skip"
    dry_run: bool = False
    pages: PagesRead | None = None
    report: Report = Field(default_factory=Report)


# Every operation whose result is one value, by name.
OPERATIONS: Mapping[str, type[Request]] = {
    request.operation: request
    for request in Request.__subclasses__()
    if issubclass(request, Returns)
}


# Requests and results as JSON, for the HTTP API and its client

Parsed = TypeVar("Parsed", bound=Part)


def read_request(kind: type[Parsed], body: bytes) -> Parsed:
    """Parse a request. Raises InvalidInput that names the first wrong field, never its value."""
    try:
        return kind.model_validate_json(replace_lone_surrogates(body) or b"{}")
    except ValidationError as error:
        raise InvalidInput(*field_errors(error)[0]) from None


def request_json(request: Request) -> str:
    """Serialize a request, without what was not given. Raises InvalidInput for an argument that is not UTF-8."""
    try:
        return request.model_dump_json(exclude_unset=True, by_alias=True)
    except ValueError:
        raise InvalidInput(
            "arguments",
            "have text that is not UTF-8.",
            hint="Convert it, e.g. by `iconv`.",
        ) from None


def result_json(request: Request, result: object) -> Any:
    """Serialize the result of a request."""
    return _result_type(type(request)).dump_python(result, mode="json")


def read_result(request: Request, value: object) -> Any:
    """Parse the result of a request from JSON values."""
    return _result_type(type(request)).validate_python(value)


@cache
def _result_type(request: type[Request]) -> TypeAdapter[Any]:
    [declared] = [
        base
        for base in request.__orig_bases__  # type: ignore[attr-defined]
        if getattr(base, "__origin__", None) is Returns
    ]
    return TypeAdapter(get_args(declared)[0])
