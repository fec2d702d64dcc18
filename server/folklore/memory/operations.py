"""The use case of each operation. Importing this module imports the database driver and numpy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from folklore.memory import namespaces
from folklore.memory.auth.audit import read_audit
from folklore.memory.auth.caller import describe_caller
from folklore.memory.auth.invitations import invite, join
from folklore.memory.auth.tokens import create_token, list_tokens, revoke_tokens
from folklore.memory.context import RequestContext
from folklore.memory.hooks.events import answer_hook
from folklore.memory.merge_namespaces import merge_namespaces
from folklore.memory.recall.pipeline import recall, search
from folklore.memory.records.forget import forget
from folklore.memory.records.get import get_memories, resolve_ids
from folklore.memory.records.listing import list_memories
from folklore.memory.records.log import read_log
from folklore.memory.records.relate import relate
from folklore.memory.records.retag import rename_tag
from folklore.memory.records.store import store
from folklore.memory.records.update import read_history, undo, update
from folklore.memory.status import read_embeddings, read_jobs, read_stats, read_status

UseCase = Callable[[RequestContext, Any], Awaitable[Any]]

# By the name that its request declares.
USE_CASES: Mapping[str, UseCase] = {
    "store": store, "recall": recall, "search": search, "list": list_memories, "get": get_memories,
    "resolve": resolve_ids, "history": read_history, "update": update, "undo": undo, "forget": forget, "relate": relate,
    "rename_tag": rename_tag, "status": read_status, "stats": read_stats,
    "list_namespaces": namespaces.list_namespaces, "create_namespace": namespaces.create_namespace,
    "rename_namespace": namespaces.rename_namespace, "describe_namespace": namespaces.describe_namespace,
    "share_namespace": namespaces.share_namespace, "merge_namespaces": merge_namespaces,
    "delete_namespace": namespaces.delete_namespace,
    "erase_namespace": namespaces.erase_namespace, "restore_namespace": namespaces.restore_namespace,
    "create_token": create_token, "invite": invite, "list_tokens": list_tokens, "revoke_tokens": revoke_tokens,
    "join": join, "audit": read_audit, "log": read_log, "hook": answer_hook, "caller": describe_caller,
    "jobs": read_jobs, "embeddings": read_embeddings,
}  # fmt: skip
