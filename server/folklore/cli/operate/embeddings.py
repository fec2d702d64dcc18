"""`folklore embeddings`: the embedding models, their coverage, and switching to another model while servers run."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import click

from folklore.app import App
from folklore.cli.context import call, local_settings, settings_of, with_app
from folklore.cli.options import context_and_json
from folklore.cli.output import print_either, print_json, print_line, print_rows, progress
from folklore.config import EmbeddingSettings, Settings
from folklore.db.stores.models import Models
from folklore.embedding import factory, fastembed
from folklore.embedding.protocol import ModelChoice
from folklore.errors import InvalidInput, NotFound, Refused
from folklore.memory.models.backfill import Backfill, Pace
from folklore.memory.models.recommend import Recommendation, recommend as measured_switch
from folklore.memory.models.switch import ModelSwitch, Switched, Target, target_of
from folklore.memory.requests import EmbeddingsRequest, result_json
from folklore.runtime import Runtime

Result = TypeVar("Result")

_PROVIDER = click.Choice(["bundled", "minilm", "openai", "ollama", "fastembed"])
# For an embedding service with a rate limit.
rate_option = click.option(
    "--rate", type=click.FloatRange(min=0, min_open=True), help="Most memories to embed in a second."
)


@click.group()
def embeddings() -> None:
    """Embedding models: show them, and switch between them while servers run."""


@embeddings.command()
@context_and_json
def status(ctx: click.Context, as_json: bool) -> None:
    """Show the models, their embeddings in each namespace, pending ones, and the path of a search.

    Counts exactly, so it reads every namespace.
    """

    result = call(ctx, EmbeddingsRequest())
    if as_json:
        print_json(result_json(EmbeddingsRequest(), result))
        return
    print_line(f"configured  {result.configured or 'none'}")
    print_line(f"active      {result.active or 'none yet'}")
    if result.note:
        print_line(result.note)
    for items in (result.models, result.namespaces):
        if rows := [asdict(item) for item in items]:
            print_rows(rows, [name for name in rows[0] if name not in ("id", "url", "since")])


@embeddings.command()
@rate_option
@context_and_json
def backfill(ctx: click.Context, rate: float | None, as_json: bool) -> None:
    """Make the pending embeddings in the active model. Ctrl-C pauses; run it again to continue."""

    async def work(app: App, running: Runtime) -> dict[str, Any]:
        context = running.memory
        if context.embedder is None:
            hint = "Set it in the settings."
            raise InvalidInput("embedding.provider", "must not be none to make embeddings.", hint=hint)
        model = await context.embedder.model()
        namespaces, pending = await _pending(running, model.id)
        with progress("Embedding", pending) as report:
            filled = await Backfill(
                context.embeddings, context.embedder, model.id, now=app.now, pace=Pace(per_second=rate), report=report
            ).fill(namespaces)
        return {"model": model.label, "made": filled.embeddings, "without_known_word": filled.wordless}

    value = _write(ctx, work)
    print_either(value, f"{value['made']:,} embeddings made by {value['model']}.", as_json=as_json)


@embeddings.command()
@click.argument("to", metavar="[PROVIDER]", required=False, type=_PROVIDER)
@click.option("--provider", type=_PROVIDER, help="The same as PROVIDER.")
@click.option("--model", help="The model's name at the provider.")
@click.option("--url", help="The address of the endpoint.")
@click.option("--force", is_flag=True, help="Switch even if the new model finds less of a sample.")
@rate_option
@context_and_json
def switch(
    ctx: click.Context, /, to: str | None, force: bool, rate: float | None, as_json: bool, **properties: str | None
) -> None:
    """Switch to another model: that of PROVIDER (bundled, minilm) and the options, or else of the settings.

    Makes the new model's embeddings while recall and store go on with the active ones. When all are made and the new
    model finds a sample as well, it becomes active on every running server. Ctrl-C pauses; run the same command again
    to continue. `folklore embeddings rollback` switches back.
    """
    settings = local_settings(ctx)
    properties["provider"] = to or properties["provider"]
    target_settings = settings.model_copy(update={"embedding": _target_settings(settings.embedding, properties)})

    async def work(app: App, running: Runtime) -> Switched:
        choice = factory.configured_choice(target_settings.embedding, target_settings.home)
        if choice is None:
            raise InvalidInput("--provider", "cannot be none.", hint="Set embedding.provider: none in the settings.")
        await _fetch(target_settings, choice)
        to_build = partial(factory.build_embedder, settings=target_settings.embedding, home=target_settings.home)
        target = await target_of(choice, Models(running.database), to_build)
        try:
            _, pending = await _pending(running, target.model.id)
            with progress(f"To {target.model.label}", pending) as report:
                switching = ModelSwitch(running.memory, now=app.now, pace=Pace(per_second=rate), report=report)
                return await switching.to(target, force=force)
        finally:
            await target.embedder.close()

    _print_switched(_write(ctx, work), as_json)


@embeddings.command()
@click.option("--sample", type=click.IntRange(1, 2000), default=200, help="Most memories to measure with.")
@click.option("--seconds", type=click.FloatRange(min=0), default=60.0, help="Stop measuring after this time.")
@context_and_json
def recommend(ctx: click.Context, sample: int, seconds: float, as_json: bool) -> None:
    """Measure on your memories what a switch to MiniLM would gain and cost; from MiniLM, to the bundled model.

    The questions are titles, first sentences and halves of memories; the answers the rest of them. Changes nothing.
    """
    settings = local_settings(ctx)

    async def work(app: App, running: Runtime) -> Recommendation:
        memory, models = running.memory, Models(running.database)
        active = await memory.active_model.known()
        if active is None or memory.embedder is None:
            raise NotFound("There is no active model to compare with.", hint="Store something first.")
        to = EmbeddingSettings(provider="bundled" if active.provider == "minilm" else "minilm")
        choice = factory.configured_choice(to)
        assert choice is not None
        other = await target_of(choice, models, partial(factory.build_embedder, settings=to, home=settings.home))
        namespaces = [namespace.id for namespace in await memory.namespaces.find(None)]
        try:
            with progress(f"Comparing with {choice.label}", sample) as report:
                result = await measured_switch(
                    memory.embeddings,
                    namespaces,
                    Target(active, memory.embedder),
                    other,
                    most=sample,
                    seconds=seconds,
                    report=report,
                )
        finally:
            await other.embedder.close()
        if result is None:
            raise NotFound("There is no memory of eight words or more to measure with.", hint="Store some first.")
        return result

    result = with_app(ctx, work)
    if as_json:
        print_json(asdict(result) | {"recommended": result.recommended})
        return
    print_line(f"Of {result.sample} questions made of your memories, the right memory is among the first five for:")
    for model in (result.active, result.other):
        print_line(f"  {model.model:<45}{model.hit_at_5:>6.0%}{model.milliseconds:>8.1f} ms a text")
    megabytes = result.bytes / 1e6
    print_line(f"A switch of {result.memories:,} memories takes {result.seconds:,.0f} s and {megabytes:,.1f} MB.")
    provider = result.other.model.split("/")[0]
    advice = f"Worth it: `folklore embeddings switch {provider}`." if result.recommended else "Not worth it."
    print_line(advice)


@embeddings.command()
@click.option("--now", "at_once", is_flag=True, help="Switch first, make missing embeddings afterwards.")
@rate_option
@context_and_json
def rollback(ctx: click.Context, at_once: bool, rate: float | None, as_json: bool) -> None:
    """Switch back to the previous model, after making the embeddings that it lacks."""

    async def work(app: App, running: Runtime) -> Switched:
        to_build = partial(factory.build_embedder, settings=app.settings.embedding, home=app.settings.home)
        with progress("Rollback", None) as report:
            switching = ModelSwitch(running.memory, now=app.now, pace=Pace(per_second=rate), report=report)
            return await switching.back(to_build, at_once=at_once)

    _print_switched(_write(ctx, work), as_json)


@embeddings.command()
@click.argument("model", required=False)
@click.option("--previous", "role", flag_value="previous", help="The model that was active before the last switch.")
@click.option("--next", "role", flag_value="next", help="The new model of a switch that is given up.")
@context_and_json
def drop(ctx: click.Context, model: str | None, role: str | None, as_json: bool) -> None:
    """Delete the embeddings of MODEL, given by the name or id that status shows; not of the active model."""
    if (model is None) == (role is None):
        raise click.UsageError("Give exactly one of MODEL, --previous and --next.")

    async def work(app: App, running: Runtime) -> dict[str, Any]:
        models = await Models(running.database).read()
        matches = [item for item in models if (item.role == role if role else model in (item.label, str(item.id)))]
        if len(matches) != 1:
            raise NotFound(
                "Several models have this name; give the id." if matches else "There is no such model.",
                hint="`folklore embeddings status --json` lists them.",
            )
        with progress("Dropping", None) as report:
            dropped = await ModelSwitch(running.memory, now=app.now, report=report).drop(matches[0])
        return {"model": matches[0].label, "dropped": dropped}

    value = _write(ctx, work)
    print_either(value, f"{value['dropped']:,} embeddings of {value['model']} dropped.", as_json=as_json)


@embeddings.command()
@click.argument("model", required=False)
@click.pass_context
def fetch(ctx: click.Context, model: str | None) -> None:
    """Download MODEL to this machine: minilm, or one of fastembed; without MODEL, the one that the settings name."""
    settings = settings_of(ctx)
    name = model or (settings.embedding.model if settings.embedding.provider == "fastembed" else None)
    if name is None:
        raise InvalidInput("MODEL", "is missing, and the settings name no fastembed model.", hint="Name a model.")
    choice = ModelChoice("minilm", factory.MINILM) if name == "minilm" else ModelChoice("fastembed", name)
    asyncio.run(_fetch(settings, choice))
    print_line(f"{choice.name} is on this machine.")


async def _fetch(settings: Settings, choice: ModelChoice) -> None:
    """Download the model of a choice, unless it is here or another machine runs it."""
    if choice.provider == "fastembed":
        await asyncio.to_thread(fastembed.load, choice.name, factory.models_folder(settings.home), fetch=True)
    elif choice.provider == "minilm" and factory.minilm_folder(settings.home) is None:
        from folklore.embedding.minilm import fetch as fetch_minilm  # imports numpy

        await asyncio.to_thread(fetch_minilm, factory.fetched_minilm(settings.home))


def _target_settings(configured: EmbeddingSettings, properties: dict[str, str | None]) -> EmbeddingSettings:
    """Return the settings with the options applied; another model takes over no property of the configured one."""
    changes = {name: value for name, value in properties.items() if value is not None}
    if not changes:
        return configured
    inherited = configured.model_dump(exclude={"dimensions", "query_prefix", "document_prefix", "max_tokens"})
    if changes.get("provider", configured.provider) != configured.provider:
        inherited |= {"url": None, "model": None}
    target = EmbeddingSettings(**inherited | changes)
    # A key without an address was set for this call; a key for another address must not be sent to this one.
    if configured.url is not None and target.url is not None and target.url != configured.url:
        target = target.model_copy(update={"api_key": factory.key_for(target.url, configured)})
    return target


async def _pending(running: Runtime, model: UUID) -> tuple[list[UUID], int]:
    """Return the namespaces, and the number of their pending embeddings in a model, for the progress bar."""
    namespaces = [namespace.id for namespace in await running.memory.namespaces.find(None)]
    coverage = await running.memory.embeddings.coverage(namespaces, model)
    return namespaces, sum(item.pending for item in coverage.values())


def _write(ctx: click.Context, work: Callable[[App, Runtime], Awaitable[Result]]) -> Result:
    """Run work that writes and that Ctrl-C may pause. Raises Refused if the settings are read-only."""
    if local_settings(ctx).read_only:
        raise Refused("read_only is set; nothing was changed.")
    try:
        return with_app(ctx, work)
    except KeyboardInterrupt:
        click.echo("Paused. Run the same command again to continue.", err=True)
        raise click.exceptions.Abort from None


def _print_switched(done: Switched, as_json: bool) -> None:
    validation = done.validation
    if as_json:
        models = {"from": None if done.old is None else done.old.label, "to": done.new.label}
        print_json(models | {"made": done.embeddings, "validation": None if validation is None else asdict(validation)})
        return
    print_line(f"{done.embeddings:,} embeddings made. {done.new.label} is the active model.")
    if validation is not None:
        former = "" if validation.old is None else f", the former model {validation.old}"
        print_line(f"Of {validation.sample} memories it finds {validation.new} by their first words{former}.")
    if done.old is not None:
        back = "`folklore embeddings rollback` switches back to"
        print_line(f"{back} {done.old.label}, until its embeddings are dropped.")
        print_line("Servers whose settings name another model use it too; name this one there, or `auto`.")
