"""Lexemes in scope, of one moment: kept statistics and entries of packed memories, and the lexemes of fresh ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from folklore.db.database import Row
from folklore.db.rows import in_cues, is_of_cues, lexeme_hash
from folklore.db.stores.recall_rows import NOTHING, Bm25, CorpusStatistics, Hits
from folklore.lazy import NDArray, numpy as np

# Memories are numbered for one question: packed ones by the index of their namespace and their number there, fresh ones
# from here on.
_FRESH = 1 << 62
# The bytes of a packed entry: the number of a memory, for a lexeme of a text also its frequency and the length.
_ENTRY = [("number", ">i4"), ("frequency", ">i2"), ("length", ">i2")]


class Analysed(NamedTuple):
    """A lexeme of a token of a question, and its kind.

    `kind` is `word` for a word of a language, `spelled` for one as it is spelled, `compound`, or `joined` for two parts
    as one word of a language. `position` is that of the word within the token.
    """

    kind: str
    position: int
    language: str
    lexeme: str


class Postings(NamedTuple):
    """The memories that hold a lexeme, by their numbers for this question, with its frequencies and their lengths."""

    memories: NDArray[np.int64]
    frequencies: NDArray[np.float64]
    lengths: NDArray[np.float64]

    def between(self, begin: int, end: int) -> Postings:
        """Return a part of them."""
        return Postings(
            self.memories[begin:end],
            self.frequencies[begin:end],
            self.lengths[begin:end],
        )

    def joined(self, other: Postings) -> Postings:
        """Return these and others, which are of other memories."""
        return Postings(
            *(np.concatenate(column) for column in zip(self, other, strict=True))
        )

    def without(self, other: Postings | None) -> Postings:
        """Return those that do not hold the other lexeme."""
        if other is None or not len(self.memories):
            return self
        mask = ~np.isin(self.memories, other.memories, assume_unique=True)
        return Postings(self.memories[mask], self.frequencies[mask], self.lengths[mask])


@dataclass(frozen=True, slots=True)
class ScopeLexemes:
    """The lexemes of a question in scope, of packed memories and of fresh ones.

    Postings know a lexeme by its hash (`lexeme_hash`), and so do the mappings here.
    """

    corpus: CorpusStatistics
    # The lexemes of each token that was read, in order.
    analysed: Sequence[Sequence[Analysed]]
    # The number of packed memories with a lexeme, and their postings unless it is too common to be read.
    packed_documents: Mapping[int, int]
    packed: Mapping[int, Postings]
    fresh: Mapping[int, Postings]
    # The rows of fresh memories with any lexeme, in the order of their ids.
    fresh_rows: NDArray[np.intp]
    # Ids, 16 bytes each: of namespaces with packed memories in their order, and of the fresh memories and their
    # namespaces by row.
    spaces: bytes
    fresh_spaces: bytes
    fresh_ids: bytes

    @classmethod
    def of(cls, row: Row, tokens: int, lexemes: Iterable[str]) -> ScopeLexemes:
        """Read the row of recall/lexemes, for this number of tokens and further lexemes."""
        analysed = _analysed(row, tokens)
        of_texts = set(lexemes)
        for items in analysed:
            of_texts.update(item.lexeme for item in items)
        of_cues = map(in_cues, of_texts)

        lengths = np.frombuffer(row["fresh_lengths"] or b"", ">i2").astype(np.float64)
        total = int(row["total"]) + len(lengths)
        all_lengths = float(row["length"]) + float(lengths.sum())
        counts = zip(row["hashes"] or (), row["documents"] or (), strict=True)
        packed, spaces = _packed(row)
        fresh, fresh_rows = _fresh(row, lengths, (*of_texts, *of_cues))
        return cls(
            corpus=CorpusStatistics(total, all_lengths / max(total, 1)),
            analysed=analysed,
            packed_documents={key: int(count) for key, count in counts},
            packed=packed,
            fresh=fresh,
            fresh_rows=fresh_rows,
            spaces=spaces,
            fresh_spaces=row["fresh_spaces"] or b"",
            fresh_ids=row["fresh_ids"] or b"",
        )

    def documents(self, lexeme: str) -> int:
        """Return how many memories hold a lexeme."""
        key = lexeme_hash(lexeme)
        count = self.packed_documents.get(key, 0)
        if key in self.fresh:
            count += len(self.fresh[key].memories)
        return count

    def documents_without(self, lexeme: str, stem: str) -> int:
        """Return how many memories hold a lexeme, and not the stem; of a common one how many hold it."""
        postings = self.postings(lexeme)
        if postings is None:
            return self.documents(lexeme)
        return len(postings.without(self.postings(stem)).memories)

    def postings(self, lexeme: str) -> Postings | None:
        """Return the memories that hold a lexeme; None if it is too common to be read."""
        key = lexeme_hash(lexeme)
        packed = self.packed.get(key)
        fresh = self.fresh.get(key)
        if packed is None and self.packed_documents.get(key):
            return None
        if packed is None:
            return fresh or _no_postings()
        if fresh is None:
            return packed
        return packed.joined(fresh)

    def holding_in_cues(self, lexemes: Sequence[str]) -> NDArray[np.int64]:
        """Return the memories whose cues hold any of these lexemes; of one too common to be read none."""
        postings = [self.postings(lexeme) for lexeme in lexemes]
        memories = [found.memories for found in postings if found is not None]
        if not memories:
            return _no_postings().memories
        # Most words have one lexeme in cues, which a memory has once.
        if len(memories) == 1:
            return memories[0]
        return np.unique(np.concatenate(memories))

    def with_cues(self, bm25: Bm25, memories: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return for each memory whether its cues hold any of the lexemes."""
        with_any = [np.zeros(0, np.int64)]
        for cue in bm25.cues.values():
            with_any.append(self.holding_in_cues(cue.lexemes))
        return np.isin(memories, np.concatenate(with_any))

    def ordered(
        self, bm25: Bm25
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the memories that hold any lexeme, by descending BM25, their scores, and the weights of their lexemes.

        Robertson and Zaragoza 2009, equation 3.15. A word of cues adds its weight to the score once, whatever the length
        of the text. The weights are those of lexemes of the text alone, without dates.
        """
        groups = [np.zeros(0, np.int64)]  # memories, which may be in several groups
        parts_of_scores = [np.zeros(0)]
        parts_of_weights = [np.zeros(0)]
        for cue in bm25.cues.values():
            with_lexeme = self.holding_in_cues(cue.lexemes)
            groups.append(with_lexeme)
            parts_of_scores.append(np.full(len(with_lexeme), cue.weight))
            parts_of_weights.append(np.zeros(len(with_lexeme)))
        for lexeme, weight in bm25.weights.items():
            postings = self._postings_without_stem(lexeme, bm25.query.stems)
            if postings is None:
                continue
            is_date = lexeme.startswith("@")
            weight_in_text = 0.0 if is_date else weight
            groups.append(postings.memories)
            parts_of_scores.append(_bm25(postings, weight, bm25))
            parts_of_weights.append(np.full(len(postings.memories), weight_in_text))

        memories, indexes = np.unique(np.concatenate(groups), return_inverse=True)
        scores = np.bincount(indexes, np.concatenate(parts_of_scores))
        weights = np.bincount(indexes, np.concatenate(parts_of_weights))
        order = np.argsort(-scores, kind="stable")
        return (
            memories[order],
            scores[order].astype(np.float64),
            weights[order].astype(np.float64),
        )

    def _postings_without_stem(
        self, lexeme: str, stems: Mapping[str, str]
    ) -> Postings | None:
        """Return the postings of a lexeme, without the memories that its stem scores already; None if it is too common."""
        postings = self.postings(lexeme)
        if postings is None or lexeme not in stems:
            return postings
        return postings.without(self.postings(stems[lexeme]))

    def best_of_few(
        self, bm25: Bm25, few: Mapping[UUID, UUID], packed: Iterable[Row], fetch: int
    ) -> Hits:
        """Return the best of a few memories, given with their namespaces, by BM25.

        `packed` has the id, the namespace and the number there of each that is packed, as recall/few_numbers.
        """
        id_by_number = self._numbered(few, packed)
        memories, scores, weights = self.ordered(bm25)
        is_wanted = np.isin(memories, list(id_by_number))
        hits = zip(
            [id_by_number[memory] for memory in memories[is_wanted].tolist()],
            scores[is_wanted].tolist(),
            weights[is_wanted].tolist(),
            strict=True,
        )
        best = sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:fetch]
        if not best:
            return NOTHING
        ids, best_scores, best_weights = zip(*best, strict=True)
        spaces = frozenset(few[id_] for id_ in ids)
        return Hits(ids, best_scores, best_weights, spaces=spaces)

    def _numbered(
        self, few: Mapping[UUID, UUID], packed: Iterable[Row]
    ) -> dict[int, UUID]:
        """Return the ids of a few memories by their numbers for this question."""
        spaces = np.frombuffer(self.spaces, "V16").tolist()
        index_of = {space: index for index, space in enumerate(spaces)}
        numbered = {}
        for row in packed:
            space_index = index_of.get(row["namespace_id"].bytes)
            if space_index is not None:
                numbered[space_index << 32 | row["number"]] = row["id"]

        ids = np.frombuffer(self.fresh_ids, "V16")[self.fresh_rows].tolist()
        for index, id_bytes in enumerate(ids):
            id_ = UUID(bytes=id_bytes)
            if id_ in few:
                numbered[_FRESH + index] = id_
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


def _analysed(row: Row, tokens: int) -> list[list[Analysed]]:
    """Return the lexemes of each token, whose numbers in the row begin with 1."""
    analysed: list[list[Analysed]] = [[] for _ in range(tokens)]
    names = ("token_numbers", "kinds", "positions", "languages", "lexemes")
    columns = [row[name] or () for name in names]
    for number, *item in zip(*columns, strict=True):
        analysed[number - 1].append(Analysed(*item))
    return analysed


def _bm25(postings: Postings, weight: float, bm25: Bm25) -> NDArray[np.float64]:
    """Return what a lexeme of this weight adds to the score of each of its postings."""
    mean_length = max(bm25.query.corpus.mean_length, 1.0)
    longer = bm25.k1 * (1.0 - bm25.b + bm25.b * postings.lengths / mean_length)
    frequencies = postings.frequencies
    return weight * (bm25.k1 + 1.0) * frequencies / (frequencies + longer)


def _no_postings() -> Postings:
    return Postings(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


def _packed(row: Row) -> tuple[dict[int, Postings], bytes]:
    """Return the packed postings of each lexeme that was read, and the namespaces with any, in the order of their ids."""
    names = ("rare", "spaces", "counts", "entries")
    of_texts = []
    of_cues = []
    for part in zip(*(row[name] or () for name in names), strict=True):
        key, *_ = part
        if is_of_cues(key):
            of_cues.append(part)
        else:
            of_texts.append(part)
    spaces = np.unique(np.frombuffer(b"".join(row["spaces"] or ()), "S16"))
    postings = _postings_of(of_texts, spaces, np.dtype(_ENTRY))
    postings |= _postings_of(of_cues, spaces, np.dtype(_ENTRY[:1]))
    return postings, spaces.tobytes()


def _postings_of(
    parts: Sequence[tuple[int, bytes, bytes, bytes]],
    spaces: NDArray[np.bytes_],
    entry: np.dtype[np.void],
) -> dict[int, Postings]:
    """Return the postings of lexemes by their packed entries.

    A part has the hash of a lexeme, namespaces with any entry, the number of these in each, and the entries. `spaces` are all
    namespaces, by which memories are numbered.
    """
    if not parts:
        return {}
    keys, spaces_of_parts, counts_of_parts, entries_of_parts = zip(*parts, strict=True)
    indexes = np.searchsorted(spaces, np.frombuffer(b"".join(spaces_of_parts), "S16"))
    counts = np.frombuffer(b"".join(counts_of_parts), ">i4")
    entries = np.frombuffer(b"".join(entries_of_parts), entry)
    memories = entries["number"] + np.repeat(indexes << 32, counts)
    if entry.names == ("number",):  # a word of cues counts once, whatever the length
        every = Postings(memories, np.ones(len(memories)), np.zeros(len(memories)))
    else:
        every = Postings(
            memories,
            entries["frequency"].astype(float),
            entries["length"].astype(float),
        )

    postings: dict[int, Postings] = {}
    begin = 0
    for key, raw in zip(keys, entries_of_parts, strict=True):
        end = begin + len(raw) // entry.itemsize
        found = every.between(begin, end)
        if key in postings:  # of another database
            found = postings[key].joined(found)
        postings[key] = found
        begin = end
    return postings


def _fresh(
    row: Row, lengths: NDArray[np.float64], lexemes: Collection[str]
) -> tuple[dict[int, Postings], NDArray[np.intp]]:
    """Return the postings of lexemes, by hash, among fresh memories, and the rows of these in the order of their ids."""
    if not len(lengths) or not lexemes:
        return {}, np.zeros(0, np.intp)
    # Columns of all lexemes of fresh memories, memory by memory.
    hashes = np.frombuffer(row["fresh_hashes"], ">i4")
    hashes_of_each = np.frombuffer(row["fresh_counts"], ">i4")
    all_frequencies = np.frombuffer(row["fresh_frequencies"], ">i2")

    keys = sorted(set(map(lexeme_hash, lexemes)))
    targets = np.array(keys, np.int32)
    entries, indexes = _occurrences(hashes, targets)
    rows = np.searchsorted(np.cumsum(hashes_of_each), entries, side="right")
    frequencies = all_frequencies[entries].astype(np.float64)

    matched = np.unique(rows)
    high, low = np.frombuffer(row["fresh_ids"], ">u8").reshape(-1, 2)[matched].T
    matched = matched[np.lexsort((low, high))]
    numbers = np.empty(len(lengths), np.int64)
    numbers[matched] = _FRESH + np.arange(len(matched))
    postings = {}
    for index in np.unique(indexes).tolist():
        mask = indexes == index
        rows_of_lexeme = rows[mask]
        postings[keys[index]] = Postings(
            numbers[rows_of_lexeme], frequencies[mask], lengths[rows_of_lexeme]
        )
    return postings, matched


def _occurrences(
    hashes: NDArray[np.int32], targets: NDArray[np.int32]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the indexes of the hashes that are targets (sorted), and of each the index of its target."""
    # A table by their last 16 bits leaves out nearly all other hashes.
    table = np.zeros(1 << 16, bool)
    table[targets & 0xFFFF] = True
    entries = np.flatnonzero(table[hashes.astype(np.int32) & 0xFFFF])
    indexes = np.searchsorted(targets, hashes[entries])
    is_target = targets[np.minimum(indexes, len(targets) - 1)] == hashes[entries]
    return entries[is_target], indexes[is_target]
