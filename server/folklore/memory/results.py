"""Results of the operations, as frozen values that JSON can carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from folklore.errors import FolkloreError
from folklore.model import (
    Degraded,
    JobOutcome,
    JobState,
    Memory,
    NamespaceStats,
    NamespaceStatus,
    Relation,
    Revision,
    Role,
    Stale,
    StoreItem,
)

# From a smaller sample nothing is concluded about a model.
SMALLEST_SAMPLE = 5

ReviewReason = Literal["contradiction", "similar", "unused", "cues"]
# Actions of events: writes of the text or the fields of memories, and recalls.
Action = Literal[
    "store",
    "import",
    "update",
    "merge",
    "retag",
    "supersede",
    "forget",
    "restore",
    "undo",
    "recall",
]
# The same as people say it: stored 3 memories.
DONE: Mapping[str, str] = {
    "store": "stored", "import": "imported", "update": "changed", "merge": "merged", "retag": "retagged",
    "supersede": "superseded", "forget": "forgot", "restore": "restored", "undo": "undid a change of",
    "recall": "recalled",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RefusedMemory:
    """A memory of a batch that was not stored: its place, the wrong field, the reason, and the code of the error."""

    index: int
    field: str
    reason: str
    code: str

    @classmethod
    def of(cls, index: int, error: FolkloreError) -> RefusedMemory:
        """Read the field from the message of an error: `memories[2].kind: …` or `kind: …`."""
        field, _, reason = (
            error.message.removeprefix(f"memories[{index}]").lstrip(".").partition(": ")
        )
        return cls(
            index, field, f"{reason} {error.hint}" if error.hint else reason, error.code
        )


@dataclass(frozen=True, slots=True)
class StoreResult:
    """Outcome for each memory that was stored, in the order given, and the refused ones.

    `note` reports what was stored otherwise than given, and what could not be checked.
    """

    namespace: str
    stored: tuple[StoreItem, ...]
    note: str | None = None
    refused: tuple[RefusedMemory, ...] = ()


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


@dataclass(frozen=True, slots=True)
class ResolvedId:
    """The end of an id, and the memories that it may mean, newest first; at most six are shown."""

    ending: str
    found: tuple[Memory, ...]


@dataclass(frozen=True, slots=True)
class History:
    """A memory as it is now, and its changes, the last one first."""

    memory: Memory
    revisions: tuple[Revision, ...]


@dataclass(frozen=True, slots=True)
class Undone:
    """A memory after an undo, and the change that was taken back.

    `superseded` are the memories that forgetting it had restored, and that it supersedes again.
    """

    memory: Memory
    revision: Revision
    superseded: tuple[UUID, ...] = ()


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


@dataclass(frozen=True, slots=True)
class FailedRelation:
    """A relation that could not be written, the reason, and the code of the error."""

    relation: Relation
    reason: str
    code: str


@dataclass(slots=True)
class RelateResult:
    """Outcome for each relation; `updated` existed and took the new strength."""

    created: list[Relation] = field(default_factory=list)
    updated: list[Relation] = field(default_factory=list)
    removed: list[Relation] = field(default_factory=list)
    failed: list[FailedRelation] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """Text for the assistant, empty for silence; with `asks` it is to do something before its turn ends.

    With `holds` it is to read the text before it puts a question to the person. `arguments` take the place of those of
    the tool that it is about to call.
    """

    text: str = ""
    asks: bool = False
    holds: bool = False
    arguments: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """Sentence that a person said in a session of a project, and that was not stored."""

    sentence: str
    said_at: datetime
    session: str
    project: str


@dataclass(frozen=True, slots=True)
class Paused:
    """Until when hooks are silent, and the session if it is not all."""

    until: datetime
    session: str | None = None


@dataclass(frozen=True, slots=True)
class InjectedMemory:
    """A memory in an injected text, the tokens of its note, and its first use by the caller afterwards."""

    id: UUID
    namespace: str
    tokens: int
    used: str | None = None
    used_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class InjectedText:
    """Text that a hook injected into a session, as it was given; notes of erased memories are missing."""

    id: UUID
    at: datetime
    session: str
    author: str
    event: str
    text: str
    tokens: int
    memories: tuple[InjectedMemory, ...]


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


@dataclass(frozen=True, slots=True)
class Stats:
    """Exact counts; without a reachable `model`, `without_vector` is not meaningful."""

    namespaces: tuple[NamespaceStats, ...]
    model: str | None
    engine: str


@dataclass(frozen=True, slots=True)
class RenamedTag:
    """Tags that were renamed in a namespace, or would be, each with its new name, and the number of memories.

    `kept` counts memories that an undo left as they are, since they were changed in between.
    """

    namespace: str
    tags: Mapping[str, str]
    memories: int
    kept: int = 0


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


@dataclass(frozen=True, slots=True)
class DeletedNamespace:
    """A namespace that was deleted, and how long it can be restored."""

    name: str
    restorable_for: timedelta


@dataclass(frozen=True, slots=True)
class ErasedNamespaces:
    """Namespaces of one name that were erased, or would be, and the memories in them.

    `remaining` counts those of that name that were deleted before and stay restorable.
    """

    name: str
    memories: int
    remaining: int
    ids: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class CreatedToken:
    """A new token. `secret` is shown only here; `created` are namespaces that were made for it."""

    id: UUID
    principal: str
    secret: str
    expires_at: datetime | None
    created: tuple[str, ...] = ()
    usable: bool = True  # once the database has the role for requests with a token


@dataclass(frozen=True, slots=True)
class Invitation:
    """A new invitation. `code` is shown only here; `id` is that of its token, which ends at `expires_at`."""

    id: UUID
    principal: str
    code: str
    valid_until: datetime
    expires_at: datetime | None
    created: tuple[str, ...] = ()
    usable: bool = True


@dataclass(frozen=True, slots=True)
class Membership:
    """The principal of the token that an invitation was exchanged for."""

    principal: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link to the console. `code` is shown only here."""

    code: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class CallerInfo:
    """The caller as the server sees it, and the version and time of the server.

    `namespace` is the project of the request, `role` the caller's role there: None without one. `exists` is False also
    if the caller may not see it.
    """

    principal: str
    owner: bool
    grants: tuple[str, ...]
    version: str
    at: datetime
    may_write: bool
    agent: str | None = None
    expires_at: datetime | None = None
    token: UUID | None = None
    namespace: str | None = None
    role: Role | None = None
    exists: bool = False


