"""Comparison of imported memories with existing ones: pure, so that a dry run and a real run decide alike."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from folklore.contract.transfer import OnConflict
from folklore.db.stores.transfer import ExistingMemory, TransferredMemory
from folklore.errors import Conflict, InvalidInput
from folklore.memory.records.fields import TEXTS
from folklore.model import FIELDS
from folklore.text.cues import united

# Values of a stored memory that overwriting keeps if the line states none.
_KEPT_FIELDS = ("author", "created_at", "language", "idempotency_key")
_KEPT_PAST = (
    "agent",
    "quality",
    "trust",
    "last_recalled_at",
    "recall_count",
    "confirmed_count",
)
_SIGNATURE = ("changed_by", "changed_at")


@dataclass(frozen=True, slots=True)
class ImportAuthor:
    """The author of an import, and its time."""

    name: str
    now: datetime


@dataclass(slots=True)
class ExistingMemories:
    """Ids, live texts and idempotency keys in use in a namespace, as far as an import has read them.

    A dry run keeps one for its whole length, since the database does not show what earlier batches would have written:
    `imported` has a hash of the line for each memory that the import wrote, `released` the keys that it replaced.
    """

    ids: set[UUID] = field(default_factory=set)
    texts: dict[bytes, UUID] = field(default_factory=dict)
    text_of: dict[UUID, bytes] = field(default_factory=dict)
    keys: dict[str, UUID] = field(default_factory=dict)
    imported: dict[UUID, int] = field(default_factory=dict)
    released: dict[str, UUID] = field(default_factory=dict)

    def read(self, memories: Iterable[ExistingMemory]) -> None:
        """Add memories that were read from the database."""
        for key, id_ in self.released.items():
            if self.keys.get(key) == id_:
                del self.keys[key]
        for memory in memories:
            self.ids.add(memory.id)
            if memory.live and memory.id not in self.imported:
                self._add_text(memory.digest, memory.id)
            if memory.key is None:
                continue
            if memory.requested or self.released.get(memory.key) != memory.id:
                self.keys.setdefault(memory.key, memory.id)

    def add(self, memory: TransferredMemory, line: TransferredMemory) -> None:
        """Add a memory that the import writes for `line`."""
        self.ids.add(memory.id)
        self.imported[memory.id] = _hash(line)
        if memory.live:
            self._add_text(memory.digest, memory.id)
        key = memory.draft.idempotency_key
        if key is not None:
            self.keys.setdefault(key, memory.id)
            if self.released.get(key) == memory.id:
                del self.released[key]

    def release(
        self, memory: TransferredMemory, present: TransferredMemory | None
    ) -> bytes | None:
        """Free the text of a memory before it is replaced, and return it; free its key with the next batch."""
        key = None if present is None else present.draft.idempotency_key
        if key is not None and memory.draft.idempotency_key not in (None, key):
            self.released[key] = memory.id
        text = self.text_of.pop(memory.id, None)
        if text is not None:
            del self.texts[text]
        return text

    def replacement(
        self,
        line: TransferredMemory,
        present: TransferredMemory | None,
        importer: ImportAuthor,
    ) -> TransferredMemory | None:
        """Return the memory that replaces the stored one, None if the line changes nothing."""
        imported = self.imported.get(line.id)
        if imported is not None and imported == _hash(line):
            return None
        if imported is not None or present is None:
            return line
        return _merged(line, present, importer)

    def holder(self, memory: TransferredMemory) -> UUID | None:
        """Return another memory that has its text or its idempotency key."""
        if memory.live:
            by_text = self.texts.get(memory.digest)
            if by_text not in (None, memory.id):
                return by_text
        key = memory.draft.idempotency_key
        by_key = None if key is None else self.keys.get(key)
        if by_key == memory.id:
            return None
        return by_key

    def _add_text(self, text: bytes, id_: UUID) -> None:
        if self.texts.setdefault(text, id_) == id_:
            self.text_of[id_] = text


@dataclass(frozen=True, slots=True)
class Resolution:
    """The memories of a batch by what the import does with them; a refused one with its reason."""

    new: list[TransferredMemory] = field(default_factory=list)
    replaced: list[TransferredMemory] = field(default_factory=list)
    duplicates: list[TransferredMemory] = field(default_factory=list)
    refusals: list[tuple[TransferredMemory, InvalidInput]] = field(default_factory=list)


def resolve(
    batch: Sequence[TransferredMemory],
    existing: ExistingMemories,
    present: Mapping[UUID, TransferredMemory],
    policy: OnConflict,
    importer: ImportAuthor,
) -> Resolution:
    """Decide in the order of the lines, and add to `existing` what the import writes.

    `present` holds the memories that may be replaced. Raises Conflict for the first existing memory under `fail`.
    """
    resolution = Resolution()
    last = {memory.id: memory.line for memory in batch}
    released: set[bytes | None] = set()
    for memory in batch:
        exists = memory.id in existing.ids
        holder = existing.holder(memory)
        # a later line of its id overwrites it
        if policy == "overwrite" and last[memory.id] != memory.line:
            resolution.duplicates.append(memory)
        elif policy == "overwrite" and exists:
            former = present.get(memory.id)
            replacement = existing.replacement(memory, former, importer)
            _replace(memory, replacement, existing, former, resolution, released)
        elif exists or holder is not None:
            if policy == "fail":
                raise _exists(memory, holder)
            resolution.duplicates.append(memory)
        else:
            resolution.new.append(memory)
            existing.add(memory, memory)
    return resolution


def _exists(line: TransferredMemory, holder: UUID | None) -> Conflict:
    hint = "Nothing of its batch was written; --on-conflict skip or overwrite goes on."
    return Conflict(
        f"Line {line.line} exists already, as the memory {holder or line.id}.",
        hint=hint,
    )


def _replace(
    line: TransferredMemory,
    memory: TransferredMemory | None,
    existing: ExistingMemories,
    present: TransferredMemory | None,
    resolution: Resolution,
    released: set[bytes | None],
) -> None:
    holder = existing.holder(line)
    if memory is None:
        resolution.duplicates.append(line)
    elif holder is not None:
        error = InvalidInput(
            "content",
            f"the text or the idempotency key belongs to the memory {holder}.",
        )
        resolution.refusals.append((line, error))
    elif memory.digest in released:
        # one statement replaces all memories of a batch, in an order of its own
        error = InvalidInput(
            "content",
            "another memory had this text before this import.",
            hint="Import it again.",
        )
        resolution.refusals.append((line, error))
    else:
        resolution.replaced.append(memory)
        released.add(existing.release(memory, present))
        existing.add(memory, line)


def _hash(line: TransferredMemory) -> int:
    """Return a hash of everything that a line states about its memory's row; a dry run may keep very many."""
    return hash(repr((line.draft, line.past)))


