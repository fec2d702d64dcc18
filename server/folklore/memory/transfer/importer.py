"""One import: lines become checked memories, wait until they are a batch, are judged and written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from uuid import NAMESPACE_URL, UUID, uuid5

from folklore.db.stores.memories import PreparedMemory
from folklore.db.stores.transfer import Batch, Transfers
from folklore.db.stores.transfer_rows import Arrival, Past
from folklore.errors import ConcurrentChange, FolkloreError, InvalidInput, Refused
from folklore.memory.context import MemoryContext
from folklore.memory.ids import new_id
from folklore.memory.secret_guard import guard_draft, guard_fields
from folklore.memory.transfer.conflicts import Known, OnConflict, Verdict, judge
from folklore.memory.transfer.formats.line import LINE_BYTES, Line
from folklore.memory.transfer.imported_vectors import CarriedVectors
from folklore.memory.transfer.json_lines import HeaderLine, MemoryLine, OtherLine, read_line
from folklore.memory.transfer.key_lines import FIELD as KEYS
from folklore.memory.transfer.pending_links import Ties
from folklore.memory.transfer.pending_successors import Successors
from folklore.memory.transfer.report import Report
from folklore.memory.transfer.tied_lines import TiedLine
from folklore.memory.transfer.vector_lines import FIELD
from folklore.memory.validation import check_cleaned, clean_draft, with_zone
from folklore.model import DEFAULT_LANGUAGE, Caller, Draft, Relation
from folklore.text import names
from folklore.text.clean import clean, digest

# A batch ends at so many memories or so many characters, whatever comes first; so much waits over all namespaces.
BATCH = 500
BATCH_CHARACTERS = 2_000_000
WAITING_CHARACTERS = 8_000_000
_TRIES = 5


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """How to import: `namespace` takes every line, `default` those that name none."""

    default: str
    namespace: str | None = None
    on_conflict: OnConflict = "skip"
    dry_run: bool = False


class Intake:
    """One run over a file: a batch waits in each namespace until it is full."""

    def __init__(
        self,
        library: MemoryContext,
        transfers: Transfers,
        request: ImportRequest,
        *,
        caller: Caller,
        now: Callable[[], datetime],
        zone: tzinfo,
        report: Report,
    ) -> None:
        self._library = library
        self._transfers = transfers
        self._request = request
        self._caller = caller
        self._now = now
        self._zone = zone
        self._report = report
        self._namespace = None if request.namespace is None else names.normalise(request.namespace)
        # One namespace may be spelled in several ways: the first one stands for all.
        self._spelling: dict[str, str] = {}
        self._waiting: dict[str, list[Arrival]] = {}
        self._characters: dict[str, int] = {}
        self._ids: dict[str, UUID] = {}
        # A dry run writes nothing, so it remembers what it would have written.
        self._rehearsed: dict[str, Known] = {}
        self._carried = CarriedVectors(library, transfers, report)
        self._successors = Successors(transfers, self._id_of, self._here, request.dry_run)
        self._ties = Ties(transfers, self._id_of, self._here, request.dry_run)

    async def take(self, number: int, raw: Line) -> None:
        """Read one line; settle what has become a batch."""
        if isinstance(raw, InvalidInput):
            self._report.fail(number, str(raw))
            return
        if not raw.strip():
            return
        try:
            name, line = self._read(number, raw)
        except FolkloreError as error:
            told = self._report.refuse if isinstance(error, Refused) else self._report.fail
            told(number, str(error))
            return
        if isinstance(line, OtherLine):
            self._report.skip(line.type)
        elif isinstance(line, HeaderLine):
            await self._settle_namespaces(line)
        elif isinstance(line, TiedLine):
            if self._ties.take(name, line):
                await self._settle(name)
                await self._ties.settle(name)
        else:
            self._waiting.setdefault(name, []).append(line)
            self._characters[name] = self._characters.get(name, 0) + _size(line)
            if len(self._waiting[name]) >= BATCH or self._characters[name] >= BATCH_CHARACTERS:
                await self._settle(name)
            elif sum(self._characters.values()) >= WAITING_CHARACTERS:
                await self.settle_all()

    async def settle_all(self) -> None:
        """Settle what waits in any namespace."""
        for name in list(self._waiting):
            await self._settle(name)

    async def finish(self) -> None:
        """Settle the rest, and count what was left open at the end of the file."""
        await self.settle_all()
        await self._ties.finish()
        self._report.relations, self._report.revisions = self._ties.relations, self._ties.revisions
        self._report.untied = self._ties.open
        self._report.unlinked = self._successors.open

    def _read(self, number: int, raw: bytes) -> tuple[str, Arrival | HeaderLine | TiedLine | OtherLine]:
        """The line, a memory checked as any other, and its namespace. Raises InvalidInput, Refused."""
        if len(raw) > LINE_BYTES:
            raise InvalidInput("line", f"is longer than {LINE_BYTES:,} bytes.")
        line = read_line(raw)
        if isinstance(line, OtherLine):
            return "", line
        if isinstance(line, HeaderLine):
            for origin in line.namespaces:
                guard_fields({"namespace": origin.name, "description": origin.description}, self._library.secrets)
            return "", line
        if isinstance(line, TiedLine):
            self._guard(line)
            return self._name(line.namespace), self._signed(line)
        for field_name in line.ignored:
            self._report.ignore(field_name)
        guard_fields({"namespace": line.namespace}, self._library.secrets)
        return self._name(line.namespace), self._arrival(number, line)

    def _signed(self, line: TiedLine) -> TiedLine:
        """A relation that another system wrote down without saying who did, or when, is ours, of now."""
        if not isinstance(line.tie, Relation):
            return line
        author, created_at = line.tie.author or self._caller.author, line.tie.created_at or self._now()
        return replace(line, tie=replace(line.tie, author=author, created_at=created_at))

    def _guard(self, line: TiedLine) -> None:
        tie = line.tie
        held: dict[str, object] = {"namespace": line.namespace, "author": tie.author}
        if isinstance(tie, Relation):
            held["relation"] = tie.type
        else:
            held |= {"reason": tie.reason, "before": tie.before, "agent": tie.agent}
        guard_fields(held, self._library.secrets)

    def _name(self, said: str | None) -> str:
        name = self._namespace or names.normalise(said or self._request.default)
        return self._spelling.setdefault(names.key(name), name)

    def _arrival(self, number: int, line: MemoryLine) -> Arrival:
        past, zone, secrets = line.entry.past, self._zone, self._library.secrets
        draft, replaced = guard_draft(clean_draft(line.entry.draft)[0], secrets)
        guard_fields({"agent": past.agent, "trust": past.trust, KEYS: tuple(line.entry.keys)}, secrets)
        self._report.redacted += bool(replaced)
        # An export holds expired memories too, which nobody could store any more.
        checked = check_cleaned(replace(draft, expires_at=None), prefix="", now=self._now(), zone=zone)
        checked = replace(
            checked,
            expires_at=with_zone(draft.expires_at, zone),
            created_at=with_zone(draft.created_at, zone),
            author=_spoken(draft.author),
        )
        past = replace(
            past,
            agent=_spoken(past.agent),
            trust=_spoken(past.trust),
            updated_at=with_zone(past.updated_at, zone),
            forgotten_at=with_zone(past.forgotten_at, zone),
            superseded_at=with_zone(past.superseded_at, zone),
            last_recalled_at=with_zone(past.last_recalled_at, zone),
        )
        value = digest(checked.content)
        carried = line.entry.carried
        if carried is not None and checked.content != line.entry.draft.content:  # made of a text that is not stored
            self._report.ignore(FIELD)
            carried = None
        prepared = PreparedMemory(checked.id or _id_for(checked, past, value), checked, value)
        return Arrival(number, prepared, past, carried, line.entry.keys)

    async def _settle_namespaces(self, header: HeaderLine) -> None:
        if self._namespace is None and not self._request.dry_run:
            for origin in header.namespaces:
                await self._transfers.settle(origin)

    async def _settle(self, name: str) -> None:
        arrivals = self._waiting.pop(name, [])
        self._characters.pop(name, None)
        if not arrivals:
            return
        await self._settle_batch(name, await self._carried.sift(arrivals))
        await self._successors.link(name, arrivals)
        if not self._request.dry_run and (namespace := await self._id_of(name)) is not None:
            await self._transfers.remember(namespace, arrivals)

    async def _settle_batch(self, name: str, arrivals: list[Arrival]) -> None:
        """Judge and write one batch; if Postgres refuses something in it, find the line by halving."""
        try:
            verdict, written = await self._judged_and_written(name, arrivals)
        except InvalidInput as error:
            if len(arrivals) == 1:
                self._report.fail(arrivals[0].line, error.message)
                return
            middle = len(arrivals) // 2
            await self._settle_batch(name, arrivals[:middle])
            await self._settle_batch(name, arrivals[middle:])
            return
        stored = sum(arrival.id in written for arrival in verdict.fresh)
        overwritten = sum(arrival.id in written for arrival in verdict.replacing)
        here_before = len(verdict.fresh) + len(verdict.replacing) + len(verdict.duplicates) - stored - overwritten
        self._report.settle(name, stored=stored, overwritten=overwritten, duplicates=here_before)
        for arrival, reason in verdict.refused:
            self._report.fail(arrival.line, reason)

    async def _judged_and_written(self, name: str, arrivals: Sequence[Arrival]) -> tuple[Verdict, set[UUID]]:
        """What becomes of each, and which are written; looked at anew where others changed the same meanwhile."""
        for _ in range(_TRIES):
            verdict = await self._judge(name, arrivals)
            wanted = {arrival.id for arrival in (*verdict.fresh, *verdict.replacing)}
            if self._request.dry_run or not wanted:
                return verdict, wanted
            with suppress(ConcurrentChange):
                return verdict, await self._write(name, verdict)
        raise ConcurrentChange(
            "Others keep changing what this import writes.",
            hint="Import it again: what is here already is not doubled.",
        )

    async def _judge(self, name: str, arrivals: Sequence[Arrival]) -> Verdict:
        known = self._rehearsed.setdefault(name, Known()) if self._request.dry_run else Known()
        stored = {}
        namespace = await self._id_of(name)
        if namespace is not None:
            known.learn(await self._transfers.present(namespace, arrivals))
            replaceable = [arrival.id for arrival in arrivals if arrival.id in known.ids]
            if self._request.on_conflict == "overwrite" and replaceable:
                stored = await self._transfers.stored(namespace, replaceable)
        return judge(arrivals, known, stored, self._request.on_conflict)

    async def _id_of(self, name: str) -> UUID | None:
        if name not in self._ids:
            origin = await self._transfers.origin(name)
            if origin is None:
                return None
            self._ids[name] = origin.id
        return self._ids[name]

    async def _write(self, name: str, verdict: Verdict) -> set[UUID]:
        vectors, owing = await self._carried.vectors((*verdict.fresh, *verdict.replacing))
        batch = Batch(verdict.fresh, verdict.replacing, vectors)
        written = await self._transfers.write(
            name,
            batch,
            caller=self._caller,
            namespace_id=new_id(),
            language=DEFAULT_LANGUAGE,
            now=self._now(),
            all_or_nothing=self._request.on_conflict == "fail",
        )
        self._report.without_vector += len(written & owing)
        return written

    async def _here(self, name: str, ids: set[UUID]) -> set[UUID]:
        """Which of these memories there are by now, as far as a dry run knows."""
        here = self._rehearsed.get(name, Known()).ids & ids
        namespace = await self._id_of(name)
        if namespace is None or here == ids:
            return here
        return here | await self._transfers.here(namespace, ids - here)


def _size(arrival: Arrival) -> int:
    """How much room it takes while it waits: its characters, and its vector's bytes."""
    return len(arrival.prepared.draft.content) + (0 if arrival.carried is None else len(arrival.carried.vector))


def _spoken(text: str | None) -> str | None:
    return None if text is None else clean(text).text.strip() or None


def _id_for(draft: Draft, past: Past, text: bytes) -> UUID:
    """An id for a line without one. That of a dead text follows from it: nothing else would tell it is here already."""
    alive = past.forgotten_at is None and past.superseded_at is None
    return new_id() if alive else uuid5(NAMESPACE_URL, f"folklore:dead:{text.hex()}:{draft.created_at}:{draft.source}")
