"""Cues of stored memories: added to a known text, taken over from a superseded memory, embedded after a change."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID

from folklore.db.stores.changes import NamespaceTransaction, State
from folklore.errors import FolkloreError
from folklore.log import get_logger
from folklore.memory.active_model import embed_texts
from folklore.memory.context import MemoryContext
from folklore.model import FIELDS, Memory
from folklore.text.cues import as_text, united

log = get_logger(__name__)

MOST = FIELDS["cues"].most


async def add_cues(
    change: NamespaceTransaction,
    stated: Mapping[UUID, Sequence[str]],
    inherited: Collection[UUID] = (),
) -> list[UUID]:
    """Add cues to stored memories that lack them, the best eight of all; return those that changed.

    A memory of `inherited`, for which nobody stated them, gets them only if it has none.
    """
    if not stated:
        return []
    changed: dict[UUID, Sequence[str]] = {}
    for id_, state in (await change.states(list(stated), whole=True)).items():
        present = cues_of(state)
        if present and id_ in inherited:
            continue
        cues = united((*present, *stated[id_]), str(state.held["content"]), MOST)
        if cues != present:
            changed[id_] = cues
    await change.write_cues(changed)
    return list(changed)


def united_cues(memories: Iterable[Memory], content: str) -> tuple[str, ...]:
    """Return the best eight cues of memories that become one with this content."""
    return united((cue for memory in memories for cue in memory.cues), content, MOST)


async def embed_cues(
    memory: MemoryContext, namespace: UUID, ids: Sequence[UUID]
) -> None:
    """Embed the cues of changed memories, after the commit: by a slow model, after the answer too.

    What fails stays pending for the job.
    """
    if not ids or memory.embedder is None:
        return
    making = _embed(memory, namespace, ids)
    if memory.embeds_later:
        memory.go_on(making)
    else:
        await making


async def _embed(memory: MemoryContext, namespace: UUID, ids: Sequence[UUID]) -> None:
    embeddings, embedder = memory.root.embeddings, memory.embedder
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
    cues = state.held["cues"]
    return tuple(map(str, cues)) if isinstance(cues, list) else ()
