"""Checks of the lines of an import: what a caller may state of a memory or a link, cleaned, without secrets."""

from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from folklore.contract.lines import SourceLine
from folklore.contract.transfer import Report
from folklore.db.stores.transfer import ModelVector, Past, TransferredMemory
from folklore.memory.context import RequestContext
from folklore.memory.context.secret_guard import guard_draft, guard_fields
from folklore.memory.context.validation import (
    check_cleaned,
    clean_draft,
    detected_language,
)
from folklore.memory.transfer.json_lines import Header, LineValue, cleaned
from folklore.model import Draft, Relation, Revision
from folklore.new_ids import new_id
from folklore.text.clean import digest
from folklore.text.dates.zones import with_zone

_PAST_TIMES = (
    "updated_at",
    "forgotten_at",
    "superseded_at",
    "last_recalled_at",
    "changed_at",
)


class LineChecks:
    """Checks of what lines state, as a caller may. Each raises InvalidInput, or Refused for a secret."""

    def __init__(self, context: RequestContext, report: Report) -> None:
        self.context = context
        self.report = report

    def check_header(self, header: Header) -> None:
        """Refuse secrets in the namespaces of a header."""
        for namespace in header:
            fields = {
                "namespace": namespace.name,
                "description": namespace.description,
            }
            guard_fields(fields, self.context.memory.secrets)

    def checked_memory(
        self, source: SourceLine, memory: TransferredMemory
    ) -> TransferredMemory:
        """Return a memory as it is stored, with an id, its digest and its place; a redaction is counted."""
        past = memory.past
        secrets = self.context.memory.secrets
        draft, replaced = guard_draft(clean_draft(memory.draft)[0], secrets)
        guard_fields(
            {
                "author": draft.author,
                "agent": past.agent,
                "trust": past.trust,
                "changed_by": past.changed_by,
                "idempotency_keys": tuple(memory.keys),
            },
            secrets,
        )
        self.report.redacted += bool(replaced)
        checked, text = self._checked_draft(draft, past)
        past = self._checked_past(past)
        return TransferredMemory(
            checked,
            past,
            self._usable_vector(memory, checked, source),
            memory.keys,
            text,
            source.number,
            detected_language(checked),
            source.place(),
        )

    def _checked_draft(self, draft: Draft, past: Past) -> tuple[Draft, bytes]:
        """Return a cleaned draft with what an import may state beyond a store, and the digest of its text."""
        context = self.context
        # An export has expired memories too, which a store would refuse.
        checked = check_cleaned(
            replace(draft, expires_at=None),
            prefix="",
            now=context.now,
            zone=context.zone,
        )
        text = digest(checked.content)
        checked = replace(
            checked,
            id=checked.id or _new_id(checked, past, text),
            expires_at=with_zone(draft.expires_at, context.zone, "expires_at"),
            created_at=_past_time(draft.created_at, "created_at", context),
            author=cleaned(draft.author) or None,
        )
        return checked, text

    def _checked_past(self, past: Past) -> Past:
        times: dict[str, Any] = {}
        for name in _PAST_TIMES:
            times[name] = _past_time(getattr(past, name), name, self.context)
        return replace(
            past,
            agent=cleaned(past.agent) or None,
            trust=cleaned(past.trust) or None,
            changed_by=cleaned(past.changed_by) or None,
            **times,
        )

    def _usable_vector(
        self, memory: TransferredMemory, checked: Draft, source: SourceLine
    ) -> ModelVector | None:
        """Return the vector of a memory, without that of other cues; None for the vector of another text."""
        vector = memory.vector
        if vector is None:
            return None
        if checked.content != memory.draft.content:
            self.report.ignore("embedding", position_of(source))
            return None
        has_its_cues = bool(checked.cues) and checked.cues == memory.draft.cues
        if vector.cues is not None and not has_its_cues:
            self.report.ignore("embedding.cues", source.place())
            return replace(vector, cues=None)
        return vector

    def checked_link(self, link: Relation | Revision) -> Relation | Revision:
        """Return a link with an author and a time."""
        context = self.context
        if isinstance(link, Revision):
            fields = {
                "author": link.author,
                "agent": link.agent,
                "reason": link.reason,
                "before": link.before,
            }
            guard_fields(fields, context.memory.secrets)
            return link
        guard_fields(
            {"author": link.author, "relation": link.type}, context.memory.secrets
        )
        # Relations of other systems may lack both.
        author = link.author or context.caller.author
        created_at = _past_time(link.created_at, "created_at", context) or context.now
        return replace(link, author=author, created_at=created_at)


def position_of(source: SourceLine) -> str:
    """Return the file and the line in it, or the number of the line where it is from no file."""
    return source.place() or f"line {source.number}"


def _past_time(
    value: datetime | None, field: str, context: RequestContext
) -> datetime | None:
    """Return a time of the past in the caller's zone, now for one in the future: the clock of its source was ahead."""
    aware = with_zone(value, context.zone, field)
    if aware is None:
        return None
    return min(aware, context.now)


def stated_by_member(value: LineValue) -> LineValue:
    """Return what a caller with grants may state: not who wrote what, nor what became of it, nor its vector."""
    if isinstance(value, tuple):
        return ()
    if isinstance(value, Relation):
        return replace(value, author=None)
    if isinstance(value, TransferredMemory):
        past = value.past
        if past.forgotten_at or past.superseded_at or past.superseded_by:
            return "forgotten or superseded memory"
        draft = replace(value.draft, author=None)
        return replace(value, draft=draft, past=Past(), vector=None)
    if isinstance(value, Revision):
        return "revision"
    return value


def _new_id(draft: Draft, past: Past, text: bytes) -> UUID:
    """Return an id for a line without one: for a dead memory it follows from the line, so that it is known again."""
    if past.forgotten_at is None and past.superseded_at is None:
        return new_id()
    name = f"folklore:dead:{text.hex()}:{draft.created_at}:{draft.source}"
    return uuid5(NAMESPACE_URL, name)
