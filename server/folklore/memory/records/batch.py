"""A batch of memories to store: their ids and digests, what they supersede, and the refused ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from folklore.contract.memories import RefusedMemory
from folklore.db.stores.changes import KeyAnswer
from folklore.db.stores.memories import PreparedMemory, Vectors
from folklore.db.stores.namespaces import NewNamespace
from folklore.db.stores.transfer import TransferredMemory
from folklore.errors import FolkloreError, InvalidInput
from folklore.memory.context.validation import ValidBatch, detected_language, prefix_of
from folklore.model import DEFAULT_LANGUAGE, Draft, Memory
from folklore.new_ids import new_id
from folklore.text.clean import digest, former_digest


@dataclass(slots=True)
class Batch:
    """Memories to store by their index in the batch, their vectors in the same order, and the refused ones.

    `superseded` are the memories that they supersede, by index. Those at the indexes `inherited` have the cues of that
    memory, since they state none.
    """

    memories: dict[int, PreparedMemory]
    errors: dict[int, FolkloreError]
    single: bool
    vectors: Vectors | None = None
    superseded: Mapping[int, Memory] = field(default_factory=dict)
    inherited: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls, valid: ValidBatch, superseded: Mapping[int, Memory], *, single: bool
    ) -> Batch:
        """Give every checked draft an id and its digests; one without cues takes over those of what it supersedes."""
        inherited = set()
        for index, old in superseded.items():
            if old.cues and not valid.drafts[index].cues:
                inherited.add(index)
        batch = cls(
            memories={},
            errors=dict(valid.errors),
            single=single,
            superseded=superseded,
            inherited=frozenset(inherited),
        )
        request_by_key: dict[str, bytes] = {}
        for index, draft in valid.drafts.items():
            if index in inherited:
                old = superseded[index]
                draft = replace(draft, cues=old.cues, learned_cues=old.learned)
            item = _prepared(draft)
            key = draft.idempotency_key
            request = item.request
            if key is not None and request_by_key.setdefault(key, request) != request:
                problem = "occurs earlier in this batch with another request."
                batch.errors[index] = batch.used_key(index, problem)
            else:
                batch.memories[index] = item
        return batch

    def refuse(self, errors: Mapping[int, FolkloreError]) -> None:
        """Take memories out of the batch. Raises the first error if none is left."""
        self.errors |= errors
        self.memories, self.vectors = self.without(errors)
        if not self.memories:
            raise self.errors[min(self.errors)]

    def refusals(self) -> tuple[RefusedMemory, ...]:
        """Return the refused memories with their errors, in the order of the request."""
        return tuple(
            RefusedMemory.of(index, self.errors[index]) for index in sorted(self.errors)
        )

    @property
    def changes_others(self) -> bool:
        """True if a memory supersedes or relates to a stored one."""
        drafts = [item.draft for item in self.memories.values()]
        return any(draft.supersedes is not None or draft.related for draft in drafts)

    def without(
        self, indexes: Collection[int]
    ) -> tuple[dict[int, PreparedMemory], Vectors | None]:
        """Return the memories at other indexes, and their vectors."""
        memories = {}
        rows = []
        for row, (index, memory) in enumerate(self.memories.items()):
            if index not in indexes:
                memories[index] = memory
                rows.append(row)
        vectors = None if self.vectors is None else self.vectors.select(rows)
        return memories, vectors

    def field(self, index: int, name: str) -> str:
        """Return the name of a field in errors."""
        return prefix_of(index, single=self.single) + name

    def used_key(self, index: int, problem: str) -> InvalidInput:
        """Return the error of another request under a used key."""
        hint = "Repeat the same content, supersedes and related under a key; give a new request another key, or none."
        return InvalidInput(
            self.field(index, "idempotency_key"),
            f"{problem} The memory was not stored.",
            hint=hint,
        )


def _prepared(draft: Draft) -> PreparedMemory:
    """Return a checked draft with an id and its digests."""
    text = digest(draft.content)
    request = _request_digest(draft, text)
    return PreparedMemory(
        draft.id or new_id(), draft, text, request, detected_language(draft)
    )


def _request_digest(draft: Draft, text: bytes) -> bytes:
    """Return a digest of what is requested under a key: the text, and the changes to other memories."""
    if draft.supersedes is None and not draft.related:
        return text
    related = sorted((str(link.id), link.type, link.strength) for link in draft.related)
    content = json.dumps([text.hex(), str(draft.supersedes), related])
    return hashlib.sha256(content.encode()).digest()


def same_request(answer: KeyAnswer, item: PreparedMemory) -> bool:
    """Return True if a key answered this request, or did so for a version with other digests of texts."""
    if answer.request == item.request:
        return True
    former = _request_digest(item.draft, former_digest(item.draft.content))
    return answer.request == former


def namespace_for(
    name: str, items: Collection[PreparedMemory | TransferredMemory]
) -> NewNamespace:
    """Return what is needed to create the namespace, and the languages that these memories bring."""
    languages = sorted({item.draft.language for item in items if item.draft.language})
    detected = sorted({item.detected for item in items if item.detected})
    return NewNamespace(new_id(), name, DEFAULT_LANGUAGE, languages, detected)
