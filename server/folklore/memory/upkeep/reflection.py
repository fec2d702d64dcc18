"""A reflection: a memory that sums up similar ones, of their own words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from folklore.db.stores.memories import PreparedMemory
from folklore.db.stores.namespaces import NamespaceInfo
from folklore.db.stores.recall_rows import Scope
from folklore.db.stores.reflections import Member
from folklore.memory.context import MemoryContext
from folklore.memory.context.validation import check_draft
from folklore.memory.recall.corpus_statistics import lexemes_of, rarities, read_tokens
from folklore.model import Draft, Filters
from folklore.new_ids import new_id
from folklore.text.clean import digest
from folklore.text.gist import gist, keywords, shared_words


async def compose_reflection(
    memory: MemoryContext,
    namespace: NamespaceInfo,
    members: Sequence[Member],
    key: str,
    now: datetime,
) -> PreparedMemory:
    """Return the reflection of these members, to be stored once under its key. One statement."""
    ordered = sorted(members, key=lambda member: (member.happened, member.id))
    texts = [member.content for member in ordered]
    words = await _keywords(memory, namespace, texts, now)
    languages = Counter(sorted(member.language for member in ordered))
    draft = Draft(
        content=gist(texts, words),
        kind="reflection",
        language=languages.most_common(1)[0][0],
        occurred_at=max(member.happened for member in ordered),
        metadata={"members": len(ordered), "keywords": words},
        idempotency_key=key,
    )
    checked = check_draft(draft, prefix="", now=now, zone=UTC)
    return PreparedMemory(new_id(), checked, digest(checked.content))


async def _keywords(
    memory: MemoryContext, namespace: NamespaceInfo, texts: Sequence[str], now: datetime
) -> list[str]:
    """Return the words that the texts share, weighted by their rarity in the namespace."""
    shared = shared_words(texts)
    words = list(shared)
    if not words:
        return []
    scope = Scope({namespace.id: namespace.name}, Filters(), now)
    analysed, in_scope = await read_tokens(
        memory, memory.statements, scope, words, namespace.languages
    )
    tokens = {index: analysed[word] for index, word in enumerate(words)}
    query = lexemes_of(
        tokens, in_scope, (), several=len(namespace.languages) > 1, former=False
    )
    rarity = dict(zip(words, rarities(query, len(words)), strict=True))
    return keywords(shared, rarity)
