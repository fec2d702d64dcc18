"""Caches of one process, the same in every view of the memory: statistics of recalls, and recalled texts."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from cachetools import LRUCache, TTLCache

from folklore.db.stores.recall_lexemes import Analysed
from folklore.db.stores.recall_rows import Indexed
from folklore.model import Answer, Draft, Recalled, Unreadable
from folklore.text import names
from folklore.text.clean import digest
from folklore.text.words import unquoted

_SECONDS = 60.0
_SCOPES = 64
# Words of fresh memories are packed at most once in so many seconds.
_PACKED_EVERY = 10.0
_TOKENS = 20_000

# Texts, and their greatest length: a longer one would delay the answer.
_TEXTS = 2_000
_LONGEST = 4_000

# Sessions that were told how cues are added, and for how long one is remembered that has no id.
_SESSIONS = 10_000
_SESSION_SECONDS = 3_600.0

# Questions that are kept of a session, for how long, and the best results of each.
_ASKING_SESSIONS = 1_000
_QUESTIONS = 16
_RESULTS = 10
_KEPT = timedelta(minutes=30)

# A token of a question, and the languages in which it is read.
ReadToken = tuple[tuple[str, ...], str]


@dataclass(frozen=True, slots=True)
class StatisticsCache:
    """Lexemes of tokens of questions, which depend on nothing else, and for a minute what searches of vectors need.

    `totals` are the memories of recent scopes. `vectors` has, by scope and model, about how many vectors the HNSW index
    has and how many of them are in scope. In the scopes `crowded`, the nearest vectors are of few memories.
    """

    packed: TTLCache[str, bool] = field(
        default_factory=lambda: TTLCache(1, _PACKED_EVERY)
    )
    tokens: LRUCache[ReadToken, Sequence[Analysed]] = field(
        default_factory=lambda: LRUCache(_TOKENS)
    )
    totals: TTLCache[object, int] = field(
        default_factory=lambda: TTLCache(_SCOPES, _SECONDS)
    )
    vectors: TTLCache[tuple[object, UUID], tuple[Indexed, int]] = field(
        default_factory=lambda: TTLCache(_SCOPES, _SECONDS)
    )
    crowded: TTLCache[object, bool] = field(
        default_factory=lambda: TTLCache(_SCOPES, _SECONDS)
    )


class RecalledTexts:
    """Namespaces and digests of the texts recalled last: an assistant that stores one again, in quotes, confirms it."""

    def __init__(self, texts: int = _TEXTS) -> None:
        self._latest: LRUCache[tuple[str, bytes], bool] = LRUCache(texts)

    def add(self, answer: Answer) -> None:
        """Add the texts of an answer."""
        for result in answer.memories:
            if len(result.memory.content) <= _LONGEST:
                self._latest[
                    names.key(result.memory.namespace), digest(result.memory.content)
                ] = True

    def unquoted(
        self, namespace: str, drafts: Sequence[Draft | Unreadable]
    ) -> Sequence[Draft | Unreadable]:
        """Take quotation marks, a bullet or the like off each draft that wraps a recalled memory.

        A store then confirms that memory as a duplicate. Only signs around the whole text are taken off, never a word.
        """
        if not self._latest:
            return drafts
        key = names.key(namespace)
        return [
            draft if isinstance(draft, Unreadable) else self._unquoted(key, draft)
            for draft in drafts
        ]

    def _unquoted(self, namespace: str, draft: Draft) -> Draft:
        if (namespace, digest(draft.content)) in self._latest:
            return draft
        texts = (
            text
            for text in unquoted(draft.content)
            if (namespace, digest(text)) in self._latest
        )
        text = next(texts, None)
        if text is None:
            return draft
        return replace(draft, content=text)


class ToldSessions:
    """The sessions of clients that were told something that is said once in each."""

    def __init__(self) -> None:
        self._named: LRUCache[Hashable, bool] = LRUCache(_SESSIONS)
        self._unnamed: TTLCache[Hashable, bool] = TTLCache(_SESSIONS, _SESSION_SECONDS)

    def is_first(self, caller: Hashable, session: str) -> bool:
        """Return True the first time for a session of a caller, and remember it; without a name, once an hour."""
        told = self._named if session else self._unnamed
        if (caller, session) in told:
            return False
        told[caller, session] = True
        return True


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question that can become a cue, with the keys of the namespaces searched and the best results.

    It is `answered` if a result was a strong or fair match.
    """

    text: str
    at: datetime
    searched: frozenset[str]
    found: frozenset[UUID]
    answered: bool


class AskedQuestions:
    """The latest questions of the sessions that asked last. They are in this process alone, and in no log."""

    def __init__(self) -> None:
        self._sessions: LRUCache[Hashable, deque[AskedQuestion]] = LRUCache(
            _ASKING_SESSIONS
        )

    def add(self, session: Hashable, question: AskedQuestion) -> None:
        """Keep a question of a session."""
        kept = self._sessions.get(session) or deque(maxlen=_QUESTIONS)
        kept.append(question)
        self._sessions[session] = kept

    def latest(self, session: Hashable, now: datetime) -> Iterator[AskedQuestion]:
        """Yield the questions of a session in the last half hour, the latest first."""
        for question in reversed(self._sessions.get(session, ())):
            if now - _KEPT <= question.at <= now:
                yield question


def best_results(answer: Answer, question: int) -> list[Recalled]:
    """Return the best results of an answer to one of its questions, by the number of the question."""
    results = [
        result
        for result in answer.memories
        if result.expanded is None and question in (result.queries or (0,))
    ]
    return results[:_RESULTS]
