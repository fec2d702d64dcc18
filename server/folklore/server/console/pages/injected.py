"""Injected: the exact texts that hooks gave to assistants, by session, with their tokens and their use."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import Response

from folklore.contract.hooks import InjectedRequest, InjectedText
from folklore.server.console.visit import Visit, number_of

_STEP = 50
_MOST = 1_000


@dataclass(frozen=True, slots=True)
class Session:
    """Session of an assistant, its texts with the newest first, and their numbers."""

    name: str
    author: str
    texts: Sequence[InjectedText]

    @property
    def memories(self) -> int:
        """The number of memories in all texts."""
        return sum(len(text.memories) for text in self.texts)

    @property
    def used(self) -> int:
        """The number of these memories that the assistant used afterwards."""
        used = 0
        for text in self.texts:
            used += sum(memory.used is not None for memory in text.memories)
        return used


async def show(visit: Visit) -> Response:
    """Show the latest injected texts of the caller, or for the owner of all people."""
    project = visit.query.get("project", "")
    session = visit.query.get("session", "")
    everyone = visit.is_owner and bool(visit.query.get("everyone"))
    limit = number_of(visit.query.get("limit") or str(_STEP), "limit", 1, _MOST)
    where = {"namespaces": (project,)} if project else {}
    request = InjectedRequest(
        session=session or None, everyone=everyone, limit=limit, **where
    )
    texts = await visit.call(request)
    return await visit.render(
        "injected.html",
        project=project,
        session=session,
        everyone=everyone,
        sessions=_sessions(texts),
        more=limit + _STEP if len(texts) == limit < _MOST else None,
    )


def _sessions(texts: Sequence[InjectedText]) -> list[Session]:
    """Group texts, the newest of which come first, by session."""
    groups = defaultdict[tuple[str, str], list[InjectedText]](list)
    for text in texts:
        groups[text.author, text.session].append(text)
    return [Session(name, author, group) for (author, name), group in groups.items()]
