"""The statements of a recall: words of the question, samples of the scope, the two branches, the candidates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from uuid import UUID

from pgvector import HalfVector

from folklore.db.database import Database, Plans, Row, Session
from folklore.db.rows import filtered, memory_of, seen, visibility
from folklore.db.session import PinnedSession
from folklore.db.stores.recall_lexemes import ScopeLexemes
from folklore.db.stores.recall_rows import (
    Bm25,
    Candidate,
    CandidateQuery,
    DenseQuery,
    Hits,
    Indexed,
    Scope,
    TermForm,
)
from folklore.model import FIELDS, Recalled
from folklore.text.query.tsquery import function_word_text, quoted

# Relations followed from one memory.
_RELATIONS = 5
# Greatest number of hidden memories expected among the best.
_HIDDEN = 40
# Vectors that are asked of the index for each wanted memory: some are passages of one, some are hidden.
_INDEXED_EACH = 5
# Vectors that are compared in the time in which the index finds one, and how many it finds at least.
_COMPARED = 50
_FEWEST_HITS = 100
# Among the best of a crowded scope, at most so many passages of one memory are expected.
_PASSAGES_OF_ONE = 4
# Up to so many memories, planning for the parameters takes longer than it saves.
_SMALL = 20_000
# Of so many memories that filters let through, each is compared: else all in scope would be, in search of them.
_FEW = 500
# Columns that postings and vectors are made of. With `as_of`, a memory in which one of them changed since is not found
# by its present words or vector.
_SEARCHED = [name for name, declared in FIELDS.items() if declared.indexed]
_EMBEDDED: Sequence[str] | None = ["content"]
# Memories whose cues hold a word of an expression that are compared with it.
_SATISFYING = 1_000
# Changes of words since `as_of` whose former texts are searched: each text is made into words again.
_FORMER = 1_000


class RecallStatements:
    """Statements that run on connections of their own, so that branches can run at the same time.

    After `pinned()`, statements with kept plans run one after another on one connection, until it is released.
    """

    def __init__(self, database: Database, pinned: PinnedSession | None = None) -> None:
        self._database = database
        self._pinned = pinned

    def pinned(self) -> RecallStatements:
        """Return these statements with one connection for those with kept plans."""
        return RecallStatements(self._database, self._database.pinned_session())

    async def release(self) -> None:
        """Release the pinned connection; a later statement takes another."""
        if self._pinned is not None:
            await self._pinned.release()

    def _session(self, plans: Plans = "kept") -> AbstractAsyncContextManager[Session]:
        if self._pinned is not None and plans == "kept":
            return self._pinned
        return self._database.session(
            plans, release_later=plans == "scan", guarded=True
        )

    async def _rows(
        self, name: str, plans: Plans = "kept", /, **values: object
    ) -> list[Row]:
        async with self._session(plans) as session:
            return await session.rows(name, **values)

    async def _in_scope(
        self, scope: Scope, name: str, plans: Plans = "kept", /, **values: object
    ) -> list[Row]:
        async with self._session(plans) as session:
            if (
                scope.others is None
                or session.row_security
                or session.shards.distributed
            ):
                return await session.rows(
                    name, namespaces=list(scope.namespaces), **values
                )
            return await session.rows(
                f"{name}:others", namespaces=list(scope.others), **values
            )

    async def lexemes(
        self,
        scope: Scope,
        tokens: Sequence[str],
        lexemes: Sequence[str],
        languages: Sequence[str],
        budget: int,
    ) -> ScopeLexemes:
        """Read the lexemes of a question in scope: of its tokens in these languages, and of further ones.

        `budget` is the number of postings that are read, the rarest lexemes first.
        """
        values = {
            "tokens": tokens,
            "lexemes": lexemes,
            "languages": list(languages),
            "budget": budget,
        }
        [row] = await self._in_scope(scope, "recall/lexemes", **values)
        return ScopeLexemes.of(row, len(tokens), lexemes)

    async def indexed(self, model: UUID) -> Indexed:
        """Return the number of vectors in the valid HNSW index of a model, about, and if there is one of cues."""
        rows = await self._rows(
            "recall/indexed",
            name=f"embeddings_hnsw_{model.hex}",
            of_cues=f"embeddings_hnsw_cues_{model.hex}",
        )
        if not rows:
            return Indexed(0, of_cues=False)
        return Indexed(max(int(rows[0]["vectors"]), 0), of_cues=rows[0]["of_cues"])

    async def extent(self, scope: Scope, model: UUID) -> int:
        """Return the planner's estimate of the number of vectors in a scope; it reads none."""
        [row] = await self._rows(
            "recall/extent", "fresh", namespaces=list(scope.namespaces), model=model
        )
        return int(json.loads(row[0])[0]["Plan"]["Plan Rows"])

    async def narrowed(self, scope: Scope) -> Scope:
        """Return a scope with the memories that its filters let through, if these are few. At most one statement."""
        filters = scope.filters
        if filters.as_of is not None or not replace(filters, negations=None).selective:
            return scope
        namespaces = list(scope.namespaces)
        limits = visibility(filters, scope.now)
        rows = await self._rows(
            "recall/few", "fresh", namespaces=namespaces, most=_FEW + 1, **limits
        )
        if len(rows) > _FEW:
            return scope
        return replace(scope, few={row[0]: row[1] for row in rows})

    async def terms(
        self, terms: Sequence[tuple[str, str]], languages: Sequence[str]
    ) -> list[TermForm]:
        """Read the terms of an expression, as (text, column or "" for any)."""
        texts = [text for text, _ in terms]
        columns = [column for _, column in terms]
        rows = await self._rows(
            "recall/terms", terms=texts, columns=columns, languages=list(languages)
        )
        return [
            TermForm(
                row["number"] - 1,
                row["reading"] == "spelled",
                row["reading"].startswith("whole"),
                tuple(row["lexemes"]),
                tuple(row["positions"]),
                tuple(row["stems"] or ()),
            )
            for row in rows
        ]

    async def expression(
        self,
        scope: Scope,
        expression: str,
        bm25: Bm25,
        in_scope: ScopeLexemes,
        fetch: int,
        bound: int,
    ) -> Hits:
        """Find memories that satisfy a tsquery, by the weight of the lexemes that they hold, then the newest.

        One more statement if any cues hold a lexeme, for those that satisfy it by their cues.
        """
        values = {"expression": expression, **_weighed(bm25)}
        hits = await self._matching(
            "recall/expression", scope, fetch=fetch, bound=bound, **values
        )
        if bm25.cues:
            found = await self._satisfying(scope, expression, bm25, in_scope, fetch)
            hits = hits.merged(found.without(hits.ids), fetch)
        return await self._with_former(hits, scope, bm25, fetch, expression)

    async def _satisfying(
        self,
        scope: Scope,
        expression: str,
        bm25: Bm25,
        in_scope: ScopeLexemes,
        fetch: int,
    ) -> Hits:
        """Find memories whose cues hold a lexeme and that satisfy a tsquery, of the best _SATISFYING."""
        memories, scores, masses = in_scope.ordered(bm25)
        by_cues = in_scope.with_cues(bm25, memories)
        located = in_scope.located(memories[by_cues][:_SATISFYING])
        name, filters = seen(
            "recall/keyword:satisfying", scope.filters, scope.now, _SEARCHED
        )
        rows = await self._rows(
            name,
            "fresh",
            namespaces=list(set(located["spaces"])),
            **located,
            scores=scores[by_cues][:_SATISFYING].tolist(),
            masses=masses[by_cues][:_SATISFYING].tolist(),
            expression=expression,
            fetch=fetch,
            **filters,
        )
        return Hits.of(scope.within(rows))

    async def function_words(
        self, scope: Scope, bm25: Bm25, capitals: Sequence[str], fetch: int, bound: int
    ) -> Hits:
        """Find memories that contain any of the function words of a question that has no other words.

        Memories with one of `capitals`, words that the question does not spell in lower case alone, come first.
        """
        expressions = [function_word_text(word) for word in bm25.weights]
        return await self._matching(
            "recall/function_words",
            scope,
            expression=" | ".join(expressions),
            expressions=expressions,
            weight=next(iter(bm25.weights.values())),
            capitals=list(capitals),
            fetch=fetch,
            bound=bound,
        )

    async def _matching(self, name: str, scope: Scope, /, **values: object) -> Hits:
        async with self._session("fresh") as session:
            name = f"{name}:token" if session.row_security else name
            name, filters = filtered(name, scope.filters, scope.now, _SEARCHED)
            return Hits.of(
                await session.rows(
                    name, namespaces=list(scope.namespaces), **values, **filters
                )
            )

    async def _of_few(
        self, name: str, few: Mapping[UUID, UUID], /, **values: object
    ) -> list[Row]:
        return await self._rows(
            name, ids=list(few), namespaces=list(set(few.values())), **values
        )

    async def dense(self, scope: Scope, query: DenseQuery, fetch: int) -> Hits:
        """Find the nearest memories by cosine, a long one by its best passage.

        Two statements where hidden memories, or several passages of one, leave too few; so does a search of the index,
        which is then repeated exactly.
        """
        query_values = {"query": HalfVector(query.vector), "fetch": fetch}
        if scope.few is not None:
            return Hits.of(
                await self._of_few(
                    "recall/few_vectors", scope.few, model=query.model, **query_values
                )
            )
        if query.visited:
            variant = "" if query.cues_indexed else ":no_cues"
            name, filters = seen(
                f"recall/nearest:{len(query.vector)}:{query.model}{variant}",
                scope.filters,
                scope.now,
                _EMBEDDED,
            )
            for visited in (min(_INDEXED_EACH * fetch, query.visited), query.visited):
                rows = await self._in_scope(
                    scope, name, "scan", scan=visited, **query_values, **filters
                )
                if len(rows) >= fetch:
                    return Hits.of(scope.within(rows), "hnsw")
        plans: Plans = (
            "scan" if scope.filters.empty and (query.total or 0) <= _SMALL else "fresh"
        )
        name, filters = seen("recall/dense", scope.filters, scope.now, _EMBEDDED)
        # The longer the list of the best, the longer it takes to keep it: of 280 a fifth of a search among 2,000.
        best = fetch + _HIDDEN
        if query.crowded:
            best *= _PASSAGES_OF_ONE
        most_checked = (best, None) if scope.filters.empty else (None,)
        rows = []
        crowded = query.crowded
        for checked in most_checked:
            rows = await self._in_scope(
                scope,
                name,
                plans,
                model=query.model,
                scan=checked,
                **query_values,
                **filters,
            )
            if len(rows) >= min(fetch, query.total or fetch):
                break
            crowded = crowded or checked is not None
        return replace(Hits.of(scope.within(rows)), crowded=crowded)

    async def keyword(
        self, scope: Scope, bm25: Bm25, in_scope: ScopeLexemes, fetch: int
    ) -> Hits:
        """Find the memories with the greatest BM25 score. A further statement where hidden ones leave too few."""
        if scope.few is not None:
            packed = await self._of_few("recall/few_numbers", scope.few)
            return in_scope.best_of_few(bm25, scope.few, packed, fetch)
        statement, filters = seen("recall/keyword", scope.filters, scope.now, _SEARCHED)
        (memories, scores, masses), rows = in_scope.ordered(bm25), list[Row]()
        begin = 0  # few are hidden
        end = fetch + fetch // 2
        while begin < len(memories) and len(rows) < fetch:
            located = in_scope.located(memories[begin:end])
            rows += await self._rows(
                statement,
                namespaces=list(
                    set(located["spaces"])
                ),  # of thousands, few: each look-up would sort all of them
                **located,
                scores=scores[begin:end].tolist(),
                masses=masses[begin:end].tolist(),
                fetch=fetch - len(rows),
                **filters,
            )
            begin = end
            end = 10 * end
        return await self._with_former(Hits.of(scope.within(rows)), scope, bm25, fetch)

    async def _with_former(
        self,
        hits: Hits,
        scope: Scope,
        bm25: Bm25,
        fetch: int,
        expression: str | None = None,
    ) -> Hits:
        """Add the memories whose words at `as_of` were others. One statement, if the filters have `as_of`."""
        if scope.filters.as_of is None:
            return hits
        rows = await self._rows(
            "recall/former",
            "fresh",
            namespaces=list(scope.namespaces),
            searched=_SEARCHED,
            expression=expression,
            bound=_FORMER,
            fetch=fetch,
            **_weighed(bm25),
            **visibility(scope.filters, scope.now),
        )
        return hits.merged(Hits.of(rows), fetch)

    async def candidates(
        self, scope: Scope, query: CandidateQuery
    ) -> dict[UUID, Candidate]:
        """Return the candidates, and the memories linked to some of them."""
        name = "recall/pool:no_vectors"
        vectors = dict[str, object]()
        embedded = None
        if (near := query.near) is not None:
            name = "recall/pool"
            embedded = _EMBEDDED
            vectors = {"model": near.model, "query": HalfVector(near.vector)}
        statement, filters = seen(name, scope.filters, scope.now, embedded)
        read = {
            "ids": list(query.ids),
            "spreading": list(query.spreading),
            "max_relations": _RELATIONS,
        }
        linked = {"reach": query.reach, "related": query.related, **vectors}
        rows = await self._rows(
            statement, namespaces=list(query.spaces), **read, **linked, **filters
        )
        return {
            row["id"]: Candidate.of(row, scope.namespaces[row["namespace_id"]])
            for row in rows
        }

    async def expand(
        self, scope: Scope, ids: Sequence[UUID], tags: Sequence[str], **how: object
    ) -> list[Recalled]:
        """Find memories related to several of these results, at the end of chains of relations, and those with a tag.

        `how` has the parameters `bridges`, `hops`, `least_strength` and `most` of the statement.
        """
        statement, filters = filtered("recall/expand", scope.filters, scope.now)
        values = {
            "namespaces": list(scope.namespaces),
            "ids": list(ids),
            "entities": list(tags),
        }
        rows = await self._rows(
            statement, "fresh", **values, **how, max_relations=_RELATIONS, **filters
        )
        return [
            Recalled(
                memory_of(row, scope.namespaces[row["namespace_id"]]),
                expanded=row["by"],
            )
            for row in rows
        ]


def visits(indexed: int, extent: int, fetch: int) -> int:
    """Return how many of `extent` vectors in scope an index of `indexed` may be asked for; 0: comparing is quicker."""
    # For each that is in scope, the index finds indexed / extent.
    hits = max(_FEWEST_HITS, _INDEXED_EACH * fetch * indexed / max(extent, 1))
    return extent // _COMPARED if indexed and extent >= _COMPARED * hits else 0


def _weighed(bm25: Bm25) -> dict[str, object]:
    stems = [bm25.query.stems.get(lexeme) for lexeme in bm25.weights]
    cues = bm25.cues.values()
    return {
        "lexemes": [
            *map(quoted, bm25.weights),
            *(" | ".join(map(quoted, cue.lexemes)) for cue in cues),
        ],
        "weights": [*bm25.weights.values(), *(cue.weight for cue in cues)],
        "stems": [
            *(None if stem is None else quoted(stem) for stem in stems),
            *(None for _ in cues),
        ],
        "saturation": bm25.k1,
        "flat": bm25.k1 * (1.0 - bm25.b),
        "growth": bm25.k1 * bm25.b / max(bm25.query.corpus.mean_length, 1.0),
    }
