"""`folklore edit`: a memory as a text with its fields on top, in the editor of whoever asks."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from folklore.cli.context import with_desk
from folklore.cli.options import id_of, json_option, namespace_option, scope_of
from folklore.cli.output import print_json, say
from folklore.errors import FolkloreError, InvalidInput
from folklore.memory import serializers as present

if TYPE_CHECKING:
    from folklore.memory.records.update import Edit
    from folklore.memory.service import Service
    from folklore.model import Memory

_RULE = "---\n"
_SHOWN = (
    "kind", "tags", "summary", "source", "session", "occurred_at", "importance", "confidence", "priority", "language",
    "expires_at", "paths", "commit", "metadata",
)  # fmt: skip


@click.command()
@click.argument("memory", metavar="ID")
@namespace_option
@json_option
@click.pass_context
def edit(ctx: click.Context, memory: str, namespace: str | None, as_json: bool) -> None:
    """Change a memory in your editor ($VISUAL, $EDITOR): its fields on top, its text below.

    What is not saved, or saved unchanged or empty, changes nothing; nor does it if somebody else changed the memory
    meanwhile. What it was is kept: `folklore history`, `folklore undo`.
    """
    id_ = id_of(memory)
    scope = scope_of(namespace)

    async def read(desk: Service) -> Memory:
        return (await desk.history(id_, scope))[0]

    before = with_desk(ctx, read)
    text = as_text(before)
    edited = click.edit(text, extension=".md")

    def tell(now: Memory) -> None:
        if as_json:
            print_json(present.record(now))
        else:
            say(
                f"changed {id_}, revision {now.revision}" if now.revision != before.revision else "Nothing was changed."
            )

    if edited is None or edited.strip() in ("", text.strip()):
        tell(before)
        return

    async def write(desk: Service) -> None:
        tell(await desk.update(id_, edit_of(before, edited), scope))

    try:
        with_desk(ctx, write)
    except FolkloreError as error:
        error.hint = f"{error.hint or ''} What you wrote is kept in {_kept(id_, edited)}.".lstrip()
        raise


def as_text(memory: Memory) -> str:
    """The fields that may be changed as YAML between two rules, then the text."""
    import yaml

    held = present.record(memory)
    fields = {name: held[name] for name in _SHOWN if not _empty(held.get(name))}
    return f"{_RULE}{yaml.safe_dump(fields, allow_unicode=True, sort_keys=False)}{_RULE}{memory.content}\n"


def edit_of(memory: Memory, text: str) -> Edit:
    """What somebody changed in a text of `as_text`; a field that is gone is emptied. Raises InvalidInput."""
    from folklore.memory.records.update import CLEARABLE, Edit

    before, after = _parts(as_text(memory)), _parts(text)
    if unknown := [name for name in after[0] if name not in _SHOWN]:
        raise InvalidInput(str(unknown[0])[:60], "is no field that can be changed.", hint="Nothing was changed.")
    fields: dict[str, Any] = {
        name: _given(name, value)
        for name, value in after[0].items()
        if not _empty(value) and value != before[0].get(name)
    }
    clear = tuple(name for name in before[0] if _empty(after[0].get(name)) and name in CLEARABLE)
    if after[1].strip() != before[1].strip() or not (fields or clear):
        fields["content"] = after[1].strip()
    return Edit(fields, clear=clear, if_revision=memory.revision)


def _empty(value: object) -> bool:
    return value is None or value in ("", [], {})  # an importance of 0 is one


def _parts(text: str) -> tuple[dict[str, Any], str]:
    import yaml

    head, body = _split(text.replace("\r\n", "\n"))
    try:
        # Times stay text: they are read with the caller's time zone like any other.
        loaded = yaml.load(head, Loader=yaml.BaseLoader) if head.strip() else {}  # noqa: S506 - it makes text only
        typed = yaml.safe_load(head) if head.strip() else {}
    except yaml.YAMLError as error:
        raise InvalidInput("fields", "above the text are not valid YAML.", hint="Nothing was changed.") from error
    if not isinstance(loaded, dict) or not isinstance(typed, dict):
        raise InvalidInput("fields", "above the text must be `name: value` lines.", hint="Nothing was changed.")
    values = {name: loaded[name] if name.endswith("_at") else typed.get(name, value) for name, value in loaded.items()}
    return values, body


def _split(text: str) -> tuple[str, str]:
    if not text.startswith(_RULE):  # somebody deleted the fields
        return "", text
    head, rule, body = text.removeprefix(_RULE).partition(_RULE)
    if not rule or (head and not head.endswith("\n")):
        raise InvalidInput("fields", "do not end with a line of three dashes.", hint="Nothing was changed.")
    return head, body


def _given(name: str, value: object) -> object:
    from datetime import datetime

    if name.endswith("_at"):
        try:
            return datetime.fromisoformat(str(value))
        except ValueError:
            raise InvalidInput(name, "is not an ISO 8601 time.", hint="Nothing was changed.") from None
    wanted: type | tuple[type, ...] = str
    like = "text (a number or date in quotes)"
    if name in ("tags", "paths"):
        wanted, like = list, f"a list of texts, such as `{name}: [one, two]`"
    elif name in ("importance", "confidence"):
        wanted, like = (int, float), "a number from 0 to 1"
    elif name == "priority":
        wanted, like = int, "a whole number from 1 to 4"
    elif name == "metadata":
        wanted, like = dict, "an object, such as `metadata: {ticket: 12}`"
    if not isinstance(value, wanted) or (isinstance(value, list) and not all(isinstance(part, str) for part in value)):
        raise InvalidInput(name, f"must be {like}.", hint="Nothing was changed.")
    return value


def _kept(id_: UUID, text: str) -> Path:
    path = Path(tempfile.mkdtemp(prefix="folklore-")) / f"{id_}.md"
    path.write_text(text, encoding="utf-8")
    return path
