"""Options that several commands share. Those for fields of a memory follow from their declaration.

Common conditions and fields have options of their own; all others are given as NAME=VALUE, so that a new field of a
memory adds no option.
"""

import functools
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar, get_args

import click
from pydantic import BaseModel, ValidationError

from folklore.contract.compact import Format
from folklore.contract.filters import FiltersRequest
from folklore.contract.memories import CHANGEABLE, Changes
from folklore.contract.people import NO_END, TOKEN_PERIOD
from folklore.contract.recall import RankingRequest
from folklore.errors import InvalidInput, field_errors
from folklore.model import FIELDS, Field
from folklore.text.arguments import entries_of, is_nothing

Command = TypeVar("Command", bound=Callable[..., Any])
Value = TypeVar("Value")
Option = Callable[[Any], Any]
Values = dict[str, Any]
Names = tuple[str, ...] | None  # of namespaces
Pairs = Sequence[tuple[str, str]]

_METADATA = "metadata."
# A dash, and a blank that no sign of equality precedes.
_TEXT_WITH_DASH = re.compile(r"-[^=\s]*\s")

# What an editor's lines need beyond the message for a wrong type.
_IN_YAML = {
    "must be a list.": "must be a list of texts, such as `[one, two]`.",
    "must be a text.": "must be a text (a number or date in quotes).",
}


def _pair(text: str) -> tuple[str, str]:
    """Split `NAME=VALUE` at the first equals sign."""
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE.")
    if name.startswith(_METADATA):  # a key of metadata may have a dash
        return name.strip(), value
    return name.strip().replace("-", "_"), value


def context_and_json(command: Callable[..., Any]) -> Callable[..., Any]:
    """Pass the context, and add `--json`, which decides how `print_either` prints."""

    def keep(ctx: click.Context, _option: click.Parameter, value: bool) -> None:
        ctx.find_root().obj["json"] = value

    option = click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        callback=keep,
        help="Print one JSON document.",
    )
    return option(click.pass_context(command))


def named(_ctx: click.Context, option: click.Parameter, value: Any) -> Any:
    """Check the value of an option that limits a command to what it names, and return it. Raises InvalidInput.

    A variable of the shell may be unset, and without the option the command would concern more.
    """
    texts = value if isinstance(value, tuple) else [value]
    for text in texts:
        _refuse_nothing(option.opts[-1], text)
    return value


def _refuse_nothing(option: str, value: object) -> None:
    if not isinstance(value, str) or not is_nothing(value):
        return
    problem = "is empty."
    if value.strip():
        problem = f"{value.strip()!r} is no name."
    raise InvalidInput(option, problem, hint="Leave it out, or give a name.")


def _separately(ctx: click.Context, option: click.Parameter, value: Any) -> Any:
    """Return the values of a repeatable option, which may also be given in one text: `--tag a,b`."""
    texts: list[str] = []
    for text in value:
        texts += entries_of(text, blanks=False) or [""]
    return named(ctx, option, tuple(texts))


class TextCommand(click.Command):
    """Command for a text of any kind: a quoted one may begin with a dash, as the entry of a list does.

    What has a blank is no option, unless it is the value of one: `--source="a b"`, `--source "a b"`.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Raises UsageError that says where a text goes that begins with a dash."""
        texts: dict[str, str] = {}
        try:
            rest = super().parse_args(ctx, self._with_marks(ctx, args, texts))
        except click.NoSuchOption as error:
            hint = f"A text that begins with a dash comes after --: {ctx.command_path} -- TEXT"
            raise click.UsageError(f"{error.format_message()} {hint}", ctx) from None
        for name, value in ctx.params.items():
            if isinstance(value, tuple):
                ctx.params[name] = tuple(texts.get(text, text) for text in value)
        return rest

    def _with_marks(
        self, ctx: click.Context, args: Sequence[str], texts: dict[str, str]
    ) -> list[str]:
        """Return the arguments with a mark in place of each text that begins with a dash; no argument has a NUL."""
        with_value = set[str]()
        for option in self.get_params(ctx):
            if isinstance(option, click.Option) and not option.is_flag:
                with_value.update(option.opts)
        marked: list[str] = []
        for index, argument in enumerate(args):
            if argument == "--":
                return marked + list(args[index:])
            is_value = index > 0 and args[index - 1] in with_value
            if not is_value and _TEXT_WITH_DASH.match(argument):
                mark = f"\0{index}"
                texts[mark] = argument
                argument = mark
            marked.append(argument)
        return marked


