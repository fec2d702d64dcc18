"""Consolidation: memories that say nearly the same are summed up in a reflection; no model writes it."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar
from uuid import UUID

from folklore.db.stores.memories import Prepared
from folklore.db.stores.namespaces import NamespaceInfo
from folklore.db.stores.recall_rows import Scope
from folklore.db.stores.reflections import Known, Member, Reflection, Reflections, Sources
from folklore.memory.context import MemoryContext
from folklore.memory.ids import new_id
from folklore.memory.records.store import embed
from folklore.memory.validation import check_draft
from folklore.model import Caller, Draft, Filters
from folklore.ranking.clusters import Clustering, nearest, stars
from folklore.ranking.standard_scores import inverse_document_frequency
from folklore.text.clean import digest
from folklore.text.gist import gist, keywords, shared_words

AUTHOR = Caller(author="folklore", agent="upkeep")
# The newest memories of a namespace that are compared with one another: 20,000 take 20 MB and some seconds.
MOST = 20_000
_BATCH = 20
# Document frequencies beyond say "common".
_BOUND = 2_000

Breathe = Callable[[], Awaitable[None]]
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Planned:
    """What consolidation of a namespace would do: clusters to write, reflections to withdraw, how many stay."""

    considered: int
    make: tuple[tuple[int, ...], ...]
    withdraw: tuple[UUID, ...]
    stay: int


async def plan(sources: Sources, known: Sequence[Known], clustering: Clustering, breathe: Breathe) -> Planned:
    """Compare the clusters there are with the reflections there are. The comparing runs in a thread, block by block."""
    blocks = nearest(sources.vectors, clustering)
    neighbours: list[tuple[tuple[int, float], ...]] = []
    while (block := await asyncio.to_thread(next, blocks, None)) is not None:
        neighbours += block
        await breathe()
    clusters = {key_of(sources, cluster): cluster for cluster in stars(neighbours, clustering)}
    # One that a person forgot is not made again; one of which a member changed is made anew.
    settled = {one.key for one in known if one.forgotten or one.whole}
    return Planned(
        considered=len(sources.ids),
        make=tuple(cluster for key, cluster in clusters.items() if key not in settled),
        withdraw=tuple(one.id for one in known if not one.forgotten and not (one.whole and one.key in clusters)),
        stay=sum(one.whole and not one.forgotten and one.key in clusters for one in known),
    )


async def carry_out(
    reflections: Reflections,
    library: MemoryContext,
    notebook: NamespaceInfo,
    sources: Sources,
    planned: Planned,
    *,
    now: datetime,
    breathe: Breathe,
) -> tuple[int, int]:
    """Withdraw and write, batch by batch, each in its transaction; how many were made and how many withdrawn."""
    made = withdrawn = 0
    for ids in _batches(planned.withdraw):
        withdrawn += await reflections.withdraw(notebook.id, ids)
        await breathe()
    for clusters in _batches(planned.make):
        batch = [await _reflection(reflections, library, notebook, sources, cluster, now) for cluster in clusters]
        whole = [one for one in batch if one is not None]
        if whole:
            vectors = await embed(library, [one.prepared.draft.content for one in whole])
            language = next(iter(notebook.languages), "english")
            made += await reflections.make(notebook.id, whole, vectors, caller=AUTHOR, language=language, now=now)
        await breathe()
    return made, withdrawn


def key_of(sources: Sources, cluster: Sequence[int]) -> str:
    """The key of a cluster's reflection: the same members with the same texts give the same."""
    parts = sorted(sources.ids[row].bytes + sources.digests[row] for row in cluster)
    return f"reflection:{hashlib.sha256(b''.join(parts)).hexdigest()[:32]}"


async def _reflection(
    reflections: Reflections,
    library: MemoryContext,
    notebook: NamespaceInfo,
    sources: Sources,
    cluster: Sequence[int],
    now: datetime,
) -> Reflection | None:
    found = await reflections.members(notebook.id, [sources.ids[row] for row in cluster])
    if len(found) < len(cluster):  # one was erased meanwhile
        return None
    members = sorted(found.values(), key=lambda member: (member.happened, member.id))
    words = await _keywords(library, notebook, members, now)
    draft = Draft(
        content=gist([member.content for member in members], words),
        kind="reflection",
        language=Counter(sorted(member.language for member in members)).most_common(1)[0][0],
        occurred_at=max(member.happened for member in members),
        metadata={"members": len(members), "keywords": words},
        idempotency_key=key_of(sources, cluster),
    )
    checked = check_draft(draft, field="", now=now, zone=UTC)
    return Reflection(
        Prepared(new_id(), checked, digest(checked.content)),
        tuple(sources.ids[row] for row in cluster),
        tuple(sources.digests[row] for row in cluster),
    )


async def _keywords(
    library: MemoryContext, notebook: NamespaceInfo, members: Sequence[Member], now: datetime
) -> list[str]:
    """The words the members share, weighed by how rare they are in their namespace. One statement."""
    shared = shared_words([member.content for member in members])
    words = list(shared)
    if not words:
        return []
    scope = Scope({notebook.id: notebook.name}, Filters(), now)
    reading, measures = await library.statements.lexemes(
        scope,
        pieces=words,
        marks=[],
        languages=notebook.languages,
        bound=_BOUND,
        saturation=0.0,  # only how many hold a word is asked for
        prior=0.0,
        mean_length=0.0,
        measure=True,
    )
    total = 0 if measures is None else measures.total
    rarity: dict[str, float] = {}
    for lexeme, places in reading.places.items():
        weight = inverse_document_frequency(reading.documents[lexeme], total)
        for place in places:
            rarity[words[place]] = max(rarity.get(words[place], 0.0), weight)
    return keywords(shared, rarity)


def _batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]
