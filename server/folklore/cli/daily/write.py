"""Commands that change memories: store, edit, forget, merge, pin, relate; undo.py has undo and redo."""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any
from uuid import UUID

import click
import yaml

from folklore.cli import options as opt
from folklore.cli.context import call
from folklore.cli.ids import call_with_ids, ids_of, with_ids
from folklore.cli.output import in_one_line, paint, print_either, print_line, wants_json
from folklore.cli.screen import confirm
from folklore.contract.ids import short
from folklore.contract.memories import (
    CHANGEABLE,
    ForgetRequest,
    ForgetResult,
    HistoryRequest,
    RelateRequest,
    RelationChange,
    StoreRequest,
    StoreResult,
    UpdateRequest,
    forgotten_json,
    record_json,
    related_json,
    stored_json,
)
from folklore.contract.requests import Operations
from folklore.errors import FolkloreError, InvalidInput, error_from_code
from folklore.model import FIELDS, Draft, Memory, SupersededMemory
from folklore.text.dates.byline import byline
from folklore.text.entities.finder import find_entities
from folklore.text.tags import MAX_TAGS

_RULE = "---\n"
_NOTHING = "Nothing was changed."
# Fields that an editor shows above the text.
_EDITED = [name for name in CHANGEABLE if name != "content" and FIELDS[name].stated]


@click.command(cls=opt.TextCommand)
@click.argument("text", nargs=-1)
@click.option(
    "-n",
    "--namespace",
    callback=opt.named,
    help="Where to store it. Default: the project's namespace.",
)
@opt.field_options
@click.option(
    "--entities",
    is_flag=True,
    help="Also tag the people, tools, files, … that the text names.",
)
@click.option(
    "--idempotency-key", help="A repeated request under one key stores nothing twice."
)
@click.option(
    "--supersedes",
    metavar="ID",
    help="The memory that this one replaces; recall leaves the old one out.",
)
@click.option(
    "--supersede-reason", help="The reason, kept in the history of the replaced memory."
)
@opt.context_and_json
def store(
    ctx: click.Context,
    /,
    text: tuple[str, ...],
    fields: opt.Values,
    entities: bool,
    **options: Any,
) -> None:
    """Store TEXT as one memory; - reads it from stdin. Without TEXT, your editor opens ($VISUAL, $EDITOR).

    A known text is not stored twice.
    """
    namespace = options.pop("namespace")
    supersedes = options.pop("supersedes")
    if text == ("-",):
        content = _stdin()
    else:
        content = " ".join(text) or _written()
    stated = opt.fields_from(fields)
    tags = stated.pop("tags", ())
    entity_tags = _entity_tags(content, tags)
    if entities:
        tags = (*tags, *entity_tags)
        entity_tags = []

    def request(ids: tuple[UUID, ...]) -> StoreRequest:
        superseded = ids[0] if ids else None
        draft = Draft(content, **stated, **options, tags=tags, supersedes=superseded)
        return StoreRequest(memories=(draft,), namespace=namespace, single=True)

    superseded_ids = [] if supersedes is None else [supersedes]
    # what was written in the editor is nowhere else
    with nullcontext() if text else _keeping("memory", content):
        result = call_with_ids(ctx, superseded_ids, request)
    print_either(stored_json(result), lambda: _print_stored(result, entity_tags))


def _entity_tags(content: str, tags: Sequence[str]) -> list[str]:
    """Return the tags of the entities that a text names, as many as it may have besides these tags."""
    found = [entity.tag for entity in find_entities(content) if entity.tag not in tags]
    return found[: max(MAX_TAGS - len(tags), 0)]


