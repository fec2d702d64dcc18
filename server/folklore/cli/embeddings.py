"""`folklore embeddings`: which models there are, what is owed, and changing the model without a pause."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from folklore.cli.context import settings_here, settings_of, with_app
from folklore.cli.options import json_option
from folklore.cli.output import print_json, print_table, say
from folklore.cli.pace import pace_of, pace_options, pausing, run, writing
from folklore.cli.progress import progress
from folklore.cli.switching import drop, fetched, rollback, switch
from folklore.config import Settings
from folklore.errors import InvalidInput

if TYPE_CHECKING:
    from folklore.app import App, Running
    from folklore.db.stores.models import KnownModel


@click.group()
def embeddings() -> None:
    """The embedding model: what it covers, what is owed, and how to change it while everybody goes on."""


@embeddings.command()
@json_option
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    """Show the models, what each covers in each namespace, what is owed, and how a search goes through it.

    Counts exactly, and so reads every namespace.
    """

    async def work(app: App, running: Running) -> dict[str, Any]:
        from folklore.db.stores.embeddings import Debts
        from folklore.db.stores.models import Models
        from folklore.embedding.factory import configured_choice
        from folklore.memory.models.switch import holdings

        models, held = await holdings(running.library, Models(running.database), Debts(running.database))
        named = configured_choice(app.settings.embedding)
        active = next((model for model in models if model.role == "active"), None)
        value: dict[str, Any] = {
            "configured": None if named is None else named.label,
            "active": None if active is None else active.label,
            "note": running.library.generations.mismatch or _note(app.settings, running, active),
            "models": [
                {
                    "model": model.label,
                    "id": str(model.id),
                    "role": model.role,
                    "dimensions": model.dimensions,
                    "url": model.url,
                    "since": None if model.since is None else model.since.isoformat(timespec="seconds"),
                    "embedded": sum(item.coverage.embedded for item in held if item.model.id == model.id),
                    "owed": sum(item.coverage.owed for item in held if item.model.id == model.id),
                }
                for model in models
            ],
            "namespaces": [
                {
                    "namespace": item.namespace,
                    "model": item.model.label,
                    "role": item.model.role,
                    "dimensions": item.model.dimensions,
                    "memories": item.coverage.memories,
                    "embedded": item.coverage.embedded,
                    "owed": item.coverage.owed,
                    "path": item.path,
                }
                for item in held
            ],
        }
        return value

    _print_status(with_app(ctx, work), as_json)


def _note(settings: Settings, running: Running, active: KnownModel | None) -> str | None:
    if settings.embedding.provider == "none":
        return "Embedding is switched off in the settings: memories are found by word only."
    if active is None:
        return "Nothing has been embedded yet; the first store makes the configured model the active one."
    return None


def _print_status(value: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(value)
        return
    say(f"configured  {value['configured'] or 'none'}")
    say(f"active      {value['active'] or 'none yet'}")
    if value["note"]:
        say(value["note"])
    for rows in (value["models"], value["namespaces"]):
        if rows:
            shown = [name for name in rows[0] if name not in ("id", "url", "since")]
            print_table(shown, [["" if row[name] is None else row[name] for name in shown] for row in rows])


@embeddings.command()
@pace_options
@json_option
@click.pass_context
def backfill(ctx: click.Context, batch: int, rate: float | None, patience: float, as_json: bool) -> None:
    """Make the vectors that the active model owes; may be broken off and run again."""

    async def work(app: App, running: Running) -> dict[str, Any]:
        from folklore.db.stores.embeddings import Debts
        from folklore.memory.models.backfill import Backfill

        library = running.library
        if library.embedder is None:
            raise InvalidInput("embedding.provider", "is none.", hint="Set a provider to make vectors.")
        model = await library.embedder.model()
        debts = Debts(running.database)
        ids = [notebook.id for notebook in await library.namespaces.find(None)]
        owed = sum(item.owed for item in (await debts.coverage(ids, model.id)).values())
        work = Backfill(debts, library.embedder, model.id, now=app.now, pace=pace_of(batch, rate, patience))
        with progress("Embedding", owed) as tell:
            filled = await work.fill(ids, tell)
        return {"model": model.label, "made": filled.paid, "without_known_word": filled.wordless}

    settings = writing(settings_here(ctx))
    with pausing():
        value = run(settings, work)
    if as_json:
        print_json(value)
    else:
        say(f"{value['made']:,} vectors made by {value['model']}.")


for _command in (switch, rollback, drop):
    embeddings.add_command(_command)


@embeddings.command()
@click.argument("model", required=False)
@click.pass_context
def fetch(ctx: click.Context, model: str | None) -> None:
    """Fetch a fastembed model to this machine, once; without MODEL, the one the settings name."""
    settings = settings_of(ctx)
    name = model or (settings.embedding.model if settings.embedding.provider == "fastembed" else None)
    if name is None:
        raise InvalidInput("MODEL", "is not given, and the settings name no fastembed model.", hint="Say which.")
    asyncio.run(fetched(settings, name))
    say(f"{name} is here.")
