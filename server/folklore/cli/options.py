"""Options that several commands share, gathered into one argument each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import click

from folklore.errors import InvalidInput

if TYPE_CHECKING:
    from folklore.memory.filters import FilterRequest
    from folklore.memory.requests import RankingRequest

Command = TypeVar("Command", bound=Callable[..., Any])
Given = dict[str, Any]


class Moment(click.ParamType[datetime]):
    """An ISO 8601 date or time; without an offset it is in the configured time zone."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Read it."""
        if isinstance(value, datetime):
            return value
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            words = " Words go into --time." if param is not None and param.name in ("since", "until") else ""
            said = f"{value!r} is not an ISO 8601 time such as 2026-03-01 or 2026-03-01T10:00+01:00.{words}"
            self.fail(said, param, ctx)


class Weight(click.ParamType[tuple[str, float]]):
    """`branch=number`."""

    name = "branch=number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        """Read it."""
        if isinstance(value, tuple):
            return value
        branch, _, number = value.partition("=")
        try:
            return branch.strip(), float(number)
        except ValueError:
            self.fail(f"{value!r} is not a weight such as dense=1.", param, ctx)


def json_option(command: Command) -> Command:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def namespaces_option(command: Command) -> Command:
    """`--namespace`, any number of times."""
    return click.option(
        "-n",
        "--namespace",
        "namespaces",
        multiple=True,
        metavar="NAME",
        help="Only this one; repeatable. Default: all.",
    )(command)


def namespace_option(command: Command) -> Command:
    """`--namespace`, once: where the memory is, should its id be in several."""
    return click.option("-n", "--namespace", metavar="NAME", help="Where it is, if that is in doubt.")(command)


def scope_of(namespace: str | None) -> tuple[str, ...]:
    """Where to look: in the namespace given, be it an empty one that is refused later, or everywhere."""
    return () if namespace is None else (namespace,)


def id_of(text: str, shown_by: str = "folklore list --format ids") -> UUID:
    """The id of a memory, or of what the command `shown_by` shows. Raises InvalidInput."""
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInput("ID", f"{text[:60]!r} is not one.", hint=f"`{shown_by}` shows ids.") from None


def _gathered(into: str, options: Sequence[tuple[str, Callable[[Any], Any]]]) -> Callable[[Command], Command]:
    """A decorator that adds options and hands their values to the command as one dictionary."""
    taken = [name for name, _ in options]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def gathered(*arguments: Any, **values: Any) -> Any:
            values[into] = {name: values.pop(name) for name in taken}
            return command(*arguments, **values)

        for _, option in reversed(options):
            option(gathered)
        return gathered  # type: ignore[return-value]

    return decorate


_FILTERS: list[tuple[str, Callable[[Any], Any]]] = [
    ("kinds", click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only this kind; repeatable.")),
    ("tags", click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only with this tag; repeatable.")),
    ("tag_mode", click.option("--tag-mode", type=click.Choice(["any", "all"]), default="any", show_default=True)),
    (
        "tag_match",
        click.option(
            "--tag-match",
            type=click.Choice(["prefix", "exact"]),
            default="prefix",
            show_default=True,
            help="Whether area finds area/payments too.",
        ),
    ),
    (
        "exclude_tags",
        click.option("--exclude-tag", "exclude_tags", multiple=True, metavar="TAG", help="Not with this; repeatable."),
    ),
    ("source_prefix", click.option("--source-prefix", metavar="TEXT", help="Only whose source begins so.")),
    ("session", click.option("--session", metavar="NAME", help="Only of this session.")),
    ("author", click.option("--author", metavar="NAME", help="Only by this author.")),
    ("paths", click.option("--path", "paths", multiple=True, help="Only about this file or folder; repeatable.")),
    (
        "time",
        click.option("--time", metavar="TEXT", help='Such as "last week", "in March", 2025-03-01..2025-03-09.'),
    ),
    ("since", click.option("--since", type=Moment(), help="Only from then on.")),
    ("until", click.option("--until", type=Moment(), help="Only before then.")),
    ("as_of", click.option("--as-of", type=Moment(), help="What was known then.")),
    ("include_superseded", click.option("--include-superseded", is_flag=True, help="Also what was replaced since.")),
]

_SORTS = ["score", "time_asc", "time_desc", "updated_asc", "updated_desc"]

_RANKING: list[tuple[str, Callable[[Any], Any]]] = [
    (
        "preset",
        click.option(
            "--preset",
            type=click.Choice(["balanced", "keyword", "semantic", "roaming"]),
            default="balanced",
            show_default=True,
        ),
    ),
    ("fusion", click.option("--fusion", type=click.Choice(["rrf", "weighted"]), help="By ranks, or by similarities.")),
    (
        "weights",
        click.option(
            "--weight",
            "weights",
            type=Weight(),
            multiple=True,
            help="dense=…, keyword=…, relations=…, nearness=… or a signal.",
        ),
    ),
    ("rrf_k", click.option("--rrf-k", type=click.FloatRange(0, 1000), help="How flat reciprocal rank fusion is.")),
    (
        "fetch_multiplier",
        click.option("--fetch-multiplier", type=click.FloatRange(1, 20), help="Candidates a branch, in limits."),
    ),
    ("mmr_lambda", click.option("--mmr-lambda", type=click.FloatRange(0, 1), help="1: relevance alone, no diversity.")),
    ("min_score", click.option("--min-score", type=click.FloatRange(0, 1), help="Leave out results of less evidence.")),
    (
        "include_reflections",
        click.option("--reflections/--no-reflections", "include_reflections", default=None, help="Default: with them."),
    ),
    ("reflections_only", click.option("--reflections-only", is_flag=True, default=None, help="Nothing but them.")),
    ("reflection_boost", click.option("--reflection-boost", type=click.FloatRange(0, 10))),
    (
        "expand",
        click.option(
            "--expand",
            type=click.Choice(["relations", "entities"]),
            multiple=True,
            help="Also what results are tied to, or what names the same; repeatable.",
        ),
    ),
]

filter_options = _gathered("filters", _FILTERS)
ranking_options = _gathered("ranking", _RANKING)
sort_option = click.option("--sort", type=click.Choice(_SORTS), default="score", show_default=True)
format_option = click.option(
    "--format", "form", type=click.Choice(["concise", "detailed", "ids"]), default="concise", show_default=True
)


def filters_from(given: Given) -> FilterRequest:
    """The filters that these options ask for."""
    from folklore.memory.filters import FilterRequest

    return FilterRequest(**given)


def ranking_from(given: Given) -> RankingRequest:
    """The ranking that these options ask for."""
    from folklore.memory.requests import RankingRequest

    return RankingRequest(**{**given, "weights": dict(given["weights"]), "expand": given["expand"] or None})