def _print_stored(result: StoreResult, entity_tags: Sequence[str]) -> None:
    """Print what was stored; `entity_tags` are tags of entities that it does not have."""
    for outcome in result.stored:
        known = "known already as" if outcome.status == "duplicate" else "stored"
        print_line(f"{known} {outcome.id} in {result.namespace}")
        if outcome.superseded is not None:
            print_line(f"  {_hidden(outcome.superseded)}", dim=True)
        for near in outcome.similar:
            by = byline(near.author, near.changed_by, None, UTC)
            head = f"  similar ({near.similarity:.2f}): {near.id} by {by}"
            print_line(f"{head}: {in_one_line(near.content)}", dim=True)
        for older in outcome.same_subject:
            head = f"  same subject: {older.id} of {older.when:%Y-%m-%d}"
            print_line(f"{head}: {in_one_line(older.content)}", dim=True)
        if outcome.same_subject:
            new = short(outcome.id)
            first = short(outcome.same_subject[0].id)
            print_line(
                f"  if it replaces that: folklore relate {new} supersedes {first};"
                f" if both hold: folklore relate {new} relates_to {first}",
                dim=True,
            )
    if entity_tags:
        named = ", ".join(entity_tags)
        print_line(f"  names {named}: --entities adds these tags", dim=True)
    if result.note:
        click.echo(result.note, err=True)


def _hidden(memory: SupersededMemory) -> str:
    """Return what a person should know of a memory that a call superseded."""
    text = in_one_line(memory.content)
    return f"supersedes {short(memory.id)}, which recall leaves out from now on: {text}"


def _written() -> str:
    """Return a text from the editor; ends the command if it was left empty. Raises InvalidInput without a terminal."""
    if not sys.stdin.isatty():
        raise InvalidInput(
            "TEXT", "is missing.", hint="Give the text, or - to read it from stdin."
        )
    text = (click.edit("", extension=".md") or "").strip()
    if not text:
        click.echo("The text is empty: nothing was stored.", err=True)
        raise click.exceptions.Exit(0)
    return text


def _stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:  # replacement characters would lose text
        hint = "Convert it first, e.g. by `iconv --from-code latin1 --to-code utf-8`."
        raise InvalidInput("TEXT", "is not UTF-8.", hint=hint) from error


@click.command()
@click.argument("memory", metavar="ID")
@opt.namespace_option
@opt.context_and_json
def edit(ctx: click.Context, memory: str, namespaces: opt.Names) -> None:
    """Change a memory in your editor ($VISUAL, $EDITOR): its fields above, its text below.

    A file that is not saved, or saved unchanged or empty, changes nothing, and so does one whose memory was changed
    meanwhile. The former values are kept: `folklore history`, `folklore undo`.
    """
    former = call_with_ids(
        ctx,
        [memory],
        lambda ids: HistoryRequest(id=ids[0], namespaces=namespaces),
    ).memory
    now = former
    edited = edited_text(former)
    if edited is not None:
        with _keeping(str(former.id), edited):
            now = call(ctx, edit_request(former, edited, namespaces))
    line = _NOTHING
    if now.revision != former.revision:
        line = f"changed {former.id}, revision {now.revision}"
    print_either(record_json(now), line)


def edited_text(memory: Memory) -> str | None:
    """Return a memory's text as it was changed in the editor; None if it was not."""
    text = as_text(memory)
    edited = click.edit(text, extension=".md")
    if edited is None or edited.strip() in ("", text.strip()):
        return None
    return edited


def as_text(memory: Memory) -> str:
    """Return the changeable fields as YAML between two rules, then the text."""
    values = record_json(memory)
    fields = {name: values[name] for name in _EDITED if not _is_empty(values.get(name))}
    head = yaml.safe_dump(fields, allow_unicode=True, sort_keys=False)
    return f"{_RULE}{head}{_RULE}{memory.content}\n"


def edit_request(memory: Memory, text: str, namespaces: opt.Names) -> UpdateRequest:
    """Return the changes in an edited text of `as_text`; a removed field is emptied. Raises InvalidInput.

    Without any change it states the text as it is.
    """
    former_fields, former_content = _parse_edited(as_text(memory))
    fields, content = _parse_edited(text)
    changes: dict[str, Any] = {}
    for name, value in fields.items():
        if value != former_fields.get(name) and not _is_empty(value):
            changes[name] = value
    emptied = [name for name in former_fields if _is_empty(fields.get(name))]
    clear = tuple(name for name in emptied if FIELDS[name].clearable)
    if content.strip() != former_content.strip() or not (changes or clear):
        changes["content"] = content.strip()
    return UpdateRequest(
        id=memory.id,
        changes=opt.changes_from(changes, hint=_NOTHING),
        clear=clear,
        if_revision=memory.revision,
        namespaces=namespaces,
    )


