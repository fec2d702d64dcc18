"""`folklore store`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from folklore.cli.context import with_desk
from folklore.cli.options import Moment, id_of, json_option
from folklore.cli.output import print_json, say
from folklore.errors import InvalidInput
from folklore.memory import serializers as present
from folklore.model import DEFAULT_KIND, Draft
from folklore.text.tags import MAX_TAGS

if TYPE_CHECKING:
    from folklore.memory.service import Service


@click.command()
@click.argument("text", nargs=-1, required=True)
@click.option("-n", "--namespace", help="Where to. Default: the project's.")
@click.option("--summary", help="A shorter wording for tight budgets.")
@click.option("--kind", default=DEFAULT_KIND, show_default=True, help="note, semantic, episodic, decision, bug, …")
@click.option("--tag", "tags", multiple=True, help="Repeatable.")
@click.option("--entities", is_flag=True, help="Tag it also with what it names: people, tools, files, …")
@click.option("--source", help="Where it is from.")
@click.option("--session", help="What it belongs to; memories of a session keep their order.")
@click.option("--occurred-at", type=Moment(), help="When it was true, if not now.")
@click.option("--importance", type=click.FloatRange(0, 1))
@click.option("--confidence", type=click.FloatRange(0, 1))
@click.option("--priority", type=click.IntRange(1, 4), help="1 comes first.")
@click.option("--language", help="Of the text; default: the namespace's.")
@click.option("--expires-at", type=Moment(), help="When it stops being true.")
@click.option("--path", "paths", multiple=True, help="A file or folder it is about; repeatable.")
@click.option("--commit", help="The commit it is about.")
@click.option("--metadata", help="A JSON object of your own, at most 8 KB.")
@click.option(
    "--idempotency-key", help="The same again under the same key gives the same memory; something else is refused."
)
@click.option("--supersedes", metavar="ID", help="The memory it replaces, which recall leaves out from now on.")
@click.option("--supersede-reason", help="Why; kept in that one's history.")
@json_option
@click.pass_context
def store(
    ctx: click.Context,
    /,
    text: tuple[str, ...],
    namespace: str | None,
    tags: tuple[str, ...],
    entities: bool,
    paths: tuple[str, ...],
    metadata: str | None,
    supersedes: str | None,
    as_json: bool,
    **fields: Any,
) -> None:
    """Store TEXT as one memory; - reads it from stdin. What is known already is not stored twice."""
    content = _typed() if text == ("-",) else " ".join(text)
    named = [tag for tag in _named(content) if tag not in tags][: max(MAX_TAGS - len(tags), 0)]
    draft = Draft(
        content=content,
        tags=(*tags, *named) if entities else tags,
        paths=paths,
        metadata=_metadata(metadata),
        supersedes=None if supersedes is None else id_of(supersedes),
        **fields,
    )

    async def work(desk: Service) -> None:
        result = await desk.store(namespace or await desk.home(), draft)
        if as_json:
            note = {"note": result.note} if result.note else {}
            print_json({"namespace": result.namespace, "stored": present.stored(result.stored), **note})
        else:
            for item in result.stored:
                say(f"{item.status} {item.id} in {result.namespace}")
                for near in item.similar:
                    said = present.beginning(near.content).replace("\n", " ")
                    say(f"  nearly the same ({near.similarity:.2f}): {near.id} by {near.author}: {said}", dim=True)
            if named and not entities:
                say(f"  names {', '.join(named)}: with --entities it is tagged so", dim=True)
            if result.note:
                click.echo(result.note, err=True)

    with_desk(ctx, work)


def _typed() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:  # a store of replacement characters would be a loss that nobody was told of
        raise InvalidInput(
            "TEXT", "is not UTF-8.", hint="Convert it first, e.g. by `iconv --from-code latin1 --to-code utf-8`."
        ) from error


def _named(content: str) -> list[str]:
    """The tags of what a text names."""
    from folklore.text.entities.finder import find_entities

    return [entity.tag for entity in find_entities(content)]


def _metadata(text: str | None) -> dict[str, object] | None:
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InvalidInput("metadata", "is not JSON.", hint="Give an object, such as '{\"ticket\": 12}'.") from error
    if not isinstance(value, dict):
        raise InvalidInput("metadata", "is not a JSON object.", hint="Give one, such as '{\"ticket\": 12}'.")
    return value
