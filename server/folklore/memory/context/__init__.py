"""Memory context: the stores of one database with the active embedding model. Request context: one caller's request.

Both find the namespaces that a request names, and the memories that it names by id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cached_property
from typing import Any, get_args
from uuid import UUID

from cachetools import LRUCache, TTLCache

from folklore.background import in_background
from folklore.callers import Access, Caller, Role
from folklore.config import Moment
from folklore.contract.filters import ALL
from folklore.contract.health import BackupInfo
from folklore.contract.jobs import RunReport
from folklore.db.database import Database
from folklore.db.stores import changes, embeddings, recall
from folklore.db.stores.memories import Memories
from folklore.db.stores.namespaces import Listed, NamespaceInfo, Namespaces
from folklore.embedding import Embedder, ModelChoice, Reranker
from folklore.errors import Conflict, EmbedderUnavailable, InvalidInput, NotFound
from folklore.memory.context.active_model import ActiveModel, Build
from folklore.memory.context.caches import (
    AskedQuestions,
    RecalledTexts,
    StatisticsCache,
    ToldSessions,
)
from folklore.model import SecretPolicy
from folklore.permissions import require
from folklore.phases import Advance
from folklore.ranking.weights import PRESETS, Ranking
from folklore.text import names

# Seconds that namespaces found by name stay cached: they seldom change, and every recall asks for them.
_NAMESPACES_CACHED = 1.0
_CACHED = 256

NamespaceCache = TTLCache[tuple[str, ...], Listed]


def _namespace_cache() -> NamespaceCache:
    return TTLCache(_CACHED, _NAMESPACES_CACHED)


@dataclass(frozen=True)
class MemoryContext:
    """The stores of one database, the active embedding model, and what is cached about them.

    `view_of` gives a context in which row-level security limits every session to the grants of a token; `whole` is the
    context that a view was made from.
    """

    database: Database
    memories: Memories
    namespaces: Namespaces
    active_model: ActiveModel
    reranker: Reranker | None = None
    secrets: SecretPolicy = "refuse"
    presets: Mapping[str, Ranking] = field(default_factory=lambda: PRESETS)
    known_namespaces: NamespaceCache = field(default_factory=_namespace_cache)
    views: LRUCache[Access, MemoryContext] = field(
        default_factory=lambda: LRUCache(_CACHED)
    )
    statistics: StatisticsCache = field(default_factory=StatisticsCache)
    recalled: RecalledTexts = field(default_factory=RecalledTexts)
    # Lessons wait for each other: several on the same memories would fill the connections.
    learning: asyncio.Lock = field(default_factory=asyncio.Lock)
    told_of_cues: ToldSessions = field(default_factory=ToldSessions)
    asked: AskedQuestions = field(default_factory=AskedQuestions)
    whole: MemoryContext | None = None
    # Seconds that a store waits for its embeddings; None: until they are made.
    embedding_wait: float | None = None
    # Work that goes on after the answer to a request.
    going_on: set[asyncio.Task[None]] = field(default_factory=set)

    @classmethod
    def of(
        cls,
        database: Database,
        embedder: Embedder | ActiveModel | None,
        reranker: Reranker | None = None,
        *,
        secrets: SecretPolicy = "refuse",
        presets: Mapping[str, Ranking] = PRESETS,
        embedding_wait: float | None = None,
    ) -> MemoryContext:
        """Make the context of a database; a single embedder is used whatever model the database calls active."""
        return cls(
            database,
            Memories(database),
            Namespaces(database),
            embedder if isinstance(embedder, ActiveModel) else ActiveModel(embedder),
            reranker,
            secrets,
            presets,
            embedding_wait=embedding_wait,
        )

    def view_of(self, access: Access | None) -> MemoryContext:
        """Return the context for the grants of a token; the whole context without a token.

        A token whose grants changed is another access, and gets another view.
        """
        if access is None:
            return self
        if access not in self.views:
            self.views[access] = self._view(access)
        return self.views[access]

    def _view(self, access: Access) -> MemoryContext:
        database = self.database.for_token(access.key)
        return replace(
            self,
            database=database,
            memories=Memories(database),
            namespaces=Namespaces(database, access.namespaces),
            known_namespaces=_namespace_cache(),
            whole=self,
        )

    @cached_property
    def statements(self) -> recall.RecallStatements:
        """The statements of recall."""
        return recall.RecallStatements(self.database)

    @cached_property
    def changes(self) -> changes.Changes:
        """The store of changes. What the views of all tokens store is counted together, and analyzed by the server."""
        statistics = None if self.whole is None else self.whole.changes.statistics
        return changes.Changes(self.database, statistics)

    @cached_property
    def embeddings(self) -> embeddings.Embeddings:
        """The store of embeddings."""
        return embeddings.Embeddings(self.database)

    @property
    def root(self) -> MemoryContext:
        """The whole context, for statements of the server itself after the caller's permission was checked."""
        return self.whole or self

    @property
    def embeds_later(self) -> bool:
        """True if embeddings that take long are made after the answer: not in a command, nor by the bundled model."""
        return (
            self.embedding_wait is not None
            and self.embedder is not None
            and not self.embedder.weighs_words
        )

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of the active model. Read it once for one request: another model may become active meanwhile."""
        return self.active_model.embedder

    def go_on(self, work: Coroutine[Any, Any, None]) -> None:
        """Do work after the answer to a request."""
        task = in_background(work, "folklore-going-on")
        self.going_on.add(task)
        task.add_done_callback(self.going_on.discard)

    async def finish(self, seconds: float) -> None:
        """Wait so long for work that goes on, then cancel it: the database knows what is pending."""
        if self.going_on:
            _, late = await asyncio.wait(self.going_on, timeout=seconds)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    def changed(self) -> None:
        """Drop what is cached about namespaces and small scopes, after a write of this process."""
        self.known_namespaces.clear()
        self.root.known_namespaces.clear()
        self.statistics.totals.clear()

    async def find_namespaces(self, requested_names: Sequence[str]) -> Listed:
        """Return the namespaces of these names, all readable ones for none or *. At most one statement if all exist.

        Raises NotFound with the nearest names for an unknown name: a misspelt name must not look empty.
        """
        key = () if ALL in requested_names else tuple(requested_names)
        if (cached := self.known_namespaces.get(key)) is not None:
            return cached
        requested = list(
            dict.fromkeys(names.normalise(name, field="namespaces") for name in key)
        )
        namespaces = await self.namespaces.find(requested or None)
        await self._require_all(requested, namespaces)
        if namespaces:
            await self.active_model.observe(namespaces[0].model)
        # Another process may change the list: without a token by creating one, or by a first store.
        if (key or self.whole is not None) and not any(
            namespace.empty for namespace in namespaces
        ):
            self.known_namespaces[key] = namespaces
        return namespaces

    async def find_namespace(self, name: str) -> NamespaceInfo:
        """Return the namespace of one name, in which * has no meaning. Raises InvalidInput, NotFound."""
        [namespace] = await self.find_namespaces([names.normalise(name)])
        return namespace

    async def _require_all(self, requested: Sequence[str], found: Listed) -> None:
        if not requested or (name := missing_name(requested, found.names)) is None:
            return
        existing = (await self.namespaces.find(None)).names
        hint = "`folklore namespaces list` and memory_status show those that exist."
        if near := names.nearest(name, existing):
            hint = f"Did you mean {', '.join(near)}?"
        if not existing:
            hint = "Nothing has been stored yet."
        raise NotFound(f"There is no namespace {name!r}.", hint=hint)


def missing_name(requested: Iterable[str], existing: Iterable[str]) -> str | None:
    """Return the first name that no existing namespace has, None if all exist."""
    keys = {names.key(name) for name in existing}
    return next((name for name in requested if names.key(name) not in keys), None)


def _no_namespace() -> str:
    raise InvalidInput("namespace", "is missing.", hint="Name one.")


def _no_model(choice: ModelChoice) -> Embedder:
    raise EmbedderUnavailable(f"There are no settings for {choice.label}.")


async def _nothing(*_: object) -> tuple[()]:
    return ()


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Request: the memory as its caller may see it, the caller, the time, and the caller's time zone.

    `namespace` returns the namespace of a request that names none, or raises InvalidInput; `project` returns it or
    None; `project_at` returns that of a directory, and is missing where directories are on the caller's machine.
    `retention` is the time in which forgotten memories and deleted namespaces can be restored. `engine` is "embedded"
    or "server". `scheduled` returns the names of the background jobs that this server runs; `note_pending` makes it run
    the job `embeddings` at once, `run_jobs` those of some names (Scheduler.run_now). `backups` returns the backups that
    it can see. `model_of` chooses a model by the settings, with other properties of `embedding`. Work that lasts reads
    the time from `clock`, and gives `report` the steps done, and all. Hooks give notes at these `moments`.
    Without `learn_cues`, no question becomes a cue.
    """

    memory: MemoryContext
    caller: Caller
    now: datetime
    zone: tzinfo = UTC
    namespace: Callable[[], str] = _no_namespace
    retention: timedelta = timedelta(days=30)
    engine: str = "server"
    project: Callable[[], str | None] = lambda: None
    project_at: Callable[[str], Awaitable[str]] | None = None
    scheduled: Callable[[], Sequence[str]] = tuple
    note_pending: Callable[[], None] = lambda: None
    backups: Callable[[], Awaitable[tuple[BackupInfo, ...]]] = _nothing
    run_jobs: Callable[[Sequence[str], bool], Awaitable[tuple[RunReport, ...]]] = (
        _nothing
    )
    model_of: Callable[[Mapping[str, str]], tuple[ModelChoice | None, Build]] = (
        lambda _: (None, _no_model)
    )
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    report: Advance = lambda _done, _all: None
    moments: Sequence[Moment] = get_args(Moment)
    learn_cues: bool = True