def _is_empty(value: object) -> bool:
    return value is None or value in ("", [], {})  # an importance of 0 is a value


def _parse_edited(text: str) -> tuple[dict[str, Any], str]:
    head, body = _split(text.replace("\r\n", "\n"))
    try:
        # Times stay text: they are read in the caller's time zone like any other.
        texts = yaml.load(head, Loader=yaml.BaseLoader) if head.strip() else {}  # noqa: S506 - it makes only text
        values = yaml.safe_load(head) if head.strip() else {}
    except yaml.YAMLError as error:
        raise InvalidInput(
            "fields", "the lines above the text are not valid YAML.", hint=_NOTHING
        ) from error
    if not isinstance(texts, dict) or not isinstance(values, dict):
        raise InvalidInput(
            "fields", "the lines above the text must be `name: value`.", hint=_NOTHING
        )
    unknown = texts.keys() - set(_EDITED)
    if unknown:
        raise InvalidInput(
            min(unknown)[:60], "is not a field that can be changed.", hint=_NOTHING
        )
    fields = {}
    for name, field_text in texts.items():
        is_time = name.endswith("_at")
        fields[name] = field_text if is_time else values.get(name, field_text)
    return fields, body


def _split(text: str) -> tuple[str, str]:
    if not text.startswith(_RULE):  # the fields were deleted
        return "", text
    head, rule, body = text.removeprefix(_RULE).partition(_RULE)
    if not rule or (head and not head.endswith("\n")):
        raise InvalidInput(
            "fields", "do not end with a line of three dashes.", hint=_NOTHING
        )
    return head, body


@contextmanager
def _keeping(name: str, text: str) -> Iterator[None]:
    """Keep an edited text in a file if the block fails, and name the file in the error."""
    try:
        yield
    except FolkloreError as error:
        path = Path(tempfile.mkdtemp(prefix="folklore-")) / f"{name}.md"
        path.write_text(text, encoding="utf-8")
        error.hint = f"{error.hint or ''} Your text is kept in {path}.".lstrip()
        raise


@click.command()
@click.argument("memories", nargs=-1, metavar="[ID…]")
@opt.several_namespaces("the project's; for an ID, all")
@opt.filter_options
@click.option(
    "--erase",
    is_flag=True,
    help="Delete permanently, with every trace; it cannot be undone.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be forgotten.")
@opt.ask_option
@opt.context_and_json
def forget(
    ctx: click.Context,
    /,
    memories: tuple[str, ...],
    filters: opt.Values,
    ask: bool,
    **options: Any,
) -> None:
    """Forget memories by ID, or all that match the filters (in the project's namespace unless -n names others).

    What they superseded is in force again. `folklore undo` restores them for a while (retention_days), unless --erase.
    On a terminal it asks first; without one, --erase needs --yes.
    """
    conditions = opt.filters_from(filters) if filters or not memories else None
    ids = ids_of(ctx, memories)
    request = ForgetRequest(ids=ids, filters=conditions, **options)
    more = False
    if ask and not request.dry_run:
        request, more = _confirmed(ctx, request)
    result = call(ctx, request)
    result = replace(result, more=result.more or more)
    value = forgotten_json(result, erase=request.erase, dry_run=request.dry_run)
    outcome = "forgotten"
    if request.dry_run:
        outcome = "would be forgotten"
    elif request.erase:
        outcome = "erased"
    print_either(value, lambda: print_forgotten(result, outcome))


def _confirmed(
    ctx: click.Context, request: ForgetRequest
) -> tuple[ForgetRequest, bool]:
    """Ask on the terminal; return the request limited to the memories shown, and True if more match its filters."""
    preview = call(ctx, request.model_copy(update={"dry_run": True}))
    if not wants_json():
        print_forgotten(preview, "would be forgotten")
    confirm("Erase these permanently?" if request.erase else "Forget these?")
    if not request.ids:  # the filters may match further memories now
        shown = tuple(memory.id for memory in preview.memories)
        request = request.model_copy(update={"only": shown})
    return request, preview.more


