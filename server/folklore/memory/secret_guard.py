"""Secrets are not stored: every text of a memory is looked at before it is, whoever brings it.

`guard` is for whole memories, `guard_fields` for whoever changes some fields of one. Both look at cleaned text, so that
invisible characters within a key do not hide it, and before any other check, whose message might quote the field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from folklore.errors import Refused
from folklore.memory.validation import MAX_BATCH, MAX_CONTENT
from folklore.model import Draft, SecretPolicy
from folklore.text.clean import clean
from folklore.text.secrets.finder import find, redact

# What a marker may stand in; in anything else it would make another value of it, so that is refused in any case.
_TEXTS = frozenset({"content", "summary", "source", "session", "commit"})
_FIXED = frozenset(
    {
        "kind", "language", "idempotency_key", "idempotency_keys", "author", "agent", "trust", "namespace",
        "description", "to", "supersede_reason", "related", "relation", "reason", "before",
    }
)  # fmt: skip
_LISTS = frozenset({"tags", "paths"})
_GUARDED = tuple(name for name in Draft.__dataclass_fields__ if name in _TEXTS | _FIXED | _LISTS | {"metadata"})


def guard(draft: Draft, policy: SecretPolicy, *, field: str = "") -> tuple[Draft, tuple[str, ...]]:
    """The memory without secrets, and what was replaced, as "content: GitHub token". Raises Refused.

    `refuse` raises for the first secret; `redact` puts a marker in its place; `off` looks at nothing. The message names
    the field and the kind and never repeats the secret.
    """
    values: dict[str, object] = {name: getattr(draft, name) for name in _GUARDED}
    if draft.related:
        values["related"] = [link.type for link in draft.related]
    changed, replaced = guard_fields(values, policy, field=field)
    return (replace(draft, **changed), replaced) if changed else (draft, replaced)  # type: ignore[arg-type]


def guard_batch(
    drafts: Sequence[Draft], policy: SecretPolicy, *, many: bool = True
) -> tuple[list[Draft], tuple[str, ...]]:
    """`guard` for a batch; one that is too long is left for the check that refuses it."""
    if len(drafts) > MAX_BATCH:
        return list(drafts), ()
    guarded = [guard(draft, policy, field=f"memories[{place}]." if many else "") for place, draft in enumerate(drafts)]
    return [draft for draft, _ in guarded], tuple(note for _, notes in guarded for note in notes)


def guard_fields(
    values: Mapping[str, object], policy: SecretPolicy, *, field: str = ""
) -> tuple[dict[str, object], tuple[str, ...]]:
    """Those of some fields of a memory that had to be changed, and what was replaced. Raises Refused; see `guard`."""
    if policy == "off":
        return {}, ()
    texts = {name: text for name, value in values.items() if (text := _as_text(value))}
    if not find("\n\n".join(texts.values())):  # once for all fields: most memories are done here
        return {}, ()
    changed: dict[str, object] = {}
    replaced: list[str] = []
    for name in texts:
        kinds: list[str] = []
        value = _redacted(values[name], kinds)
        if not kinds:
            continue
        if policy == "refuse" or name in _FIXED:
            raise Refused(
                f"{field}{name}: holds what looks like a secret ({kinds[0]}); nothing was stored.",
                hint="Leave it out and say where it is kept instead. If it is none, write it as <a placeholder>.",
            )
        changed[name] = value
        replaced += [f"{field}{name}: {kind}" for kind in kinds]
    return changed, tuple(replaced)


def _as_text(value: object) -> str:
    """A field as one text to look through; what is longer than any field may be is refused for that by others."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, Mapping):
        try:
            text = json.dumps(value, ensure_ascii=False, default=str)
        except (TypeError, ValueError, RecursionError):
            return ""  # refused as no JSON
    elif isinstance(value, Sequence):
        text = "\n\n".join(item for item in value if isinstance(item, str))
    else:
        return ""
    text = clean(text).text
    return text if len(text) <= 2 * MAX_CONTENT else ""


def _redacted(value: object, kinds: list[str], name: str = "") -> object:
    """A value with markers in the place of secrets, whose kinds are added to `kinds`."""
    if isinstance(value, str):
        text, found = redact(clean(value).text)
        if not found and name:  # {"password": "…"}: the name says what the value is
            found = tuple(secret.kind for secret in find(json.dumps({name: value}, ensure_ascii=False)))
            text = f"[redacted: {found[0]}]" if found else text
        kinds.extend(found)
        return text if found else value
    if isinstance(value, Mapping):
        return {str(_redacted(str(key), kinds)): _redacted(entry, kinds, str(key)) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_redacted(entry, kinds, name) for entry in value)
    return value
