"""Memories that match a text of a session, with the probability that each answers it, and their lines as notes."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from folklore.contract.anchors import anchors_by_id
from folklore.contract.hooks import HookAnswer
from folklore.contract.ids import short
from folklore.db.stores.events.injections import Injections, Note, PastInjection
from folklore.db.stores.namespaces import Listed
from folklore.memory.context import RequestContext
from folklore.memory.hooks.scope import HookScope
from folklore.memory.recall.page import page
from folklore.memory.recall.pipeline import ranked, search_of
from folklore.memory.recall.values import Question, Retrieval
from folklore.memory.records.subjects import newer_memories
from folklore.model import Memory, Recalled, Replaced
from folklore.new_ids import new_id
from folklore.ranking.injection import IGNORED, Form, forms, is_worth_whole
from folklore.ranking.weights import Branch, Ranking
from folklore.text import tokens
from folklore.text.dates.byline import byline
from folklore.text.dates.zones import in_zone
from folklore.text.hooks.injected import block
from folklore.text.hooks.prompts import asked
from folklore.text.query.question import QuestionWords
from folklore.text.query.snippet import fact

# Seconds after which a search by words alone begins, and until which a hook answers: clients wait for five.
_SLOW = 1.5
_LATE = 4.0
# Days from which a note says "verify".
_OLD = 30
# Tokens of the text of a whole note, and of a headline.
_FULL = 60
_HEADLINE = 13
# Tokens of the notes of a session until it is compacted: clients call hooks for tasks and results of subagents too.
_SESSION_TOKENS = 4_000
_BRANCHES: tuple[Branch, ...] = ("dense", "keyword")
_NEVER = PastInjection(given=False, whole=False, ignored=False)
HEADING = "Folklore: team notes, data, maybe outdated; memory_get ID for more:"


@dataclass(frozen=True, slots=True)
class Match:
    """Memory that may answer a text, its namespace, and the probability that it does."""

    result: Recalled
    namespace: UUID
    confidence: float
    # Its text, of a long one the summary or the sentences that match best.
    text: str

    @property
    def id(self) -> UUID:
        """The id of the memory."""
        return self.result.memory.id

    @property
    def with_cues(self) -> bool:
        """True if the memory has cues."""
        return bool(self.result.memory.cues)


async def matches_of(
    context: RequestContext, scope: HookScope, text: str, *, least: float, limit: int
) -> list[Match]:
    """Return the memories that answer a text with at least this probability, best first.

    If meaning takes too long, on a busy machine or with a model that is still loading, words alone decide; nothing if
    they are late too.
    """
    if not scope.spaces or not text.strip():
        return []
    tasks = [
        asyncio.ensure_future(recalled(context, scope, asked(text), limit, _BRANCHES))
    ]
    try:
        done, _ = await asyncio.wait(tasks, timeout=_SLOW)
        if not done:
            tasks.append(
                asyncio.ensure_future(
                    recalled(context, scope, asked(text), limit, ("keyword",))
                )
            )
            done, _ = await asyncio.wait(
                tasks, timeout=_LATE - _SLOW, return_when=asyncio.FIRST_COMPLETED
            )
        matches = next(iter(done)).result()[1] if done else []
        return [match for match in matches if match.confidence >= least]
    finally:
        for task in tasks:
            task.cancel()


async def recalled(
    context: RequestContext,
    scope: HookScope,
    text: str,
    limit: int,
    branches: tuple[Branch, ...],
) -> tuple[Retrieval, list[Match]]:
    """Return what a search found in the namespaces of a session, and its results, best first."""
    ranking = Ranking(min_score=0.0)  # neither fewer nor shorter for being weak
    question = Question(query=text, limit=limit, branches=branches, ranking=ranking)
    # A prompt is prose: a quotation or a dash in it is no operator.
    search = replace(
        search_of(context, question, Listed(scope.spaces)), expression=False
    )
    order = await ranked(context.memory, search)
    places = {space.name: space.id for space in scope.spaces}
    results = (await page(context.memory, order)).memories
    return order.retrieval, [
        Match(
            one,
            places[memory.namespace],
            order.scores[memory.id],
            fact_of(one, search.words),
        )
        for one in results
        for memory in [one.memory]
    ]


def fact_of(result: Recalled, words: QuestionWords) -> str:
    """Return what a whole note says: the text, of a long one the summary, or else the sentences that hold the words."""
    memory = result.memory
    room = _FULL * tokens.CHARACTERS_PER_TOKEN
    if memory.summary is not None and len(memory.content) > room:
        return fact(memory.summary, words, room)
    return fact(memory.content, words, room, result.passage)


def successors_among(matches: Sequence[Match]) -> dict[UUID, Match]:
    """Return the matches that replace an older memory, by the id of the older one."""
    return {older.id: match for match in matches for older in match.result.replaces}


def with_successors(
    matches: Sequence[Match], newer: Mapping[UUID, Match]
) -> list[Match]:
    """Return matches with the newest on its subject in place of each, once.

    An older decision without the newer one is worse than none.
    """
    current: dict[UUID, Match] = {}
    for match in matches:
        newest = match
        seen = {match.id}
        while (following := newer.get(newest.id)) and following.id not in seen:
            seen.add(following.id)
            newest = following
        confidence = max(match.confidence, newest.confidence)
        current.setdefault(newest.id, replace(newest, confidence=confidence))
    return list(current.values())


async def _looked_up(
    context: RequestContext, matches: Sequence[Match]
) -> dict[UUID, Match]:
    """Return the newer memories on the subjects of matches, by the id of the older one. Two statements a namespace."""
    found: dict[UUID, Match] = {}
    by_id = {match.id: match for match in matches}
    for namespace in {match.namespace for match in matches}:
        memories = [
            match.result.memory for match in matches if match.namespace == namespace
        ]
        newer = await newer_memories(context, namespace, memories)
        for older, memory in newer.items():
            found[older] = _successor(memory, by_id[older])
    return found


def _successor(memory: Memory, older: Match) -> Match:
    """Return the match of a memory that replaces an older one."""
    replaced = Replaced(older.id, older.result.memory.order_time)
    result = Recalled(memory, replaces=(replaced,))
    text = fact_of(result, QuestionWords.of([]))
    return Match(result, older.namespace, older.confidence, text)


async def inject(
    context: RequestContext, scope: HookScope, event: str, matches: Sequence[Match]
) -> HookAnswer:
    """Return the notes that give matches to the session, those that it has not; record them before. Or silence."""
    assert scope.ledger is not None
    matches = with_successors(matches, successors_among(matches))
    matches = with_successors(matches, await _looked_up(context, matches))
    if matches:
        selection = await _selection(scope, scope.ledger, matches, context.now)
    else:
        selection = []
    if not selection:
        return HookAnswer()
    frame = -(-tokens.estimate(block(HEADING, [])) // len(selection))
    notes = []
    for rank, (match, form) in enumerate(selection):
        if form == "full":
            text = note_of(context, match)
        else:
            text = headline_of(context, match)
        whole = form == "full" or not text.endswith(tokens.ELLIPSIS)
        notes.append(
            Note(
                match.namespace,
                match.id,
                rank,
                text,
                tokens.estimate(text) + frame,
                whole,
            )
        )
    fresh = await scope.ledger.claim(
        new_id(), scope.session, event, context.now, HEADING, notes
    )
    lines = [note.note for note in notes if note.memory in fresh]
    if not lines:
        return HookAnswer()
    memories = [match.result.memory for match, _ in selection]
    anchors = anchors_by_id(memory for memory in memories if memory.id in fresh)
    return HookAnswer(block(HEADING, lines), anchors=anchors)


async def _selection(
    scope: HookScope, ledger: Injections, matches: Sequence[Match], now: datetime
) -> list[tuple[Match, Form]]:
    """Return the matches that the session has not, as far as they are worth their tokens, each with its form.

    What it has the beginning of comes once more, if in full.
    """
    ids = [match.id for match in matches]
    previous = await ledger.given(
        scope.ids, scope.session, ids, ignored=IGNORED, now=now
    )
    if previous.tokens >= _SESSION_TOKENS:
        return []
    past = {id_: previous.memories.get(id_, _NEVER) for id_ in ids}
    share = share_with_cues(matches)
    new = [match for match in matches if _is_new(match, past[match.id], share)]
    shapes = forms(
        [match.confidence for match in new],
        [past[match.id].ignored for match in new],
        [match.with_cues for match in new],
        share,
    )
    pairs = (
        (match, form)
        for match, form in zip(new, shapes, strict=True)
        if form is not None
    )
    return [
        (match, form)
        for match, form in pairs
        if form == "full" or not past[match.id].given
    ]


def _is_new(match: Match, was: PastInjection, share: float) -> bool:
    """Return whether the session lacks a memory, or has its beginning and would now get it whole."""
    if not was.given:
        return True
    return not was.whole and is_worth_whole(match.confidence, match.with_cues, share)


def share_with_cues(matches: Sequence[Match]) -> float:
    """Return the share of matches that have cues; 0 of none."""
    return sum(match.with_cues for match in matches) / max(len(matches), 1)


def note_of(context: RequestContext, match: Match) -> str:
    """Return a whole note: id, age, author, and the text or what of a long one matches."""
    memory = match.result.memory
    days = max((context.now - memory.order_time).days, 0)
    age = "today" if days == 0 else "1 day old" if days == 1 else f"{days:,} days old"
    verify = ", verify" if days >= _OLD else ""
    replaced = replaced_text(context, match.result.replaces)
    by = byline(memory.author, memory.changed_by, memory.changed_at, context.zone)
    return f"- [{short(memory.id)}, {age}{verify}{replaced}, by {by}] {match.text}"


def replaced_text(context: RequestContext, replaces: Sequence[Replaced]) -> str:
    """Return what a memory replaces, as its note says it: `, replaces [id] of DATE`; empty for nothing."""
    if not replaces:
        return ""
    older = replaces[0]
    return (
        f", replaces [{short(older.id)}] of {in_zone(older.when, context.zone).date()}"
    )


def headline_of(context: RequestContext, match: Match) -> str:
    """Return a note as a headline: the end of its id, and the beginning of its summary or text."""
    memory = match.result.memory
    text = " ".join((memory.summary or memory.content).split())
    note = tokens.fit(f"- {short(memory.id)} {text}", _HEADLINE)
    return note + replaced_text(context, match.result.replaces)