def repeatable(
    flag: str, name: str, metavar: str, about: str, **attributes: Any
) -> Option:
    """Return an option that may be given several times."""
    return click.option(
        flag,
        name,
        multiple=True,
        metavar=metavar,
        help=f"{about}; repeatable.",
        **attributes,
    )


def one_of(
    flag: str, values: Sequence[str], default: str, about: str | None = None
) -> Option:
    """Return an option with a default among its values."""
    return click.option(
        flag, type=click.Choice(values), default=default, show_default=True, help=about
    )


def period_option(flag: str, default: str, about: str) -> Option:
    """Return an option for a length of time."""
    return click.option(
        flag, default=default, show_default=True, metavar="PERIOD", help=about
    )


def expiry_options(command: Any) -> Any:
    """Add `--expires` and `--no-expiry`: the end of a new token."""
    never = click.option(
        "--no-expiry", "expires", flag_value=NO_END, help="The token has no end."
    )
    period = period_option(
        "--expires", TOKEN_PERIOD, "End of the token, from now: 12h, 90d, 8w, 1y."
    )
    return period(never(command))


# A command gets True if it is to ask: on a terminal, and before an erasure anywhere.
ask_option = click.option(
    "-y",
    "--yes",
    "ask",
    is_flag=True,
    callback=lambda ctx, _option, yes: (
        not yes and bool(sys.stdin.isatty() or ctx.params.get("erase"))
    ),
    help="Do not ask.",
)


def several_namespaces(default: str) -> Option:
    """Return the option that names namespaces; a command that is not given it gets None."""
    return click.option(
        "-n",
        "--namespace",
        "namespaces",
        multiple=True,
        metavar="NAME",
        help=f"Only this namespace; repeatable. Default: {default}.",
        callback=lambda ctx, option, names: _separately(ctx, option, names) or None,
    )


namespaces_option = several_namespaces("all")
project_first_option = several_namespaces(
    "the project's, others only where clearly better; '*' for all"
)
# Once, for an id that several namespaces hold. The command gets the one to search (an empty name is refused later), or
# None for all.
namespace_option = click.option(
    "-n",
    "--namespace",
    "namespaces",
    metavar="NAME",
    help="The namespace, if several hold the id.",
    callback=lambda ctx, option, name: (
        None if name is None else (named(ctx, option, name),)
    ),
)


def _field_option(name: str, field: Field) -> Option:
    assert field.option is not None
    if field.type == "flag":
        return click.option(
            f"{field.option}/--no-{field.option[2:]}",
            name,
            default=None,
            help=field.about,
        )
    if field.type in ("tags", "paths", "phrases"):
        return click.option(
            field.option,
            name,
            multiple=True,
            callback=_separately if field.type == "tags" else None,
            help=f"{field.about}; repeatable".lstrip("; "),
        )
    return click.option(field.option, name, help=field.about or None)


def _collected(
    into: str, options: Sequence[tuple[str, Option]]
) -> Callable[[Command], Command]:
    """Return a decorator that adds options and passes their values as one dictionary, without unset ones."""
    names = [name for name, _ in options]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def collected(*arguments: Any, **values: Any) -> Any:
            collection = {}
            for name in names:
                value = values.pop(name)
                if value not in (None, ()):
                    collection[name] = value
            return command(*arguments, **values, **{into: collection})

        for _, option in reversed(options):
            option(collected)
        return collected  # type: ignore[return-value]

    return decorate


