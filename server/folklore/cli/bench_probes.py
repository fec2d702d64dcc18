"""`folklore bench abstain`, `duplicates` and `code`: what a mean over a set's questions does not show."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from folklore.cli.bench_options import Wanted, measuring
from folklore.cli.context import settings_here
from folklore.cli.output import print_json, print_table, say
from folklore.cli.progress import Tell, progress

if TYPE_CHECKING:
    from folklore.bench.abstention import Abstained
    from folklore.bench.code import Found
    from folklore.bench.duplicates import Duplicated

_SET = click.argument("set_", metavar="SET.jsonl", type=click.Path(path_type=Path, dir_okay=False))


@click.command()
@_SET
@click.option(
    "--floor",
    "floors",
    type=click.FloatRange(0, 1),
    multiple=True,
    help="A min_score to try; repeatable. Default: six.",
)
@measuring
@click.pass_context
def abstain(ctx: click.Context, set_: Path, floors: tuple[float, ...], wanted: Wanted) -> None:
    """Can the score of an answer tell questions that something stored answers from those that nothing does?

    The unanswerable ones are the set's own questions, each asked of the next conversation (namespace) of the set with
    the names of its speakers replaced by that one's. Speakers are the names before a colon that at least a fifth of a
    namespace's memories begin with; one that both conversations have stays. Roles that every conversation has (user,
    assistant) are left as they are. A set with one namespace, or without speakers, cannot be measured so.

    The score of an answer is that of its best result, 0 if it is empty; the first one's is told beside it. AUROC: how
    probably a real question's score is above an unanswerable one's. Refused at 95 %: the share of unanswerable
    questions below the score that 95 % of the real ones reach. For each floor: the real questions answered, the others
    refused, the precision (of the questions answered, the share that can be, were there as many of each), R@10 asked
    again with this min_score, which drops
    single results, and R@10 if only the answers whose best result is below it were refused and the others came whole.
    """
    from folklore.bench.abstention import FLOORS, asked_in_all
    from folklore.bench.abstention import abstain as measure
    from folklore.bench.sets import read_set

    settings = settings_here(ctx)
    given = read_set(set_, prefix=wanted.namespace_prefix)
    tried = floors or FLOORS

    async def work(tell: Tell) -> tuple[Abstained, str]:
        from folklore.bench.assistant import assistant
        from folklore.bench.scratch import scratch

        async with scratch(settings, keep=wanted.keep) as store, assistant(store.app) as client:
            asked = given.some(wanted.questions)
            found = await measure(client, given, asked, tell, limit=wanted.limit, options=wanted.options, floors=tried)
            return found, store.flags

    with progress(f"Asking strangers' questions of {given.name}", asked_in_all(given, wanted.questions, tried)) as tell:
        found, where = asyncio.run(work(tell))
    if wanted.as_json:
        print_json(found.as_json() | ({"kept": where} if wanted.keep else {}))
        return
    _print_abstained(found)
    if wanted.keep:
        say(f"Kept: {where}")


def _print_abstained(found: Abstained) -> None:
    if found.foreign.why_not is not None or found.at_95 is None:
        say(f"{found.name}: does not apply: {found.foreign.why_not}.")
        return
    say(f"{found.name}: {len(found.real):,} questions, {len(found.strange):,} that nothing stored answers", bold=True)
    say(f"AUROC {found.auroc:.4f} ({found.auroc_of_first:.4f} by the first result alone)")
    say(f"At 95 % answered {found.at_95.refused:.1%} of the others are refused")
    rows = [
        [
            one.min_score,
            one.answered,
            one.refused,
            one.precision,
            one.recall,
            -100 * one.cost,
            one.whole,
            -100 * one.whole_cost,
        ]
        for one in (found.at_95, *found.floors)
    ]
    columns = ["min_score", "answered", "refused", "precision", "R@10", "points", "R@10 whole", "points"]
    print_table(columns, [[*map("{:.3f}".format, row)] for row in rows])
    categories = found.by_category()
    if len(categories) > 1:
        print_table(["category", "AUROC"], [[name, value] for name, value in categories.items()])


@click.command()
@_SET
@click.option("--in-session", is_flag=True, help="Copies stand in the session, right behind their original.")
@measuring
@click.pass_context
def duplicates(ctx: click.Context, set_: Path, in_session: bool, wanted: Wanted) -> None:
    """Do near-duplicates fill the answer, and what does diversity (MMR) save?

    Every memory that is evidence of a question of the set is stored five times: in its own words, and in four light
    rewordings made by rules (synonyms of function words, contractions opened or closed, clauses moved, other
    punctuation, each led in by words such as "So," or "Just to note:"). No two of the five have the same words. The
    copies have the time of the original and no session, and stand behind all other memories of their namespace, so
    that they gain nothing by where they stand; with --in-session they stand right behind their original.

    Distinct evidence is how many different originals are among the first ten, as themselves or as any of their copies,
    each counted once: of all the memories stored five times (evidence of whichever question), then of the question's
    own evidence alone, then of all memories. With MMR is as --mmr-lambda or the default says, without is
    --mmr-lambda 1; a ratio is the mean with over the mean without. Own evidence cannot gain by more than the copies
    took away: a question with one evidence has it or not, so those with several are also shown by themselves. Below,
    R@10 on the plain set, without copies, both ways: what diversity costs where nothing is double.
    """
    from folklore.bench.duplicates import duplicates as measure
    from folklore.bench.sets import read_set

    settings = settings_here(ctx)
    given = read_set(set_, prefix=wanted.namespace_prefix)
    asked = given.some(wanted.questions)

    async def work(tell: Tell) -> tuple[Duplicated, str]:
        from folklore.bench.assistant import assistant
        from folklore.bench.scratch import scratch

        async with scratch(settings, keep=wanted.keep) as store, assistant(store.app) as client:
            found = await measure(
                client, given, asked, tell, limit=wanted.limit, options=wanted.options, in_session=in_session
            )
            return found, store.flags

    with progress(f"Asking {given.name} among copies", len(asked)) as tell:
        found, where = asyncio.run(work(tell))
    if wanted.as_json:
        print_json(found.as_json() | ({"kept": where} if wanted.keep else {}))
        return
    _print_duplicated(found)
    if wanted.keep:
        say(f"Kept: {where}")


def _print_duplicated(found: Duplicated) -> None:
    told = found.as_json()
    say(f"{found.name}: {found.copied:,} memories stored five times, {len(found.counted):,} questions", bold=True)
    if found.missing:
        say(f"{found.missing:,} memories were refused or known already")
    rows: list[list[object]] = []
    for part, name in (
        ("distinct_evidence", "distinct evidence in ten"),
        ("distinct_own_evidence", "of the question's own"),
        ("distinct_own_evidence_of_several", "the same, questions with several"),
        ("distinct_texts", "distinct texts in ten"),
        ("plain_R@10", "R@10 on the plain set"),
    ):
        values = told[part]
        rows.append([name, values["with"], values["without"], values["ratio"] or ""])
    print_table(["", "with MMR", "without", "ratio"], rows)
    gain, cost = found.gain(), found.cost()
    say(f"with MMR {gain.mean:+.3f} evidence a question ({gain.low:+.3f} … {gain.high:+.3f})")
    say(f"R@10 on the plain set {100 * cost.mean:+.2f} points ({100 * cost.low:+.2f} … {100 * cost.high:+.2f})")


@click.command()
@measuring
@click.pass_context
def code(ctx: click.Context, wanted: Wanted) -> None:
    """Is what is known by its name found by it?

    The memories are made from the packages that Folklore needs, as they are installed beside it (nothing is imported
    or downloaded; the same versions give the same memories): signatures with the first paragraph of their docstring,
    messages of exceptions, constants, SQLSTATEs, files, versions and requirements, a few thousand in all.

    Every question is a known item: one memory is right, by construction. A question by identifier, error code, error
    message, path, file name or version is a text that stands in one memory and in no other (case and white space
    aside), not even within a longer word. A question by part of an identifier is two or more neighbouring parts of it
    as words, such that no other memory holds all of them, in any form (their first five letters). --questions is for
    each category; memories that look like credentials are left out. Asked through memory_recall, with the options
    given, and through search_keywords. Aimed at, over all questions through memory_recall: hit@1 0.95, hit@5 0.99.
    """
    from folklore.bench.code import find
    from folklore.bench.known_items import known_items
    from folklore.bench.sources import installed, notes

    settings = settings_here(ctx)
    distributions = installed()
    noted = notes(distributions)
    items = known_items(noted, wanted.questions or 200)

    async def work(tell: Tell) -> tuple[Found, str]:
        from folklore.bench.assistant import assistant
        from folklore.bench.scratch import scratch

        async with scratch(settings, keep=wanted.keep) as store, assistant(store.app) as client:
            found = await find(
                client,
                noted,
                items,
                tell,
                made_of=len(distributions),
                namespace=f"{wanted.namespace_prefix}code",
                limit=wanted.limit,
                options=wanted.options,
            )
            return found, store.flags

    with progress("Asking for known items", len(items)) as tell:
        found, where = asyncio.run(work(tell))
    if wanted.as_json:
        print_json(found.as_json() | ({"kept": where} if wanted.keep else {}))
        return
    say(f"{found.kept.stored:,} memories of {found.made_of} packages, {len(found.answered):,} known items", bold=True)
    if found.kept.refused:
        say(f"{found.kept.refused:,} memories were refused; {found.unasked:,} items were not asked for")
    scores = found.scores()
    print_table(["asked by", *scores["all"]], [[part, *values.values()] for part, values in scores.items()])
    for category, misses in found.misses().items():
        for miss in misses:
            say(f"{category}: {miss['query']!r} came {miss['place'] or 'not at all'}; first: {miss['first']}", dim=True)
    if wanted.keep:
        say(f"Kept: {where}")
