"""What a person can do with the memory, each as one call: by commands on this machine, or over HTTP on another.

Arguments and results are frozen values that JSON can carry, so that the same call does for both (http/api.py serves
them, cli/remote.py makes them); each is done by the use case it names.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta, tzinfo
from uuid import UUID

from folklore.db.stores.principals import Token
from folklore.errors import EmbedderUnavailable, InvalidInput
from folklore.memory import namespaces as notebooks
from folklore.memory.auth import tokens
from folklore.memory.auth.audit import AuditLine, AuditRequest, read_audit
from folklore.memory.filters import FilterRequest, filters_of
from folklore.memory.locate import unknown
from folklore.memory.permissions import role_in
from folklore.memory.recall.pipeline import RecallRequest, recall
from folklore.memory.recall.search import search
from folklore.memory.records.forget import ForgetRequest, Forgotten, forget
from folklore.memory.records.get import Details, details
from folklore.memory.records.listing import list_memories
from folklore.memory.records.relate import Related, Wish, relate
from folklore.memory.records.store import StoreResult, store
from folklore.memory.records.update import Edit, history, undo, update
from folklore.memory.request_context import RequestContext
from folklore.memory.requests import Question, Stats, given_value, ranking_of
from folklore.model import Answer, Draft, Filters, Memory, Namespace, Revision, Sort


class Service:
    """One host's memory, at the service of whoever calls."""

    def __init__(self, host: RequestContext) -> None:
        self._host = host

    @property
    def zone(self) -> tzinfo:
        """What times without an offset are read in, and times shown in."""
        return self._host.zone

    async def home(self) -> str:
        """Return the current namespace, for writes that name none. Raises InvalidInput if no source names one."""
        return self._host.namespace()

    async def store(self, draft: Draft, namespace: str | None = None) -> StoreResult:
        """Store one memory, without a namespace in the current one. Fields that only an import may set are refused."""
        for name in ("id", "author", "created_at", "position"):
            if getattr(draft, name) is not None:
                raise InvalidInput(name, "comes from the server.", hint="Only an import may say it.")
        library = await self._host.library()
        return await store(
            library,
            namespace or self._host.namespace(),
            [draft],
            caller=self._host.caller(),
            now=self._host.now(),
            zone=self._host.zone,
            many=False,
        )

    async def recall(self, question: Question) -> Answer:
        """Find what is known about a question, best first."""
        request = RecallRequest(
            query=question.query,
            namespaces=question.namespaces,
            limit=question.limit,
            filters=self._filters(question.filters),
            ranking=ranking_of(question.ranking),
            sort=question.sort,
            max_tokens=question.max_tokens,
            cursor=question.cursor,
            explain=question.explain,
        )
        answer = await recall(await self._host.library(), request, now=self._host.now())
        self._answered(answer, question.query)
        return answer

    async def search(
        self,
        query: str,
        namespaces: tuple[str, ...] = (),
        limit: int = 10,
        filters: FilterRequest = FilterRequest(),
        cursor: str | None = None,
    ) -> Answer:
        """Find memories by exact words."""
        answer = await search(
            await self._host.library(),
            query,
            namespaces=namespaces,
            limit=limit,
            filters=self._filters(filters),
            cursor=cursor,
            now=self._host.now(),
        )
        self._answered(answer, query)
        return answer

    async def listing(
        self,
        namespaces: tuple[str, ...] = (),
        filters: FilterRequest = FilterRequest(),
        limit: int = 20,
        sort: Sort = "time_desc",
        cursor: str | None = None,
    ) -> Answer:
        """Memories in order of time."""
        library = await self._host.library()
        return await list_memories(
            library,
            await library.notebooks(namespaces),
            self._filters(filters),
            limit=limit,
            now=self._host.now(),
            sort=sort,
            cursor=cursor,
            asked=namespaces,
        )

    async def show(self, ids: tuple[UUID, ...]) -> Details:
        """Memories whole; those that were forgotten too, for who could bring them back."""
        whole = await details(await self._host.library(), ids, forgotten=True)
        found = tuple(item for item in whole.found if not self._hidden(item.memory))
        seen = {item.memory.id for item in found}
        return Details(found, tuple(id_ for id_ in dict.fromkeys(ids) if id_ not in seen))

    async def history(self, memory: UUID, namespaces: tuple[str, ...] = ()) -> tuple[Memory, tuple[Revision, ...]]:
        """A memory and its changes, the last one first; of one that was forgotten for who could bring it back."""
        whole = await history(await self._host.library(), memory, namespaces=namespaces)
        if self._hidden(whole[0]):
            raise unknown([memory])
        return whole

    async def update(self, memory: UUID, edit: Edit, namespaces: tuple[str, ...] = ()) -> Memory:
        """Change fields of a memory."""
        return await update(
            await self._host.library(),
            memory,
            replace(edit, fields={name: given_value(name, value) for name, value in edit.fields.items()}),
            caller=self._host.caller(),
            now=self._host.now(),
            zone=self._host.zone,
            namespaces=namespaces,
        )

    async def undo(
        self, memory: UUID, namespaces: tuple[str, ...] = (), revision: int | None = None
    ) -> tuple[Memory, Revision]:
        """Take back the last change of a memory, or none unless it is at `revision`."""
        return await undo(
            await self._host.library(),
            memory,
            caller=self._host.caller(),
            now=self._host.now(),
            retention=self._host.retention,
            namespaces=namespaces,
            revision=revision,
        )

    async def forget(
        self,
        ids: tuple[UUID, ...] = (),
        filters: FilterRequest = FilterRequest(),
        namespaces: tuple[str, ...] = (),
        erase: bool = False,
        dry_run: bool = False,
        shown: tuple[UUID, ...] | None = None,
    ) -> Forgotten:
        """Forget memories by id, or those that filters let through, of these only what was `shown` if that is given.

        Filters without namespaces look in the current one.
        """
        given = self._filters(filters)
        request = ForgetRequest(
            ids=ids,
            filters=given if not ids or not given.empty else None,
            namespaces=namespaces if ids or namespaces else (self._host.namespace(),),
            erase=erase,
            dry_run=dry_run,
            shown=shown,
        )
        return await forget(await self._host.library(), request, caller=self._host.caller(), now=self._host.now())

    async def relate(self, wishes: tuple[Wish, ...], namespaces: tuple[str, ...] = ()) -> Related:
        """Say what memories have to do with one another."""
        library, caller = await self._host.library(), self._host.caller()
        return await relate(library, wishes, caller=caller, now=self._host.now(), namespaces=namespaces)

    async def namespaces(self, deleted: bool = False) -> tuple[Namespace, ...]:
        """The namespaces, or those that were deleted."""
        return tuple(await (await self._host.library()).namespaces.all(deleted=deleted))

    async def create_namespace(self, name: str, language: str | None = None, description: str | None = None) -> str:
        """Make an empty namespace; its name as it is spelled."""
        return await notebooks.create(
            await self._host.library(),
            name,
            caller=self._host.caller(),
            now=self._host.now(),
            language=language,
            description=description,
        )

    async def rename_namespace(self, name: str, to: str) -> str:
        """Give a namespace another name."""
        library, caller = await self._host.library(), self._host.caller()
        return await notebooks.rename(library, name, to, caller=caller, now=self._host.now())

    async def describe_namespace(self, name: str, description: str | None = None) -> None:
        """Say what a namespace is for."""
        library, caller = await self._host.library(), self._host.caller()
        await notebooks.describe(library, name, description, caller=caller, now=self._host.now())

    async def delete_namespace(self, name: str) -> tuple[str, timedelta]:
        """Delete a namespace; its name, and for how long it can be restored."""
        library, caller = await self._host.library(), self._host.caller()
        gone = await notebooks.delete(library, name, caller=caller, now=self._host.now())
        return gone, self._host.retention

    async def erase_namespace(
        self, name: str, dry_run: bool = False, if_ids: tuple[UUID, ...] | None = None
    ) -> notebooks.Erased:
        """Delete a namespace for good, or only tell what that would take; with `if_ids` nothing but these."""
        library, caller, now = await self._host.library(), self._host.caller(), self._host.now()
        return await notebooks.erase(library, name, caller=caller, now=now, dry_run=dry_run, if_ids=if_ids)

    async def restore_namespace(self, name: str) -> str:
        """Bring back a deleted namespace."""
        return await notebooks.restore(
            await self._host.library(),
            name,
            caller=self._host.caller(),
            now=self._host.now(),
            retention=self._host.retention,
        )

    async def stats(self, namespaces: tuple[str, ...] = ()) -> Stats:
        """Count what is stored."""
        library = await self._host.library()
        model = None
        with suppress(EmbedderUnavailable):  # then it is not known which memories owe a vector
            model = None if library.embedder is None else await library.embedder.model()
        found = await library.namespaces.stats(
            [notebook.id for notebook in await library.notebooks(namespaces)], None if model is None else model.id
        )
        named = None if model is None else f"{model.provider}/{model.name}/{model.dimensions}"
        return Stats(tuple(found), named, self._host.engine)

    async def create_token(self, request: tokens.TokenRequest) -> tokens.Made:
        """Make a token."""
        library = await self._host.library()
        return await tokens.create_token(library, request, caller=self._host.caller(), now=self._host.now())

    async def tokens(self, principal: str | None = None, every: bool = False) -> tuple[Token, ...]:
        """The tokens, without their secrets."""
        found = await tokens.list_tokens(
            await self._host.library(),
            caller=self._host.caller(),
            now=self._host.now(),
            principal=principal,
            every=every,
        )
        return tuple(found)

    async def revoke_tokens(
        self, ids: tuple[UUID, ...] = (), principal: str | None = None
    ) -> tuple[tuple[UUID, str], ...]:
        """Revoke tokens, at once."""
        revoked = await tokens.revoke_tokens(
            await self._host.library(),
            ids,
            caller=self._host.caller(),
            now=self._host.now(),
            principal=principal,
        )
        return tuple(revoked)

    async def audit(self, request: AuditRequest) -> tuple[AuditLine, ...]:
        """Who wrote what, and who was refused, newest first."""
        return await read_audit(await self._host.library(), request, caller=self._host.caller(), now=self._host.now())

    def _hidden(self, memory: Memory) -> bool:
        """Whether it was forgotten, and this caller could not bring it back."""
        caller, forgotten = self._host.caller(), memory.forgotten_at is not None
        return forgotten and caller.access is not None and role_in(caller, memory.namespace) == "reader"

    def _filters(self, request: FilterRequest) -> Filters:
        return filters_of(request, now=self._host.now(), zone=self._host.zone)

    def _answered(self, answer: Answer, query: str) -> None:
        self._host.usage.record(answer, query, caller=self._host.caller(), now=self._host.now())
