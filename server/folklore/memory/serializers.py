"""Serializers: results as compact JSON, without nulls and with no more than the format needs."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from folklore.memory.results import (
    ForgetResult,
    GetResult,
    MemoryDetails,
    RelateResult,
    Status,
    StoreResult,
)
from folklore.model import (
    FIELDS,
    VISIBLE,
    Answer,
    Memory,
    Namespace,
    NamespaceStatus,
    Recalled,
    Relation,
    Revision,
    Stale,
)
from folklore.text.tokens import CHARACTERS_PER_TOKEN

_HIDDEN = {*FIELDS, "changed_by", "changed_at"} - {*VISIBLE}
Format = Literal["concise", "detailed", "ids"]
JsonDict = dict[str, Any]
# Tokens of an answer by its format, and the most tokens of any, if the caller states no number.
_TOKENS = {"concise": 2_000, "detailed": 10_000}
_MOST_TOKENS = 20_000
# Digits by which a commit is recognised.
_COMMIT = 12
# Characters by which a text is recognised.
_BEGINNING = 200
# Searched namespaces that are named.
_NAME_LIMIT = 12
# Near-duplicates that are shown by themselves.
_VARIANTS = 5


def answer(source: Answer, form: Format) -> JsonDict:
    """Serialize an answer; empty parts are left out."""
    memories = [recalled(source, form) for source in source.memories]
    return {"memories": memories, "searched": _searched(source.searched)} | _set(
        degraded=[_fields(item, "branch reason") for item in source.degraded],
        **_fields(source, "truncated cursor note"),
        explain=None if source.explain is None else dict(source.explain),
    )


def budget(form: Format, max_tokens: int | None) -> int | None:
    """Return the token budget of an answer: as stated, or else 2,000 if it is concise and 10,000 if detailed."""
    return _TOKENS.get(form) if max_tokens is None else max_tokens


def fitted(value: JsonDict, max_tokens: int | None) -> JsonDict:
    """Reduce the last memories of a result to their ids, until it is within a budget; the first one stays whole.

    The default is below what clients cut off. Other characters than ASCII count as a token each.
    """
    remaining = max_tokens or _MOST_TOKENS
    memories: list[JsonDict] = []
    for memory in value["memories"]:
        text = json.dumps(memory, ensure_ascii=False)
        remaining -= -(
            -sum(1 if char.isascii() else CHARACTERS_PER_TOKEN for char in text)
            // CHARACTERS_PER_TOKEN
        )
        memories.append(
            memory if remaining >= 0 or not memories else {"id": memory["id"]}
        )
    if len(memories) > 1 and remaining < 0:
        note = "The last memories are ids alone, since all would be too long: read them by memory_get, a few at once."
        return value | {"memories": memories, "truncated": True, "note": note}
    return value


def _searched(names: Sequence[str]) -> list[str]:
    """Return the names of the namespaces, the last of very many as their number."""
    if len(names) <= _NAME_LIMIT:
        return list(names)
    return [*names[: _NAME_LIMIT - 1], f"and {len(names) - _NAME_LIMIT + 1:,} more"]


def recalled(result: Recalled, form: Format) -> JsonDict:
    """Serialize one result: `ids` is its id and score, `concise` what a reader needs, `detailed` everything."""
    if form == "ids":
        value: JsonDict = {"id": str(result.memory.id)}
    elif form == "concise":
        value = _concise(result.memory)
    else:
        value = record(result.memory)
    memory = result.memory
    return value | _set(
        **_fields(result, "score match"),
        superseded_by=_plain(memory.superseded_by),
        # The memory that superseded it may have been erased.
        superseded_at=_plain(memory.superseded_at)
        if memory.superseded_by is None
        else None,
        **_fields(result, "queries expanded elsewhere"),
        passage=list(result.passage)
        if result.passage and (form == "detailed" or result.explain)
        else None,
        variants=_variants(result),
        replaces=[_fields(item, "id when") for item in result.replaces],
        contradicts=list(map(str, result.contradicts)),
        stale=stale(result.stale),
        explain=None if result.explain is None else dict(result.explain),
    )


def _variants(result: Recalled) -> list[JsonDict]:
    """Serialize the newest variants, the namespace only where it is another; the last entry counts the rest."""
    rows = [
        _fields(item, "id when author")
        | _set(changed_by=item.changed_by)
        | _set(
            namespace=item.namespace
            if item.namespace != result.memory.namespace
            else None
        )
        | _set(differs=item.differs or None)
        for item in result.variants[:_VARIANTS]
    ]
    more = len(result.variants) - len(rows)
    return [*rows, {"more": more}] if more else rows


def stale(files: Sequence[Stale]) -> JsonDict | None:
    """Serialize the first of the files that changed after a memory about them; `more` counts the others."""
    if not files:
        return None
    value = _fields(files[0], "path since commit vanished moved_to")
    return _set(
        **value | {"commit": files[0].commit[:_COMMIT]}, more=len(files) - 1 or None
    )


def _concise(memory: Memory) -> JsonDict:
    value = _fields(memory, "id content namespace")
    for name, field in FIELDS.items():
        if field.concise and (stored_value := getattr(memory, name)) != field.default:
            value[name] = _plain(stored_value)
    return value | _fields(memory, "author when") | _changed(memory)


def _changed(memory: Memory) -> JsonDict:
    """Return who changed the text last, and when, unless that is its author."""
    return _set(**_fields(memory, "changed_by changed_at"))


def record(memory: Memory) -> JsonDict:
    """Serialize a whole memory without unset values. `source` is always there."""
    return _set(
        **_fields(memory, "id content namespace"),
        **{
            name: _plain(getattr(memory, name)) for name in VISIBLE if name != "content"
        },
        **_fields(
            memory,
            "author agent quality when created_at updated_at forgotten_at superseded_at superseded_by",
        ),
        **_changed(memory),
        recall_count=memory.recall_count or None,
        revision=memory.revision,
    ) | {"source": memory.source or ""}


# The question about older memories on the subject of a new one.
_REPLACES = (
    "Does it replace one in same_subject? Store it again with supersedes and that id; "
    "if both hold, relate them (relates_to)."
)


def stored(result: StoreResult) -> JsonDict:
    """Serialize the outcome of a store."""
    items = []
    for item in result.stored:
        similar = [
            _fields(near, "id similarity")
            | {"content": beginning(near.content), "author": near.author}
            | _set(changed_by=near.changed_by)
            for near in item.similar
        ]
        subjects = [
            _fields(older, "id when") | {"content": beginning(older.content)}
            for older in item.same_subject
        ]
        items.append(
            _fields(item, "id status")
            | _set(cues=item.cues, similar=similar, same_subject=subjects)
        )
    refusals = [_fields(item, "index field reason") for item in result.refused]
    asks = any(item.same_subject for item in result.stored)
    # The note comes last: it may end with how to add cues.
    notes = [note for note in (_REPLACES if asks else None, result.note) if note]
    return {"namespace": result.namespace, "stored": items} | _set(
        refused=refusals, note=" ".join(notes) or None
    )


def beginning(text: str) -> str:
    """Return the beginning of a text, by which it is recognised."""
    if len(text) <= _BEGINNING:
        return text
    return text[: _BEGINNING - 1].rstrip() + "…"


def got(result: GetResult) -> JsonDict:
    """Serialize memories that were read by id."""
    return {"memories": list(map(details, result.found))} | _set(
        missing=list(map(str, result.missing))
    )


def details(item: MemoryDetails) -> JsonDict:
    """Serialize a whole memory with its relations, seen from it, and the number of its revisions."""
    value = record(item.memory)
    if item.relations:
        value["relations"] = [
            relation(entry, item.memory.id) for entry in item.relations
        ]
    value["revisions"] = item.revisions
    return value | _set(stale=stale(item.stale))


def relation(item: Relation, seen_from: UUID | None = None) -> JsonDict:
    """Serialize a relation; the end that it is seen from is left out."""
    value: JsonDict = {
        "from": str(item.from_id),
        "type": item.type,
        "to": str(item.to_id),
        "strength": item.strength,
    }
    if seen_from is not None:
        del value["from" if item.from_id == seen_from else "to"]
    return value


def related(result: RelateResult) -> JsonDict:
    """Serialize the outcome for relations; empty parts are left out, except `created`."""
    return {"created": list(map(relation, result.created))} | _set(
        updated=list(map(relation, result.updated)),
        removed=list(map(relation, result.removed)),
        failed=[
            relation(item.relation) | {"reason": item.reason} for item in result.failed
        ],
    )


def revision(item: Revision) -> JsonDict:
    """Serialize a change with the former values of the changed columns."""
    return _set(
        **_fields(item, "revision action author agent changed_at reason undoes"),
        before={
            name: entry
            for name, entry in item.before.items()
            if entry is not None and name not in _HIDDEN
        },
    )


def forgotten(result: ForgetResult, *, erase: bool, dry_run: bool) -> JsonDict:
    """Serialize forgotten memories. The text of erased ones is not repeated."""
    erased = erase and not dry_run
    if erased:
        memories = [_fields(item, "id namespace") for item in result.memories]
    else:
        memories = _short(result.memories)
    return {"forgotten": memories} | _set(
        already_forgotten=list(map(str, result.already)),
        erased=erased,
        dry_run=dry_run,
        more=result.more,
        restored=_short(result.restored),
    )


def _short(memories: Sequence[Memory]) -> list[JsonDict]:
    return [
        _fields(memory, "id namespace") | {"content": beginning(memory.content)}
        for memory in memories
    ]


def namespace(item: Namespace) -> JsonDict:
    """Serialize a namespace."""
    described = _fields(item, "language description created_at deleted_at deleted_by")
    return _set(
        name=item.name, memories=item.memories or 0, shared=_shared(item), **described
    )


def _shared(item: Namespace | NamespaceStatus) -> str | None:
    if item.shared == "never":
        return None
    return item.shared


def status(state: Status) -> JsonDict:
    """Serialize the state of the memory."""
    model = state.model
    namespaces = [
        _fields(item, "name memories role") | _set(shared=_shared(item))
        for item in state.namespaces
    ]
    value = _fields(state, "version engine") | _set(
        model=model and _fields(model, "provider name dimensions")
    )
    value["namespaces"] = namespaces
    return value | _set(
        embedding_debt=None if model is None else state.pending_embeddings,
        degraded=[_fields(item, "branch reason") for item in state.degraded],
    )


def _fields(item: object, names: str) -> JsonDict:
    return {name: _plain(getattr(item, name)) for name in names.split()}


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds").replace("+00:00", "Z")
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def _set(**values: object) -> JsonDict:
    """Return the values that say something: no null, no False, no empty list."""
    return {
        name: value
        for name, value in values.items()
        if value is not None and value is not False and value != []
    }
