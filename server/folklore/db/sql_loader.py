"""SQL lives in files; this reads them, once, and gives each parameter its number.

A file names its parameters (`:namespaces`, `:fetch`); asyncpg wants `$1`, `$2`. A line `-- include visible` stands for
the text of `visible.sql`, so that a filter is written once and stands in every branch.

Most questions have no filter. `recall_dense/plain` is the statement `recall_dense.sql` with `alive.sql`, what nobody
may see, in the place of `visible.sql`: a dozen parameters less to send, to plan and to set up.

The holder of a token is kept by row-level security from what only an owner's index serves: `search_expression/token`
asks it through a function (matching_token.sql).

Where no word is asked for as it is spelled, there is none to count once: `recall_keyword/stems`. Variants add up, as in
`recall_keyword/stems/plain`. A recall without the dense branch reads no vectors: `recall_pool/no_vectors`.

The declared fields of a memory (model.FIELDS) are listed by `{fields}` and its like (`_field_list`); `position`, which
the statements compute, is not among the columns.

The size of a vector cannot be a parameter. `recall_nearest/256` is `recall_nearest.sql` with 256 for `{dimensions}`,
and plain: an index serves questions without filters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from folklore.model import FIELDS, FieldType

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)\b")
_INCLUDE = re.compile(r"^[ \t]*-- include (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"--[^\n]*")
_SIZE = "{dimensions}"
_NUMBER = re.compile(r"[1-9][0-9]{0,4}")
_FIELDS = re.compile(r"\{(?:(\w)\.)?(fields|field_types|field_values|field_updates|field_filters)\}")
_TYPES: Mapping[FieldType, str] = {
    "text": "text", "kind": "text", "language": "text", "tags": "text[]", "paths": "text[]", "share": "real",
    "integer": "integer", "time": "timestamptz", "json": "jsonb", "flag": "boolean",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement with numbered parameters, and their names in that order."""

    name: str
    sql: str
    parameters: tuple[str, ...]

    def arguments(self, values: dict[str, object]) -> list[object]:
        """The values in the order of the numbers. Raises KeyError on a missing or surplus name."""
        if surplus := values.keys() - set(self.parameters):
            raise KeyError(f"{self.name} has no parameter {sorted(surplus)}")
        return [values[name] for name in self.parameters]


# What stands in the place of what in a variant, None for nothing; one that is a number is plain.
_VARIANTS: Mapping[str, Mapping[str, str | None]] = {
    "plain": {"visible": "alive"},
    "stems": {"once": None},
    "token": {"matching": "matching_token"},
    "no_vectors": {"pool_vectors": "pool_no_vectors"},
}


def _text(name: str | None, instead: Mapping[str, str | None]) -> str:
    if name is None:
        return ""
    text = (files("folklore.db") / "sql" / f"{name}.sql").read_text(encoding="utf-8")
    return _INCLUDE.sub(lambda match: _text(instead.get(match[1], match[1]), instead), text)


def _field_list(match: re.Match[str]) -> str:
    """The text for `{fields}` and its like; `{m.fields}` names the columns of the row m.

    {fields}: content, summary, …                    {field_types}: content text, summary text, …
    {m.field_values}: 'content', m.content, …        {n.field_updates}: content = n.content, …
    {m.field_filters}: and (:session::text is null or m.session = :session::text) …
    """
    row, form = match.groups()
    prefix = f"{row}." if row else ""
    columns = [name for name in FIELDS if name != "position"]
    if form == "field_types":
        return ", ".join(f"{name} {_TYPES[field.type]}" for name, field in FIELDS.items())
    if form == "field_values":
        return ", ".join(f"'{name}', {prefix}{name}" for name in FIELDS)
    if form == "field_updates":
        return ", ".join(f"{name} = {prefix}{name}" for name in columns)
    if form == "field_filters":
        filters = [(f":{name}::{_TYPES[field.type]}", name) for name, field in FIELDS.items() if field.filter]
        return "\n    ".join(f"and ({value} is null or {prefix}{name} = {value})" for value, name in filters)
    return ", ".join(f"{prefix}{name}" for name in columns)


@cache
def statement(name: str) -> Statement:
    """The statement of `sql/<name>.sql`, its comments dropped, so that they cost no bytes on the wire.

    Raises KeyError if it needs a size and the name has none.
    """
    file, *variants = name.split("/")
    instead = {what: by for variant in variants for what, by in _VARIANTS.get(variant, _VARIANTS["plain"]).items()}
    text = _FIELDS.sub(_field_list, _COMMENT.sub("", _text(file, instead)))
    if _SIZE in text:
        if not _NUMBER.fullmatch(size := variants[-1] if variants else ""):
            raise KeyError(f"{file} needs a number of dimensions, as in {file}/256")
        text = text.replace(_SIZE, size)
    names = tuple(dict.fromkeys(_PARAMETER.findall(text)))
    numbered = _PARAMETER.sub(lambda match: f"${names.index(match[1]) + 1}", text)
    return Statement(name=name, sql="\n".join(line for line in numbered.splitlines() if line.strip()), parameters=names)
