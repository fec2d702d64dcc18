"""Secret guard: every text is searched for secrets before it is stored.

`guard_draft` takes a whole memory, `guard_fields` single fields. Both search cleaned text, because an invisible
character would hide a key, and run before every check whose error quotes the field.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from folklore.background import stop_if_abandoned
from folklore.errors import Refused
from folklore.model import FIELDS, Draft, SecretPolicy
from folklore.text.clean import cleaned
from folklore.text.secrets.finder import SearchEnded, find, redact

# Texts that may hold a redaction marker. Elsewhere a marker would make another value, so a secret is refused.
_TEXTS = frozenset(name for name, field in FIELDS.items() if field.type == "text")
_FIXED = frozenset(
    {
        "kind", "language", "idempotency_key", "idempotency_keys", "author", "agent", "trust", "namespace",
        "description", "to", "supersede_reason", "related", "relation", "reason", "before",
    }
)  # fmt: skip
_SEARCHED = frozenset(
    {"text", "kind", "language", "tags", "paths", "phrases", "json", "blobs"}
)
# Validation refuses a longer text, so it is not searched.
_LONGEST = 2 * FIELDS["content"].limit
_GUARDED = tuple(
    name
    for name in Draft.__dataclass_fields__
    if name in _FIXED or (name in FIELDS and FIELDS[name].type in _SEARCHED)
)


def guard_draft(
    draft: Draft, policy: SecretPolicy, *, prefix: str = ""
) -> tuple[Draft, tuple[str, ...]]:
    """Return a cleaned memory without secrets, and what was replaced, as "content: GitHub token". Raises Refused.

    `refuse` raises for the first secret; `redact` replaces it by a marker; `off` searches nothing. The error names the
    field and the kind of secret, and never repeats the secret.
    """
    values: dict[str, object] = {name: getattr(draft, name) for name in _GUARDED}
    if draft.related:
        values["related"] = [link.type for link in draft.related]
    changed, replaced = _guarded(values, policy, prefix)
    return (replace(draft, **changed), replaced) if changed else (draft, replaced)  # type: ignore[arg-type]


def guard_fields(
    values: Mapping[str, object], policy: SecretPolicy
) -> tuple[dict[str, object], tuple[str, ...]]:
    """Clean fields, and return the changed ones without secrets, and what was replaced. Raises Refused."""
    try:
        return _guarded(
            {name: cleaned(value) for name, value in values.items()}, policy, ""
        )
    except RecursionError:
        return {}, ()  # validation refuses it


def _guarded(
    values: Mapping[str, object], policy: SecretPolicy, prefix: str
) -> tuple[dict[str, object], tuple[str, ...]]:
    if policy == "off":
        return {}, ()
    texts = {name: text for name, value in values.items() if (text := _as_text(value))}
    if not _may_hold_secret(texts.values()):
        return {}, ()
    changed: dict[str, object] = {}
    replaced: list[str] = []
    for name in texts:
        kinds: list[str] = []
        try:
            value = _redacted(values[name], kinds)
        except SearchEnded:
            raise Refused(
                f"{prefix}{name}: holds more than 1,000 beginnings of keys with line breaks behind them, so that it "
                "could not be searched for secrets, and was not stored.",
                hint="Leave out the list of prefixes, or store it in parts.",
            ) from None
        if not kinds:
            continue
        if policy == "refuse" or name in _FIXED:
            raise Refused(
                f"{prefix}{name}: holds what looks like a secret ({kinds[0]}), so it was not stored.",
                hint="Leave it out and name the place where it is kept. If it is not secret, write <a placeholder>.",
            )
        changed[name] = value
        replaced += [f"{prefix}{name}: {kind}" for kind in kinds]
    return changed, tuple(replaced)


def _may_hold_secret(texts: Iterable[str]) -> bool:
    """Return False if none of the texts holds a secret. One search for all: most memories hold none."""
    try:
        return bool(find("\n\n".join(texts)))
    except SearchEnded:
        return True  # each is searched by itself


def _as_text(value: object) -> str:
    """Return a field as one text to search, empty for one that validation refuses as too long or too deep."""
    text = ""
    if isinstance(value, str):
        text = value
    elif isinstance(value, Mapping):
        try:
            text = json.dumps(value, ensure_ascii=False, default=str)
        except (TypeError, ValueError, RecursionError):
            return ""
    elif isinstance(value, Sequence):
        text = "\n\n".join(item for item in value if isinstance(item, str))
    return text if len(text) <= _LONGEST else ""


def _redacted(value: object, kinds: list[str], name: str = "") -> object:
    """Return a value with markers in place of secrets, and add their kinds to `kinds`."""
    stop_if_abandoned()
    if isinstance(value, str):
        return _redacted_text(value, kinds, name)
    if isinstance(value, Mapping):
        return {
            str(_redacted(str(key), kinds)): _redacted(entry, kinds, str(key))
            for key, entry in value.items()
        }
    if isinstance(value, list | tuple):
        return tuple(_redacted(entry, kinds, name) for entry in value)
    return value


def _redacted_text(value: str, kinds: list[str], name: str) -> str:
    text, secrets = redact(value)
    if not secrets and name:  # {"password": "…"}: the name marks the value as secret
        secrets = tuple(
            secret.kind
            for secret in find(json.dumps({name: value}, ensure_ascii=False))
        )
        text = f"[redacted: {secrets[0]}]" if secrets else text
    kinds.extend(secrets)
    return text
