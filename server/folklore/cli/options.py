"""Options that several commands share. Those for fields of a memory follow from their declaration."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import click

from folklore.errors import InvalidInput
from folklore.memory.requests import CHANGEABLE, FiltersRequest, RankingRequest
from folklore.model import FIELDS, Field

Command = TypeVar("Command", bound=Callable[..., Any])
Option = Callable[[Any], Any]
Given = dict[str, Any]


class Moment(click.ParamType[datetime]):
    """An ISO 8601 date or time; without an offset it is in the configured time zone."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Parse it."""
        if isinstance(value, datetime):
            return value
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            words = " Words go into --time." if param is not None and param.name in ("since", "until") else ""
            self.fail(f"{value!r} is not an ISO 8601 time such as 2026-03-01T10:00+01:00.{words}", param, ctx)


class Weight(click.ParamType[tuple[str, float]]):
    """`name=number`."""

    name = "name=number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        """Parse it."""
        if isinstance(value, tuple):
            return value
        name, _, number = value.partition("=")
        try:
            return name.strip(), float(number)
        except ValueError:
            self.fail(f"{value!r} is not a weight such as dense=1.", param, ctx)


class JsonObject(click.ParamType[Mapping[str, Any]]):
    """A JSON object."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Mapping[str, Any]:
        """Parse it."""
        if isinstance(value, Mapping):
            return value
        try:
            parsed = json.loads(value)
        except ValueError:
            self.fail("is not JSON; give an object, such as '{\"ticket\": 12}'.", param, ctx)
        if not isinstance(parsed, dict):
            self.fail("is not a JSON object; give one, such as '{\"ticket\": 12}'.", param, ctx)
        return parsed


def json_option(command: Command) -> Command:
    """Add `--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def namespaces_option(command: Command) -> Command:
    """Add `--namespace`, repeatable."""
    return click.option(
        "-n",
        "--namespace",
        "namespaces",
        multiple=True,
        metavar="NAME",
        help="Only this namespace; repeatable. Default: all.",
    )(command)


def namespace_option(command: Command) -> Command:
    """Add `--namespace`, once, for an id that several namespaces hold."""
    return click.option("-n", "--namespace", metavar="NAME", help="The namespace, if several hold the id.")(command)


def names_of(namespace: str | None) -> tuple[str, ...]:
    """Return the namespaces to search: the given one (an empty name is refused later), or all."""
    return () if namespace is None else (namespace,)


def id_of(text: str, shown_by: str = "folklore list --format ids") -> UUID:
    """Parse an id that the command `shown_by` shows. Raises InvalidInput."""
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInput("ID", f"{text[:60]!r} is not an id.", hint=f"`{shown_by}` shows ids.") from None


def _field_option(name: str, field: Field) -> Option:
    """Return the option that states a field."""
    flag = field.option or "--" + name.replace("_", "-")
    about = field.about + (f"; 0 to {field.limit}" if field.type == "integer" and not field.about else "")
    if field.type == "flag":
        return click.option(f"{flag}/--no-{flag[2:]}", name, default=None, help=about)
    if field.type in ("tags", "paths"):
        return click.option(flag, name, multiple=True, help=f"{about}; repeatable".lstrip("; "))
    types: Mapping[str, Any] = {
        "share": click.FloatRange(0, 1),
        "integer": click.IntRange(field.least, field.limit),
        "time": Moment(),
        "json": JsonObject(),
    }
    return click.option(flag, name, type=types.get(field.type, str), help=about or None)


def _filter_option(name: str, field: Field) -> Option:
    flag = "--" + name.replace("_", "-")
    if field.type == "flag":
        return click.option(f"{flag}/--no-{flag[2:]}", name, default=None, help=f"Only with {name}, or without.")
    return click.option(flag, name, help=f"Only with this {name}.")


def _collected(into: str, options: Sequence[tuple[str, Option]]) -> Callable[[Command], Command]:
    """Return a decorator that adds options and passes their values as one dictionary, without unset ones."""
    names = [name for name, _ in options]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def collected(*arguments: Any, **values: Any) -> Any:
            given = {name: values.pop(name) for name in names}
            values[into] = {name: value for name, value in given.items() if value not in (None, ())}
            return command(*arguments, **values)

        for _, option in reversed(options):
            option(collected)
        return collected  # type: ignore[return-value]

    return decorate


_FILTERS: list[tuple[str, Option]] = [
    ("kinds", click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only this kind; repeatable.")),
    ("tags", click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only with this tag; repeatable.")),
    ("tag_mode", click.option("--tag-mode", type=click.Choice(["any", "all"]), help="With any of the tags, or all.")),
    (
        "tag_match",
        click.option("--tag-match", type=click.Choice(["prefix", "exact"]), help="prefix: area finds area/payments."),
    ),
    (
        "exclude_tags",
        click.option("--exclude-tag", "exclude_tags", multiple=True, metavar="TAG", help="Without it; repeatable."),
    ),
    ("source_prefix", click.option("--source-prefix", metavar="TEXT", help="Only with a source that begins so.")),
    ("author", click.option("--author", metavar="NAME", help="Only by this author.")),
    ("paths", click.option("--path", "paths", multiple=True, help="Only about this file or folder; repeatable.")),
    ("time", click.option("--time", metavar="TEXT", help='Such as "last week", "in March", 2025-03-01..2025-03-09.')),
    ("since", click.option("--since", type=Moment(), help="Only from this time on.")),
    ("until", click.option("--until", type=Moment(), help="Only before this time.")),
    ("as_of", click.option("--as-of", type=Moment(), help="What was known at this time.")),
    (
        "include_superseded",
        click.option("--include-superseded", is_flag=True, default=None, help="Also superseded memories."),
    ),
    *((name, _filter_option(name, field)) for name, field in FIELDS.items() if field.filter),
]

_RANKING: list[tuple[str, Option]] = [
    ("preset", click.option("--preset", metavar="NAME", help="balanced, keyword, semantic, roaming, or your own.")),
    (
        "weights",
        click.option(
            "--weight", "weights", type=Weight(), multiple=True, help="Of dense, keyword, relations, a signal."
        ),
    ),
    ("mmr_lambda", click.option("--mmr-lambda", type=click.FloatRange(0, 1), help="1: relevance alone, no diversity.")),
    ("min_score", click.option("--min-score", type=click.FloatRange(0, 1), help="Leave out lower confidence.")),
    ("reflections", click.option("--reflections", type=click.Choice(["include", "exclude", "only"]))),
    (
        "expand",
        click.option(
            "--expand",
            type=click.Choice(["relations", "entities"]),
            multiple=True,
            help="Also memories related to results, or with the same entities; repeatable.",
        ),
    ),
]

field_options = _collected(
    "fields", [(name, _field_option(name, FIELDS[name])) for name in CHANGEABLE if name != "content"]
)
filter_options = _collected("filters", _FILTERS)
ranking_options = _collected("ranking", _RANKING)
sort_option = click.option(
    "--sort",
    type=click.Choice(["score", "time_asc", "time_desc", "updated_asc", "updated_desc"]),
    default="score",
    show_default=True,
)
format_option = click.option(
    "--format", "form", type=click.Choice(["concise", "detailed", "ids"]), default="concise", show_default=True
)


def filters_from(given: Given) -> FiltersRequest:
    """Return the filters of these options."""
    return FiltersRequest(**given)


def ranking_from(given: Given) -> RankingRequest:
    """Return the ranking of these options."""
    return RankingRequest(**{**given, "weights": dict(given.get("weights", ()))})
