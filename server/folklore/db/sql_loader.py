"""SQL statements, read from the files next to the stores: one file for each store, a section for each statement.

`statement("memories/get")` is the section of `stores/memories.sql` that begins with `-- name: get`, and ends where the
next one begins. A section may contain:

- Parameters by name: `:ids::uuid[]` becomes `$1::uuid[]`. Each has its type at least once.
- `-- include visible`, replaced by that section of `fragments.sql`, so each condition is written once. Whole
  statements are included by their name, as `-- include transfer/memories`.
- Lists of the declared fields of a memory (model.FIELDS); `{m.fields}` names the columns of the row m:

      {fields}           content, summary, …              {field_types}      content text, summary text, …
      {m.field_values}   'content', m.content, …          {n.field_updates}  content = n.content, …
      {m.field_filters}  and (:session::text is null or m.session = :session::text) …

  `position` is a field, but no column of {fields} and {field_updates}: the statements compute it.
- `{m.ends_at}` and `{m.effective_quality}`: the time and the quality that hide the row m.
- `{m.order_time}`: the time of the row m for order and age: one in the future counts as the last change.
- `{dimensions}` and `{model}`: the size of vectors and the id of a model, since those of an index are no parameters.

A variant, named after a colon, is the same statement with other fragments: less to send, to plan and to execute.

    recall/dense:plain            without filters, as most queries are: `visible` becomes `alive`
    memories/list:…:one           of one namespace, whose size a plan knows; :together of several, by another index
    recall/expression:token       a token may not use the index that `matching` needs: `matching_token` calls a function
    transfer/replace:token        nor may it change who wrote what, and how often it was recalled
    embeddings/neighbours:single  of one memory: the vectors that it is compared with are read, and not kept
    recall/pool:no_vectors        a recall without the dense branch reads no vectors
    namespaces/status:no_vectors  without a model, nor does the status, nor activity/attention
    recall/nearest:…:no_cues      while there is no index of cues
    recall/keyword:satisfying     that satisfy :expression, by their cues too
    recall/pool:as_of             filters with as_of: memories as they were then, by their revisions
    recall/nearest:256:<id>       {dimensions} is 256, {model} is <id>
    memories/list:updated:oldest  {sorted_by} and {order} are words for these, since an index has an order of its own
    recall/dense:others           of all namespaces but :namespaces, which are few
    recall/pool:distributed       on a cluster each data table names its namespaces itself, so that the statement is
                                  sent whole to their node; `stores/distributed.sql` has those with another text there
    recall/dense:distributed:each for each of :namespaces, all shards at once
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from folklore.db.rows import as_json
from folklore.model import FIELDS, FieldType

_FOLDER = Path(__file__).parent
_NAME = re.compile(r"^-- name: (\w+)", re.MULTILINE)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)\b")
_JSON = re.compile(r":([a-z_]+)::jsonb\b")
_INCLUDE = re.compile(r"^[ \t]*-- include ([\w/]+)$", re.MULTILINE)
_COMMENT = re.compile(r"--[^\n]*")
_BOUND = re.compile(r"any\(:namespaces::uuid\[\]\)|:namespace::uuid")
_JOIN = re.compile(r"\b(\w+)\.namespace_id = \w+\.(?:namespace_id|id)\b")
_READ = re.compile(r"((?:\b\w+\.)?namespace_id) = any\(:namespaces::uuid\[\]\)")
# The forms of variants that are the values of a gap.
_VALUE_FORMS = {
    "{dimensions}": r"[1-9][0-9]{0,4}",
    "{model}": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
}
_FIELDS = re.compile(
    r"\{(?:(\w)\.)?(fields|field_types|field_values|field_updates|field_filters|ends_at|effective_quality|order_time)\}"
)
_TYPES: Mapping[FieldType, str] = {
    "text": "text", "kind": "text", "language": "text", "tags": "text[]", "paths": "text[]", "phrases": "text[]",
    "share": "real", "integer": "integer", "time": "timestamptz", "json": "jsonb", "flag": "boolean",
    "blobs": "text[]",
}  # fmt: skip

# The time of a row for order and age, as model.order_time.
_ORDER_TIME = "least(coalesce({0}occurred_at, {0}created_at), {0}updated_at)"

# The texts that a variant puts into gaps of the statement.
_TEXTS: Mapping[str, Mapping[str, str]] = {
    "happened": {"{sorted_by}": _ORDER_TIME.format("m.")},
    "updated": {"{sorted_by}": "m.updated_at"},
    "trending": {"{sorted_by}": "m.trending"},
    "newest": {"{order}": "desc", "{beyond}": "<", "{first}": "infinity"},
    "oldest": {"{order}": "asc", "{beyond}": ">", "{first}": "-infinity"},
}
_GAPS = {*_VALUE_FORMS, *chain.from_iterable(_TEXTS.values())}
_GAP = re.compile("|".join(map(re.escape, _GAPS)))
# The fragments that only the variants include which name them below.
_ALONE: Mapping[str, str | None] = dict.fromkeys(
    ("unaltered", "happened", "included_namespaces", "excluded_namespaces", "space_row")
)
# The fragments that a variant replaces; None removes one.
_VARIANTS: Mapping[str, Mapping[str, str | None]] = {
    "plain": {"visible": "alive", "listed_namespaces": "leading_namespaces"},
    "one": {"listed_namespaces": "listed_namespace"},
    "single": {"newest_vectors": "newest_vectors_once"},
    "together": {
        "listed_namespaces": "listed_namespace",
        "of_namespace": "of_namespaces",
    },
    "token": {"matching": "matching_token", "restated": None},
    "others": {
        "included_namespaces": "included_namespaces",
        "excluded_namespaces": "excluded_namespaces",
    },
    "no_vectors": {"pool_vectors": "pool_no_vectors", "without_vector": None},
    "as_of": {
        "state": "state_as_of",
        "unaltered": "unaltered",
        "cues_nearness": "cues_nearness_then",
    },
    # A function that reads data tables is not sent to a node.
    "distributed": {
        "matching": "matching",
        "happened": "happened",
        "empty": "empty_unknown",
        "space": "space_of_row",
        "space_row": "space_row",
        "counted_vectors": "counted_at_once",
    },
    "no_cues": {"near_by_cues": None},
    "satisfying": {"ranked": "ranked_satisfying"},
    "each": {},
}


@dataclass(frozen=True, slots=True)
class Statement:
    """An SQL statement with numbered parameters, and their names in that order; `json` are those of the type jsonb."""

    name: str
    sql: str
    parameters: tuple[str, ...]
    json: frozenset[str]

    def arguments(self, values: dict[str, object]) -> list[object]:
        """Return the values in the order of the numbers; those of the type jsonb, unless they are text, as JSON.

        Raises KeyError for a missing or surplus name.
        """
        surplus = values.keys() - set(self.parameters)
        if surplus:
            raise KeyError(f"{self.name} has no parameter {sorted(surplus)}")
        arguments = []
        for name in self.parameters:
            value = values[name]
            if name in self.json and not isinstance(value, str | None):
                value = as_json(value)
            arguments.append(value)
        return arguments


@cache
def statement(name: str) -> Statement:
    """Return a statement without its comments, which would be sent each time.

    Raises KeyError for an unknown variant, and if the name lacks one that the text needs.
    """
    section, *variants = name.split(":")
    text = _included(_section_text(section, variants), _fragments_of(variants))
    text = _COMMENT.sub("", text)
    text = _FIELDS.sub(_field_list, text)
    for variant, rewrite in _REWRITES.items():
        if variant in variants:
            text = rewrite(text)

    values = _gap_values(variants)
    try:
        text = _GAP.sub(lambda gap: values[gap[0]], text)
    except KeyError:
        needed = f"a size and a model, as {section}:256:<id>, or an order, as {section}:updated:oldest"
        raise KeyError(f"{section} needs {needed}") from None

    parameters = tuple(dict.fromkeys(_PARAMETER.findall(text)))
    numbers = {name: f"${number}" for number, name in enumerate(parameters, start=1)}
    numbered = _PARAMETER.sub(lambda match: numbers[match[1]], text)
    sql = "\n".join(line for line in numbered.splitlines() if line.strip())
    return Statement(name, sql, parameters, json=frozenset(_JSON.findall(text)))


def _section_text(section: str, variants: Collection[str]) -> str:
    """Return the text of a section; on a cluster its own, if it has one there."""
    if "distributed" in variants:
        text = sections("distributed").get(section.replace("/", "_"))
        if text:
            return text
    return _read(section)


def _fragments_of(variants: Iterable[str]) -> dict[str, str | None]:
    """Return which fragments stand for others in a statement of these variants; None for none."""
    replaced = dict(_ALONE)
    for variant in variants:
        replaced.update(_VARIANTS.get(variant, {}))
    return replaced


def _gap_values(variants: Iterable[str]) -> dict[str, str]:
    """Return what stands in gaps as `{order}` in these variants. Raises KeyError for an unknown variant."""
    values: dict[str, str] = {}
    for variant in variants:
        if variant in _TEXTS:
            values.update(_TEXTS[variant])
        elif variant not in _VARIANTS:
            values[_gap_for(variant)] = variant
    return values


def _gap_for(value: str) -> str:
    """Return the gap that a variant fills which is a value itself: `{dimensions}` or `{model}`. Raises KeyError."""
    for gap, form in _VALUE_FORMS.items():
        if re.fullmatch(form, value):
            return gap
    raise KeyError(f"{value} is no variant, no number of dimensions and no model")


def _bound_by_table(text: str) -> str:
    """Return a statement in which each joined table is bound to the namespace by itself, as Citus needs it."""
    bound = _BOUND.search(text)
    if bound:
        return _JOIN.sub(rf"\g<0> and \1.namespace_id = {bound[0]}", text)
    return text


def _of_each(text: str) -> str:
    """Return a statement that asks each namespace for itself."""
    body = _READ.sub(r"\1 = space.namespace_id and \g<0>", text)
    return template("fragments/each").replace("{statement}", body)


def _of_others(text: str) -> str:
    """Return a statement over the namespaces that its fragments select."""
    if "excluded_namespaces" in text:
        condition = "<> all((select ids from excluded_namespaces)"
    else:
        condition = "= any((select ids from included_namespaces)"
    return text.replace("= any(:namespaces::uuid[])", f"{condition}::uuid[])")


# What some variants do with the whole text, in this order.
_REWRITES: Mapping[str, Callable[[str], str]] = {
    "distributed": _bound_by_table, "each": _of_each, "others": _of_others,
}  # fmt: skip


@cache
def template(name: str) -> str:
    """Return a section for values that are no parameters: the caller checks them and fills them in."""
    return _COMMENT.sub("", _read(name))


@cache
def families() -> Mapping[str, Path]:
    """Return the SQL files of stores, and those next to this module, by name."""
    return {
        file.stem: file
        for file in (*_FOLDER.glob("*.sql"), *(_FOLDER / "stores").rglob("*.sql"))
    }


@cache
def sections(family: str) -> Mapping[str, str]:
    """Return the statements of a store by name."""
    _, *parts = _NAME.split(families()[family].read_text(encoding="utf-8"))
    return {
        name: f"-- {text}" for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def _read(name: str) -> str:
    family, _, section = name.partition("/")
    return sections(family)[section]


def _included(text: str, replaced: Mapping[str, str | None]) -> str:
    def fragment(match: re.Match[str]) -> str:
        name = replaced.get(match[1], match[1])
        if name is None:
            return ""
        return _included(_read(name if "/" in name else f"fragments/{name}"), replaced)

    return _INCLUDE.sub(fragment, text)


def _field_list(match: re.Match[str]) -> str:
    row, form = match.groups()
    return _FIELD_LISTS[form](f"{row}." if row else "")


def _filters(prefix: str) -> str:
    filters = [
        (f":{name}::{_TYPES[field.type]}", name)
        for name, field in FIELDS.items()
        if field.filter
    ]
    return "\n    ".join(
        f"and ({value} is null or {prefix}{name} = {value})" for value, name in filters
    )


_COLUMNS = [name for name in FIELDS if name != "position"]
_FIELD_LISTS: Mapping[str, Callable[[str], str]] = {
    "fields": lambda prefix: ", ".join(f"{prefix}{name}" for name in _COLUMNS),
    "field_types": lambda _: ", ".join(
        f"{name} {_TYPES[field.type]}" for name, field in FIELDS.items()
    ),
    "field_values": lambda prefix: ", ".join(
        f"'{name}', {prefix}{name}" for name in FIELDS
    ),
    "field_updates": lambda prefix: ", ".join(
        f"{name} = {prefix}{name}" for name in _COLUMNS
    ),
    "field_filters": _filters,
    "ends_at": lambda prefix: (
        f"case when not {prefix}pinned then {prefix}expires_at end"
    ),
    "order_time": _ORDER_TIME.format,
    "effective_quality": lambda prefix: (
        f"case when not {prefix}pinned then {prefix}quality end"
    ),
}
