"""Values that every room uses: frozen, without a database, an embedding model or a clock."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, get_type_hints
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, ConfigDict, WithJsonSchema

from folklore.callers import Role
from folklore.stale import Stale as Stale

JsonObject = Mapping[str, object]
StoreStatus = Literal["stored", "duplicate", "superseded_old"]
TagMode = Literal["any", "all"]
TagMatch = Literal["prefix", "exact"]
Match = Literal["strong", "fair", "weak"]
Sort = Literal["score", "time_asc", "time_desc", "updated_asc", "updated_desc"]
# always: a question in any project is asked in the namespace too.
Shared = Literal["never", "always"]
# When a request over HTTP needs a token: as soon as a token exists, always, never.
Demand = Literal["auto", "always", "never"]
SecretPolicy = Literal["refuse", "redact", "off"]
FieldType = Literal[
    "text",
    "kind",
    "tags",
    "paths",
    "phrases",
    "language",
    "share",
    "integer",
    "time",
    "json",
    "flag",
    "blobs",
]

DEFAULT_KIND = "note"
_KINDS = "note, semantic, episodic, identity, procedural, decision, bug"
DEFAULT_LANGUAGE = "english"
DEFAULT_RELATION = "relates_to"
# JSON that becomes one of these values may have no other keys, and errors never repeat a value.
_STRICT = ConfigDict(extra="forbid", hide_input_in_errors=True)


def _iso_time(value: object) -> object:
    if value is None or isinstance(value, datetime):
        return value
    try:  # pydantic would take "2024" for seconds since 1970
        return datetime.fromisoformat(str(value).strip())
    except ValueError:
        raise ValueError(
            "must be an ISO 8601 time such as 2025-06-30 or 2025-06-30T09:30:00+02:00"
        ) from None


# Postgres has neither smaller nor larger floats of four bytes.
_SMALLEST = 2.0**-126
_LARGEST = 2.0**127


def number(value: float) -> float:
    """Return a number that Postgres can hold, 0 for -0. Raises ValueError."""
    if value != 0 and not _SMALLEST <= abs(value) <= _LARGEST:
        raise ValueError(f"must be 0 or an ordinary number, got {value}")
    return value + 0.0


def _whole(value: int) -> int:
    if abs(value) >= 2**31:
        raise ValueError("must be between -2147483647 and 2147483647")
    return value


Number = Annotated[float, AfterValidator(number)]
Whole = Annotated[int, AfterValidator(_whole)]
Time = Annotated[
    datetime, BeforeValidator(_iso_time), WithJsonSchema({"type": "string"})
]


@dataclass(frozen=True, slots=True)
class Namespace:
    """A shared set of memories with its own grants."""

    id: UUID
    name: str
    language: str = DEFAULT_LANGUAGE
    description: str | None = None
    shared: Shared = "never"
    memories: int | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    deleted_at: datetime | None = None
    deleted_by: str | None = None


@dataclass(frozen=True, slots=True)
class NamespaceStatus:
    """Number of memories without the forgotten ones, of pending embeddings, each up to 50,000; the caller's role."""

    name: str
    memories: int
    pending_embeddings: int = 0
    shared: Shared = "never"
    role: Role = "reader"


@dataclass(frozen=True, slots=True)
class NamespaceStats:
    """Exact counts of one namespace, `memories` without the forgotten ones; `without_vector` counts pending embeddings.

    `injected` counts the notes that hooks gave to assistants; their tokens; and how many were used.
    """

    name: str
    memories: int
    forgotten: int
    superseded: int
    without_vector: int
    sessions: int
    characters: int
    oldest: datetime | None
    newest: datetime | None
    injected: int = 0
    injected_tokens: int = 0
    injected_used: int = 0


