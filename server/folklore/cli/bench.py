"""`folklore bench`: the group, and retrieval. The other measurements are in bench_probes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from folklore.cli.bench_options import Wanted, measuring
from folklore.cli.bench_probes import abstain, code, duplicates
from folklore.cli.context import settings_here
from folklore.cli.options import filters_from, ranking_from
from folklore.cli.output import print_json, print_table, say
from folklore.cli.progress import Tell, progress

if TYPE_CHECKING:
    from folklore.bench.ablation import Ablated
    from folklore.bench.regret import Effect
    from folklore.bench.retrieval import Measured
    from folklore.bench.sets import RetrievalSet
    from folklore.config import Settings


@click.group()
def bench() -> None:
    """Measure on your own data or a public set, in a scratch store that is removed again; never in your memory."""


bench.add_command(abstain)
bench.add_command(duplicates)
bench.add_command(code)


@bench.command()
@click.argument("sets", metavar="SET.jsonl…", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--r20", is_flag=True, help="R@20 too; asks every question a second time, with a limit of 20.")
@click.option(
    "--ablate",
    is_flag=True,
    help="Ask everything again with each part of the ranking switched off, and sweep constant-weight RRF.",
)
@measuring
@click.pass_context
def retrieval(ctx: click.Context, sets: tuple[Path, ...], r20: bool, ablate: bool, wanted: Wanted) -> None:
    """Store the memories of SET through memory_store, ask its questions through memory_recall, and score the answers.

    SET holds lines as import takes them, then {"type": "question", "namespaces", "query", "evidence": [source, …],
    "category"}. A result counts by its source. R@k is the share of a question's evidence among the first k of one
    answer of --limit; every number is the mean over questions. Latency is what an MCP client waits. Each of several
    sets has a scratch store of its own.

    --ablate stores once and asks with the default, with each branch alone and with each part of the ranking off, and
    gives R@10 without it minus R@10 with it, with the 95 % interval of a paired bootstrap over questions (percentiles
    of 10,000 draws, always the same). The best constant-weight RRF is looked for by a sweep of k and weight over the
    lists that the branches bring, with the session neighbours of the default and without MMR; it is the best of a grid
    on the very questions it is judged by, so it flatters itself. The mean of the sets draws from each set by itself.
    The default is asked through the tool, the variants through the use case behind it, which takes every number of a
    ranking; questions that the two answer differently are counted.
    """
    from folklore.bench.sets import read_set

    settings = settings_here(ctx)
    given = [read_set(path, prefix=wanted.namespace_prefix) for path in sets]
    if ablate:
        _ablate(settings, given, r20, wanted)
        return
    found = [_measure(settings, one, r20, wanted) for one in given]
    if wanted.as_json:
        documents = [measured.as_json() | ({"kept": where} if wanted.keep else {}) for measured, where in found]
        print_json(documents[0] if len(documents) == 1 else {"sets": documents})
        return
    for measured, where in found:
        _print(measured)
        if wanted.keep:
            say(f"Kept: {where}")


def _measure(settings: Settings, given: RetrievalSet, r20: bool, wanted: Wanted) -> tuple[Measured, str]:
    from folklore.bench.retrieval import Plan

    plan = Plan(wanted.limit, wanted.questions, r20, wanted.options)

    async def work(tell: Tell) -> tuple[Measured, str]:
        from folklore.bench.assistant import assistant
        from folklore.bench.retrieval import measure
        from folklore.bench.scratch import scratch

        async with scratch(settings, keep=wanted.keep) as store, assistant(store.app) as client:
            return await measure(client, given, plan, tell), store.flags

    with progress(f"Measuring {given.name}", len(given.some(wanted.questions))) as tell:
        return asyncio.run(work(tell))


def _ablate(settings: Settings, sets: Sequence[RetrievalSet], r20: bool, wanted: Wanted) -> None:
    from folklore.bench.regret import as_json

    found = [_ablated(settings, given, r20, wanted) for given in sets]
    if wanted.as_json:
        kept = [{"kept": where} for _, where in found] if wanted.keep else [{} for _ in found]
        document = as_json([ablated for ablated, _ in found])
        print_json(document | {"sets": [one | place for one, place in zip(document["sets"], kept, strict=True)]})
        return
    _print_ablated([ablated for ablated, _ in found])
    if wanted.keep:
        say("Kept: " + ", ".join(where for _, where in found))


def _ablated(settings: Settings, given: RetrievalSet, r20: bool, wanted: Wanted) -> tuple[Ablated, str]:
    from folklore.bench.ablation import ABLATIONS, Direct, ablate
    from folklore.bench.retrieval import Plan
    from folklore.memory.filters import filters_of
    from folklore.memory.recall.pipeline import RecallRequest
    from folklore.memory.requests import ranking_of

    plan = Plan(wanted.limit, wanted.questions, r20, wanted.options)

    async def work(tell: Tell) -> tuple[Ablated, str]:
        from folklore.bench.assistant import assistant
        from folklore.bench.scratch import scratch

        async with scratch(settings, keep=wanted.keep) as store, assistant(store.app) as client:
            request = RecallRequest(
                query="",
                limit=wanted.limit,
                filters=filters_of(filters_from(wanted.filters), now=store.app.now(), zone=store.app.zone),
                ranking=ranking_of(ranking_from(wanted.ranking)),
                sort=wanted.sort,  # type: ignore[arg-type]
                max_tokens=wanted.max_tokens,
            )
            direct = Direct(await store.app.host.library(), request, client, store.app.now)
            return await ablate(direct, given, plan, tell), store.flags

    with progress(f"Ablating {given.name}", (len(ABLATIONS) + 3) * len(given.some(wanted.questions))) as tell:
        return asyncio.run(work(tell))


def _print(measured: Measured) -> None:
    kept, latency = measured.kept, measured.latency()
    say(f"{measured.name}: {kept.stored:,} memories stored, {kept.rate:,.0f} a second", bold=True)
    if kept.duplicates or kept.refused:
        say(f"{kept.duplicates:,} duplicates, {kept.refused:,} refused")
    say("recall: " + ", ".join(f"{name} {value:.1f} ms" for name, value in latency.items()))
    if degraded := sum(one.degraded for one in measured.asked):
        say(f"{degraded:,} answers were degraded", fg="red")
    scores = measured.scores()
    columns = list(scores["all"])
    print_table(["category", *columns], [[part, *found.values()] for part, found in scores.items()])


def _print_ablated(sets: Sequence[Ablated]) -> None:
    from folklore.bench.metrics import mean
    from folklore.bench.regret import effects, mean_effects, regrets

    for ablated in sets:
        _print(ablated.measured)
        if ablated.differing:
            say(f"{ablated.differing:,} questions answered otherwise by the use case than by the tool", fg="red")
        _print_effects(effects(ablated), ablated.score)
    if len(sets) > 1:
        say(f"mean of {len(sets)} sets", bold=True)
        _print_effects(mean_effects(sets), mean([ablated.score for ablated in sets]))
    say("No regret: R@10 of the default beside what else could have been chosen", bold=True)
    columns = ["set", "default", "better branch", "R@10", "over it", "best constant RRF", "R@10", "over it"]
    rows = [["" if value is None else value for value in line.as_json().values()] for line in regrets(sets)]
    print_table(columns, rows)


def _print_effects(found: Sequence[Effect], default: float) -> None:
    rows: list[list[object]] = [["(nothing)", default, "", ""]]
    for effect in found:
        between = f"{100 * effect.interval.low:+.1f} … {100 * effect.interval.high:+.1f}"
        points = "off already" if effect.unchanged else f"{100 * effect.interval.mean:+.1f}"
        rows.append([effect.part, effect.score, points, "" if effect.unchanged else between])
    print_table(["without", "R@10", "points", "95 % interval"], rows)
