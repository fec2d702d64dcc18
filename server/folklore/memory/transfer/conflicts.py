"""What an import does with memories that are here already: pure, so that a dry run and a real one cannot differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal
from uuid import UUID

from folklore.db.stores.memories import PreparedMemory
from folklore.db.stores.transfer import Present
from folklore.db.stores.transfer_rows import Arrival, Entry
from folklore.errors import Conflict

OnConflict = Literal["skip", "overwrite", "fail"]


@dataclass(slots=True)
class Known:
    """What is taken in a namespace, as far as the import has seen: ids, living texts, idempotency keys.

    One lasts for a whole dry run, which finds the database in each batch as it was before the first: what went in since
    (`went_in`: a digest of what its line said) and the keys that were given up for others (`freed`) are known better.
    """

    ids: set[UUID] = field(default_factory=set)
    texts: dict[bytes, UUID] = field(default_factory=dict)
    text_of: dict[UUID, bytes] = field(default_factory=dict)
    keys: dict[str, UUID] = field(default_factory=dict)
    went_in: dict[UUID, int] = field(default_factory=dict)
    freed: dict[str, UUID] = field(default_factory=dict)

    def learn(self, present: Iterable[Present]) -> None:
        """Take in what the database answered."""
        for key, id_ in self.freed.items():
            if self.keys.get(key) == id_:
                del self.keys[key]
        for item in present:
            self.ids.add(item.id)
            if item.alive and item.id not in self.went_in:
                self._hold(item.digest, item.id)
            if item.key is not None and (item.asked or self.freed.get(item.key) != item.id):
                self.keys.setdefault(item.key, item.id)

    def take(self, arrival: Arrival, line: Arrival) -> None:
        """Count an arrival as being here from now on; `line` is as it came."""
        self.ids.add(arrival.id)
        self.went_in[arrival.id] = _said(line)
        if arrival.alive:
            self._hold(arrival.prepared.digest, arrival.id)
        if (key := arrival.prepared.draft.idempotency_key) is not None:
            self.keys.setdefault(key, arrival.id)
            if self.freed.get(key) == arrival.id:
                del self.freed[key]

    def give_up(self, arrival: Arrival, was: Entry | None) -> bytes | None:
        """The text of a memory that is about to be replaced is free for others; its key, with the next batch."""
        own, key = None if was is None else was.draft.idempotency_key, arrival.prepared.draft.idempotency_key
        if own is not None and key not in (None, own):
            self.freed[own] = arrival.id
        text = self.text_of.pop(arrival.id, None)
        if text is not None:
            del self.texts[text]
        return text

    def merged(self, arrival: Arrival, stored: Entry | None) -> Arrival | None:
        """The arrival as it replaces what is here; None if that changes nothing."""
        said = self.went_in.get(arrival.id)
        if said is None:
            return _merged(arrival, stored)
        return None if said == _said(arrival) else arrival

    def _hold(self, text: bytes, id_: UUID) -> None:
        if self.texts.setdefault(text, id_) == id_:
            self.text_of[id_] = text

    def holder(self, arrival: Arrival) -> UUID | None:
        """Another memory that has its text or its idempotency key."""
        prepared = arrival.prepared
        text = self.texts.get(prepared.digest) if arrival.alive else None
        key = prepared.draft.idempotency_key
        return next((id_ for id_ in (text, self.keys.get(key) if key else None) if id_ not in (None, arrival.id)), None)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of each arrival of a batch; a refusal says why."""

    fresh: tuple[Arrival, ...]
    replacing: tuple[Arrival, ...]
    duplicates: tuple[Arrival, ...]
    refused: tuple[tuple[Arrival, str], ...]


def judge(arrivals: Sequence[Arrival], known: Known, stored: Mapping[UUID, Entry], policy: OnConflict) -> Verdict:
    """Decide in the order of the lines; `known` learns every arrival that goes in.

    `stored` holds the memories that arrivals may replace. Raises Conflict at the first one under `fail`.
    """
    fresh: list[Arrival] = []
    replacing: dict[UUID, Arrival] = {}
    duplicates: list[Arrival] = []
    refused: list[tuple[Arrival, str]] = []
    late = _superfluous(arrivals) if policy == "overwrite" else frozenset()
    given_up: set[bytes | None] = set()
    for arrival in arrivals:
        holder = known.holder(arrival)
        if arrival.line in late:
            duplicates.append(arrival)
        elif arrival.id in known.ids and policy == "overwrite":
            merged = known.merged(arrival, stored.get(arrival.id))
            if merged is None:
                duplicates.append(arrival)
            elif holder is not None:
                refused.append((arrival, f"its text or idempotency key belongs to {holder}."))
            elif merged.prepared.digest in given_up:  # one statement replaces all; the order within it is not ours
                refused.append((arrival, "its text was another memory's until this import; import it again."))
            else:
                replacing[arrival.id] = merged
                given_up.add(known.give_up(arrival, stored.get(arrival.id)))
                known.take(merged, arrival)
        elif arrival.id in known.ids or holder is not None:
            if policy == "fail":
                raise Conflict(
                    f"Line {arrival.line} is here already, as {holder or arrival.id}.",
                    hint="Nothing of its batch was written; --on-conflict skip or overwrite goes on.",
                )
            duplicates.append(arrival)
        else:
            fresh.append(arrival)
            known.take(arrival, arrival)
    return Verdict(tuple(fresh), tuple(replacing.values()), tuple(duplicates), tuple(refused))


def _said(line: Arrival) -> int:
    """All that a line says, in eight bytes: a dry run may be of very many."""
    return hash(repr((line.prepared.draft, line.past)))


def _superfluous(arrivals: Sequence[Arrival]) -> frozenset[int]:
    """The lines that a later line of the same id overwrites anyway."""
    last = {arrival.id: arrival.line for arrival in arrivals}
    return frozenset(arrival.line for arrival in arrivals if last[arrival.id] != arrival.line)


def _merged(arrival: Arrival, stored: Entry | None) -> Arrival | None:
    """The arrival as it replaces `stored`; None if that changes nothing.

    What a line leaves out is gone, as an export leaves out what is not set; except what a memory always has (author,
    time, language, place in its session) and what it lived through here.
    """
    if stored is None:  # erased a moment ago
        return arrival
    draft, past, was = arrival.prepared.draft, arrival.past, stored.past
    same_session = draft.session == stored.draft.session
    draft = replace(
        draft,
        id=stored.draft.id,
        author=draft.author or stored.draft.author,
        created_at=draft.created_at or stored.draft.created_at,
        language=draft.language or stored.draft.language,
        position=stored.draft.position if draft.position is None and same_session else draft.position,
        idempotency_key=draft.idempotency_key or stored.draft.idempotency_key,
    )
    past = replace(
        past,
        agent=past.agent or was.agent,
        quality=was.quality if past.quality is None else past.quality,
        trust=past.trust or was.trust,
        last_recalled_at=past.last_recalled_at or was.last_recalled_at,
        recall_count=was.recall_count if past.recall_count is None else past.recall_count,
        confirmed_count=was.confirmed_count if past.confirmed_count is None else past.confirmed_count,
        # These two tell of the change itself.
        revision=was.revision,
        updated_at=was.updated_at,
    )
    if (draft, past) == (stored.draft, was):
        return None
    return replace(arrival, prepared=PreparedMemory(arrival.id, draft, arrival.prepared.digest), past=past)