def print_forgotten(result: ForgetResult, outcome: str) -> None:
    """Print what was forgotten, or would be, as `outcome` says, and what is in force again."""
    for memory in result.memories:
        text = "" if outcome == "erased" else f"  {in_one_line(memory.content)}"
        print_line(f"{memory.id}{paint(text, dim=True)}")
    more = ", more match: run it again" if result.more else ""
    print_line(f"{len(result.memories):,} {outcome}{more}")
    if result.already:
        print_line(f"{len(result.already):,} were already forgotten")
    for memory in result.restored:
        text = paint(f"  {in_one_line(memory.content)}", dim=True)
        print_line(f"superseded until now, in force again: {memory.id}{text}")


@click.command()
@click.argument("memories", nargs=-1, required=True, metavar="ID OTHER…")
@click.option(
    "--content", help="The text of the merged memory. Default: that of the newest."
)
@opt.namespace_option
@opt.context_and_json
def merge(
    ctx: click.Context,
    memories: tuple[str, ...],
    content: str | None,
    namespaces: opt.Names,
) -> None:
    """Merge memories into the first one: it gets the text of the newest, and the tags and relations of all.

    The others are superseded by it. `folklore undo ID` takes it back.
    """
    changes = opt.changes_from({} if content is None else {"content": content})

    def request(ids: tuple[UUID, ...]) -> UpdateRequest:
        id_, *others = dict.fromkeys(ids)
        if not others:
            raise InvalidInput(
                "ID",
                "at least two ids are needed.",
                hint="Name first the memory that remains.",
            )
        return UpdateRequest(
            id=id_, changes=changes, merge=tuple(others), namespaces=namespaces
        )

    now = call_with_ids(ctx, memories, request)
    print_either(record_json(now), f"merged into {now.id}, revision {now.revision}")


@click.command()
@click.argument("memories", nargs=-1, required=True, metavar="ID…")
@click.option("--remove", is_flag=True, help="Pin them no longer.")
@opt.namespace_option
@opt.context_and_json
def pin(
    ctx: click.Context, memories: tuple[str, ...], remove: bool, namespaces: opt.Names
) -> None:
    """Pin memories: they never expire or fade, and come first where a session starts."""
    changes = opt.changes_from({"pinned": not remove})

    async def work(operations: Operations, ids: tuple[UUID, ...]) -> list[Memory]:
        pinned = []
        for id_ in dict.fromkeys(ids):
            request = UpdateRequest(id=id_, changes=changes, namespaces=namespaces)
            pinned.append(await operations.call(request))
        return pinned

    pinned = with_ids(ctx, memories, work)
    value = {"memories": [record_json(memory) for memory in pinned]}
    verb = "unpinned" if remove else "pinned"
    print_either(value, "\n".join(f"{verb} {memory.id}" for memory in pinned))


@click.command()
@click.argument("from_", metavar="FROM")
@click.argument("type_", metavar="TYPE")
@click.argument("to", metavar="TO")
@click.option("--strength", type=click.FloatRange(0, 1), default=1.0, show_default=True)
@click.option("--remove", is_flag=True, help="Remove the relation.")
@opt.namespace_option
@opt.context_and_json
def relate(
    ctx: click.Context,
    /,
    from_: str,
    type_: str,
    to: str,
    namespaces: opt.Names,
    **options: Any,
) -> None:
    """Relate one memory to another: relates_to, contradicts, derived_from, part_of, depends_on, causes, exemplifies,
    prefers_over, precedes, supersedes, or another word.
    """

    def request(ids: tuple[UUID, ...]) -> RelateRequest:
        change = RelationChange(from_id=ids[0], to_id=ids[1], type=type_, **options)
        return RelateRequest(relations=(change,), namespaces=namespaces)

    result = call_with_ids(ctx, [from_, to], request)
    if result.failed:
        failure = result.failed[0]
        verb = "removed" if options["remove"] else "related"
        raise error_from_code(failure.code, f"Not {verb}: {failure.reason}")
    outcome = "removed"
    if result.created:
        outcome = "created"
    elif result.updated:
        outcome = "updated"
    hidden = [f"  {_hidden(memory)}" for memory in result.superseded]
    lines = [f"{outcome}: {from_} {type_} {to}", *hidden]
    print_either(related_json(result), "\n".join(lines))
