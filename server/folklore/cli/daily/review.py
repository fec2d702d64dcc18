"""`folklore review`: shows memories that want a decision one after the other, and takes each by one key."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal, get_args
from uuid import UUID

import click

from folklore.cli.context import settings_of, with_operations, zone_of
from folklore.cli.daily.stale import stale_items
from folklore.cli.daily.write import edit_request, edited_text
from folklore.cli.memory_output import print_difference, print_stale
from folklore.cli.options import context_and_json, named
from folklore.cli.output import print_json, print_line, row_of, time_text, wants_json
from folklore.client.code.calls import confirmation
from folklore.client.code.working_copy import WorkingCopy
from folklore.client.surroundings import namespace_of, working_copy
from folklore.contract.decisions import DECISIONS, Decision, decide
from folklore.contract.hooks import Assertion, StatementsRequest
from folklore.contract.ids import short
from folklore.contract.memories import (
    ForgetRequest,
    GetRequest,
    RelateResult,
    StoreRequest,
    UndoRequest,
    record_json,
    stale_json,
)
from folklore.contract.requests import Operations
from folklore.contract.review import DISTINCT, ReviewItem, ReviewReason, ReviewRequest
from folklore.errors import FolkloreError, NotFound
from folklore.model import Draft, Memory
from folklore.phases import phase
from folklore.text.dates.byline import byline

# Found here and not by an operation: only this process has the working copy.
_STALE: Literal["stale"] = "stale"
# A sentence, not a memory yet.
_STATED = "stated"
_REASONS = (_STATED, *get_args(ReviewReason), _STALE)
# What lacks cues wants writing, not a decision: it is shown where it is asked for.
_USUAL = tuple(reason for reason in _REASONS if reason != "cues")
_TITLES: Mapping[str, str] = {
    "contradiction": "These contradict each other",
    "similar": "These say nearly the same",
    "unused": "This was not used for long",
    "cues": "This is used, and no cue says when it is needed",
    "stale": "A file of this has changed since",
}
_OF_PAIR = (
    "[k]eep both  [m]erge  [s]upersede the older  forget [1] or [2]  [e]dit the newer"
)
_KEYS: Mapping[str, str] = {
    "contradiction": _OF_PAIR,
    "similar": f"{_OF_PAIR}  [c]ontradicts",
    "unused": "[k]eep  [p]in  [f]orget  [e]dit",
    "cues": "[e]dit, to write cues  [f]orget",
    "stale": "[k]eep, it is still true  [f]orget  [e]dit",
}
_ALWAYS = "[n]ext  [u]ndo the last  [q]uit"

# Keys on a pair and on one memory, and how a decision is reported.
_DECISIONS: Mapping[str, Decision] = {
    "k": "keep", "m": "merge", "s": "supersede", "1": "forget_older", "2": "forget_newer", "c": "contradicts",
}  # fmt: skip
_DECISIONS_ON_ONE: Mapping[str, Decision] = {"k": "keep", "p": "pin", "f": "forget"}
_ON_BOTH: Mapping[Decision, str] = {"keep": "kept both"}
_DONE: Mapping[Decision, str] = {
    "keep": "kept", "merge": "merged into", "supersede": "superseded", "contradicts": "related as a contradiction",
    "forget": "forgot", "forget_older": "forgot", "forget_newer": "forgot", "pin": "pinned",
}  # fmt: skip


@dataclass
class _Session:
    """A review in progress: the operations, the namespace, and how the last decision is taken back."""

    operations: Operations
    namespace: str
    copy: WorkingCopy
    decided: int = 0
    undo: list[tuple[str, Any]] = field(default_factory=list)

    async def decide(self, key: str, item: ReviewItem) -> str | None:
        """Write a decision in one transaction; return what was done and how it is undone, None for an unknown key."""
        if item.reason == _STALE:
            return await self._decide_stale(key, item.memories[0])
        if len(item.memories) == 2:
            decision = _DECISIONS.get(key)
        else:
            decision = _DECISIONS_ON_ONE.get(key)
        if decision is None or decision not in DECISIONS[item.reason]:
            return None
        decided = decide(item, decision, datetime.now(UTC).date())
        await self._call(decided.request)
        if not decided.is_relation:
            return self._changed(_DONE[decision], decided.changed)
        newer = short(decided.changed.id)
        older = short(item.memories[0].id)
        relation = "contradicts" if decision == "contradicts" else DISTINCT
        done = _ON_BOTH.get(decision, _DONE[decision])
        how = f"folklore relate {newer} {relation} {older} --remove"
        return self._done(done, how, decided.undo)

    async def _decide_stale(self, key: str, memory: Memory) -> str | None:
        if key == "k":
            request = await confirmation(self.copy, memory.id, self.operations.call)
            await self._call(request)
            return self._changed("confirmed", memory)
        if key == "f":
            where = (self.namespace,)
            await self._call(ForgetRequest(ids=(memory.id,), namespaces=where))
            return self._changed("forgot", memory)
        return None

    async def _call(self, request: Any) -> None:
        result = await self.operations.call(request)
        if isinstance(result, RelateResult) and result.failed:
            raise NotFound(result.failed[0].reason)

    def _changed(self, done: str, memory: Memory) -> str:
        id_ = short(memory.id)
        undo = UndoRequest(id=memory.id, namespaces=(self.namespace,))
        return self._done(f"{done} {id_}", f"folklore undo {id_}", undo)

    def _done(self, done: str, how: str, undo: Any) -> str:
        self.decided += 1
        self.undo.append((done, undo))
        return f"{done}; `{how}` takes it back"

    async def edit(self, memory: Memory) -> str:
        """Change a memory in the editor."""
        edited = await asyncio.to_thread(edited_text, memory)
        if edited is None:
            return "not changed"
        await self.operations.call(edit_request(memory, edited, (self.namespace,)))
        return self._changed("changed", memory)

    async def take_back(self) -> str | None:
        """Take the last decision back and return it; None without one."""
        if not self.undo:
            return None
        done, undo = self.undo.pop()
        await self._call(undo)
        self.decided -= 1
        return done

    async def current(self, item: ReviewItem) -> ReviewItem | None:
        """Return an item with its memories as they are now; None if one is no longer in force."""
        ids = tuple(memory.id for memory in item.memories)
        try:
            memories = (await self.operations.call(GetRequest(ids=ids))).found
        except NotFound:
            return None
        in_force = {}
        for details in memories:
            memory = details.memory
            if memory.namespace == self.namespace and memory.superseded_at is None:
                in_force[memory.id] = memory
        if not in_force.keys() >= set(ids):
            return None
        return replace(item, memories=tuple(in_force[id_] for id_ in ids))


@click.command()
@click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    callback=named,
    help="Which memories. Default: the project's namespace.",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(_REASONS),
    help="Only for this reason; repeatable.",
)
@click.option(
    "--unused-days", type=click.IntRange(1, 36_500), default=180, show_default=True
)
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@context_and_json
def review(
    ctx: click.Context, /, only: Sequence[str], limit: int, **options: Any
) -> None:
    """Decide on memories that want it: contradictions, near-duplicates, those unused for long, and stale ones.

    First comes what you said to an assistant and was not stored. Each is shown, and one key decides: store, drop, keep,
    merge, supersede, forget, relate, pin, edit. Every decision on a memory can be undone, and what is kept is not shown
    again. Without a terminal, and with --json, they are listed and nothing is asked. `--only cues` shows
    what is used most and has no cues; the prompt `review` lets an assistant write them.
    """
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    zone = zone_of(ctx)
    reasons = only or _USUAL
    copy = working_copy(namespace_of(settings_of(ctx)))

    async def work(operations: Operations) -> None:
        of_memories = [reason for reason in reasons if reason != _STATED]
        items = _items(operations, copy, of_memories, limit, options)
        stated = StatementsRequest(namespace=options["namespace"])
        assertions: tuple[Assertion, ...] = ()
        if _STATED in reasons:
            assertions = await operations.call(stated)
        if wants_json():
            rows = [_assertion_json(assertion, zone) for assertion in assertions]
            rows += [_as_json(item) async for item in items]
            print_json({"review": rows})
        elif not asks:
            await _list(assertions, items, zone)
        elif await _store(operations, stated, assertions, zone):
            await _walk(operations, copy, items, zone)

    with_operations(ctx, work)


async def _items(
    operations: Operations,
    copy: WorkingCopy,
    reasons: Sequence[str],
    limit: int,
    options: Mapping[str, Any],
) -> AsyncIterator[ReviewItem]:
    """Yield at most `limit` items, near-duplicates once each; pages are read when they are reached."""
    shown: set[frozenset[UUID]] = set()
    for reason in reasons:
        async for item in _items_of(reason, operations, copy, limit, options):
            ids = frozenset(memory.id for memory in item.memories)
            if reason == _STALE or ids not in shown:
                shown.add(ids)
                yield item
            if len(shown) >= limit:
                return


async def _items_of(
    reason: str,
    operations: Operations,
    copy: WorkingCopy,
    limit: int,
    options: Mapping[str, Any],
) -> AsyncIterator[ReviewItem]:
    if reason == _STALE:
        # else this is no working copy of the namespace to review
        if copy.found and copy.holds(options["namespace"]):
            with phase("Looking for memories: stale"):
                items = await stale_items(operations, copy)
            for result in items:
                yield ReviewItem(_STALE, (result.memory,), stale=result.stale)
        return
    request = ReviewRequest(reason=reason, limit=limit, **options)
    while True:
        with phase(f"Looking for memories: {reason}"):
            page = await operations.call(request)
        for item in page.items:
            yield item
        if page.after is None:
            return
        request = request.model_copy(update={"after": page.after})


async def _list(
    assertions: Sequence[Assertion], items: AsyncIterator[ReviewItem], zone: tzinfo
) -> None:
    """Print what wants a decision, and ask nothing."""
    count = len(assertions)
    for assertion in assertions:
        print_line()
        print_line("This was said and not stored", bold=True)
        _print_assertion(assertion, zone)
    async for item in items:
        count += 1
        _print_item(item, zone)
    print_line()
    if count == 0:
        print_line("Nothing wants a decision.")
    else:
        wants = "want" if count > 1 else "wants"
        print_line(f"{count} {wants} a decision: `folklore review` in a terminal asks.")


def _print_assertion(assertion: Assertion, zone: tzinfo) -> None:
    said = time_text(assertion.said_at, zone)
    print_line(f"said {said} in session {assertion.session}", dim=True)
    print_line(assertion.sentence)


async def _store(
    operations: Operations,
    stated: StatementsRequest,
    assertions: Sequence[Assertion],
    zone: tzinfo,
) -> bool:
    """Show what was said and was not stored, store or drop what is decided; return False for `q`."""
    if assertions:
        things = "thing was" if len(assertions) == 1 else "things were"
        print_line(f"{len(assertions)} {things} said, store them?", bold=True)
    for assertion in assertions:
        _print_assertion(assertion, zone)
        print_line("[s]tore  [d]rop  [n]ext  [q]uit", fg="cyan")
        key = ""
        while key not in ("s", "d", "n", "q"):
            key = click.getchar().lower()
        if key == "q":
            return False
        if key == "s":
            draft = Draft(assertion.sentence)
            request = StoreRequest(
                memories=(draft,), namespace=assertion.project, single=True
            )
            result = await operations.call(request)
            id_ = short(result.stored[0].id)
            print_line(f"stored {id_}; `folklore undo {id_}` takes it back", fg="green")
        if key in ("s", "d"):
            drop = (assertion.sentence,)
            await operations.call(stated.model_copy(update={"drop": drop}))
    return True


async def _walk(
    operations: Operations,
    copy: WorkingCopy,
    items: AsyncIterator[ReviewItem],
    zone: tzinfo,
) -> None:
    """Show the items one after the other and write what is decided, until the end or `q`."""
    session: _Session | None = None
    async for row in items:
        session = session or _Session(operations, row.memories[0].namespace, copy)
        item: ReviewItem | None = await session.current(row)
        while item is not None:
            _show(item, zone)
            key = click.getchar().lower()
            if key == "q":
                _summary(session)
                return
            if key == "n":
                break
            try:
                following = await _carry_out(session, key, item)
            except FolkloreError as error:  # changed meanwhile, or not allowed
                print_line(f"{error.message} {error.hint or ''}".rstrip(), fg="red")
                following = await session.current(item)
            item = following
    _summary(session)


async def _carry_out(
    session: _Session, key: str, item: ReviewItem
) -> ReviewItem | None:
    """Do what a key asks for; return the item to be shown again, None if it is decided."""
    if key == "u":
        done = await session.take_back()
        if done is None:
            print_line("Nothing was decided yet.")
            return item
        print_line(f"taken back: {done}", fg="green")
        return await session.current(item)
    if key == "e":
        print_line(await session.edit(item.memories[-1]), fg="green")
        return await session.current(item)
    outcome = await session.decide(key, item)
    if outcome is None:
        return item
    print_line(outcome, fg="green")
    return None


def _show(item: ReviewItem, zone: tzinfo) -> None:
    _print_item(item, zone)
    print_line(f"{_KEYS[item.reason]}  {_ALWAYS}", fg="cyan")


def _print_item(item: ReviewItem, zone: tzinfo) -> None:
    title = _TITLES[item.reason]
    if item.similarity is not None:
        title += f" ({item.similarity:.2f})"
    print_line()
    print_line(title, bold=True)
    for number, memory in enumerate(item.memories, start=1):
        used = "never recalled"
        if memory.last_recalled_at is not None:
            used = f"recalled {memory.recall_count} times"
        when = time_text(memory.when, zone)
        by = byline(memory.author, memory.changed_by, memory.changed_at, zone)
        line = f"{short(memory.id)} by {by}, {when}, {used}"
        if len(item.memories) > 1:
            line = f"{number}  {line}"
        print_line(line, dim=True)
    if len(item.memories) == 1:
        print_line(item.memories[0].content)
        print_stale(item.stale, zone)
    else:
        print_difference(item.memories[0].content, item.memories[1].content)


def _summary(session: _Session | None) -> None:
    print_line()
    if session is None:
        print_line("Nothing wants a decision.")
    else:
        print_line(f"{session.decided} decided. `folklore log --mine` shows them.")


def _as_json(item: ReviewItem) -> dict[str, Any]:
    value: dict[str, Any] = {
        "reason": item.reason,
        "memories": [record_json(memory) for memory in item.memories],
    }
    stale = stale_json(item.stale)
    if stale is not None:
        value["stale"] = stale
    if item.similarity is not None:
        value["similarity"] = item.similarity
    return value


def _assertion_json(assertion: Assertion, zone: tzinfo) -> dict[str, Any]:
    row = row_of(assertion, "sentence said_at session project", zone)
    return {"reason": _STATED, **row}
