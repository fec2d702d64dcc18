"""Export of whole namespaces as JSON Lines, in constant memory."""

from collections.abc import AsyncGenerator

from folklore.contract.filters import ALL
from folklore.contract.transfer import ExportRequest
from folklore.db.stores.transfer import Transfers
from folklore.errors import NotFound
from folklore.memory.context import RequestContext, missing_name
from folklore.memory.transfer.json_lines import header_line, link_line, memory_line
from folklore.text import names


async def export_lines(
    context: RequestContext, request: ExportRequest
) -> AsyncGenerator[str, None]:
    """Yield a header, then of each namespace its memories, relations and revisions, all as of one moment.

    The order of lines and fields is always the same: an export, imported elsewhere and exported again, differs only in
    its header. Raises NotFound for an unknown namespace.
    """
    async with Transfers(context.memory.database).snapshot() as snapshot:
        requested: list[str] = []
        if ALL not in request.namespaces:
            requested = [names.normalise(name) for name in request.namespaces]
        namespaces = await snapshot.namespaces(requested or None)
        known = [namespace.name for namespace in namespaces]
        unknown = missing_name(requested, known)
        if unknown is not None:
            raise NotFound(
                f"There is no namespace {unknown!r}.",
                hint="`folklore namespaces list` shows them.",
            )
        model = await snapshot.active_model() if request.embeddings else None
        yield header_line(context.now, namespaces)
        for namespace in namespaces:
            async for memory in snapshot.memories(namespace.id, model):
                yield memory_line(namespace.name, memory)
            async for relation in snapshot.relations(namespace.id):
                yield link_line(namespace.name, relation)
            async for revision in snapshot.revisions(namespace.id):
                yield link_line(namespace.name, revision)
