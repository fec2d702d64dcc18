"""What every measurement on a set can be told, gathered into one value."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, TypeVar

import click

from folklore.cli.options import Given, filter_options, json_option, ranking_options, sort_option

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Wanted:
    """How to ask and how to print."""

    limit: int
    namespace_prefix: str
    questions: int | None
    keep: bool
    filters: Given
    ranking: Given
    sort: str
    max_tokens: int | None
    as_json: bool

    @property
    def options(self) -> dict[str, Any]:
        """The options that were given, as arguments of memory_recall."""
        return recall_options(self.filters, self.ranking, self.sort, self.max_tokens)


def measuring(command: Command) -> Command:
    """A decorator that adds the options and hands them to the command as `wanted`."""

    @functools.wraps(command)
    def gathered(*arguments: Any, **values: Any) -> Any:
        wanted = Wanted(**{field.name: values.pop(field.name) for field in fields(Wanted)})
        return command(*arguments, wanted=wanted, **values)

    options = (
        click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="Of each answer."),
        click.option("--namespace-prefix", default="", help="Put before every namespace."),
        click.option("--questions", type=click.IntRange(min=1), help="Only so many questions, evenly spread."),
        click.option("--keep", is_flag=True, help="Keep the scratch store, and say where it is."),
        filter_options,
        ranking_options,
        sort_option,
        click.option("--max-tokens", type=click.IntRange(50, 100_000)),
        json_option,
    )
    decorated: Any = gathered
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def recall_options(filters: Given, ranking: Given, sort: str, max_tokens: int | None) -> dict[str, Any]:
    """The options that were given, as arguments of memory_recall; what is at its default is left to the tool."""
    chosen = {name: _plain(value) for name, value in filters.items() if value not in (None, (), False, "any", "prefix")}
    ranked = {name: _plain(value) for name, value in ranking.items() if value not in (None, (), "balanced")}
    if "weights" in ranked:
        ranked["weights"] = dict(ranking["weights"])
    if sort != "score":
        ranked["sort"] = sort
    options = {"filters": chosen, "ranking": ranked, "max_tokens": max_tokens}
    return {name: value for name, value in options.items() if value}


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value