def _option(name: str, flag: str, **attributes: Any) -> tuple[str, Option]:
    return name, click.option(flag, name, **attributes)


def _pairs_option(flag: str, about: str) -> tuple[str, Option]:
    """Return the option that gives, as NAME=VALUE, what has no option of its own."""
    return _option(
        f"{flag[2:]}_values",
        flag,
        type=_pair,
        multiple=True,
        metavar="NAME=VALUE",
        help=about,
    )


def _field_options() -> list[tuple[str, Option]]:
    """Return the options of the fields of a memory: its own for some, one in common for the others."""
    options = []
    others = []
    for name, field in FIELDS.items():
        if field.option is not None:
            options.append((name, _field_option(name, field)))
    for name in CHANGEABLE:
        if name != "content" and FIELDS[name].stated and not FIELDS[name].option:
            others.append(name)
    common = _pairs_option("--field", f"Another field: {', '.join(others)}.")
    return [*options, common]


_FIELDS = _field_options()

_TIME_HELP = (
    'Such as "last week", "since March", "before 2025-03-01", 2025-03-01..2025-03-09.'
)
_COMMON_FILTERS = [
    _option(
        "kinds",
        "--kind",
        multiple=True,
        metavar="KIND",
        callback=_separately,
        help="Only this kind; repeatable.",
    ),
    _option(
        "tags",
        "--tag",
        multiple=True,
        metavar="TAG",
        callback=_separately,
        help="Only with this tag; repeatable.",
    ),
    _option(
        "author",
        "--author",
        metavar="NAME",
        callback=named,
        help="Only by this author.",
    ),
    _option("time", "--time", metavar="TEXT", callback=named, help=_TIME_HELP),
]
_OTHER_FILTERS = [
    name for name in FiltersRequest.model_fields if name not in dict(_COMMON_FILTERS)
]
_FILTER_HELP = f"Another condition: {', '.join(_OTHER_FILTERS)}; metadata.KEY=VALUE for one key. Repeatable, also for more values."
_FILTERS = [*_COMMON_FILTERS, _pairs_option("--filter", _FILTER_HELP)]

_RANKING = [
    _option(
        "preset",
        "--preset",
        metavar="NAME",
        help="balanced, keyword, semantic, roaming, rrf, or yours.",
    ),
    _option(
        "vector",
        "--embedding",
        type=click.File(),
        help="A JSON file with the question's model and vector; - for stdin.",
    ),
    _option(
        "min_score",
        "--min-score",
        type=click.FloatRange(0, 1),
        help="Leave out lower confidence.",
    ),
    _pairs_option(
        "--ranking",
        "Another number: mmr_lambda, reflections (include, exclude, only, boost), expand (relations, entities),"
        " hops (1 to 3), least_strength, or the weight of dense, keyword, exact, neighbours, relations or a signal;"
        " repeatable.",
    ),
]

# Those of the numbers that are no weight.
_RANKING_FIELDS = ("mmr_lambda", "reflections", "expand", "hops", "least_strength")

field_options = _collected("fields", _FIELDS)
filter_options = _collected("filters", _FILTERS)
ranking_options = _collected("ranking", _RANKING)
max_tokens_option = click.option(
    "--max-tokens",
    type=click.IntRange(50, 100_000),
    help="Keep the answer within this many tokens.",
)
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(get_args(Format)),
    default="concise",
    show_default=True,
)


