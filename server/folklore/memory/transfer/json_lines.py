"""JSON Lines, the format of an export: a header, then memories, relations and revisions, one object on each line.

Reading accepts more than writing gives: an object with `content` alone is a memory. The declared fields of a memory
follow from model.FIELDS.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
)

from folklore.contract.argument_types import VALUE_TYPES
from folklore.contract.lines import IGNORED, LINE_BYTES, is_state, state_of
from folklore.db.stores.transfer import (
    HALF_BYTES,
    PAST,
    ModelVector,
    Past,
    TransferredMemory,
    TransferredNamespace,
)
from folklore.errors import InvalidInput, field_errors
from folklore.memory.context.validation import MAX_KEY, check_draft, relation_type
from folklore.model import (
    DEFAULT_LANGUAGE,
    FIELDS,
    Draft,
    FieldType,
    Relation,
    Revision,
    Shared,
)
from folklore.new_ids import new_id
from folklore.text import names
from folklore.text.clean import clean
from folklore.text.dates.zones import UNSHOWABLE, is_showable
from folklore.text.languages import language

VERSION = 1
# As many as transfer/memories returns: with a memory of any size they fit into a line and a search for secrets.
MAX_KEYS = 300
# Types of lines that are counted and skipped. Of relations and revisions these are the ones in another system's form.
_SKIPPED = frozenset({"question", "relation", "revision"})
_DIGEST = re.compile(r"[0-9a-f]{64}")

M = TypeVar("M", bound=BaseModel)

# The namespaces of a header, the first line of an export.
Header = tuple[TransferredNamespace, ...]
LineValue = Header | TransferredMemory | Relation | Revision | str


@dataclass(frozen=True, slots=True)
class Line:
    """The value of a line, and the namespace that it names. `ignored` names the fields that are not read.

    The value of a line that an import does not read is its type.
    """

    value: LineValue
    namespace: str | None = None
    ignored: tuple[str, ...] = ()


# The types of values in lines. Their error messages never repeat a value.


def _time(value: object) -> object:
    # pydantic would read "2024" as seconds since 1970. A JSON number may be such seconds.
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError(
                "must be an ISO 8601 time such as 2025-06-30T09:30:00+02:00"
            ) from None
    if not isinstance(value, datetime) or value.tzinfo is None:
        return value
    if not is_showable(value):
        raise ValueError(UNSHOWABLE)
    return value


def _keys(value: object) -> object:
    """Return digests of requests by cleaned key."""
    if not isinstance(value, dict):
        raise ValueError("must be an object")  # noqa: TRY004 - pydantic reports ValueError
    for request in value.values():
        if not isinstance(request, str) or not _DIGEST.fullmatch(request):
            raise ValueError("must have a digest of 64 hexadecimal digits for each key")
    if len(value) > MAX_KEYS:
        raise ValueError(f"must hold at most {MAX_KEYS} keys, got {len(value):,}")
    requests = {clean(key).text.strip(): request for key, request in value.items()}
    if not all(0 < len(key) <= MAX_KEY for key in requests):
        raise ValueError(f"must hold keys of 1 to {MAX_KEY} characters")
    return requests


def _half_floats(value: object) -> object:
    if isinstance(value, str):
        with suppress(ValueError):
            raw = b64decode(value, validate=True)
            if len(raw) % HALF_BYTES == 0:
                return raw
    raise ValueError("must be base64 of half floats, two bytes each")


# A time without an offset is in the time zone of the person who imports it.
_Time = Annotated[datetime, BeforeValidator(_time)]
_ZonedTime = Annotated[AwareDatetime, BeforeValidator(_time)]
_Name = Annotated[str, Field(max_length=200)]
_Count = Annotated[int, Field(ge=0, lt=2**31)]
# As precise as the database, so that equal values compare equal.
_Share = Annotated[float, AfterValidator(lambda value: round(value, 6))]
_Number = Annotated[int, Field(ge=1, lt=2**31)]


class _Object(BaseModel):
    model_config = ConfigDict(
        extra="ignore", hide_input_in_errors=True, defer_build=True
    )


class _Passage(_Object):
    """A passage of a long text: its characters, as a range from 0, and its vector in base64."""

    begin: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=1)]
    vector: Annotated[bytes, BeforeValidator(_half_floats)]


class _Embedding(_Object):
    """The field `embedding`: a vector in base64, the identity of its model, the passages of a long text.

    `cues` is the vector of the memory's cues.
    """

    provider: str
    name: str
    dimensions: Annotated[int, Field(ge=1)]
    revision: str = ""
    query_prefix: str = ""
    document_prefix: str = ""
    vector: Annotated[bytes, BeforeValidator(_half_floats)]
    passages: list[_Passage] = []
    cues: Annotated[bytes, BeforeValidator(_half_floats)] | None = None


class _Memory(_Object):
    """The fields of a memory line besides the declared fields, all of which are optional but the content."""

    namespace: str | None = None
    id: UUID | None = None
    content: str
    created_at: _Time | None = None
    updated_at: _Time | None = None
    author: _Name | None = None
    agent: _Name | None = None
    quality: Annotated[_Share, Field(ge=0, le=1000)] | None = None
    trust: Annotated[str, Field(max_length=40)] | None = None
    forgotten_at: _Time | None = None
    superseded_at: _Time | None = None
    superseded_by: UUID | None = None
    last_recalled_at: _Time | None = None
    recall_count: _Count | None = None
    confirmed_count: _Count | None = None
    revision: _Number | None = None
    changed_by: _Name | None = None
    changed_at: _Time | None = None
    idempotency_key: str | None = None
    idempotency_keys: Annotated[dict[str, str], BeforeValidator(_keys)] | None = None
    embedding: _Embedding | None = None


class _FormerValues(_Object):
    """The field `before` of a revision line: former values of columns."""

    forgotten_at: _ZonedTime | None = None
    superseded_at: _ZonedTime | None = None
    superseded_by: UUID | None = None
    changed_by: _Name | None = None
    changed_at: _ZonedTime | None = None


class _Destination(_Object):
    namespace: str | None = None


class _Relation(_Object):
    from_id: Annotated[UUID, Field(alias="from")]
    type: Annotated[str, Field(alias="relation")]
    to_id: Annotated[UUID, Field(alias="to")]
    strength: Annotated[_Share, Field(ge=0, le=1)] = 1.0
    author: _Name | None = None
    created_at: _ZonedTime | None = None


class _Namespace(_Object):
    name: str
    language: str = DEFAULT_LANGUAGE
    description: Annotated[str, Field(max_length=2_000)] | None = None
    shared: Shared = "never"
    created_at: _ZonedTime
    created_by: _Name


class _Header(_Object):
    folklore: int
    namespaces: tuple[_Namespace, ...] = ()


def _with_fields(
    base: type[BaseModel], types: Mapping[FieldType, Any], nullable: Collection[str]
) -> Any:
    """Return the model `base` with the declared fields that it lacks, all optional."""
    types = {**VALUE_TYPES, **types}
    fields: dict[str, Any] = {}
    for name, field in FIELDS.items():
        if name not in base.model_fields:
            type_ = types[field.type]
            fields[name] = (type_ | None if name in nullable else type_, None)
    return create_model(base.__name__, __base__=base, __module__=__name__, **fields)


if TYPE_CHECKING:
    _MemoryLine = _Memory
    _BeforeField = _FormerValues
else:
    _MemoryLine = _with_fields(_Memory, {"time": _Time, "share": _Share}, FIELDS)
    _CLEARABLE = [name for name, field in FIELDS.items() if field.clearable]
    _NULLABLE = [name for name in _CLEARABLE if FIELDS[name].default is None]
    _BeforeField = _with_fields(_FormerValues, {"time": _ZonedTime}, _NULLABLE)


class _Revision(_Object):
    memory_id: Annotated[UUID, Field(alias="memory")]
    revision: _Number
    action: Annotated[str, Field(pattern="^[a-z]{1,40}$")]
    author: _Name
    agent: _Name | None = None
    changed_at: _ZonedTime
    reason: Annotated[str, Field(max_length=2_000)] | None = None
    undoes: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    before: _BeforeField


# The fields of a draft in a memory line, and the order in which a line is written.
_STATED = tuple(
    name for name in Draft.__dataclass_fields__ if name in _MemoryLine.model_fields
)
_READ = frozenset(_MemoryLine.model_fields) | {"type"}
# The type in JSON of the fields that a text may give.
_JSON_TYPES: Mapping[str, type] = {
    "tags": list,
    "paths": list,
    "blobs": list,
    "json": dict,
}


# Reading


def read_line(raw: bytes) -> Line:
    """Parse a line. Raises InvalidInput that names the field and never repeats its value."""
    fields = _object(raw)
    type_ = _type_of(fields)
    if type_ == "relation" and {"from", "relation", "to"} <= fields.keys():
        relation = _relation(_valid(_Relation, fields))
        return Line(relation, _valid(_Destination, fields).namespace)
    if type_ == "revision" and {"memory", "before"} <= fields.keys():
        revision = _revision(_valid(_Revision, fields))
        return Line(revision, _valid(_Destination, fields).namespace)
    if "folklore" in fields and "content" not in fields:
        return Line(_header(_valid(_Header, fields)))
    if type_ in _SKIPPED or (type_ != "memory" and "content" not in fields):
        return Line(type_, ignored=_left_out(fields))
    return _memory(type_, fields)


def _object(raw: bytes) -> dict[str, Any]:
    if len(raw) > LINE_BYTES:
        raise InvalidInput("line", f"must be at most {LINE_BYTES:,} bytes.")
    try:
        fields = json.loads(raw)
    except UnicodeDecodeError:
        raise InvalidInput("line", "is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(
            "line", f"is not JSON ({error.msg}, character {error.pos + 1})."
        ) from None
    except (ValueError, RecursionError):  # a number of thousands of digits
        raise InvalidInput("line", "is not JSON that can be read.") from None
    if not isinstance(fields, dict):
        raise InvalidInput("line", "is not a JSON object.")
    return fields


def _type_of(fields: Mapping[str, Any]) -> str:
    type_ = fields.get("type") or "memory"
    if not isinstance(type_, str):
        return "unknown"
    return type_[:40]


def _valid(model: type[M], fields: Mapping[str, Any]) -> M:
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise InvalidInput(*field_errors(error)[0]) from None


def _memory(type_: str, fields: dict[str, Any]) -> Line:
    state = state_of(fields)
    if state:
        return Line(f"{state} memory")
    ignored = set(_left_out(fields))
    for name in fields.keys() - _READ:
        if not is_state(name, fields[name]):
            ignored.add(name)
    _decode_texts(fields)
    if type_ != "memory":
        ignored.add("type")
    if not _is_uuid(fields.get("id")):  # another system's
        del fields["id"]
        ignored.add("id")
    if isinstance(fields.get("embedding"), list):  # which does not name its model
        del fields["embedding"]
        ignored.add("embedding")

    values = dict(_valid(_MemoryLine, fields))
    stated = {name: values[name] for name in _STATED if values[name] is not None}
    past = {name: values[name] for name in PAST}
    embedding: _Embedding | None = values["embedding"]
    memory = TransferredMemory(
        Draft(**stated),
        Past(**past),
        None if embedding is None else _model_vector(embedding),
        values["idempotency_keys"] or {},
    )
    return Line(memory, values["namespace"], tuple(sorted(ignored)))


def _left_out(fields: dict[str, Any]) -> tuple[str, ...]:
    """Take what the reader of another format left out from a line, and return it."""
    names = fields.pop(IGNORED, None)
    if not isinstance(names, list):
        return ()
    return tuple(map(str, names))


def _decode_texts(fields: dict[str, Any]) -> None:
    """Decode lists and objects that are JSON in a text, as databases export them."""
    for name, field in FIELDS.items():
        text = fields.get(name)
        if field.type not in _JSON_TYPES or not isinstance(text, str):
            continue
        with suppress(ValueError, RecursionError):
            decoded = json.loads(text)
            if isinstance(decoded, _JSON_TYPES[field.type]):
                fields[name] = decoded


def _model_vector(embedding: _Embedding) -> ModelVector:
    values = dict(embedding)
    values["passages"] = tuple(
        (passage.begin, passage.end, passage.vector) for passage in embedding.passages
    )
    return ModelVector(**values)


def _is_uuid(value: object) -> bool:
    """Return True for a text that is a UUID, and for none."""
    if value is None:
        return True
    if isinstance(value, str):
        with suppress(ValueError):
            UUID(value)
            return True
    return False


def _relation(line: _Relation) -> Relation:
    values = dict(line)
    values["type"] = relation_type(line.type, "relation")
    values["author"] = cleaned(line.author)
    return Relation(**values)


def _revision(line: _Revision) -> Revision:
    values = dict(line)
    for name in ("author", "agent", "reason"):
        values[name] = cleaned(values[name])
    values["before"] = _former_columns(line.before)
    return Revision(**values)


def _former_columns(former: _FormerValues) -> dict[str, Any]:
    """Return the columns as JSON, checked like those of a new memory, which an undo makes of them."""
    columns = {name: getattr(former, name) for name in former.model_fields_set}
    stated = {name: columns[name] for name in FIELDS if name in columns}
    stated.pop("expires_at", None)  # which may be over
    draft = Draft(**{"content": "unchanged"} | stated)
    long_ago = datetime.min.replace(tzinfo=UTC)
    checked = check_draft(draft, prefix="before.", now=long_ago, zone=UTC)
    for name in stated:
        columns[name] = getattr(checked, name)
    return {name: _as_postgres_writes(value) for name, value in columns.items()}


def _as_postgres_writes(value: object) -> object:
    """Return a value as Postgres writes it in JSON: a fraction of a second does not end with zeros."""
    if isinstance(value, datetime):
        utc = value.astimezone(UTC).replace(tzinfo=None)
        text = utc.replace(microsecond=0).isoformat()
        if utc.microsecond:
            text += f".{utc.microsecond:06}".rstrip("0")
        return f"{text}+00:00"
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, tuple):
        return list(value)
    return value


def _header(line: _Header) -> Header:
    if line.folklore > VERSION:
        problem = f"must be at most {VERSION}, got {line.folklore}, the format of a newer Folklore."
        raise InvalidInput("folklore", problem, hint="Upgrade this one.")
    return tuple(
        TransferredNamespace(
            id=new_id(),
            name=names.normalise(namespace.name),
            language=language(namespace.language),
            created_at=namespace.created_at,
            created_by=clean(namespace.created_by).text.strip(),
            description=cleaned(namespace.description) or None,
            shared=namespace.shared,
        )
        for namespace in line.namespaces
    )


def cleaned(text: str | None) -> str | None:
    """Clean a text that is no field of a draft."""
    if text is None:
        return None
    return clean(text).text.strip()


# Writing


def header_line(
    exported_at: datetime, namespaces: Sequence[TransferredNamespace]
) -> str:
    """Return the first line of an export."""
    described = []
    for namespace in namespaces:
        values = {name: getattr(namespace, name) for name in _Namespace.model_fields}
        described.append(_without_none(values))
    return _line(
        {"folklore": VERSION, "exported_at": exported_at, "namespaces": described}
    )


def memory_line(namespace: str, memory: TransferredMemory) -> str:
    """Return a memory as a line, its fields always in the same order, without flags that are not set, or no cues."""
    draft = memory.draft
    values: dict[str, Any] = {
        "type": "memory",
        "namespace": namespace,
        "id": draft.id,
    }
    for name, field in FIELDS.items():
        values[name] = getattr(draft, name)
        if field.type in ("flag", "phrases") and not values[name]:
            values[name] = None
    values["created_at"] = draft.created_at
    values["author"] = draft.author
    for name in PAST:
        values[name] = getattr(memory.past, name)
    values["idempotency_key"] = draft.idempotency_key
    values["idempotency_keys"] = dict(memory.keys) or None
    if memory.vector is not None:
        values["embedding"] = _embedding(memory.vector)
    return _line(values)


def _embedding(vector: ModelVector) -> dict[str, Any]:
    values = {name: getattr(vector, name) for name in _Embedding.model_fields}
    values["vector"] = _base64(vector.vector)
    values["cues"] = None if vector.cues is None else _base64(vector.cues)
    values["passages"] = [
        {"begin": begin, "end": end, "vector": _base64(passage)}
        for begin, end, passage in vector.passages
    ]
    return {name: value for name, value in values.items() if value or name == "vector"}


def _base64(vector: bytes) -> str:
    return b64encode(vector).decode()


def link_line(namespace: str, link: Relation | Revision) -> str:
    """Return a relation or a revision as a line. The field `before` has nulls, which mean that a column was empty."""
    if isinstance(link, Relation):
        values: dict[str, Any] = {"type": "relation", "namespace": namespace}
        fields = _Relation.model_fields
    else:
        values = {"type": "revision", "namespace": namespace}
        fields = _Revision.model_fields
    for name, field in fields.items():
        values[field.alias or name] = getattr(link, name)
    return _line(values)


def _json_value(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    assert isinstance(value, UUID)
    return str(value)


_encode = json.JSONEncoder(ensure_ascii=False, default=_json_value).encode


def _line(values: Mapping[str, Any]) -> str:
    return _encode(_without_none(values))


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
