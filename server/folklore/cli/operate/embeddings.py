"""`folklore embeddings`: the embedding models, their coverage, and switching to another model while servers run."""

from dataclasses import asdict

import click

from folklore.cli.context import call, settings_of
from folklore.cli.options import context_and_json
from folklore.cli.output import print_either, print_line, print_rows
from folklore.contract.models import (
    BackfillRequest,
    DropModelRequest,
    EmbeddingsInfo,
    EmbeddingsRequest,
    Recommendation,
    RecommendModelRequest,
    RestoreModelRequest,
    SwitchModelRequest,
    SwitchResult,
)
from folklore.contract.requests import Result, Returns, result_json
from folklore.embedding import (
    MINILM,
    ModelChoice,
    changed_settings,
    configured_choice,
    fetch_model,
)
from folklore.errors import InvalidInput

_PROVIDER = click.Choice(["bundled", "minilm", "openai", "ollama", "fastembed"])
# For an embedding service with a rate limit.
rate_option = click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    help="Most memories to embed in a second.",
)

embeddings = click.Group(
    "embeddings",
    help="Embedding models: show them, and switch between them while servers run.",
)


@embeddings.command()
@context_and_json
def status(ctx: click.Context) -> None:
    """Show the models, their embeddings in each namespace, pending ones, and the path of a search.

    Counts exactly, so it reads every namespace.
    """
    request = EmbeddingsRequest()
    result = call(ctx, request)
    print_either(result_json(request, result), lambda: _print(result))


def _print(result: EmbeddingsInfo) -> None:
    print_line(f"configured  {result.configured or 'none'}")
    print_line(f"active      {result.active or 'none yet'}")
    if result.note:
        print_line(result.note)
    for records in (result.models, result.namespaces):
        rows = [asdict(record) for record in records]
        if rows:
            columns = [name for name in rows[0] if name not in ("id", "url", "since")]
            print_rows(rows, columns)


@embeddings.command()
@rate_option
@context_and_json
def backfill(ctx: click.Context, rate: float | None) -> None:
    """Make the pending embeddings in the active model. Ctrl-C pauses; run it again to continue."""
    result = _changed(ctx, BackfillRequest(rate=rate))
    print_either(asdict(result), f"{result.made:,} embeddings made by {result.model}.")


@embeddings.command()
@click.argument("provider", required=False, type=_PROVIDER)
@click.option("--model", help="The model's name at the provider.")
@click.option("--url", help="The address of the endpoint.")
@click.option(
    "--force", is_flag=True, help="Switch even if the new model finds less of a sample."
)
@rate_option
@context_and_json
def switch(
    ctx: click.Context, /, force: bool, rate: float | None, **properties: str | None
) -> None:
    """Switch to another model: that of PROVIDER (bundled, minilm) and the options, or else of the settings.

    Makes the new model's embeddings while recall and store go on with the active ones. When all are made and the new
    model finds a sample as well, it becomes active on every running server. Ctrl-C pauses; run the same command again
    to continue. `folklore embeddings rollback` switches back.
    """
    changes = {name: value for name, value in properties.items() if value is not None}
    settings = settings_of(ctx)
    if settings.server is None and not settings.read_only:
        embedding = changed_settings(settings.embedding, changes)
        choice = configured_choice(embedding, settings.home)
        if choice is not None:
            fetch_model(choice, settings.home)
    _switch(ctx, SwitchModelRequest(**changes, force=force, rate=rate))


@embeddings.command()
@click.option(
    "--sample",
    type=click.IntRange(1, 2000),
    default=200,
    help="Most memories to measure with.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=60.0,
    help="Stop measuring after this time.",
)
@context_and_json
def recommend(ctx: click.Context, sample: int, seconds: float) -> None:
    """Measure on your memories what a switch to MiniLM would gain and cost; from MiniLM, to the bundled model.

    The questions are titles, first sentences and halves of memories; the answers the rest of them. Changes nothing.
    """
    result = call(ctx, RecommendModelRequest(sample=sample, seconds=seconds))
    value = asdict(result) | {"recommended": result.recommended}
    print_either(value, lambda: _print_recommended(result))


