"""`folklore embeddings switch`, `rollback` and `drop`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from folklore.cli.context import settings_here
from folklore.cli.options import json_option
from folklore.cli.output import print_json, say
from folklore.cli.pace import pace_of, pace_options, pausing, run, writing
from folklore.cli.progress import progress
from folklore.config import EmbeddingSettings, Settings
from folklore.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from folklore.app import App, Running
    from folklore.db.stores.models import KnownModel
    from folklore.memory.models.backfill import Pace, Tell
    from folklore.memory.models.switch import Switch, Switched


@click.command()
@click.option("--provider", type=click.Choice(["bundled", "openai", "ollama", "fastembed"]), help="As in the settings.")
@click.option("--model", help="Its name there.")
@click.option("--url", help="The endpoint.")
@click.option("--dimensions", type=click.IntRange(1, 4000), help="The size to ask for.")
@click.option("--query-prefix", help="What goes before a question. Default: as known for the model.")
@click.option("--document-prefix", help="What goes before a text. Default: as known for the model.")
@click.option("--force", is_flag=True, help="Switch even if a sample is not found as well as before.")
@pace_options
@json_option
@click.pass_context
def switch(
    ctx: click.Context, /, batch: int, rate: float | None, patience: float, force: bool, as_json: bool, **named: Any
) -> None:
    """Change to another model; without options, to the one that the settings name.

    Its vectors are made beside the present ones, by which recall goes on. When all are there and a sample is found as
    well, recall and store go by the new model at once, on every running server. Ctrl-C pauses: run the same command to
    go on. `folklore embeddings rollback` goes back.
    """
    settings = writing(settings_here(ctx))
    meant = settings.model_copy(update={"embedding": _meant(settings.embedding, named)})

    async def work(app: App, running: Running) -> Switched:
        from functools import partial

        from folklore.embedding.factory import build_embedder, configured_choice
        from folklore.memory.models.switch import target_of

        choice = configured_choice(meant.embedding)
        if choice is None:
            raise InvalidInput("--provider", "none needs no switch.", hint="Set embedding.provider to none instead.")
        if choice.provider == "fastembed":
            await fetched(meant, choice.name)
        models = _models(running)
        target = await target_of(choice, models, partial(build_embedder, settings=meant.embedding, home=meant.home))
        try:
            with progress(f"To {target.model.label}", await _owed(running, target.model)) as tell:
                return await _switch(app, running, pace_of(batch, rate, patience), tell).to(target, force=force)
        finally:
            await target.embedder.close()

    with pausing():
        _tell(run(settings, work), as_json)


@click.command()
@click.option("--now", "at_once", is_flag=True, help="Go back first, make the vectors it lacks afterwards.")
@pace_options
@json_option
@click.pass_context
def rollback(ctx: click.Context, batch: int, rate: float | None, patience: float, at_once: bool, as_json: bool) -> None:
    """Go back to the model that counted before the last switch; what was stored since gets its vectors there."""

    async def work(app: App, running: Running) -> Switched:
        from functools import partial

        from folklore.embedding.factory import build_embedder

        to_build = partial(build_embedder, settings=app.settings.embedding, home=app.settings.home)
        with progress("Back", None) as tell:
            return await _switch(app, running, pace_of(batch, rate, patience), tell).back(to_build, at_once=at_once)

    settings = writing(settings_here(ctx))
    with pausing():
        _tell(run(settings, work), as_json)


@click.command()
@click.argument("model", required=False)
@click.option("--previous", "role", flag_value="previous", help="The model that counted before the last switch.")
@click.option("--next", "role", flag_value="next", help="The model of a switch that is given up.")
@json_option
@click.pass_context
def drop(ctx: click.Context, model: str | None, role: str | None, as_json: bool) -> None:
    """Delete the vectors of MODEL (its name or id in status), which must not be the active one."""
    if (model is None) == (role is None):
        raise click.UsageError("Say which: a MODEL, --previous or --next.")

    async def work(app: App, running: Running) -> dict[str, Any]:
        known = await _models(running).all()
        found = [item for item in known if (item.role == role if role else model in (item.label, str(item.id)))]
        if len(found) != 1:
            raise NotFound(
                "There is no such model." if not found else "Several models have this name; give the id.",
                hint="`folklore embeddings status --json` shows them.",
            )
        with progress("Dropping", None) as tell:
            dropped = await _switch(app, running, pace_of(1, None, 0), tell).drop(found[0])
        return {"model": found[0].label, "dropped": dropped}

    value = run(writing(settings_here(ctx)), work)
    if as_json:
        print_json(value)
    else:
        say(f"{value['dropped']:,} vectors of {value['model']} dropped.")


async def fetched(settings: Settings, name: str) -> None:
    """Fetch a fastembed model, unless it is here."""
    import asyncio

    from folklore.embedding.factory import models_folder
    from folklore.embedding.fastembed import load

    await asyncio.to_thread(load, name, models_folder(settings.home), fetch=True)


def _meant(configured: EmbeddingSettings, named: dict[str, Any]) -> EmbeddingSettings:
    """The settings as the options change them; a model of their own brings none of the configured one's properties."""
    from folklore.embedding.factory import key_for

    given = {name: value for name, value in named.items() if value is not None}
    if not given:
        return configured
    kept = configured.model_dump()
    if {"provider", "model", "url"} & given.keys():
        for name in ("dimensions", "query_prefix", "document_prefix"):
            kept[name] = None
        if given.get("provider", kept["provider"]) != kept["provider"]:
            kept |= {"url": None, "model": None}
    meant = EmbeddingSettings(**kept | given)
    # A key without an address was set for this call; one that belongs to another address stays at home.
    if configured.url is not None and meant.url is not None and meant.url != configured.url:
        meant = meant.model_copy(update={"api_key": key_for(meant.url, configured)})
    return meant


def _models(running: Running) -> Any:
    from folklore.db.stores.models import Models

    return Models(running.database)


def _switch(app: App, running: Running, pace: Pace, tell: Tell) -> Switch:
    from folklore.db.stores.embeddings import Debts
    from folklore.memory.models.switch import Switch

    return Switch(running.library, _models(running), Debts(running.database), now=app.now, pace=pace, tell=tell)


async def _owed(running: Running, model: KnownModel) -> int:
    from folklore.db.stores.embeddings import Debts

    ids = [notebook.id for notebook in await running.library.namespaces.find(None)]
    return sum(item.owed for item in (await Debts(running.database).coverage(ids, model.id)).values())


def _tell(done: Switched, as_json: bool) -> None:
    found = done.agreement
    if as_json:
        print_json(
            {
                "from": None if done.old is None else done.old.label,
                "to": done.new.label,
                "made": done.made,
                "agreement": None
                if found is None
                else {"sample": found.sample, "new": found.new, "old": found.old, "shared": found.shared},
            }
        )
        return
    say(f"{done.made:,} vectors made. Recall and store go by {done.new.label}.")
    if found is not None:
        before = "" if found.old is None else f" ({found.old} by the former model)"
        say(f"Of {found.sample} memories asked for by their first words it finds {found.new}{before}.")
    if done.old is not None:
        say(f"The way back to {done.old.label}: `folklore embeddings rollback`, until its vectors are dropped.")
        say("Name the new model in the settings of every server; until then they follow the store.")
