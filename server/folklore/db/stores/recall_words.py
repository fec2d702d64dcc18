"""Words in scope, of one moment: kept statistics and entries of packed memories, and the words of fresh ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from folklore.db.database import Row
from folklore.db.rows import in_cues, is_of_cues, word_of
from folklore.db.stores.recall_rows import NOTHING, Bm25, CorpusStatistics, Hits
from folklore.lazy import NDArray, numpy as np

# Memories are numbered for one question: packed ones by the place of their namespace and their number there, fresh ones
# from here on.
_FRESH = 1 << 62


class Analysed(NamedTuple):
    """A lexeme of a piece of a question, and its kind.

    A `word` of a language, as it is `spelled`, a `compound`, or two parts `joined` to a word of a language.
    """

    kind: str
    position: int
    language: str
    lexeme: str


class Matches(NamedTuple):
    """The memories that hold a word, by their numbers for this question, with its frequencies and their lengths."""

    memories: NDArray[np.int64]
    frequencies: NDArray[np.float64]
    lengths: NDArray[np.float64]

    def between(self, begin: int, end: int) -> Matches:
        """Return a part of them."""
        return Matches(
            self.memories[begin:end],
            self.frequencies[begin:end],
            self.lengths[begin:end],
        )

    def joined(self, other: Matches) -> Matches:
        """Return these and others, which are of other memories."""
        return Matches(
            *(np.concatenate(column) for column in zip(self, other, strict=True))
        )

    def without(self, other: Matches | None) -> Matches:
        """Return those that do not hold the other word."""
        if other is None or not len(self.memories):
            return self
        mask = ~np.isin(self.memories, other.memories, assume_unique=True)
        return Matches(self.memories[mask], self.frequencies[mask], self.lengths[mask])


@dataclass(frozen=True, slots=True)
class ScopeWords:
    """Words of a question in scope.

    `analysed` are the pieces that were read, in order. `packed` has the number of documents of a word in packed
    memories, `entries` its postings if they were read, `fresh` its matches among fresh memories, `fresh_rows` the rows
    of these, in the order of their ids.
    """

    corpus: CorpusStatistics
    analysed: Sequence[Sequence[Analysed]]
    packed: Mapping[int, int]
    entries: Mapping[int, Matches]
    fresh: Mapping[int, Matches]
    fresh_rows: NDArray[np.intp]
    spaces: bytes
    fresh_spaces: bytes
    fresh_ids: bytes

    @classmethod
    def of(cls, row: Row, pieces: int, lexemes: Iterable[str]) -> ScopeWords:
        """Make them from the row of recall/words; `lexemes` are those that it was given."""
        analysed: list[list[Analysed]] = [[] for _ in range(pieces)]
        columns = (
            row[name] or ()
            for name in ("places", "kinds", "positions", "languages", "lexemes")
        )
        for place, *item in zip(*columns, strict=True):
            analysed[place - 1].append(Analysed(*item))
        of_text = {*lexemes, *(item.lexeme for parts in analysed for item in parts)}
        entries, spaces = _entries(row)
        lengths = np.frombuffer(row["fresh_lengths"] or b"", ">i2").astype(np.float64)
        total = int(row["total"]) + len(lengths)
        return cls(
            CorpusStatistics(
                total, (float(row["length"]) + float(lengths.sum())) / max(total, 1)
            ),
            analysed,
            {
                word: int(count)
                for word, count in zip(
                    row["words"] or (), row["documents"] or (), strict=True
                )
            },
            entries,
            *_fresh(row, lengths, (*of_text, *map(in_cues, of_text))),
            spaces,
            row["fresh_spaces"] or b"",
            row["fresh_ids"] or b"",
        )

    def documents(self, lexeme: str) -> int:
        """Return how many memories hold a lexeme."""
        word = word_of(lexeme)
        return self.packed.get(word, 0) + (
            len(self.fresh[word].memories) if word in self.fresh else 0
        )

    def documents_without(self, lexeme: str, stem: str) -> int:
        """Return how many memories hold a lexeme, and not the stem; of a common one how many hold it."""
        matches = self.matches(lexeme)
        if matches is None:
            return self.documents(lexeme)
        return len(matches.without(self.matches(stem)).memories)

    def matches(self, lexeme: str) -> Matches | None:
        """Return the memories that hold a lexeme; None if it is too common to be read."""
        word = word_of(lexeme)
        packed = self.entries.get(word)
        fresh = self.fresh.get(word)
        if packed is None:
            if self.packed.get(word):
                return None
            return _no_matches() if fresh is None else fresh
        if fresh is None:
            return packed
        return packed.joined(fresh)

    def holding_in_cues(self, forms: Sequence[str]) -> NDArray[np.int64]:
        """Return the memories whose cues hold a word in any of its forms; of a form too common to be read none."""
        matches = [self.matches(form) for form in forms]
        memories = [found.memories for found in matches if found is not None]
        if not memories:
            return _no_matches().memories
        # Most words have one form, which a memory has once.
        if len(memories) == 1:
            return memories[0]
        return np.unique(np.concatenate(memories))

    def with_cues(self, bm25: Bm25, memories: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return for each memory whether its cues hold any of the words."""
        held = [self.holding_in_cues(cue.lexemes) for cue in bm25.cues.values()]
        return np.isin(memories, np.concatenate([np.zeros(0, np.int64), *held]))

    def ordered(
        self, bm25: Bm25
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Return memories by BM25 (Robertson and Zaragoza 2009, equation 3.15), scores, weights of the words held.

        A word of cues adds its weight once, whatever the length of the text.
        """
        query = bm25.query
        evidences = [np.zeros(0)]
        masses = [np.zeros(0)]
        groups = [np.zeros(0, np.int64)]
        for cue in bm25.cues.values():
            held = self.holding_in_cues(cue.lexemes)
            groups.append(held)
            evidences.append(np.full(len(held), cue.weight))
            masses.append(np.zeros(len(held)))
        for lexeme, weight in bm25.weights.items():
            if (matches := self.matches(lexeme)) is not None:
                if (stem := query.stems.get(lexeme)) is not None:
                    matches = matches.without(self.matches(stem))
                longer = bm25.k1 * (
                    1.0
                    - bm25.b
                    + bm25.b * matches.lengths / max(query.corpus.mean_length, 1.0)
                )
                groups.append(matches.memories)
                evidences.append(
                    weight
                    * (bm25.k1 + 1.0)
                    * matches.frequencies
                    / (matches.frequencies + longer)
                )
                masses.append(
                    np.full(len(longer), 0.0 if lexeme.startswith("@") else weight)
                )
        memories, places = np.unique(np.concatenate(groups), return_inverse=True)
        scores = np.bincount(places, np.concatenate(evidences)).astype(np.float64)
        order = np.argsort(-scores, kind="stable")
        mass = np.bincount(places, np.concatenate(masses)).astype(np.float64)
        return memories[order], scores[order], mass[order]

    def best_of_few(
        self, bm25: Bm25, few: Mapping[UUID, UUID], packed: Iterable[Row], fetch: int
    ) -> Hits:
        """Return the best of a few memories, given with their namespaces, by BM25.

        `packed` has the id, the namespace and the number there of each that is packed, as recall/few_numbers.
        """
        wanted = self._numbered(few, packed)
        memories, scores, masses = self.ordered(bm25)
        among = np.isin(memories, list(wanted))
        hits = zip(
            [wanted[memory] for memory in memories[among].tolist()],
            scores[among].tolist(),
            masses[among].tolist(),
            strict=True,
        )
        best = sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:fetch]
        if not best:
            return NOTHING
        ids, best_scores, best_masses = zip(*best, strict=True)
        spaces = frozenset(few[id_] for id_ in ids)
        return Hits(ids, best_scores, best_masses, spaces=spaces)

    def _numbered(
        self, few: Mapping[UUID, UUID], packed: Iterable[Row]
    ) -> dict[int, UUID]:
        """Return the ids of a few memories by their numbers for this question."""
        spaces = np.frombuffer(self.spaces, "V16").tolist()
        places = {space: place for place, space in enumerate(spaces)}
        numbered = {}
        for row in packed:
            place = places.get(row["namespace_id"].bytes)
            if place is not None:
                numbered[place << 32 | row["number"]] = row["id"]

        ids = np.frombuffer(self.fresh_ids, "V16")[self.fresh_rows].tolist()
        for place, id_bytes in enumerate(ids):
            id_ = UUID(bytes=id_bytes)
            if id_ in few:
                numbered[_FRESH + place] = id_
        return numbered

    def located(self, memories: NDArray[np.int64]) -> dict[str, list[object]]:
        """Return where memories are, as recall/keyword takes it: namespaces, numbers of packed, ids of fresh."""
        spaces = list[object]()
        numbers = list[object]()
        ids = list[object]()
        for memory in memories.tolist():
            if memory >= _FRESH:
                begin = 16 * int(self.fresh_rows[memory - _FRESH])
                spaces.append(UUID(bytes=self.fresh_spaces[begin : begin + 16]))
                ids.append(UUID(bytes=self.fresh_ids[begin : begin + 16]))
                numbers.append(None)
            else:
                begin = (memory >> 32) * 16
                spaces.append(UUID(bytes=self.spaces[begin : begin + 16]))
                numbers.append(memory & 0xFFFFFFFF)
                ids.append(None)
        return {"spaces": spaces, "numbers": numbers, "ids": ids}


def _no_matches() -> Matches:
    return Matches(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


def _entries(row: Row) -> tuple[dict[int, Matches], bytes]:
    """Return the entries of each word that was read, and the namespaces that have any, in the order of their ids."""
    parts = list(
        zip(
            *(row[name] or () for name in ("rare", "spaces", "counts", "entries")),
            strict=True,
        )
    )
    spaces = np.unique(np.frombuffer(b"".join(row["spaces"] or ()), "S16"))
    of_texts = [part for part in parts if not is_of_cues(part[0])]
    of_cues = [part for part in parts if is_of_cues(part[0])]
    entry = [("number", ">i4"), ("frequency", ">i2"), ("length", ">i2")]
    matches = _matches_of(of_texts, spaces, np.dtype(entry))
    matches |= _matches_of(of_cues, spaces, np.dtype(entry[:1]))
    return matches, spaces.tobytes()


def _matches_of(
    parts: Sequence[tuple[int, bytes, bytes, bytes]],
    spaces: NDArray[np.bytes_],
    entry: np.dtype[np.void],
) -> dict[int, Matches]:
    """Return the matches of words by their packed entries.

    A part has a word, namespaces with any entry, the number of these in each, and the entries. `spaces` are all
    namespaces, by which memories are numbered.
    """
    if not parts:
        return {}
    words, spaces_of_parts, counts_of_parts, entries_of_parts = zip(*parts, strict=True)
    places = np.searchsorted(spaces, np.frombuffer(b"".join(spaces_of_parts), "S16"))
    counts = np.frombuffer(b"".join(counts_of_parts), ">i4")
    entries = np.frombuffer(b"".join(entries_of_parts), entry)
    memories = entries["number"] + np.repeat(places << 32, counts)
    if entry.names == ("number",):  # a word of cues counts once, whatever the length
        every = Matches(memories, np.ones(len(memories)), np.zeros(len(memories)))
    else:
        every = Matches(
            memories,
            entries["frequency"].astype(float),
            entries["length"].astype(float),
        )

    matches: dict[int, Matches] = {}
    begin = 0
    for word, raw in zip(words, entries_of_parts, strict=True):
        end = begin + len(raw) // entry.itemsize
        found = every.between(begin, end)
        # Several databases have the same word each.
        matches[word] = found if word not in matches else matches[word].joined(found)
        begin = end
    return matches


def _fresh(
    row: Row, lengths: NDArray[np.float64], lexemes: Collection[str]
) -> tuple[dict[int, Matches], NDArray[np.intp]]:
    """Return the matches of lexemes by their words among fresh memories, and the rows of these in the order of their ids."""
    if not len(lengths) or not lexemes:
        return {}, np.zeros(0, np.intp)
    words = sorted({word_of(lexeme) for lexeme in lexemes})
    hashes = np.frombuffer(row["fresh_words"], ">i4")
    targets = np.array(words, np.int32)
    # A table by their last 16 bits leaves out nearly all other words.
    table = np.zeros(1 << 16, bool)
    table[targets & 0xFFFF] = True
    entries = np.flatnonzero(table[hashes.astype(np.int32) & 0xFFFF])
    places = np.searchsorted(targets, hashes[entries])
    same = targets[np.minimum(places, len(targets) - 1)] == hashes[entries]
    entries = entries[same]
    places = places[same]
    rows = np.searchsorted(
        np.cumsum(np.frombuffer(row["fresh_counts"], ">i4")), entries, side="right"
    )
    frequencies = np.frombuffer(row["fresh_frequencies"], ">i2")[entries].astype(
        np.float64
    )
    matched = np.unique(rows)
    high, low = np.frombuffer(row["fresh_ids"], ">u8").reshape(-1, 2)[matched].T
    matched = matched[np.lexsort((low, high))]
    numbers = np.empty(len(lengths), np.int64)
    numbers[matched] = _FRESH + np.arange(len(matched))
    matches = {}
    for place in np.unique(places).tolist():
        mask = places == place
        matches[words[place]] = Matches(
            numbers[rows[mask]], frequencies[mask], lengths[rows[mask]]
        )
    return matches, matched
