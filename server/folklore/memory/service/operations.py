"""The use case of each operation, imported at its first call: with the database driver, and numpy if it needs that."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from folklore.memory.context import RequestContext

UseCase = Callable[[RequestContext, Any], Awaitable[Any]]

_NAMESPACES = "namespaces.administration"
# By the name that its request declares: module of folklore.memory, and function, of the operation's name if not given.
_USE_CASES: Mapping[str, str] = {
    "store": "records.store", "recall": "recall.pipeline", "search": "recall.pipeline",
    "explain": "recall.trace",
    "list_presets": "recall.presets", "save_preset": "recall.presets", "delete_preset": "recall.presets",
    "list": "records.listing:list_memories", "get": "records.get:get_memories", "resolve": "records.get:resolve_ids",
    "history": "records.update:read_history", "update": "records.update", "undo": "records.update",
    "forget": "records.forget", "relate": "records.relate", "rename_tag": "records.retag",
    "status": "health.status:read_status", "stats": "health.status:read_stats", "log": "records.log:read_log",
    "review": "records.review:read_review", "overview": "records.overview:read_overview",
    "activity": "records.activity:read_activity", "uses": "records.activity:read_uses",
    "list_namespaces": _NAMESPACES, "create_namespace": _NAMESPACES, "rename_namespace": _NAMESPACES,
    "describe_namespace": _NAMESPACES, "share_namespace": _NAMESPACES, "delete_namespace": _NAMESPACES,
    "erase_namespace": _NAMESPACES, "restore_namespace": _NAMESPACES,
    "merge_namespaces": "namespaces.merge:merge_namespaces",
    "create_token": "auth.tokens", "list_tokens": "auth.tokens", "revoke_tokens": "auth.tokens",
    "invite": "auth.invitations", "join": "auth.invitations", "caller": "auth.caller:describe_caller",
    "create_link": "auth.console_sessions", "checks": "health.checkup:read_checks",
    "backups": "health.status:read_backups", "sizes": "health.status:read_sizes",
    "jobs": "health.status:read_jobs", "embeddings": "health.status:read_embeddings", "audit": "auth.audit:read_audit",
    "statements": "hooks.stated:list_statements", "pause": "hooks.stated",
    "hook": "hooks.events:answer_hook", "injected": "hooks.injected:read_injected",
}  # fmt: skip


@cache
def use_case(operation: str) -> UseCase:
    """Return the use case of an operation."""
    module, _, function = _USE_CASES[operation].partition(":")
    found: UseCase = getattr(import_module(f"folklore.memory.{module}"), function or operation)
    return found


def import_all() -> None:
    """Import every use case, so that no first call of a server has to."""
    for operation in _USE_CASES:
        use_case(operation)