# By so much the clocks of two servers may differ.
CLOCKS_DIFFER = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class JobsInfo:
    """The rows of background jobs, the names of those that the server runs, and its time."""

    jobs: tuple[JobState, ...]
    scheduled: tuple[str, ...]
    at: datetime

    def row(self, job: str) -> JobState | None:
        """Return the row of a job; None if it never ran."""
        return next((row for row in self.jobs if row.name == job), None)

    def is_ahead(self, job: str) -> bool:
        """Return True if the last run of a job lies in the future: a clock was ahead when it ended."""
        row = self.row(job)
        ended = None if row is None else row.finished_at
        return ended is not None and ended > self.at + CLOCKS_DIFFER

    def state(self, job: str) -> str:
        """Return running, abandoned (its runner was killed), waiting, off, or the outcome of the last run."""
        row = self.row(job)
        scheduled = job in self.scheduled
        if row is not None and row.holder is not None:
            if row.leased_until is not None and row.leased_until >= self.at:
                return "running"
            return "abandoned"
        if row is None or row.outcome is None:
            return "waiting" if scheduled else "off"
        if scheduled:
            return row.outcome
        return f"{row.outcome} (off)"


@dataclass(frozen=True, slots=True)
class RunReport:
    """The result of a run. `planned`: a dry run; `busy`: another run holds the job, or it is not due; `lost`: another
    process took the job over, because this one did not renew its lease in time.
    """

    job: str
    outcome: JobOutcome | Literal["planned", "busy", "lost"]
    done: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """Outcome of one check of `folklore doctor`. `hint` is the next step."""

    name: str
    status: Literal["ok", "warning", "failed", "skipped"]
    detail: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class BackupInfo:
    """A backup file: the memories in it, its size in bytes, and when a copy restored from it was compared."""

    name: str
    created_at: datetime
    memories: int
    size: int
    verified_at: datetime | None = None


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


@dataclass(frozen=True, slots=True)
class BackfillResult:
    """The model of a backfill, the embeddings made, and the number of texts without a word that it knows."""

    model: str
    made: int
    without_known_word: int


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


@dataclass(frozen=True, slots=True)
class DropResult:
    """A model that was deleted, and the number of its embeddings."""

    model: str
    dropped: int


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


@dataclass(frozen=True, slots=True)
class RevokedToken:
    """A token that was revoked, and its principal."""

    id: UUID
    principal: str


@dataclass(frozen=True, slots=True)
class DayCounts:
    """A day in the caller's time zone, and the numbers of memories that were stored and recalled on it."""

    day: date
    stored: int
    recalled: int