JobOutcome = Literal["done", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class JobState:
    """The row of a job. `done` counts the work of the last run, or of the present one so far."""

    name: str
    holder: str | None = None
    leased_until: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    seconds: float | None = None
    outcome: JobOutcome | None = None
    done: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None
    next_due: datetime | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A relation from a new memory to the stored memory `id`."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    id: UUID
    type: str = DEFAULT_RELATION
    strength: Number = 1.0


@dataclass(frozen=True, slots=True)
class Field:
    """Declaration of one field of a memory; a column of the same name holds it.

    Requests, checks, SQL column lists, filters, revisions, exports, tool schemas and command options follow from it.
    """

    type: FieldType
    about: str = (
        ""  # one line for tool schemas and --help; empty where the name says enough
    )
    limit: int = 0  # text, phrases: most characters; integer: largest value
    least: int = 0  # integer: smallest value
    most: int = 0  # phrases: how many
    default: object = None
    clearable: bool = True  # an update may take the value away
    indexed: bool = False  # search reads it: a change writes the postings again
    filter: bool = (
        False  # recall has a filter of this name, which compares for equality
    )
    concise: bool = False  # concise answers show it, unless it has its default
    imported: bool = False  # only an import may state it
    stated: bool = True  # people and models state it; else a process in the working copy does, and no answer shows it
    argument: bool = False  # memory_store has an argument of this name, for one memory
    option: str | None = (
        None  # its own option of `folklore store`; a field without one is given by --field
    )
    name: str = ""


@dataclass(frozen=True, slots=True)
class Stated:
    """Fields that the author of a memory states. This is the only place where a field is declared."""

    content: Annotated[
        str,
        Field("text", "One self-contained fact", 32_000, clearable=False, indexed=True),
    ]
    summary: Annotated[
        str | None,
        Field("text", "A shorter wording for tight budgets", 2_000, indexed=True),
    ] = None
    kind: Annotated[
        str,
        Field(
            "kind",
            _KINDS,
            default=DEFAULT_KIND,
            clearable=False,
            concise=True,
            argument=True,
            option="--kind",
        ),
    ] = DEFAULT_KIND
    tags: Annotated[
        tuple[str, ...],
        Field(
            "tags",
            default=(),
            indexed=True,
            concise=True,
            argument=True,
            option="--tag",
        ),
    ] = ()
    cues: Annotated[
        tuple[str, ...],
        Field(
            "phrases",
            "When it is needed: 3 to 6 phrases as somebody would type them then: "
            "the task, the symptom, the question; other words than content",
            limit=120,
            most=8,
            default=(),
            indexed=True,
            argument=True,
            option="--cue",
        ),
    ] = ()
    learned_cues: Annotated[
        tuple[str, ...],
        Field(
            "phrases",
            "Cues that were questions, those too that were removed since",
            limit=120,
            most=16,
            default=(),
            imported=True,
            stated=False,
        ),
    ] = ()
    source: Annotated[
        str | None,
        Field(
            "text",
            "Where it comes from",
            1_000,
            indexed=True,
            concise=True,
            argument=True,
            option="--source",
        ),
    ] = None
    session: Annotated[
        str | None,
        Field(
            "text",
            "What it belongs to; a session keeps the order of its memories",
            200,
            filter=True,
            argument=True,
            option="--session",
        ),
    ] = None
    position: Annotated[
        int | None, Field("integer", "Place in its session", 2**31 - 1, imported=True)
    ] = None
    occurred_at: Annotated[
        Time | None,
        Field(
            "time",
            "When it was true, if not now",
            indexed=True,
            argument=True,
            option="--occurred-at",
        ),
    ] = None
    importance: Annotated[
        Number | None, Field("share", "0 to 1", argument=True, option="--importance")
    ] = None
    confidence: Annotated[Number | None, Field("share", "0 to 1")] = None
    priority: Annotated[int | None, Field("integer", "1 (first) to 4", 4, 1)] = None
    language: Annotated[
        str | None,
        Field(
            "language",
            "Of the text; default: detected, else the namespace's",
            clearable=False,
            indexed=True,
        ),
    ] = None
    expires_at: Annotated[Time | None, Field("time", "When it stops being true")] = None
    paths: Annotated[
        tuple[str, ...],
        Field("paths", "Files or folders it is about", default=(), option="--path"),
    ] = ()
    commit: Annotated[str | None, Field("text", "The commit it is about", 100)] = None
    blobs: Annotated[
        tuple[str, ...],
        Field(
            "blobs",
            "For each file git's id of the content it is about",
            default=(),
            stated=False,
        ),
    ] = ()
    metadata: Annotated[
        JsonObject | None, Field("json", "A JSON object of at most 8 KB", 8 * 1024)
    ] = None
    pinned: Annotated[
        bool,
        Field(
            "flag",
            "Never expires",
            default=False,
            clearable=False,
            filter=True,
            concise=True,
            option="--pinned",
        ),
    ] = False


_HINTS = get_type_hints(Stated, include_extras=True)
# The declared fields by name, in their order.
FIELDS: Mapping[str, Field] = MappingProxyType(
    {name: replace(hint.__metadata__[0], name=name) for name, hint in _HINTS.items()}
)
# Those that people and models see.
VISIBLE = tuple(name for name, field in FIELDS.items() if field.stated)


@dataclass(frozen=True, slots=True)
class Draft(Stated):
    """A memory as its author states it, before it is checked, embedded and stored."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    idempotency_key: str | None = None
    supersedes: UUID | None = None
    supersede_reason: str | None = None
    related: tuple[Link, ...] = ()
    # Only an import may set these.
    id: UUID | None = None
    author: str | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An entry of a batch that has not the form of a memory: the wrong field, and the reason."""

    field: str
    reason: str


def order_time(
    occurred_at: datetime | None, created_at: datetime, updated_at: datetime
) -> datetime:
    """Return the time of a memory for order and age; what was in the future at its last change counts as of then."""
    return min(occurred_at or created_at, updated_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(Stated):
    """A stored memory."""

    id: UUID
    namespace: str
    language: str
    created_at: datetime
    updated_at: datetime
    author: str
    agent: str | None = None
    quality: float | None = None
    forgotten_at: datetime | None = None
    superseded_at: datetime | None = None
    superseded_by: UUID | None = None
    last_recalled_at: datetime | None = None
    recall_count: int = 0
    revision: int = 1
    # Who changed the text last, and when, if that is another one than the author.
    changed_by: str | None = None
    changed_at: datetime | None = None

    @property
    def learned(self) -> tuple[str, ...]:
        """The cues that were learned from questions."""
        return tuple(cue for cue in self.cues if cue in self.learned_cues)

    @property
    def when(self) -> datetime:
        """The time it was true if its author stated one, else the time it was stored."""
        return self.occurred_at or self.created_at

    @property
    def order_time(self) -> datetime:
        """The time that counts for order and age: `when`, for one in the future the time of storing.

        The statements compute the same: `{m.order_time}` of db/sql_loader.py.
        """
        return order_time(self.occurred_at, self.created_at, self.updated_at)

    @property
    def age(self) -> tuple[datetime, datetime, UUID]:
        """The key that sorts memories from the oldest to the newest: the time of the fact, then of the store."""
        return self.order_time, self.created_at, self.id


@dataclass(frozen=True, slots=True)
class Similar:
    """A stored memory whose text is similar to a new one, with the cosine similarity of the two."""

    id: UUID
    similarity: float
    content: str
    author: str
    changed_by: str | None = None


@dataclass(frozen=True, slots=True)
class OnSubject:
    """A memory that is on the subject of another one, with its time for order, and how nearly it is."""

    id: UUID
    when: datetime
    content: str
    likeness: float


@dataclass(frozen=True, slots=True)
class SupersededMemory:
    """A memory that a call superseded, so that recall leaves it out from now on."""

    id: UUID
    content: str
    author: str


@dataclass(frozen=True, slots=True)
class Replaced:
    """An older memory, with its time for order, whose subject a newer one is on."""

    id: UUID
    when: datetime


@dataclass(frozen=True, slots=True)
class StoreItem:
    """Outcome for one draft of a batch, with similar memories that were stored before.

    `same_subject` are older ones that it may replace, `superseded` is the one that it does. `cues` is "added" if a
    known text got further cues.
    """

    id: UUID
    status: StoreStatus
    similar: tuple[Similar, ...] = ()
    same_subject: tuple[OnSubject, ...] = ()
    cues: Literal["added"] | None = None
    superseded: SupersededMemory | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """A typed, directed relation between two memories, with a strength from 0 to 1."""

    from_id: UUID
    type: str
    to_id: UUID
    strength: float = 1.0
    author: str | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Revision:
    """Change of a memory: its author, its time, and the former values of the changed columns.

    `revision` is the memory's number before the change. `undoes` is that of the change which an undo takes back, 0 for
    the store of the memory.
    """

    memory_id: UUID
    revision: int
    action: str
    author: str
    changed_at: datetime
    before: JsonObject
    agent: str | None = None
    reason: str | None = None
    undoes: int | None = None

    @property
    def undoes_store(self) -> bool:
        """True for a forget that took back the store of the memory."""
        return self.undoes == 0


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on the memories of an answer. Both branches apply them before their limit.

    `equal` holds the declared fields that must have a value. `metadata` is a predicate of the SQL/JSON path language,
    made by memory/context/filters.py. `reflections`: True for reflections alone, False for none.
    """

    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    tag_mode: TagMode = "any"
    tag_match: TagMatch = "prefix"
    exclude_tags: tuple[str, ...] = ()
    source_prefix: str | None = None
    author: str | None = None
    paths: tuple[str, ...] = ()
    metadata: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    include_superseded: bool = False
    faded: bool = False
    reflections: bool | None = None
    equal: Mapping[str, object] = field(default_factory=dict)
    # A tsquery that every memory must satisfy: what the question excludes.
    negations: str | None = None
    # The time expression that gave `since` and `until`: it gives other times later, and a cursor compares expressions.
    time_expression: str | None = field(default=None, compare=False)

    @property
    def empty(self) -> bool:
        """True without any condition."""
        return self == Filters()

    @property
    def selective(self) -> bool:
        """True with a condition that excludes memories; tag options and `as_of` alone do not."""
        how = {
            "tag_mode": "any",
            "tag_match": "prefix",
            "as_of": None,
            "include_superseded": False,
        }
        return replace(self, **how) != Filters()  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Degraded:
    """A branch that failed, and the reason."""

    branch: str
    reason: str


@dataclass(frozen=True, slots=True)
class Variant:
    """A near-duplicate that a newer memory represents in an answer; `differs` are its words that the other lacks."""

    id: UUID
    namespace: str
    when: datetime
    author: str
    differs: str
    changed_by: str | None = None


@dataclass(frozen=True, slots=True)
class Recalled:
    """A memory in an answer.

    `score` is the confidence that it answers the question, and `match` says how great that is; a search has neither.
    `expanded` names the expansion that added it: relations or entities. `elsewhere`: it is not of the project in which
    the question was asked. `replaces` are older ones on its subject. `contradicts` are visible memories with that
    relation to it, in either direction. `queries` are the numbers, from 0, of the questions that it answers, if there
    were several. `passage` has the first character of the passage of a long text that answers the question best, and
    the one after its last.
    """

    memory: Memory
    score: float | None = None
    match: Match | None = None
    explain: JsonObject | None = None
    expanded: str | None = None
    elsewhere: bool = False
    variants: tuple[Variant, ...] = ()
    replaces: tuple[Replaced, ...] = ()
    contradicts: tuple[UUID, ...] = ()
    queries: tuple[int, ...] = ()
    passage: tuple[int, int] | None = None
    stale: tuple[Stale, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of recall, search and list, best first.

    `found_by` counts the memories that each branch found: dense, keyword, both, or neither (a neighbour, or expanded).
    """

    memories: tuple[Recalled, ...]
    searched: tuple[str, ...]
    degraded: tuple[Degraded, ...] = ()
    truncated: bool = False
    cursor: str | None = None
    note: str | None = None
    explain: JsonObject | None = None
    found_by: Mapping[str, int] = field(default_factory=dict)
