"""Secret guard: every text is searched for secrets before it is stored.

`guard` takes whole memories, `guard_fields` single fields. Both search cleaned text, so that invisible characters do
not hide a key, and run before any other check, whose message might quote the field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from folklore.errors import Refused
from folklore.memory.validation import MAX_BATCH, MAX_CONTENT, field_prefixes
from folklore.model import FIELDS, Draft, SecretPolicy
from folklore.text.clean import clean
from folklore.text.secrets.finder import find, redact

# Texts that may hold a redaction marker. Elsewhere a marker would make another value, so a secret is refused.
_TEXTS = frozenset(name for name, field in FIELDS.items() if field.type == "text")
_FIXED = frozenset(
    {
        "kind", "language", "idempotency_key", "idempotency_keys", "author", "agent", "trust", "namespace",
        "description", "to", "supersede_reason", "related", "relation", "reason", "before",
    }
)  # fmt: skip
_SEARCHED = frozenset({"text", "kind", "language", "tags", "paths", "json"})
_GUARDED = tuple(
    name for name in Draft.__dataclass_fields__ if name in _FIXED or (name in FIELDS and FIELDS[name].type in _SEARCHED)
)


def guard(draft: Draft, policy: SecretPolicy, *, field: str = "") -> tuple[Draft, tuple[str, ...]]:
    """Return the memory without secrets, and what was replaced, as "content: GitHub token". Raises Refused.

    `refuse` raises for the first secret; `redact` replaces it by a marker; `off` searches nothing. The error names the
    field and the kind of secret, and never repeats the secret.
    """
    values: dict[str, object] = {name: getattr(draft, name) for name in _GUARDED}
    if draft.related:
        values["related"] = [link.type for link in draft.related]
    changed, replaced = guard_fields(values, policy, field=field)
    return (replace(draft, **changed), replaced) if changed else (draft, replaced)  # type: ignore[arg-type]


def guard_batch(
    drafts: Sequence[Draft], policy: SecretPolicy, *, single: bool = False
) -> tuple[list[Draft], tuple[str, ...]]:
    """Guard each memory of a batch. A batch that is too long is returned as it is, for validation to refuse."""
    if len(drafts) > MAX_BATCH:
        return list(drafts), ()
    prefixes = field_prefixes(len(drafts), single=single)
    guarded = [guard(draft, policy, field=prefix) for draft, prefix in zip(drafts, prefixes, strict=True)]
    return [draft for draft, _ in guarded], tuple(note for _, notes in guarded for note in notes)


def guard_fields(
    values: Mapping[str, object], policy: SecretPolicy, *, field: str = ""
) -> tuple[dict[str, object], tuple[str, ...]]:
    """Return the fields that were changed, and what was replaced. Raises Refused; see `guard`."""
    if policy == "off":
        return {}, ()
    texts = {name: text for name, value in values.items() if (text := _as_text(value))}
    if not find("\n\n".join(texts.values())):  # one search for all fields: most memories hold no secret
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
                hint="Leave it out and name the place where it is kept. If it is not secret, write <a placeholder>.",
            )
        changed[name] = value
        replaced += [f"{field}{name}: {kind}" for kind in kinds]
    return changed, tuple(replaced)


def _as_text(value: object) -> str:
    """Return a field as one text to search, empty for a text that validation refuses as too long."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, Mapping):
        try:
            text = json.dumps(value, ensure_ascii=False, default=str)
        except (TypeError, ValueError, RecursionError):
            return ""  # validation refuses it
    elif isinstance(value, Sequence):
        text = "\n\n".join(item for item in value if isinstance(item, str))
    else:
        return ""
    text = clean(text).text
    return text if len(text) <= 2 * MAX_CONTENT else ""


def _redacted(value: object, kinds: list[str], name: str = "") -> object:
    """Return a value with markers in place of secrets, and add their kinds to `kinds`."""
    if isinstance(value, str):
        text, found = redact(clean(value).text)
        if not found and name:  # {"password": "…"}: the name marks the value as secret
            found = tuple(secret.kind for secret in find(json.dumps({name: value}, ensure_ascii=False)))
            text = f"[redacted: {found[0]}]" if found else text
        kinds.extend(found)
        return text if found else value
    if isinstance(value, Mapping):
        return {str(_redacted(str(key), kinds)): _redacted(entry, kinds, str(key)) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_redacted(entry, kinds, name) for entry in value)
    return value
