"""Operations on namespaces: list, create, rename, describe, share, delete, erase, restore."""

from uuid import UUID

from folklore.contract.namespaces import (
    CreateNamespaceRequest,
    DeletedNamespace,
    DeleteNamespaceRequest,
    DescribeNamespaceRequest,
    ErasedNamespaces,
    EraseNamespaceRequest,
    ListNamespacesRequest,
    RenameNamespaceRequest,
    RestoreNamespaceRequest,
    ShareNamespaceRequest,
)
from folklore.db.stores.namespaces import Change, NamespaceInfo
from folklore.errors import Conflict, NotFound
from folklore.memory.context import RequestContext
from folklore.memory.context.secret_guard import guard_fields
from folklore.memory.context.validation import short_text
from folklore.memory.records.forget import refresh_planner_samples
from folklore.model import DEFAULT_LANGUAGE, Namespace
from folklore.new_ids import new_id
from folklore.permissions import require, require_owner, require_writable
from folklore.text import names
from folklore.text.languages import language as language_of

MAX_DESCRIPTION = 2_000


async def list_namespaces(
    context: RequestContext, request: ListNamespacesRequest
) -> tuple[Namespace, ...]:
    """List readable namespaces with counts, or the deleted ones. One statement."""
    return tuple(await context.memory.namespaces.all(deleted=request.deleted))


async def create_namespace(
    context: RequestContext, request: CreateNamespaceRequest
) -> str:
    """Create an empty namespace and return its normalised name. Raises InvalidInput, Conflict if it exists."""
    require_owner(context.caller)
    memory = context.memory
    guard_fields(
        {"namespace": request.name, "description": request.description}, memory.secrets
    )
    name = names.new(request.name, field="name")
    if request.language is None:
        language = DEFAULT_LANGUAGE
    else:
        language = language_of(request.language, field="language")
    description = short_text(request.description, "description", MAX_DESCRIPTION)
    if not await memory.namespaces.create(
        new_id(),
        name,
        language=language,
        description=description,
        caller=context.caller,
        now=context.now,
    ):
        raise Conflict(f"There is a namespace {name!r} already.")
    return name


async def rename_namespace(
    context: RequestContext, request: RenameNamespaceRequest
) -> str:
    """Rename a namespace; its memories stay. Raises NotFound, InvalidInput, Conflict if the name is taken."""
    memory = context.memory
    guard_fields({"to": request.to}, memory.secrets)
    namespace = await administered(context, request.name)
    name = names.new(request.to, field="to")
    if not await _changed(context, "namespace_rename", namespace.id, name=name):
        raise Conflict(
            f"There is a namespace {name!r} already.", hint="Choose another name."
        )
    memory.changed()
    return name


async def describe_namespace(
    context: RequestContext, request: DescribeNamespaceRequest
) -> None:
    """Set or remove the description of a namespace. Raises NotFound, InvalidInput."""
    guard_fields({"description": request.description}, context.memory.secrets)
    namespace = await administered(context, request.name)
    description = short_text(request.description, "description", MAX_DESCRIPTION)
    await _changed(context, "namespace_describe", namespace.id, description=description)


async def share_namespace(
    context: RequestContext, request: ShareNamespaceRequest
) -> None:
    """Mark a namespace that every project asks too, or remove the mark. Raises NotFound."""
    namespace = await administered(context, request.name)
    await _changed(
        context,
        "namespace_share",
        namespace.id,
        shared="never" if request.off else "always",
    )
    context.memory.changed()


async def _changed(
    context: RequestContext, action: Change, namespace: UUID, **new: object
) -> bool:
    return await context.memory.root.namespaces.change(
        action, namespace, caller=context.caller, now=context.now, **new
    )


async def delete_namespace(
    context: RequestContext, request: DeleteNamespaceRequest
) -> DeletedNamespace:
    """Hide a namespace with all its memories; it can be restored for a while. Raises NotFound."""
    namespace = await administered(context, request.name)
    await _changed(context, "namespace_delete", namespace.id)
    context.memory.changed()
    return DeletedNamespace(namespace.name, context.retention)


async def erase_namespace(
    context: RequestContext, request: EraseNamespaceRequest
) -> ErasedNamespaces:
    """Delete a namespace with all its memories permanently; if none of the name is in use, the deleted ones.

    Never both: deleted ones can be restored. Raises NotFound, Conflict if `only` is given and would not match.
    """
    require_owner(context.caller)
    store = context.memory.namespaces
    name = names.normalise(request.name)
    deleted = await store.deleted(name=name)
    in_use = await store.find([name])
    targets = in_use or deleted
    if not targets:
        await administered(context, request.name)  # raises NotFound with similar names
    ids = tuple(item.id for item in targets)
    if request.only is not None and set(request.only) != set(ids):
        hint = "Run the command again to see it."
        raise Conflict(
            f"Another namespace has the name {name!r} since you confirmed; nothing was erased.",
            hint=hint,
        )
    statistics = await store.stats(namespaces=ids, model=None)
    if not request.dry_run:
        for id_ in ids:
            await store.erase(id_, caller=context.caller, now=context.now)
        context.memory.changed()
        await refresh_planner_samples(context.memory)
    memories = sum(item.memories + item.forgotten for item in statistics)
    return ErasedNamespaces(
        targets[0].name, memories, len(deleted) if in_use else 0, ids
    )


async def restore_namespace(
    context: RequestContext, request: RestoreNamespaceRequest
) -> str:
    """Restore the namespace of this name that was deleted last. Raises NotFound, Conflict."""
    require_owner(context.caller)
    last = await restorable(context, request.name)
    if not await _changed(context, "namespace_restore", last.id):
        raise Conflict(
            f"Another namespace has the name {last.name!r} now.",
            hint="Rename that one first.",
        )
    context.memory.changed()
    return last.name


async def restorable(context: RequestContext, name: str) -> Namespace:
    """Return the namespace of this name that was deleted last. Raises NotFound; Conflict if its time is over."""
    deleted = await context.memory.namespaces.deleted(name=names.normalise(name))
    if not deleted:
        hint = "`folklore namespaces list --deleted` shows deleted ones."
        raise NotFound(f"No namespace {name!r} was deleted.", hint=hint)
    last = deleted[0]
    if (
        last.deleted_at is not None
        and last.deleted_at < context.now - context.retention
    ):
        raise Conflict(
            f"The namespace {last.name} was deleted more than {context.retention.days} days ago."
        )
    return last


async def administered(
    context: RequestContext, name: str, *, dry_run: bool = False
) -> NamespaceInfo:
    """Return the namespace of a name in which the caller is an admin. Raises NotFound, Refused."""
    if not dry_run:
        require_writable(context.caller)
    context.memory.changed()  # the cached state may be a second old
    namespace = await context.memory.find_namespace(name)
    require(context.caller, namespace.name, "admin", dry_run=dry_run)
    return namespace
