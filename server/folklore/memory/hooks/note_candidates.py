"""Memories that may answer a text of a session, with the probability that each answers it, and their lines as notes."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from folklore.contract.anchors import anchors_by_id
from folklore.contract.hooks import HookAnswer
from folklore.contract.ids import short
from folklore.db.stores.events.injections import GivenBefore, Note, PastInjection
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
class NoteCandidate:
    """Memory that may answer a text, its namespace, and the probability that it does."""

    result: Recalled
    namespace: UUID
    confidence: float
    # Its text, of a long one the summary or the sentences with most of its words.
    text: str

    @property
    def id(self) -> UUID:
        """The id of the memory."""
        return self.result.memory.id

    @property
    def with_cues(self) -> bool:
        """True if the memory has cues."""
        return bool(self.result.memory.cues)


async def candidates_of(
    context: RequestContext, scope: HookScope, text: str, *, least: float, limit: int
) -> list[NoteCandidate]:
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
        _, candidates = next(iter(done)).result()
        return [candidate for candidate in candidates if candidate.confidence >= least]
    finally:
        for search in searches:
            search.cancel()


async def retrieved(
    context: RequestContext,
    scope: HookScope,
    text: str,
    limit: int,
    branches: tuple[Branch, ...],
) -> tuple[Retrieval, list[NoteCandidate]]:
    """Return what these branches found in the namespaces of a session, and the ranked results as candidates for notes."""
    ranking = Ranking(min_score=0.0)  # neither fewer nor shorter for being weak
    question = Question(query=text, limit=limit, branches=branches, ranking=ranking)
    # A prompt is prose: a quotation or a dash in it is no operator.
    search = replace(
        search_of(context, question, Listed(scope.spaces)), expression=False
    )
    ranked_list = await ranked(context.memory, search)
    answer = await page(context.memory, ranked_list)
    namespaces = {space.name: space.id for space in scope.spaces}
    candidates = []
    for result in answer.memories:
        memory = result.memory
        candidate = NoteCandidate(
            result,
            namespaces[memory.namespace],
            ranked_list.scores[memory.id],
            text_of_note(result, search.words),
        )
        candidates.append(candidate)
    return ranked_list.retrieval, candidates


def text_of_note(result: Recalled, words: QuestionWords) -> str:
    """Return what a whole note says: the text, of a long one the summary, or else the sentences that hold the words."""
    memory = result.memory
    room = _FULL * tokens.CHARACTERS_PER_TOKEN
    if memory.summary is not None and len(memory.content) > room:
        return whole_sentences(memory.summary, words, room)
    return whole_sentences(memory.content, words, room, result.passage)


def successors_among(candidates: Sequence[NoteCandidate]) -> dict[UUID, NoteCandidate]:
    """Return the candidates that replace an older memory, by the id of the older one."""
    newer_by_id = {}
    for candidate in candidates:
        for older in candidate.result.replaces:
            newer_by_id[older.id] = candidate
    return newer_by_id


def with_successors(
    candidates: Sequence[NoteCandidate], newer_by_id: Mapping[UUID, NoteCandidate]
) -> list[NoteCandidate]:
    """Return each candidate, or the newest on its subject in its place, without repetitions.

    An older decision without the newer one is worse than none.
    """
    current: dict[UUID, NoteCandidate] = {}
    for candidate in candidates:
        newest = candidate
        seen = {candidate.id}
        while newest.id in newer_by_id:
            newer = newer_by_id[newest.id]
            if newer.id in seen:
                break
            seen.add(newer.id)
            newest = newer
        confidence = max(candidate.confidence, newest.confidence)
        current.setdefault(newest.id, replace(newest, confidence=confidence))
    return list(current.values())


async def _stored_successors(
    context: RequestContext, candidates: Sequence[NoteCandidate]
) -> dict[UUID, NoteCandidate]:
    """Return the newer memories on the subjects of candidates, by the id of the older one. Two statements a namespace."""
    successors: dict[UUID, NoteCandidate] = {}
    older_by_id = {candidate.id: candidate for candidate in candidates}
    for namespace in {candidate.namespace for candidate in candidates}:
        memories = [
            candidate.result.memory
            for candidate in candidates
            if candidate.namespace == namespace
        ]
        newer_by_id = await newer_memories(context, namespace, memories)
        for older_id, newer in newer_by_id.items():
            successors[older_id] = _successor(newer, older_by_id[older_id])
    return successors


def _successor(memory: Memory, older: NoteCandidate) -> NoteCandidate:
    """Return a memory that replaces an older candidate as one itself."""
    replaced = Replaced(older.id, older.result.memory.order_time)
    result = Recalled(memory, replaces=(replaced,))
    text = text_of_note(result, QuestionWords.of([]))
    return NoteCandidate(result, older.namespace, older.confidence, text)


async def inject(
    context: RequestContext,
    scope: HookScope,
    event: str,
    candidates: Sequence[NoteCandidate],
) -> HookAnswer:
    """Return notes of the candidates that the session does not have, or silence; the notes are recorded as given.

    Of a candidate that a newer memory replaces, the newer is given, be it a candidate too or only stored.
    """
    assert scope.ledger is not None
    candidates = with_successors(candidates, successors_among(candidates))
    candidates = with_successors(
        candidates, await _stored_successors(context, candidates)
    )
    if not candidates:
        return HookAnswer()
    previous = await scope.ledger.given(
        scope.ids,
        scope.session,
        [candidate.id for candidate in candidates],
        ignored=IGNORED,
        now=context.now,
    )
    selection = _selection(candidates, previous)
    if not selection:
        return HookAnswer()

    notes = _notes(context, selection)
    claimed = await scope.ledger.claim(
        new_id(), scope.session, event, context.now, _HEADING, notes
    )
    lines = [note.note for note in notes if note.memory in claimed]
    if not lines:
        return HookAnswer()
    memories = [candidate.result.memory for candidate, _ in selection]
    anchors = anchors_by_id(memory for memory in memories if memory.id in claimed)
    return HookAnswer(block(_HEADING, lines), anchors=anchors)


def _selection(
    candidates: Sequence[NoteCandidate], previous: GivenBefore
) -> list[tuple[NoteCandidate, Form]]:
    """Return the candidates that the session does not have, as far as they are worth their tokens, each with its form.

    What it has the beginning of comes once more, if in full.
    """
    if previous.tokens >= _SESSION_TOKENS:
        return []
    past = {
        candidate.id: previous.memories.get(candidate.id, _NEVER)
        for candidate in candidates
    }
    cued_share = share_with_cues(candidates)
    new = [
        candidate
        for candidate in candidates
        if _is_new(candidate, past[candidate.id], cued_share)
    ]
    new_forms = forms(
        [candidate.confidence for candidate in new],
        [past[candidate.id].ignored for candidate in new],
        [candidate.with_cues for candidate in new],
        cued_share,
    )
    selection = []
    for candidate, form in zip(new, new_forms, strict=True):
        is_repeated = past[candidate.id].given and form != "full"
        if form is not None and not is_repeated:
            selection.append((candidate, form))
    return selection


def _is_new(candidate: NoteCandidate, past: PastInjection, cued_share: float) -> bool:
    """Return whether the session lacks a memory, or has its beginning and would now get it whole."""
    if not past.given:
        return True
    return not past.whole and is_worth_whole(
        candidate.confidence, candidate.with_cues, cued_share
    )


def _notes(
    context: RequestContext, selection: Sequence[tuple[NoteCandidate, Form]]
) -> list[Note]:
    """Return candidates as they are recorded, each with its part of the tokens of the block around them."""
    tokens_of_block = tokens.estimate(block(_HEADING, []))
    tokens_of_each = -(-tokens_of_block // len(selection))  # rounded up
    notes = []
    for rank, (candidate, form) in enumerate(selection):
        if form == "full":
            text = note_of(context, candidate)
            is_whole = True
        else:
            text = headline_of(context, candidate)
            is_whole = not text.endswith(tokens.ELLIPSIS)
        note = Note(
            candidate.namespace,
            candidate.id,
            rank,
            text,
            tokens.estimate(text) + tokens_of_each,
            is_whole,
        )
        notes.append(note)
    return notes


def share_with_cues(candidates: Sequence[NoteCandidate]) -> float:
    """Return the share of candidates that have cues, 0 to 1; 0 of none."""
    return sum(candidate.with_cues for candidate in candidates) / max(
        len(candidates), 1
    )


def note_of(context: RequestContext, candidate: NoteCandidate) -> str:
    """Return a whole note: id, age, author, and its text."""
    memory = candidate.result.memory
    days = max((context.now - memory.order_time).days, 0)
    if days == 0:
        age = "today"
    else:
        age = f"{amount(days, 'day')} old"
    if days >= _OLD:
        age += ", verify"
    replaced = replaced_text(context, candidate.result.replaces)
    by = byline(memory.author, memory.changed_by, memory.changed_at, context.zone)
    return f"- [{short(memory.id)}, {age}{replaced}, by {by}] {candidate.text}"


def replaced_text(context: RequestContext, replaces: Sequence[Replaced]) -> str:
    """Return what a memory replaces, as its note says it: `, replaces [id] of DATE`; empty for nothing."""
    if not replaces:
        return ""
    older = replaces[0]
    day = in_zone(older.when, context.zone).date()
    return f", replaces [{short(older.id)}] of {day}"


def headline_of(context: RequestContext, candidate: NoteCandidate) -> str:
    """Return a note as a headline: the end of its id, and the beginning of its summary or text."""
    memory = candidate.result.memory
    text = " ".join((memory.summary or memory.content).split())
    note = tokens.fit(f"- {short(memory.id)} {text}", _HEADLINE)
    return note + replaced_text(context, candidate.result.replaces)
