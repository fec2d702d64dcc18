"""`folklore injected` and `folklore pause`: what hooks gave to assistants, and silence for a while."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import tzinfo
from typing import Any
from uuid import UUID

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
    rows = [_row(text, zone) for text in texts]
    print_either({"injected": rows}, lambda: _print(ctx, texts, zone))


def _print(ctx: click.Context, texts: Sequence[InjectedText], zone: tzinfo) -> None:
    if not texts:
        print_line("Nothing was injected that matches.")
    sessions = defaultdict[tuple[str, str], list[InjectedText]](list)
    for text in texts:
        sessions[text.session, text.author].append(text)
    listed: list[UUID] = []
    for (session, author), of_session in sessions.items():
        print_line(f"session {session} of {author}: {_summary(of_session)}", bold=True)
        for text in of_session:
            listed += [memory.id for memory in text.memories]
            _print_text(text, zone)
    keep_list(ctx, listed)


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
    where = "in every session"
    if paused.session is not None:
        where = f"in session {paused.session}"
    until = "no more"
    if options["minutes"]:
        until = f"until {absolute_time(paused.until, zone_of(ctx))}"
    value = {"until": paused.until.isoformat(), "session": paused.session}
    print_either(value, f"Hooks are silent {where} {until}.")


def _row(text: InjectedText, zone: tzinfo) -> dict[str, Any]:
    row = row_of(text, "id at session author event text tokens", zone)
    memories = []
    for memory in text.memories:
        values = row_of(memory, "id namespace tokens used used_at", zone)
        memories.append(without_nulls(values))
    row["memories"] = memories
    return row


def _summary(texts: Sequence[InjectedText]) -> str:
    notes = 0
    tokens = 0
    used = 0
    for text in texts:
        notes += len(text.memories)
        tokens += text.tokens
        used += sum(memory.used is not None for memory in text.memories)
    return f"{amount(notes, 'note')}, {tokens:,} tokens, {used} used"


def _print_text(text: InjectedText, zone: tzinfo) -> None:
    when = time_text(text.at, zone)
    print_line(f"{when}, {text.event}, {text.tokens:,} tokens", dim=True)
    print_line(text.text)
    for memory in text.memories:
        if memory.used_at is not None:
            when = time_text(memory.used_at, zone)
            print_line(f"{memory.id}: {memory.used} {when}", fg="green")
    print_line()
