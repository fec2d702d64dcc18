"""`folklore embeddings`: which models there are, what is owed, and changing the model without a pause."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from folklore.cli.context import settings_of
from folklore.cli.options import json_option
from folklore.cli.output import print_json, print_table, say
from folklore.cli.progress import progress
from folklore.config import EmbeddingSettings, Settings
from folklore.errors import InvalidInput, NotFound, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from folklore.app import App, Running
    from folklore.db.models import KnownModel
    from folklore.memory.backfill import Pace, Tell
    from folklore.memory.switch import Switch, Switched

Result = TypeVar("Result")
Command = TypeVar("Command", bound=Callable[..., Any])


@click.group()
def embeddings() -> None:
    """The embedding model: what it covers, what is owed, and how to change it while everybody goes on."""


def pace_options(command: Command) -> Command:
    """`--batch`, `--rate` and `--patience`."""
    for option in (
        click.option(
            "--patience",
            type=click.FloatRange(0),
            default=120.0,
            show_default=True,
            help="Wait so many seconds for a service that fails.",
        ),
        click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="At most so many memories a second."),
        click.option(
            "--batch", type=click.IntRange(1, 2048), default=256, show_default=True, help="Memories at a time."
        ),
    ):
        command = option(command)
    return command


@embeddings.command()
@json_option
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    """Show the models, what each covers in each namespace, what is owed, and how a search goes through it.

    Counts exactly, and so reads every namespace.
    """

    async def work(app: App, running: Running) -> dict[str, Any]:
        from folklore.db.debt import Debts
        from folklore.db.models import Models
        from folklore.embedding.choose import wanted
        from folklore.memory.switch import holdings

        models, held = await holdings(running.library, Models(running.database), Debts(running.database))
        named = wanted(app.settings.embedding)
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

    _print_status(_with_app(settings_of(ctx), work), as_json)


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
        from folklore.db.debt import Debts
        from folklore.memory.backfill import Backfill

        library = running.library
        if library.embedder is None:
            raise InvalidInput("embedding.provider", "is none.", hint="Set a provider to make vectors.")
        model = await library.embedder.model()
        debts = Debts(running.database)
        ids = [notebook.id for notebook in await library.namespaces.notebooks(None)]
        owed = sum(item.owed for item in (await debts.coverage(ids, model.id)).values())
        work = Backfill(debts, library.embedder, model.id, now=app.now, pace=_pace(batch, rate, patience))
        with progress("Embedding", owed) as tell:
            filled = await work.fill(ids, tell)
        return {"model": model.label, "made": filled.paid, "without_known_word": filled.wordless}

    settings = _writing(settings_of(ctx))
    with _pausing():
        value = _with_app(settings, work)
    if as_json:
        print_json(value)
    else:
        say(f"{value['made']:,} vectors made by {value['model']}.")


@embeddings.command()
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
    settings = _writing(settings_of(ctx))
    meant = settings.model_copy(update={"embedding": _meant(settings.embedding, named)})

    async def work(app: App, running: Running) -> Switched:
        from functools import partial

        from folklore.embedding.choose import build, wanted
        from folklore.memory.switch import target_of

        choice = wanted(meant.embedding)
        if choice is None:
            raise InvalidInput("--provider", "none needs no switch.", hint="Set embedding.provider to none instead.")
        if choice.provider == "fastembed":
            await _fetch(meant, choice.name)
        models = _models(running)
        target = await target_of(choice, models, partial(build, settings=meant.embedding, home=meant.home))
        try:
            with progress(f"To {target.model.label}", await _owed(running, target.model)) as tell:
                return await _switch(app, running, _pace(batch, rate, patience), tell).to(target, force=force)
        finally:
            await target.embedder.close()

    with _pausing():
        _tell(_with_app(settings, work), as_json)


@embeddings.command()
@click.option("--now", "at_once", is_flag=True, help="Go back first, make the vectors it lacks afterwards.")
@pace_options
@json_option
@click.pass_context
def rollback(ctx: click.Context, batch: int, rate: float | None, patience: float, at_once: bool, as_json: bool) -> None:
    """Go back to the model that counted before the last switch; what was stored since gets its vectors there."""

    async def work(app: App, running: Running) -> Switched:
        from functools import partial

        from folklore.embedding.choose import build

        to_build = partial(build, settings=app.settings.embedding, home=app.settings.home)
        with progress("Back", None) as tell:
            return await _switch(app, running, _pace(batch, rate, patience), tell).back(to_build, at_once=at_once)

    settings = _writing(settings_of(ctx))
    with _pausing():
        _tell(_with_app(settings, work), as_json)


@embeddings.command()
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
            dropped = await _switch(app, running, _pace(1, None, 0), tell).drop(found[0])
        return {"model": found[0].label, "dropped": dropped}

    value = _with_app(_writing(settings_of(ctx)), work)
    if as_json:
        print_json(value)
    else:
        say(f"{value['dropped']:,} vectors of {value['model']} dropped.")


@embeddings.command()
@click.argument("model", required=False)
@click.pass_context
def fetch(ctx: click.Context, model: str | None) -> None:
    """Fetch a fastembed model to this machine, once; without MODEL, the one the settings name."""
    import asyncio

    settings = settings_of(ctx)
    name = model or (settings.embedding.model if settings.embedding.provider == "fastembed" else None)
    if name is None:
        raise InvalidInput("MODEL", "is not given, and the settings name no fastembed model.", hint="Say which.")
    asyncio.run(_fetch(settings, name))
    say(f"{name} is here.")


async def _fetch(settings: Settings, name: str) -> None:
    import asyncio

    from folklore.embedding.choose import models_folder
    from folklore.embedding.fastembed import load

    await asyncio.to_thread(load, name, models_folder(settings.home), fetch=True)


def _with_app(settings: Settings, work: Callable[[App, Running], Awaitable[Result]]) -> Result:
    import asyncio

    async def whole() -> Result:
        from folklore.app import running

        async with running(settings) as app:
            return await work(app, await app.ready())

    return asyncio.run(whole())


@contextmanager
def _pausing() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        click.echo("Paused. What is done is kept: run the same command again to go on.", err=True)
        raise click.exceptions.Abort from None


def _writing(settings: Settings) -> Settings:
    if settings.read_only:
        raise Refused("The settings are read-only; nothing was changed.")
    return settings


def _meant(configured: EmbeddingSettings, named: dict[str, Any]) -> EmbeddingSettings:
    """The settings as the options change them; a model of their own brings none of the configured one's properties."""
    from folklore.embedding.choose import key_for

    given = {name: value for name, value in named.items() if value is not None}
    if not given:
        return configured
    kept = configured.model_dump()
    if {"provider", "model", "url"} & given.keys():
        for name in ("dimensions", "query_prefix", "document_prefix", "max_tokens"):
            kept[name] = None
        if given.get("provider", kept["provider"]) != kept["provider"]:
            kept |= {"url": None, "model": None}
    meant = EmbeddingSettings(**kept | given)
    # A key without an address was set for this call; one that belongs to another address stays at home.
    if configured.url is not None and meant.url is not None and meant.url != configured.url:
        meant = meant.model_copy(update={"api_key": key_for(meant.url, configured)})
    return meant


def _models(running: Running) -> Any:
    from folklore.db.models import Models

    return Models(running.database)


def _pace(batch: int, rate: float | None, patience: float) -> Pace:
    from folklore.memory.backfill import Pace

    return Pace(batch, rate, patience)


def _switch(app: App, running: Running, pace: Pace, tell: Tell) -> Switch:
    from folklore.db.debt import Debts
    from folklore.memory.switch import Switch

    return Switch(running.library, _models(running), Debts(running.database), now=app.now, pace=pace, tell=tell)


async def _owed(running: Running, model: KnownModel) -> int:
    from folklore.db.debt import Debts

    ids = [notebook.id for notebook in await running.library.namespaces.notebooks(None)]
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
        say(f"{done.old.label} can be gone back to: `folklore embeddings rollback`; or dropped: `… drop --previous`.")
        say("Name the new model in the settings of every server; until then they follow the store.")