def names_by_id(namespaces: Sequence[NamespaceInfo]) -> Mapping[UUID, str]:
    """Return the names of namespaces by id."""
    return {namespace.id: namespace.name for namespace in namespaces}


async def locate(
    memory: MemoryContext,
    ids: Sequence[UUID],
    *,
    namespaces: Sequence[str] = (),
    unforgotten: bool = False,
) -> dict[UUID, NamespaceInfo]:
    """Return the namespace of each memory, looked for in these namespaces, or in all. Two statements.

    Raises NotFound for unknown ids; with `unforgotten`, they and forgotten ones are left out. Raises Conflict for an id
    that an import brought into several namespaces.
    """
    searched = {
        namespace.id: namespace
        for namespace in await memory.find_namespaces(namespaces)
    }
    namespaces_of = await memory.changes.namespaces_of(
        list(searched), ids, unforgotten=unforgotten
    )
    for id_, holding in namespaces_of.items():
        if len(holding) > 1:
            names = ", ".join(sorted(searched[space].name for space in holding))
            raise Conflict(
                f"The memory {id_} is in several namespaces: {names}.",
                hint="Name one of them.",
            )
    missing = [id_ for id_ in dict.fromkeys(ids) if id_ not in namespaces_of]
    if missing and not unforgotten:
        raise unknown_memories(missing)
    return {id_: searched[space] for id_, (space,) in namespaces_of.items()}


async def namespace_of(
    context: RequestContext,
    id_: UUID,
    *,
    namespaces: Sequence[str] = (),
    role: Role = "reader",
) -> NamespaceInfo:
    """Return the namespace of a memory in which the caller has this role. Raises NotFound, Conflict, Refused."""
    namespace = (await locate(context.memory, [id_], namespaces=namespaces))[id_]
    require(context.caller, namespace.name, role)
    return namespace


def unknown_memories(ids: Sequence[UUID]) -> NotFound:
    """Make the error for ids that no readable namespace holds."""
    listing = ", ".join(str(id_) for id_ in ids[:5]) + (
        f" and {len(ids) - 5} more" if len(ids) > 5 else ""
    )
    return NotFound(
        f"There is no memory {listing}.", hint="Ids come from recall, search or list."
    )
