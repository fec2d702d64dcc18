"""The tools beyond the core: read whole, list, change, forget, relate, ask how it is. They translate only."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field, JsonValue

from folklore import __version__
from folklore.mcp.core_tools import Form, SameFilters, Scope, filters_in
from folklore.mcp.results import result_of
from folklore.mcp.schemas import (
    ForgetOut,
    GetOut,
    Id,
    Ids,
    RecallOut,
    RecordOut,
    RelateOut,
    RelationIn,
    StatusOut,
    Time,
    Words,
)
from folklore.memory import serializers as present
from folklore.memory.request_context import RequestContext
from folklore.model import Relation


async def memory_get(ctx: Context[RequestContext], ids: Ids) -> Annotated[CallToolResult, GetOut]:
    """Read memories whole, by id: every field, relations, revision. Call it before you change one, or when a recalled
    text was cut.
    """
    host = ctx.request_context.lifespan_context
    library = await host.library()
    from folklore.memory.records.get import details

    found = await details(library, ids)
    value: dict[str, Any] = {"memories": [present.detail(item) for item in found.found]}
    if found.missing:
        value["missing"] = [str(id_) for id_ in found.missing]
    return result_of(value)


async def memory_list(
    ctx: Context[RequestContext],
    namespaces: Scope = None,
    filters: SameFilters | None = None,
    sort: Literal["time_desc", "time_asc", "updated_desc", "updated_asc"] = "time_desc",
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
    format: Form = "concise",  # noqa: A002 - the tool's argument is called so
    cursor: str | None = None,
) -> Annotated[CallToolResult, RecallOut]:
    """List memories in order of time, the newest first. For looking through; to find an answer, recall."""
    host = ctx.request_context.lifespan_context
    library = await host.library()
    from folklore.memory.records.listing import list_memories

    found = await list_memories(
        library,
        await library.notebooks(tuple(namespaces or ())),
        filters_in(host, filters),
        limit=limit,
        now=host.now(),
        sort=sort,
        cursor=cursor,
        asked=tuple(namespaces or ()),
    )
    return result_of(present.answer(found, format))


async def memory_update(
    ctx: Context[RequestContext],
    id: Id,  # noqa: A002 - the tool's argument is called so
    content: str | None = None,
    summary: str | None = None,
    kind: str | None = None,
    tags: Words | None = None,
    source: str | None = None,
    session: str | None = None,
    occurred_at: Time | None = None,
    importance: float | None = None,
    confidence: float | None = None,
    priority: int | None = None,
    language: str | None = None,
    expires_at: Time | None = None,
    paths: Words | None = None,
    commit: str | None = None,
    metadata: dict[str, JsonValue] | None = None,
    clear: Annotated[Words | None, Field(description="fields to empty")] = None,
    if_revision: Annotated[int | None, Field(description="refuse if it was changed since this revision")] = None,
) -> Annotated[CallToolResult, RecordOut]:
    """Correct a memory: a wrong word, a missing tag. Only the fields given change; what it was is kept as a revision.
    If the fact itself changed, store the new one with supersedes instead.
    """
    host = ctx.request_context.lifespan_context
    library = await host.library()
    from folklore.memory.records.update import Edit, update

    given = {
        "content": content, "summary": summary, "kind": kind, "tags": tags, "source": source, "session": session,
        "occurred_at": occurred_at, "importance": importance, "confidence": confidence, "priority": priority,
        "language": language, "expires_at": expires_at, "paths": paths, "commit": commit, "metadata": metadata,
    }  # fmt: skip
    changed = await update(
        library,
        id,
        Edit(
            {name: value for name, value in given.items() if value is not None},
            clear=tuple(clear or ()),
            if_revision=if_revision,
        ),
        caller=host.caller(),
        now=host.now(),
        zone=host.zone,
    )
    return result_of(present.record(changed))


async def memory_forget(
    ctx: Context[RequestContext],
    ids: Ids | None = None,
    filters: SameFilters | None = None,
    namespaces: Annotated[Words | None, Field(description="for filters; default: the project's")] = None,
    erase: Annotated[bool, Field(description="delete for good, without a trace")] = False,
    dry_run: Annotated[bool, Field(description="only say what would be forgotten")] = False,
) -> Annotated[CallToolResult, ForgetOut]:
    """Forget memories that are wrong or unwanted, by ids or by filters. A person can undo it for a while
    (`folklore undo`), unless erase. With filters, dry_run first. For facts that changed, store with supersedes instead.
    """
    host = ctx.request_context.lifespan_context
    library = await host.library()
    from folklore.memory.records.forget import ForgetRequest, forget

    scope = tuple(namespaces or ())
    request = ForgetRequest(
        ids=tuple(ids or ()),
        filters=None if filters is None else filters_in(host, filters),
        namespaces=scope or ((host.namespace(),) if filters is not None else ()),
        erase=erase,
        dry_run=dry_run,
    )
    outcome = await forget(library, request, caller=host.caller(), now=host.now())
    return result_of(present.forgotten(outcome, erase=erase, dry_run=dry_run))


async def memory_relate(
    ctx: Context[RequestContext], relations: list[RelationIn]
) -> Annotated[CallToolResult, RelateOut]:
    """Say what memories of one namespace have to do with one another, so that recalling one leads to the other. type:
    relates_to, contradicts, derived_from, part_of, depends_on, causes, exemplifies, prefers_over, precedes, supersedes
    or a word of your own. A relation that is there takes the new strength; remove takes it away.
    """
    host = ctx.request_context.lifespan_context
    library = await host.library()
    from folklore.memory.records.relate import Wish, relate

    outcome = await relate(
        library,
        [
            Wish(Relation(item.from_, item.type, item.to, 1.0 if item.strength is None else item.strength), item.remove)
            for item in relations
        ],
        caller=host.caller(),
        now=host.now(),
    )
    return result_of(present.related(outcome))


async def memory_status(ctx: Context[RequestContext]) -> Annotated[CallToolResult, StatusOut]:
    """Which namespaces there are and how much they hold, and whether everything works. Call it when recall seems to
    miss things or says degraded.
    """
    host = ctx.request_context.lifespan_context
    library = await host.library()
    from folklore.memory.status import status

    return result_of(
        present.status(await status(library, caller=host.caller()), engine=host.engine, version=__version__)
    )