def _signature(
    line: TransferredMemory, present: TransferredMemory, importer: ImportAuthor
) -> dict[str, Any]:
    """Return who changed the text last, and when, of a memory that a line replaces.

    A line that states an author says this too. Another text is changed by who imports it.
    """
    differs = False
    for name in TEXTS:
        differs |= getattr(line.draft, name) != getattr(present.draft, name)
    states_author = line.draft.author is not None and differs
    if line.past.changed_by is not None or states_author:
        return {name: getattr(line.past, name) for name in _SIGNATURE}
    if differs and importer.name != present.draft.author:
        return {"changed_by": importer.name, "changed_at": importer.now}
    if differs and line.draft.content != present.draft.content:
        return dict.fromkeys(_SIGNATURE)
    return {name: getattr(present.past, name) for name in _SIGNATURE}


def _merged(
    line: TransferredMemory, present: TransferredMemory, importer: ImportAuthor
) -> TransferredMemory | None:
    """Return the memory that replaces `present`, None if that changes nothing.

    A field that the line leaves out is emptied, as an export leaves out empty fields. Exceptions keep their value: the
    fields that are never empty, cues if the line is of another format, and the memory's past here.
    """
    fields = _missing(line.draft, present.draft, _KEPT_FIELDS)
    if line.draft.position is None and line.draft.session == present.draft.session:
        fields["position"] = present.draft.position
    if line.draft.created_at is None:
        # The line is of no export: other cues than those of its source were added here.
        cues = (*line.draft.cues, *present.draft.cues)
        fields["cues"] = united(cues, line.draft.content, FIELDS["cues"].most)
        fields["learned_cues"] = present.draft.learned_cues
    kept_past = _missing(line.past, present.past, _KEPT_PAST)
    kept_past |= _signature(line, present, importer)
    # The change itself sets these two.
    kept_past["revision"] = present.past.revision
    kept_past["updated_at"] = present.past.updated_at
    draft = replace(line.draft, **fields)
    past = replace(line.past, **kept_past)
    if draft == present.draft and past == present.past:
        return None
    return replace(line, draft=draft, past=past)


def _missing(stated: object, kept: object, names: Sequence[str]) -> dict[str, Any]:
    """Return the values of these names that `kept` has and `stated` lacks."""
    missing = {}
    for name in names:
        if getattr(stated, name) is None:
            missing[name] = getattr(kept, name)
    return missing