def filters_from(options: Values) -> FiltersRequest:
    """Return the filters of these options. Raises InvalidInput."""
    values = dict(options)
    pairs: Pairs = values.pop("filter_values", ())
    of_metadata = []
    others = []
    for name, value in pairs:
        if name.startswith(_METADATA):
            of_metadata.append((name.removeprefix(_METADATA), value))
        else:
            _refuse_nothing(f"--filter {name}", value)
            others.append((name, value))

    for name, value in _gathered("--filter", others, FiltersRequest).items():
        if isinstance(value, list):
            values[name] = [*values.get(name, ()), *value]
        elif name == "metadata":
            values[name] = _json(name, value)
        else:
            values[name] = value
    if of_metadata:
        values.setdefault("metadata", {})
        for key, alternatives in _alternatives(of_metadata).items():
            values["metadata"][key] = {"in": alternatives}
    return _checked("--filter", FiltersRequest, values)


def _alternatives(pairs: Pairs) -> dict[str, list[object]]:
    """Return the values of each key: a text, and the number or truth value that it is in JSON."""
    values = defaultdict[str, list[object]](list)
    for key, text in pairs:
        values[key].append(text)
        with suppress(ValueError):
            value = json.loads(text)
            if isinstance(value, bool | int | float):
                values[key].append(value)
    return values


def ranking_from(options: Values) -> RankingRequest:
    """Return the ranking of these options. Raises InvalidInput."""
    values = dict(options)
    weights = {}
    others = []
    for name, value in values.pop("ranking_values", ()):
        if name in _RANKING_FIELDS:
            others.append((name, value))
        else:
            weights[name] = value
    values |= _gathered("--ranking", others, RankingRequest)
    values["weights"] = weights
    if file := values.pop("vector", None):
        read = _json("--embedding", file.read())
        if not isinstance(read, dict) or read.keys() != {"model", "vector"}:
            raise InvalidInput(
                "--embedding", "must be a file with a JSON object of model and vector."
            )
        values["embedding"] = read["vector"]
        values["embedding_model"] = read["model"]
    return _checked("--ranking", RankingRequest, values)


def fields_from(options: Values) -> Values:
    """Return the declared fields of these options. Raises InvalidInput that names the first wrong one."""
    values = dict(options)
    others = _gathered("--field", values.pop("field_values", ()), Changes)
    if "content" in others:
        raise InvalidInput(
            "--field",
            "'content' is the text itself.",
            hint="Give it as TEXT: folklore store TEXT.",
        )
    for name, value in others.items():
        if FIELDS[name].type == "json":
            values[name] = _json(name, value)
        else:
            values[name] = value
    changes = changes_from(values)
    return {name: getattr(changes, name) for name in values}


def changes_from(values: Mapping[str, Any], hint: str | None = None) -> Changes:
    """Check the types of fields. Raises InvalidInput that names the first wrong one and the form of its value."""
    try:
        return Changes.model_validate(values)
    except ValidationError as error:
        name, message = field_errors(error)[0]
        raise InvalidInput(name, _IN_YAML.get(message, message), hint=hint) from None


def _gathered(option: str, pairs: Pairs, request: type[BaseModel]) -> dict[str, Any]:
    """Return the values by name, those of a repeatable name as a list. Raises InvalidInput for an unknown name."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name not in request.model_fields:
            fields = ", ".join(request.model_fields)
            raise InvalidInput(
                option, f"{name[:60]!r} does not exist.", hint=f"Use one of {fields}."
            )
        field = request.model_fields[name]
        default = field.get_default(call_default_factory=True)
        if isinstance(default, tuple):
            values.setdefault(name, []).append(value)
        elif name in values:
            raise InvalidInput(option, f"{name} is given twice.", hint="Give it once.")
        else:
            values[name] = value
    return values


def _json(name: str, text: str) -> object:
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        raise InvalidInput(
            name, 'must be a JSON object, such as {"ticket": 12}.'
        ) from None
    return value


def _checked(option: str, request: Callable[..., Value], values: Values) -> Value:
    """Return a request of these values. Raises InvalidInput that names the option and the first wrong value."""
    try:
        return request(**values)
    except ValidationError as error:
        message = ": ".join(field_errors(error)[0])
        raise InvalidInput(
            option, message, hint="Leave it out, or correct the value."
        ) from None
