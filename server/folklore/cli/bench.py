"""`folklore bench`."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from folklore.cli.context import settings_of
from folklore.cli.options import Given, filter_options, json_option, ranking_options, sort_option
from folklore.cli.output import print_json, print_table, say
from folklore.cli.progress import Tell, progress

if TYPE_CHECKING:
    from folklore.bench.retrieval import Measured


@click.group()
def bench() -> None:
    """Measure on your own data or a public set, in a scratch store that is removed again; never in your memory."""


@bench.command()
@click.argument("set_", metavar="SET.jsonl", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="Of each answer.")
@click.option("--namespace-prefix", default="", help="Put before every namespace of the set.")
@click.option("--questions", type=click.IntRange(min=1), help="Only so many questions, evenly spread over the set.")
@click.option("--r20", is_flag=True, help="R@20 too; asks every question a second time, with a limit of 20.")
@click.option("--keep", is_flag=True, help="Keep the scratch store, and say where it is.")
@filter_options
@ranking_options
@sort_option
@click.option("--max-tokens", type=click.IntRange(50, 100_000))
@json_option
@click.pass_context
def retrieval(
    ctx: click.Context,
    set_: Path,
    limit: int,
    namespace_prefix: str,
    questions: int | None,
    r20: bool,
    keep: bool,
    filters: Given,
    ranking: Given,
    sort: str,
    max_tokens: int | None,
    as_json: bool,
) -> None:
    """Store the memories of SET through memory_store, ask its questions through memory_recall, and score the answers.

    SET holds lines as import takes them, then {"type": "question", "namespaces", "query", "evidence": [source, …],
    "category"}. A result counts by its source. R@k is the share of a question's evidence among the first k of one
    answer of --limit; every number is the mean over questions. Latency is what an MCP client waits.
    """
    settings = settings_of(ctx)
    from folklore.bench.retrieval import Plan
    from folklore.bench.sets import read_set

    given = read_set(set_, prefix=namespace_prefix)
    plan = Plan(limit, questions, r20, recall_options(filters, ranking, sort, max_tokens))

    async def work(tell: Tell) -> tuple[Measured, str]:
        from folklore.bench.assistant import assistant
        from folklore.bench.retrieval import measure
        from folklore.bench.scratch import scratch

        async with scratch(settings, keep=keep) as store, assistant(store.app) as client:
            return await measure(client, given, plan, tell), store.flags

    with progress(f"Measuring {given.name}", len(given.some(questions))) as tell:
        measured, where = asyncio.run(work(tell))
    if as_json:
        print_json(measured.as_json() | ({"kept": where} if keep else {}))
    else:
        _print(measured)
        if keep:
            say(f"Kept: {where}")


def recall_options(filters: Given, ranking: Given, sort: str, max_tokens: int | None) -> dict[str, Any]:
    """The options that were given, as arguments of memory_recall; what is at its default is left to the tool."""
    chosen = {name: _plain(value) for name, value in filters.items() if value not in (None, (), False, "any", "prefix")}
    ranked = {name: _plain(value) for name, value in ranking.items() if value not in (None, (), "balanced")}
    if "weights" in ranked:
        ranked["weights"] = dict(ranking["weights"])
    if sort != "score":
        ranked["sort"] = sort
    options = {"filters": chosen, "ranking": ranked, "max_tokens": max_tokens}
    return {name: value for name, value in options.items() if value}


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value


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