def _print_recommended(result: Recommendation) -> None:
    print_line(
        f"Of {result.sample} questions made of your memories, the right memory is among the first five for:"
    )
    for model in (result.active, result.other):
        print_line(
            f"  {model.model:<45}{model.hit_at_5:>6.0%}{model.milliseconds:>8.1f} ms a text"
        )
    megabytes = result.bytes / 1e6
    print_line(
        f"A switch of {result.memories:,} memories takes {result.seconds:,.0f} s and {megabytes:,.1f} MB."
    )
    if result.recommended:
        provider = result.other.model.split("/")[0]
        print_line(f"Worth it: `folklore embeddings switch {provider}`.")
    else:
        print_line("Not worth it.")


@embeddings.command()
@click.option(
    "--now",
    "at_once",
    is_flag=True,
    help="Switch first, make missing embeddings afterwards.",
)
@rate_option
@context_and_json
def rollback(ctx: click.Context, at_once: bool, rate: float | None) -> None:
    """Switch back to the previous model, after making the embeddings that it lacks."""
    _switch(ctx, RestoreModelRequest(at_once=at_once, rate=rate))


@embeddings.command()
@click.argument("model", required=False)
@click.option(
    "--previous",
    "role",
    flag_value="previous",
    help="The model that was active before the last switch.",
)
@click.option(
    "--next",
    "role",
    flag_value="next",
    help="The new model of a switch that is given up.",
)
@context_and_json
def drop(ctx: click.Context, model: str | None, role: str | None) -> None:
    """Delete the embeddings of MODEL, given by the name or id that status shows; not of the active model."""
    if (model is None) == (role is None):
        raise click.UsageError("Give exactly one of MODEL, --previous and --next.")
    result = _changed(ctx, DropModelRequest(model=model, role=role))
    print_either(
        asdict(result), f"{result.dropped:,} embeddings of {result.model} dropped."
    )


@embeddings.command()
@click.argument("model", required=False)
@click.pass_context
def fetch(ctx: click.Context, model: str | None) -> None:
    """Download MODEL to this machine: minilm, or one of fastembed; without MODEL, the one that the settings name."""
    settings = settings_of(ctx)
    name = model
    if not name and settings.embedding.provider == "fastembed":
        name = settings.embedding.model
    if not name:
        raise InvalidInput(
            "MODEL",
            "is missing, and the settings name no fastembed model.",
            hint="Name a model.",
        )
    if name == "minilm":
        choice = ModelChoice("minilm", MINILM)
    else:
        choice = ModelChoice("fastembed", name)
    fetch_model(choice, settings.home)
    print_line(f"{choice.name} is on this machine.")


def _changed(ctx: click.Context, request: Returns[Result]) -> Result:
    """Run an operation that Ctrl-C may pause."""
    try:
        return call(ctx, request)
    except KeyboardInterrupt:
        click.echo("Paused. Run the same command again to continue.", err=True)
        raise click.exceptions.Abort from None


def _switch(
    ctx: click.Context,
    request: SwitchModelRequest | RestoreModelRequest,
) -> None:
    done = _changed(ctx, request)
    validation = None if done.validation is None else asdict(done.validation)
    value = {
        "from": done.old,
        "to": done.new,
        "made": done.made,
        "validation": validation,
    }
    print_either(value, lambda: _print_switched(done))


def _print_switched(done: SwitchResult) -> None:
    validation = done.validation
    print_line(f"{done.made:,} embeddings made. {done.new} is the active model.")
    if validation is not None:
        line = f"Of {validation.sample} memories it finds {validation.new} by their first words"
        if validation.old is not None:
            line += f", the former model {validation.old}"
        print_line(f"{line}.")
    if done.old is not None:
        back = "`folklore embeddings rollback` switches back to"
        print_line(f"{back} {done.old}, until its embeddings are dropped.")
        print_line(
            "Servers whose settings name another model use it too; name this one there, or `auto`."
        )
