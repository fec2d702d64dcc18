"""Changes of a memory: forms that say before what will happen, and that lose nothing typed."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from folklore.contract.memories import (
    Changes,
    ForgetRequest,
    GetRequest,
    HistoryRequest,
    MemoryDetails,
    RelateRequest,
    RelationChange,
    StoreRequest,
    UndoRequest,
    UpdateRequest,
)
from folklore.contract.namespaces import ListNamespacesRequest
from folklore.contract.recall import RecallRequest
from folklore.errors import Conflict, FolkloreError, InvalidInput
from folklore.model import Draft, Memory
from folklore.permissions import granted_names, require
from folklore.server.console import fields
from folklore.server.console.pages.memory import memory_id, read, shown_changes
from folklore.server.console.visit import Visit, number_of

_CANDIDATES = 10


async def new(visit: Visit) -> Response:
    """Show the form of a new memory."""
    return await _new_form(visit, {}, visit.query.get("project", ""))


async def store(visit: Visit) -> Response:
    """Store a memory, and show it; with what is similar to it, if there is something."""
    texts = fields.given_texts(visit.form)
    project = visit.form.get("project", "").strip()
    try:
        values = fields.stated_values(texts)
        if "content" not in values:
            raise InvalidInput(
                "content", "is empty.", hint="Write one self-contained fact."
            )
        request = StoreRequest(
            memories=(Draft(**values),), namespace=project or None, single=True
        )
        result = await visit.call(request)
    except FolkloreError as error:
        return await _new_form(visit, texts, project, error)
    outcome = result.stored[0]
    if outcome.similar or outcome.status == "duplicate":
        return await visit.render(
            "stored.html", stored=outcome, namespace=result.namespace, note=result.note
        )
    return visit.redirect(f"memories/{outcome.id}", notice="saved")


async def edit(visit: Visit) -> Response:
    """Show the form of a memory."""
    memory = await _writable(visit)
    return await _edit_form(visit, memory, fields.as_texts(memory))


async def save(visit: Visit) -> Response:
    """Change the fields that were changed in the form, if nothing has changed since it was shown."""
    memory = await _writable(visit)
    texts = fields.given_texts(visit.form)
    try:
        if memory.revision != number_of(visit.form.get("revision", ""), "revision"):
            raise Conflict(
                "The memory was changed meanwhile.",
                hint="Look at both states below, and save again.",
            )
        changes, clear = fields.changed_values(fields.as_texts(memory), texts)
        if not changes.model_fields_set and not clear:
            return visit.redirect(f"memories/{memory.id}", notice="nothing")
        await visit.call(_update(memory, changes=changes, clear=clear))
    except FolkloreError as error:
        memory = (await read(visit)).memory
        # What another person changed and this one did not touch stays changed.
        now = fields.as_texts(memory)
        unchanged = {name: now[name] for name in fields.untouched(visit.form, texts)}
        return await _edit_form(visit, memory, texts | unchanged, error, texts)
    return visit.redirect(f"memories/{memory.id}", notice="saved")


async def pin(visit: Visit) -> Response:
    """Pin a memory, or no longer."""
    memory = await _writable(visit)
    pinned = bool(visit.form.get("pinned"))
    changes = Changes.model_validate({"pinned": pinned})
    await visit.call(_update(memory, changes=changes))
    notice = "pinned" if pinned else "unpinned"
    return visit.redirect(f"memories/{memory.id}", notice=notice)


async def add_cue(visit: Visit) -> Response:
    """Add a cue to a memory."""
    memory = await _writable(visit)
    cue = visit.form.get("cue", "").strip()
    if not cue:
        raise InvalidInput(
            "cue", "is empty.", hint="Write what somebody would type who needs it."
        )
    changes = Changes.model_validate({"cues": (*memory.cues, cue)})
    await visit.call(_update(memory, changes=changes))
    return visit.redirect(f"memories/{memory.id}", notice="saved")


async def remove_cue(visit: Visit) -> Response:
    """Remove a cue from a memory; one that was learned is not learned again."""
    memory = await _writable(visit)
    removed = visit.form.get("cue", "")
    others = tuple(cue for cue in memory.cues if cue != removed)
    changes = Changes.model_validate({"cues": others})
    await visit.call(_update(memory, changes=changes))
    return visit.redirect(f"memories/{memory.id}", notice="saved")


async def ask_undo(visit: Visit) -> Response:
    """Show the last change of a memory, which an undo takes back."""
    memory = await _writable(visit)
    history = await visit.call(
        HistoryRequest(id=memory.id, namespaces=(memory.namespace,))
    )
    return await visit.render(
        "memory_undo.html", memory=memory, change=next(shown_changes(history), None)
    )


async def undo(visit: Visit) -> Response:
    """Take back the last change, if nothing has changed since it was shown."""
    memory = await _writable(visit)
    revision = number_of(visit.form.get("revision", ""), "revision")
    await visit.call(
        UndoRequest(id=memory.id, revision=revision, namespaces=(memory.namespace,))
    )
    return visit.redirect(f"memories/{memory.id}", notice="undone")


async def ask_forget(visit: Visit) -> Response:
    """Show what forgetting a memory would do."""
    memory = await _writable(visit)
    preview = await visit.call(
        ForgetRequest(ids=(memory.id,), namespaces=(memory.namespace,), dry_run=True)
    )
    return await visit.render(
        "memory_forget.html", memory=memory, restored=preview.restored
    )


async def forget(visit: Visit) -> Response:
    """Forget a memory."""
    memory = await _writable(visit)
    await visit.call(ForgetRequest(ids=(memory.id,), namespaces=(memory.namespace,)))
    return visit.redirect(f"memories/{memory.id}", notice="forgotten")


async def ask_erase(visit: Visit, error: InvalidInput | None = None) -> Response:
    """Show what erasing a memory would do."""
    details = await _erasable(visit)
    return await visit.render(
        "memory_erase.html", details=details, memory=details.memory, error=error
    )


async def erase(visit: Visit) -> Response:
    """Erase a memory permanently, after the word was typed."""
    memory = (await _erasable(visit)).memory
    if (error := visit.wrong_word("erase")) is not None:
        return await ask_erase(visit, error)
    await visit.call(
        ForgetRequest(ids=(memory.id,), namespaces=(memory.namespace,), erase=True)
    )
    return visit.redirect("search", notice="erased", project=memory.namespace)


async def ask_supersede(visit: Visit) -> Response:
    """Show the form of a memory that supersedes this one."""
    memory = await _writable(visit)
    return await visit.render(
        "memory_supersede.html", memory=memory, content=memory.content, reason=""
    )


async def supersede(visit: Visit) -> Response:
    """Store a memory that supersedes this one, with its kind and tags."""
    memory = await _writable(visit)
    content = visit.form.get("content", "")
    reason = visit.form.get("reason", "").strip()
    draft = Draft(
        content,
        kind=memory.kind,
        tags=memory.tags,
        supersedes=memory.id,
        supersede_reason=reason or None,
    )
    request = StoreRequest(memories=(draft,), namespace=memory.namespace, single=True)
    try:
        result = await visit.call(request)
    except FolkloreError as error:
        return await visit.render(
            "memory_supersede.html",
            error=error,
            memory=memory,
            content=content,
            reason=reason,
        )
    return visit.redirect(f"memories/{result.stored[0].id}", notice="superseded")


async def choose(visit: Visit) -> Response:
    """Show candidates for a relation or a merge, found by a question."""
    memory = await _writable(visit)
    question = visit.query.get("q", "")
    where = (memory.namespace,)
    query = question.strip() or memory.content[:1_000]
    request = RecallRequest(
        query=query, namespaces=where, limit=_CANDIDATES + 1, counted=False
    )
    answer = await visit.call(request)
    found = [result.memory for result in answer.memories]
    candidates = [candidate for candidate in found if candidate.id != memory.id]
    return await visit.render(
        "memory_choose.html",
        merging=visit.request.url.path.endswith("/merge"),
        memory=memory,
        question=question,
        candidates=candidates[:_CANDIDATES],
    )


async def relate(visit: Visit) -> Response:
    """Write a relation from a memory to another one."""
    memory = await _writable(visit)
    try:
        strength = float(visit.form.get("strength", "") or "1")
    except ValueError:
        raise InvalidInput("strength", "must be a number.") from None
    other = await memory_id(visit, visit.form.get("other", ""))
    type_ = visit.form.get("type", "").strip() or "relates_to"
    change = RelationChange(
        from_id=memory.id, to_id=other, type=type_, strength=strength
    )
    await _relate(visit, memory, change)
    return visit.redirect(f"memories/{memory.id}", notice="related")


async def unrelate(visit: Visit) -> Response:
    """Remove a relation."""
    memory = await _writable(visit)
    change = RelationChange(
        from_id=await memory_id(visit, visit.form.get("from", "")),
        to_id=await memory_id(visit, visit.form.get("to", "")),
        type=visit.form.get("type", ""),
        remove=True,
    )
    await _relate(visit, memory, change)
    return visit.redirect(f"memories/{memory.id}", notice="unrelated")


async def merge(visit: Visit) -> Response:
    """Show what a merge would do, and after the confirmation merge another memory into this one."""
    memory = await _writable(visit)
    other_id = await memory_id(visit, visit.form.get("other", ""))
    if not visit.form.get("confirmed"):
        [other] = (await visit.call(GetRequest(ids=(other_id,)))).found
        return await visit.render(
            "memory_merge.html", memory=memory, other=other.memory
        )
    where = (memory.namespace,)
    revision = number_of(visit.form.get("revision", ""), "revision")
    await visit.call(
        UpdateRequest(
            id=memory.id, merge=(other_id,), if_revision=revision, namespaces=where
        )
    )
    return visit.redirect(f"memories/{memory.id}", notice="merged")


async def _relate(visit: Visit, memory: Memory, change: RelationChange) -> None:
    result = await visit.call(
        RelateRequest(relations=(change,), namespaces=(memory.namespace,))
    )
    if result.failed:
        raise InvalidInput("other", result.failed[0].reason)


async def _writable(visit: Visit) -> Memory:
    """Read the memory of the address. Raises NotFound, and Refused if the caller may not change it."""
    memory = (await read(visit)).memory
    require(visit.caller, memory.namespace, "writer")
    return memory


async def _erasable(visit: Visit) -> MemoryDetails:
    """Read the memory of the address. Raises NotFound, and Refused if the caller may not erase it."""
    details = await read(visit)
    require(visit.caller, details.memory.namespace, "admin")
    return details


def _update(memory: Memory, **changes: Any) -> UpdateRequest:
    return UpdateRequest(
        id=memory.id,
        if_revision=memory.revision,
        namespaces=(memory.namespace,),
        **changes,
    )


async def _new_form(
    visit: Visit,
    texts: Mapping[str, str],
    project: str,
    error: FolkloreError | None = None,
) -> Response:
    access = visit.caller.access
    if access is None:
        names = [item.name for item in await visit.call(ListNamespacesRequest())]
    else:
        names = list(granted_names(access, "writer"))
    inputs = fields.form_fields(texts)
    return await visit.render(
        "memory_new.html", fields=inputs, project=project, projects=names, error=error
    )


async def _edit_form(
    visit: Visit,
    memory: Memory,
    texts: Mapping[str, str],
    error: FolkloreError | None = None,
    typed: Mapping[str, str] | None = None,
) -> Response:
    """Show a memory's form; in a conflict also the fields that are not as `typed`."""
    inputs = fields.form_fields(texts)
    now = fields.as_texts(memory)
    differing = []
    if isinstance(error, Conflict) and typed is not None:
        for field in inputs:
            here = typed[field.name]
            there = now[field.name]
            if here.strip() != there.strip():
                differing.append((field.label, there, here, field.text == there))
    return await visit.render(
        "memory_edit.html",
        memory=memory,
        fields=inputs,
        error=error,
        differing=differing,
        shown=fields.digests(now),
    )
