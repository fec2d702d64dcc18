"""Cues of stored memories: added to a known text, taken over from a superseded memory, embedded after a change."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from uuid import UUID

from folklore.db.stores.changes import Cues, NamespaceTransaction, State
from folklore.errors import FolkloreError
from folklore.log import get_logger
from folklore.memory.context import MemoryContext
from folklore.memory.context.active_model import embed_texts
from folklore.model import FIELDS, Memory
from folklore.text.cues import as_text, united

log = get_logger(__name__)

MOST = FIELDS["cues"].most


async def add_cues(
    change: NamespaceTransaction,
    stated: Mapping[UUID, Sequence[str]],
    inherited: Collection[UUID] = (),
    learned: Mapping[UUID, Sequence[str]] = MappingProxyType({}),
) -> list[UUID]:
    """Add cues to stored memories that lack them, the best eight of all; return those that changed.

    A memory of `inherited`, for which nobody stated them, gets them only if it has none. `learned` are those of them
    that were learned.
    """
    if not stated:
        return []
    changed: dict[UUID, Cues] = {}
    states = await change.states(list(stated), whole=True)
    for id_, state in states.items():
        present = cues_of(state)
        if present and id_ in inherited:
            continue
        cues = united((*present, *stated[id_]), str(state.held["content"]), MOST)
        if cues != present:
            before = [cue for cue in learned_of(state) if cue not in stated[id_]]
            changed[id_] = Cues(cues, (*before, *learned.get(id_, ())))
    await change.write_cues(changed)
    return list(changed)


def united_cues(memories: Iterable[Memory], content: str) -> tuple[str, ...]:
    """Return the best eight cues of memories that become one with this content."""
    cues = chain.from_iterable(memory.cues for memory in memories)
    return united(cues, content, MOST)


def learned_cues(memories: Iterable[Memory]) -> tuple[str, ...]:
    """Return the cues that memories which become one learned and nobody stated for any of them."""
    stated: set[str] = set()
    learned: dict[str, None] = {}
    for memory in memories:
        stated |= set(memory.cues) - set(memory.learned)
        learned |= dict.fromkeys(memory.learned)
    never_stated = [cue for cue in learned if cue not in stated]
    return tuple(never_stated[-MOST:])


async def embed_cues(
    memory: MemoryContext, namespace: UUID, ids: Sequence[UUID]
) -> None:
    """Embed the cues of changed memories, after the commit: by a slow model, after the answer too.

    What fails stays pending for the job.
    """
    if not ids or memory.embedder is None:
        return
    work = _embed(memory, namespace, ids)
    if memory.embeds_later:
        memory.go_on(work)
    else:
        await work


async def _embed(memory: MemoryContext, namespace: UUID, ids: Sequence[UUID]) -> None:
    embeddings = memory.root.embeddings
    embedder = memory.embedder
    if embedder is None:
        return
    try:
        model = await embedder.model()
        pending = await embeddings.cues_pending(
            namespace=namespace, model=model.id, ids=list(ids), most=len(ids)
        )
        if not pending:
            return
        vectors = await embed_texts(embedder, [as_text(item.cues) for item in pending])
        await embeddings.write_cues(namespace, pending, vectors)
    except FolkloreError as error:
        log.warning("cues_left_pending", count=len(ids), reason=error.message)


def cues_of(state: State) -> tuple[str, ...]:
    """Return the cues of a memory whose state was read whole."""
    return _phrases(state, "cues")


def learned_of(state: State) -> tuple[str, ...]:
    """Return the cues that such a memory learned, those too that were removed since."""
    return _phrases(state, "learned_cues")


def _phrases(state: State, name: str) -> tuple[str, ...]:
    phrases = state.held[name]
    if not isinstance(phrases, list):
        return ()
    return tuple(map(str, phrases))
