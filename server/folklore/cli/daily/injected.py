"""`folklore injected` and `folklore pause`: what hooks gave to assistants, and silence for a while."""

from collections.abc import Sequence
from datetime import tzinfo
from typing import Any

import click

from folklore.cli.context import call, zone_of
from folklore.cli.ids import keep_list
from folklore.cli.options import context_and_json, namespaces_option
from folklore.cli.output import print_either, print_line, row_of, time_text
from folklore.contract.hooks import InjectedRequest, InjectedText, PauseRequest
from folklore.contract.requests import without_nulls
from folklore.text.amounts import amount
from folklore.text.dates.distance import absolute_time


@click.command()
@namespaces_option
@click.option(
    "--session",
    metavar="NAME",
    help="Only this session, by its name or the beginning of it.",
)
@click.option("--everyone", is_flag=True, help="Of every author; for the owner.")
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=20,
    show_default=True,
    help="Injected texts.",
)
@context_and_json
def injected(ctx: click.Context, /, **options: Any) -> None:
    """Show what hooks injected into the sessions of your assistants: the text as it was given, tokens, later use."""
    texts = call(ctx, InjectedRequest(**options))
    zone = zone_of(ctx)
    print_either(
        {"injected": [_row(text, zone) for text in texts]},
        lambda: _print(ctx, texts, zone),
    )


def _print(ctx: click.Context, texts: Sequence[InjectedText], zone: tzinfo) -> None:
    if not texts:
        print_line("Nothing was injected that matches.")
    sessions: dict[tuple[str, str], list[InjectedText]] = {}
    for text in texts:
        sessions.setdefault((text.session, text.author), []).append(text)
    for (session, author), injected_texts in sessions.items():
        print_line(
            f"session {session} of {author}: {_summary(injected_texts)}", bold=True
        )
        for text in injected_texts:
            _print_text(text, zone)
    keep_list(
        ctx,
        [
            memory.id
            for texts in sessions.values()
            for text in texts
            for memory in text.memories
        ],
    )


@click.command()
@click.option(
    "--minutes",
    type=click.IntRange(0, 10_080),
    default=60,
    show_default=True,
    help="0 ends every pause.",
)
@click.option(
    "--session",
    is_flag=True,
    help="Only the last session of this project that an assistant began.",
)
@context_and_json
def pause(ctx: click.Context, /, **options: Any) -> None:
    """Silence your hooks: no notes, no requests to store, nothing recorded, in every session or in one.

    An assistant's tools work as before.
    """
    paused = call(ctx, PauseRequest(**options))
    if paused.session is None:
        where = "in every session"
    else:
        where = f"in session {paused.session}"
    if options["minutes"]:
        until = f"until {absolute_time(paused.until, zone_of(ctx))}"
    else:
        until = "no more"
    value = {"until": paused.until.isoformat(), "session": paused.session}
    print_either(value, f"Hooks are silent {where} {until}.")


def _row(text: InjectedText, zone: tzinfo) -> dict[str, Any]:
    rows = [
        without_nulls(row_of(memory, "id namespace tokens used used_at", zone))
        for memory in text.memories
    ]
    return row_of(text, "id at session author event text tokens", zone) | {
        "memories": rows
    }


def _summary(texts: Sequence[InjectedText]) -> str:
    memories = [memory for text in texts for memory in text.memories]
    used = sum(memory.used is not None for memory in memories)
    return f"{amount(len(memories), 'note')}, {sum(text.tokens for text in texts):,} tokens, {used} used"


def _print_text(text: InjectedText, zone: tzinfo) -> None:
    print_line(
        f"{time_text(text.at, zone)}, {text.event}, {text.tokens:,} tokens", dim=True
    )
    print_line(text.text)
    for memory in text.memories:
        if memory.used_at is not None:
            print_line(
                f"{memory.id}: {memory.used} {time_text(memory.used_at, zone)}",
                fg="green",
            )
    print_line()
