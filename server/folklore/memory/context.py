"""What every use case works with: the stores of one database and the embedder of this process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from uuid import UUID

from folklore.db.database import Database
from folklore.db.stores.changes import Changes
from folklore.db.stores.memories import Memories
from folklore.db.stores.namespaces import NamespaceInfo, Namespaces
from folklore.db.stores.recall import RecallStatements
from folklore.db.stores.similarities import Similarities
from folklore.embedding.protocol import Embedder
from folklore.embedding.reranker import Reranker
from folklore.errors import NotFound
from folklore.memory.models.active_model import Generations
from folklore.memory.recall.corpus_statistics import RecentMeasures
from folklore.model import Access, SecretPolicy
from folklore.text import names


@dataclass(frozen=True, slots=True)
class MemoryContext:
    """One database and, unless embedding is switched off, the model that counts there.

    `secrets` says what becomes of one in a text. `opened_to` gives the same library as the holder of a token sees it:
    every session of that one is held by the database to what the token opens.
    """

    database: Database
    memories: Memories
    namespaces: Namespaces
    statements: RecallStatements
    changes: Changes
    similarities: Similarities
    generations: Generations
    reranker: Reranker | None = None
    secrets: SecretPolicy = "refuse"
    recent: Recent = field(default_factory=lambda: Recent())
    measured: RecentMeasures = field(default_factory=RecentMeasures)
    views: Views = field(default_factory=lambda: Views())
    # What this is a view of; None for the whole itself.
    whole: MemoryContext | None = None

    @classmethod
    def of(
        cls,
        database: Database,
        embedder: Embedder | Generations | None,
        reranker: Reranker | None = None,
        *,
        secrets: SecretPolicy = "refuse",
    ) -> MemoryContext:
        """The library kept in a database; a single embedder is used as it is, whatever model the store goes by."""
        return cls(
            database,
            Memories(database),
            Namespaces(database),
            RecallStatements(database),
            Changes(database),
            Similarities(database),
            embedder if isinstance(embedder, Generations) else Generations.fixed(embedder),
            reranker,
            secrets,
        )

    def opened_to(self, access: Access | None) -> MemoryContext:
        """The library as this access sees it; the whole of it without one."""
        if access is None:
            return self
        return self.views.get(access) or self.views.put(access, self._view(access))

    def _view(self, access: Access) -> MemoryContext:
        database = self.database.bound(access.key)
        return replace(
            self,
            database=database,
            memories=Memories(database, self.memories.statistics),
            namespaces=Namespaces(database, access.namespaces),
            statements=RecallStatements(database),
            changes=Changes(database),
            similarities=Similarities(database),
            recent=Recent(every=True),
            # What a namespace measures is the same for everybody who may read it, and asked for by its id.
            measured=self.measured,
            whole=self,
        )

    @property
    def root(self) -> MemoryContext:
        """The whole library: for what the server itself does, after it has asked whether the caller may."""
        return self.whole or self

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of the model that counts now. Take it once for what belongs together: it may be another next."""
        return self.generations.embedder

    def stored(self) -> None:
        """What this process stored or changed may have made namespaces, and changed what the small ones hold."""
        self.recent.clear()
        self.root.recent.clear()
        self.measured.clear_small()

    async def notebooks(self, asked: Sequence[str]) -> list[NamespaceInfo]:
        """The namespaces asked for; all of them when none is named. At most one statement for those that are there.

        Raises NotFound with the nearest names for one that is not there: a misspelled name must not look empty.
        """
        if recently := self.recent.get(tuple(asked)):
            return recently
        wanted = list(dict.fromkeys(names.normalise(name, field="namespaces") for name in asked))
        found = await self.namespaces.notebooks(wanted or None)
        there = {names.key(notebook.name) for notebook in found} if wanted else set()
        missing = [name for name in wanted if names.key(name) not in there]
        if missing:
            known = [notebook.name for notebook in await self.namespaces.notebooks(None)]
            near = names.nearest(missing[0], known) or tuple(known[:5])
            raise NotFound(
                f"There is no namespace {missing[0]!r}.",
                hint=f"Did you mean {', '.join(near)}?" if near else "Nothing has been stored yet.",
            )
        if found:
            await self.generations.saw(found[0].model)
        if not any(notebook.empty for notebook in found):
            self.recent.put(tuple(asked), found)
        return found


class Recent:
    """Namespaces asked for by name within the last second: who they are seldom changes, and every recall asks.

    Empty ones are always asked anew, and "all namespaces" too, but where it is known which those are (`every`): those
    of a token come with it, on each call. What this process stores clears it.
    """

    _SECONDS = 1.0
    _MOST = 256

    def __init__(self, *, every: bool = False) -> None:
        self._every = every
        self._known: dict[tuple[str, ...], tuple[float, list[NamespaceInfo]]] = {}

    def get(self, asked: tuple[str, ...]) -> list[NamespaceInfo] | None:
        """What is known of these names, unless it is too old."""
        until, found = self._known.get(asked, (0.0, []))
        return found if monotonic() < until else None

    def put(self, asked: tuple[str, ...], found: list[NamespaceInfo]) -> None:
        """Remember it for a second."""
        if asked or self._every:
            if len(self._known) >= self._MOST:
                self._known.clear()
            self._known[asked] = (monotonic() + self._SECONDS, found)

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()


class Views:
    """The libraries of the last tokens that came: what a view remembers for a second would else be asked each time.

    A token whose grants have changed is another access, and gets a view of its own.
    """

    _MOST = 256

    def __init__(self) -> None:
        self._known: OrderedDict[Access, MemoryContext] = OrderedDict()

    def get(self, access: Access) -> MemoryContext | None:
        """The view of this access, if it is known."""
        found = self._known.get(access)
        if found is not None:
            self._known.move_to_end(access)
        return found

    def put(self, access: Access, view: MemoryContext) -> MemoryContext:
        """Remember a view; the one used longest ago makes room."""
        self._known[access] = view
        if len(self._known) > self._MOST:
            self._known.popitem(last=False)
        return view


def scope_of(notebooks: Sequence[NamespaceInfo]) -> Mapping[UUID, str]:
    """Namespace ids with their names."""
    return {notebook.id: notebook.name for notebook in notebooks}
