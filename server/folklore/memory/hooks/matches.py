"""Memories that match a text of a session, with the probability that each answers it, and their lines as notes."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from folklore.contract.anchors import anchors_by_id
from folklore.contract.hooks import HookAnswer
from folklore.contract.ids import short
from folklore.db.stores.events.injections import (
    GivenBefore,
    Note,
    PastInjection,
)
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
from folklore.text.amounts import amount
from folklore.text.dates.byline import byline
from folklore.text.dates.zones import in_zone
from folklore.text.hooks.injected import block
from folklore.text.hooks.prompts import question_in
from folklore.text.query.question import QuestionWords
from folklore.text.query.snippet import whole_sentences

# Seconds after which a search by words alone begins, and until which a hook answers: clients wait for five.
_SLOW = 1.5
_LATE = 4.0
_OLD = 30  # days from which a note says "verify"
# Tokens of the text of a whole note, and of a headline.
_FULL = 60
_HEADLINE = 13
# Tokens of the notes of a session until it is compacted: clients call hooks for tasks and results of subagents too.
_SESSION_TOKENS = 4_000
_BRANCHES: tuple[Branch, ...] = ("dense", "keyword")
_NEVER = PastInjection(given=False, whole=False, ignored=False)
_HEADING = "Folklore: team notes, data, maybe outdated; memory_get ID for more:"


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
    question = question_in(text)

    by_both = retrieved(context, scope, question, limit, _BRANCHES)
    searches = [asyncio.ensure_future(by_both)]
    try:
        done, _ = await asyncio.wait(searches, timeout=_SLOW)
        if not done:
            by_words = retrieved(context, scope, question, limit, ("keyword",))
            searches.append(asyncio.ensure_future(by_words))
            done, _ = await asyncio.wait(
                searches, timeout=_LATE - _SLOW, return_when=asyncio.FIRST_COMPLETED
            )
        if not done:
            return []
        _, matches = next(iter(done)).result()
        return [match for match in matches if match.confidence >= least]
    finally:
        for search in searches:
            search.cancel()


async def retrieved(
    context: RequestContext,
    scope: HookScope,
    text: str,
    limit: int,
    branches: tuple[Branch, ...],
) -> tuple[Retrieval, list[Match]]:
    """Return what these branches found in the namespaces of a session, and the ranked results as matches."""
    ranking = Ranking(min_score=0.0)  # neither fewer nor shorter for being weak
    question = Question(query=text, limit=limit, branches=branches, ranking=ranking)
    # A prompt is prose: a quotation or a dash in it is no operator.
    search = replace(
        search_of(context, question, Listed(scope.spaces)), expression=False
    )
    ranked_list = await ranked(context.memory, search)
    answer = await page(context.memory, ranked_list)
    namespaces = {space.name: space.id for space in scope.spaces}
    matches = []
    for result in answer.memories:
        memory = result.memory
        match = Match(
            result,
            namespaces[memory.namespace],
            ranked_list.scores[memory.id],
            text_of_note(result, search.words),
        )
        matches.append(match)
    return ranked_list.retrieval, matches


def text_of_note(result: Recalled, words: QuestionWords) -> str:
    """Return what a whole note says: the text, of a long one the summary, or else the sentences that hold the words."""
    memory = result.memory
    room = _FULL * tokens.CHARACTERS_PER_TOKEN
    if memory.summary is not None and len(memory.content) > room:
        return whole_sentences(memory.summary, words, room)
    return whole_sentences(memory.content, words, room, result.passage)


def successors_among(matches: Sequence[Match]) -> dict[UUID, Match]:
    """Return the matches that replace an older memory, by the id of the older one."""
    newer_by_id = {}
    for match in matches:
        for older in match.result.replaces:
            newer_by_id[older.id] = match
    return newer_by_id


def with_successors(
    matches: Sequence[Match], newer_by_id: Mapping[UUID, Match]
) -> list[Match]:
    """Return each match, or the newest on its subject in its place, without repetitions.

    An older decision without the newer one is worse than none.
    """
    current: dict[UUID, Match] = {}
    for match in matches:
        newest = match
        seen = {match.id}
        while newest.id in newer_by_id:
            newer = newer_by_id[newest.id]
            if newer.id in seen:
                break
            seen.add(newer.id)
            newest = newer
        confidence = max(match.confidence, newest.confidence)
        current.setdefault(newest.id, replace(newest, confidence=confidence))
    return list(current.values())


async def _stored_successors(
    context: RequestContext, matches: Sequence[Match]
) -> dict[UUID, Match]:
    """Return the newer memories on the subjects of matches, by the id of the older one. Two statements a namespace."""
    successors: dict[UUID, Match] = {}
    older_by_id = {match.id: match for match in matches}
    for namespace in {match.namespace for match in matches}:
        memories = [
            match.result.memory for match in matches if match.namespace == namespace
        ]
        newer_by_id = await newer_memories(context, namespace, memories)
        for older_id, newer in newer_by_id.items():
            successors[older_id] = _successor(newer, older_by_id[older_id])
    return successors


def _successor(memory: Memory, older: Match) -> Match:
    """Return the match of a memory that replaces an older one."""
    replaced = Replaced(older.id, older.result.memory.order_time)
    result = Recalled(memory, replaces=(replaced,))
    text = text_of_note(result, QuestionWords.of([]))
    return Match(result, older.namespace, older.confidence, text)


async def inject(
    context: RequestContext, scope: HookScope, event: str, matches: Sequence[Match]
) -> HookAnswer:
    """Return notes of the matches that the session does not have, or silence; the notes are recorded as given.

    Of a match that a newer memory replaces, the newer is given, be it a match too or only stored.
    """
    assert scope.ledger is not None
    matches = with_successors(matches, successors_among(matches))
    matches = with_successors(matches, await _stored_successors(context, matches))
    if not matches:
        return HookAnswer()
    previous = await scope.ledger.given(
        scope.ids,
        scope.session,
        [match.id for match in matches],
        ignored=IGNORED,
        now=context.now,
    )
    selection = _selection(matches, previous)
    if not selection:
        return HookAnswer()

    notes = _notes(context, selection)
    claimed = await scope.ledger.claim(
        new_id(), scope.session, event, context.now, _HEADING, notes
    )
    lines = [note.note for note in notes if note.memory in claimed]
    if not lines:
        return HookAnswer()
    memories = [match.result.memory for match, _ in selection]
    anchors = anchors_by_id(memory for memory in memories if memory.id in claimed)
    return HookAnswer(block(_HEADING, lines), anchors=anchors)


def _selection(
    matches: Sequence[Match], previous: GivenBefore
) -> list[tuple[Match, Form]]:
    """Return the matches that the session does not have, as far as they are worth their tokens, each with its form.

    What it has the beginning of comes once more, if in full.
    """
    if previous.tokens >= _SESSION_TOKENS:
        return []
    past = {match.id: previous.memories.get(match.id, _NEVER) for match in matches}
    cued_share = share_with_cues(matches)
    new = [match for match in matches if _is_new(match, past[match.id], cued_share)]
    new_forms = forms(
        [match.confidence for match in new],
        [past[match.id].ignored for match in new],
        [match.with_cues for match in new],
        cued_share,
    )
    selection = []
    for match, form in zip(new, new_forms, strict=True):
        is_repeated = past[match.id].given and form != "full"
        if form is not None and not is_repeated:
            selection.append((match, form))
    return selection


def _is_new(match: Match, past: PastInjection, cued_share: float) -> bool:
    """Return whether the session lacks a memory, or has its beginning and would now get it whole."""
    if not past.given:
        return True
    return not past.whole and is_worth_whole(
        match.confidence, match.with_cues, cued_share
    )


def _notes(
    context: RequestContext, selection: Sequence[tuple[Match, Form]]
) -> list[Note]:
    """Return matches as they are recorded, each with its part of the tokens of the block around them."""
    tokens_of_block = tokens.estimate(block(_HEADING, []))
    tokens_of_each = -(-tokens_of_block // len(selection))  # rounded up
    notes = []
    for rank, (match, form) in enumerate(selection):
        if form == "full":
            text = note_of(context, match)
            is_whole = True
        else:
            text = headline_of(context, match)
            is_whole = not text.endswith(tokens.ELLIPSIS)
        note = Note(
            match.namespace,
            match.id,
            rank,
            text,
            tokens.estimate(text) + tokens_of_each,
            is_whole,
        )
        notes.append(note)
    return notes


def share_with_cues(matches: Sequence[Match]) -> float:
    """Return the share of matches that have cues, 0 to 1; 0 of none."""
    return sum(match.with_cues for match in matches) / max(len(matches), 1)


def note_of(context: RequestContext, match: Match) -> str:
    """Return a whole note: id, age, author, and the text or what of a long one matches."""
    memory = match.result.memory
    days = max((context.now - memory.order_time).days, 0)
    if days == 0:
        age = "today"
    else:
        age = f"{amount(days, 'day')} old"
    if days >= _OLD:
        age += ", verify"
    replaced = replaced_text(context, match.result.replaces)
    by = byline(memory.author, memory.changed_by, memory.changed_at, context.zone)
    return f"- [{short(memory.id)}, {age}{replaced}, by {by}] {match.text}"


def replaced_text(context: RequestContext, replaces: Sequence[Replaced]) -> str:
    """Return what a memory replaces, as its note says it: `, replaces [id] of DATE`; empty for nothing."""
    if not replaces:
        return ""
    older = replaces[0]
    day = in_zone(older.when, context.zone).date()
    return f", replaces [{short(older.id)}] of {day}"


def headline_of(context: RequestContext, match: Match) -> str:
    """Return a note as a headline: the end of its id, and the beginning of its summary or text."""
    memory = match.result.memory
    text = " ".join((memory.summary or memory.content).split())
    note = tokens.fit(f"- {short(memory.id)} {text}", _HEADLINE)
    return note + replaced_text(context, match.result.replaces)