@dataclass(frozen=True, slots=True)
class AuthorChanges:
    """An author, an action, and the number of memories that it changed."""

    author: str
    action: str
    memories: int


@dataclass(frozen=True, slots=True)
class Attention:
    """Counts of what wants attention in a namespace. They stop at 100, pending embeddings at 50,000.

    `similar` are those among the newest memories that are near-duplicates of an older one. Memories `tied` to files can
    be stale, which a process with the working copy finds out.
    """

    namespace: str
    contradictions: int
    unused: int
    tied: int
    pending_embeddings: int = 0
    similar: int = 0


@dataclass(frozen=True, slots=True)
class Overview:
    """Numbers of the days, oldest first; changes of the last seven days by author; what wants attention.

    `failed_jobs` are background jobs whose last run failed, for the owner alone.
    """

    days: tuple[DayCounts, ...]
    changes: tuple[AuthorChanges, ...]
    attention: tuple[Attention, ...]
    failed_jobs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """Write or recall of `amount` memories of one namespace; `memories` are the first that the caller may read.

    An answer with memories of several namespaces is an event in each, with the same id. `ids` are all memories of a
    write, in a log of the caller's own writes.
    """

    id: UUID
    at: datetime
    author: str
    action: str
    amount: int
    namespace: str
    memories: tuple[Memory, ...]
    agent: str | None = None
    ids: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class Activity:
    """Events, and cursors: `after` the latest ones that were given, `before` the earliest.

    Of a page before another, only `before` is given; of a feed only `after`. With `more`, others follow in the same
    direction.
    """

    events: tuple[Event, ...]
    after: str | None = None
    before: str | None = None
    more: bool = False


@dataclass(frozen=True, slots=True)
class Use:
    """Memory in an answer (`recall`) or in a text that a hook injected (`injection`), and its rank there, from 1.

    `session` is that of the server or of the assistant; `used` the first use of an injected memory afterwards.
    """

    id: UUID
    at: datetime
    kind: Literal["recall", "injection"]
    author: str
    rank: int
    score: float | None = None
    session: str | None = None
    used: str | None = None
    used_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A memory, or two of which the older comes first, that want a decision.

    `similarity` is that of near-duplicates. Stale memories have the files that changed; a process that has the working
    copy finds them.
    """

    reason: ReviewReason | Literal["stale"]
    memories: tuple[Memory, ...]
    similarity: float | None = None
    stale: tuple[Stale, ...] = ()


@dataclass(frozen=True, slots=True)
class Review:
    """Memories of a namespace that want a decision. `after` continues; None at the end."""

    namespace: str
    items: tuple[ReviewItem, ...]
    after: UUID | None = None


@dataclass(frozen=True, slots=True)
class Preset:
    """A preset of the ranking with its numbers, and what the setting `ranking.presets` holds for it."""

    name: str
    numbers: Mapping[str, float]
    setting: Mapping[str, Any]


# Where a candidate ended: in the answer, on the next page, represented by another one, without a place among the
# results, below the confidence that is shown, left out as a reflection too many, or never read for its low rank.
Stage = Literal[
    "answer",
    "next page",
    "grouped",
    "below the limit",
    "low confidence",
    "reflection",
    "not read",
]


@dataclass(frozen=True, slots=True)
class BranchHit:
    """Memory in the list of a branch: its score, and the cosine or the weight of the words that it holds."""

    id: UUID
    rank: int
    score: float
    raw: float


@dataclass(frozen=True, slots=True)
class BranchList:
    """The list of a branch, best first, the path of its search, and its milliseconds."""

    branch: str
    path: str
    milliseconds: float
    hits: tuple[BranchHit, ...]


@dataclass(frozen=True, slots=True)
class ExplainedCandidate:
    """Candidate, its place in the answer, and where it ended; `represented_by` is the newest of its near-duplicates.

    The `shares` add up to the relevance: each feature times its weight.
    """

    memory: Memory
    stage: Stage
    rank: int | None = None
    represented_by: UUID | None = None
    relevance: float = 0.0
    shares: Mapping[str, float] = field(default_factory=dict)
    redundancy: float | None = None
    confidence: float | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class ExplainedWord:
    """Word of the question: in how many memories it is, and its weight."""

    word: str
    documents: int
    weight: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Steps to the answer of a question in its namespaces, taken together; `ranking` has the numbers of the ranking."""

    query: str
    searched: tuple[str, ...]
    branches: tuple[BranchList, ...]
    candidates: tuple[ExplainedCandidate, ...]
    words: tuple[ExplainedWord, ...]
    ranking: Mapping[str, float]
    degraded: tuple[Degraded, ...] = ()
