"""Every background job, in the order in which one pass runs them: each finds what those before it left."""

from collections import Counter
from datetime import datetime, timedelta
from functools import partial

from folklore.backup import back_up, prune, verify
from folklore.db.stores.callers.console_sessions import ConsoleSessionStore
from folklore.db.stores.callers.principals import Principals
from folklore.db.stores.embeddings import FIRST, VectorIndexes
from folklore.db.stores.events.audit import NOWHERE, Audit
from folklore.db.stores.events.injections import Injections
from folklore.db.stores.events.usage import UsageStore
from folklore.db.stores.postings import PostingStore
from folklore.db.stores.upkeep.maintenance import Maintenance, UsedMemory
from folklore.db.stores.upkeep.planner_statistics import PlannerStatistics
from folklore.jobs.consolidation import consolidate
from folklore.jobs.job import AUTHOR, Job, JobRun
from folklore.memory import Backfill, Pace

_MINUTES = timedelta(minutes=5)
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
# 128 texts take the bundled model 0.1 s, and MiniLM several processors. The next run tries a failing service again.
_PACE = Pace(batch=128, patience=0.0)
_BATCH = 500
_ERASED_AT_ONCE = 100
_ENTRIES = 2_000
# A smaller change of quality is not worth a new version of the row: recall only compares it with 0.05.
_LEAST_CHANGE = 0.01
# A memory recalled once falls below recall's floor of 0.05 after 299 days without use, a memory recalled often after
# 389. A memory never recalled has no quality and stays.
HALF_LIFE = timedelta(days=90)
# Memories with this importance do not fade, nor do decisions; pinned ones are visible at any quality.
_IMPORTANT = 0.7
# Tokens of an identity provider are deleted so long after they expired.
_EXPIRED_TOKENS = timedelta(days=1)


async def make_embeddings(run: JobRun) -> None:
    """Make the pending embeddings in the active model. Raises EmbedderUnavailable."""
    embedder = run.context.embedder
    if embedder is None:  # embedding is switched off
        return
    model = (await embedder.model()).id
    namespaces = [namespace.id for namespace in await run.namespaces()]
    if run.dry_run:
        coverage = await run.context.embeddings.coverage(namespaces, model)
        run.count(pending=sum(item.pending for item in coverage.values()))
        return
    run.count(embedded=0)
    backfill = Backfill(
        run.context.embeddings, embedder, model, now=run.now, pace=_PACE
    )
    async for filled in backfill.batches(namespaces):
        run.count(embedded=filled.embeddings)
        if filled.wordless:
            run.count(wordless=filled.wordless)
        if filled.skipped:
            run.count(skipped=filled.skipped)
        await run.pause()


async def forget_expired(run: JobRun) -> None:
    """Forget expired memories, which recall hides already, so that retention erases them in time."""
    maintenance = Maintenance(run.database)
    if run.dry_run:
        run.count(expired=0)
        for namespace in await run.namespaces():
            expired = await maintenance.count_expired(
                namespace=namespace.id, now=run.now()
            )
            run.count(expired=expired)
        return
    run.count(forgotten=0)
    for namespace in await run.namespaces():
        while count := await maintenance.forget_expired(
            namespace=namespace.id, now=run.now(), batch=_BATCH
        ):
            run.count(forgotten=count)
            await run.pause()


async def apply_retention(run: JobRun) -> None:
    """Erase namespaces and memories deleted before the retention time, and old entries of the logs.

    Superseded memories are history and stay until they are forgotten.
    """
    forgotten_before = run.now() - run.options.retention
    kept_from = run.now() - run.options.keep
    if run.dry_run:
        await _count_retention(run, forgotten_before, kept_from)
        return
    run.count(erased=0, namespaces_erased=0, usage_dropped=0)
    for deleted in await run.context.namespaces.deleted_before(before=forgotten_before):
        # Not if a caller has restored it since it was listed.
        erased_it = await run.context.namespaces.erase(
            deleted, caller=AUTHOR, now=run.now(), deleted_before=forgotten_before
        )
        run.count(namespaces_erased=int(erased_it))
        await run.pause()
    maintenance = Maintenance(run.database)
    usage = UsageStore(run.database)
    injections = Injections(run.database)
    for namespace in await run.namespaces():
        erase = partial(
            maintenance.erase_forgotten, namespace.id, forgotten_before, _ERASED_AT_ONCE
        )
        await run.batches("erased", erase)
        for log in (usage, injections):
            delete = partial(
                log.delete, namespace=namespace.id, before=kept_from, batch=_ENTRIES
            )
            await run.batches("usage_dropped", delete)
    audit = Audit(run.database)
    namespaces = [namespace.id for namespace in await run.context.namespaces.find(None)]
    for id_ in (NOWHERE, *namespaces):
        await injections.delete_sessions(namespace=id_, before=kept_from)
        delete = partial(audit.delete, namespace=id_, before=kept_from, batch=_ENTRIES)
        await run.batches("audit_dropped", delete)
    dropped = await Principals(run.database).delete_expired(
        before=run.now() - _EXPIRED_TOKENS
    )
    if dropped:
        run.count(tokens_dropped=dropped)
    delete = partial(
        ConsoleSessionStore(run.database).delete_expired, now=run.now(), batch=_ENTRIES
    )
    await run.batches("sessions_dropped", delete)


async def _count_retention(
    run: JobRun, forgotten_before: datetime, kept_from: datetime
) -> None:
    maintenance = Maintenance(run.database)
    usage = UsageStore(run.database)
    injections = Injections(run.database)
    if deleted := await run.context.namespaces.deleted_before(before=forgotten_before):
        run.count(namespaces_to_erase=len(deleted))
    for namespace in await run.namespaces():
        run.count(
            to_erase=await maintenance.count_forgotten(
                namespace=namespace.id, before=forgotten_before
            ),
            usage_to_drop=await usage.count(namespace=namespace.id, before=kept_from)
            + await injections.count(namespace=namespace.id, before=kept_from),
        )


async def score_quality(run: JobRun) -> None:
    """Write the quality of every memory that was recalled or confirmed, if it has changed noticeably."""
    maintenance = Maintenance(run.database)
    for namespace in await run.namespaces():
        cursor = FIRST
        while used := await maintenance.used_memories(
            namespace=namespace.id, after=cursor, batch=_BATCH
        ):
            cursor = used[-1].id
            changed = _changed_qualities(used, run.now())
            run.count(seen=len(used))
            if run.dry_run:
                run.count(to_score=len(changed))
            elif changed:
                scored = await maintenance.write_quality(
                    namespace=namespace.id,
                    ids=[memory.id for memory, _ in changed],
                    uses=[
                        memory.recalls + memory.confirmations for memory, _ in changed
                    ],
                    qualities=[value for _, value in changed],
                )
                run.count(scored=scored)
            await run.pause()


def protected(kind: str, importance: float | None) -> bool:
    """Return whether a memory does not fade: a decision or an important one."""
    # Importance is stored in four bytes.
    return kind == "decision" or (
        importance is not None and importance >= _IMPORTANT - 1e-6
    )


def quality(uses: int, *, age: timedelta, fades: bool = True) -> float | None:
    """Return uses / (uses + 1) · 0.5^(age / half-life), from 0 to 1, with the age since the last use.

    None without any use. A use in the future counts as now. What does not `fade` keeps uses / (uses + 1).
    """
    if uses <= 0:
        return None
    unfaded = uses / (uses + 1)
    if not fades:
        return unfaded
    half_lives: float = max(age, timedelta()) / HALF_LIFE
    return float(unfaded * 0.5**half_lives)


def _changed_qualities(
    used: list[UsedMemory], now: datetime
) -> list[tuple[UsedMemory, float]]:
    changed = []
    for memory in used:
        value = quality(
            memory.recalls + memory.confirmations,
            age=now - memory.used_at,
            fades=not protected(memory.kind, memory.importance),
        )
        if value is not None and (
            memory.quality is None or abs(memory.quality - value) >= _LEAST_CHANGE
        ):
            changed.append((memory, value))
    return changed


async def pack_postings(run: JobRun) -> None:
    """Pack the words of new memories, and delete the entries of removed ones where they are many."""
    postings = PostingStore(run.database)
    growing, dead = await postings.due()
    if run.dry_run:
        run.count(namespaces_to_pack=len(growing), namespaces_to_clean=len(dead))
        return
    run.count(packed=0, cleaned=0)
    for namespace in growing:
        await run.batches("packed", partial(postings.pack, namespace))
    for namespace, removed in dead.items():
        async for _ in postings.clean(namespace, removed):
            await run.pause()
        run.count(cleaned=removed)


async def analyze_tables(run: JobRun) -> None:
    """Renew the query planner's statistics, also where autovacuum is switched off."""
    if not run.dry_run:
        await PlannerStatistics(run.database).analyze()
        run.count(analyzed=1)


async def update_indexes(run: JobRun) -> None:
    """Drop the HNSW indexes that are not needed and build the missing one. Raises Refused for an old pgvector."""
    indexes = VectorIndexes(run.database)
    changes = await indexes.index_changes(threshold=run.options.hnsw_from)
    actions = Counter(change.action for change in changes)
    if run.dry_run:
        run.count(to_drop=actions["drop"], to_build=actions["build"])
        return
    run.count(dropped=0, built=0)
    for change in changes:
        if change.action == "build":
            await indexes.require_pgvector()
            await indexes.apply(change)
            run.count(built=1)
        else:
            await indexes.apply(change)
            run.count(dropped=1)
        await run.pause()


async def back_up_daily(run: JobRun) -> None:
    """Back up a database that holds memories, verify the backup, and delete old ones."""
    if run.options.backed_up is None or not await run.namespaces():
        return
    if run.dry_run:
        run.count(to_back_up=1)
        return
    store = await run.options.backed_up()
    archive = await back_up(store)
    run.count(backed_up=1)
    await verify(store, archive)
    run.count(verified=1, deleted=len(prune(store.folder, run.options.backups)))


JOBS: tuple[Job, ...] = (
    Job("embeddings", "make pending embeddings", _HOUR, make_embeddings),
    Job("expiry", "forget expired memories", _HOUR, forget_expired),
    Job(
        "retention",
        "erase what was forgotten long ago, drop old log entries",
        _DAY,
        apply_retention,
    ),
    Job("postings", "pack the words of new memories", _MINUTES, pack_postings),
    Job("quality", "score memories by their use", _DAY, score_quality, optional=True),
    Job(
        "consolidation",
        "sum up similar memories in reflections",
        _DAY,
        consolidate,
        optional=True,
    ),
    Job("statistics", "renew the query planner's statistics", _DAY, analyze_tables),
    Job("indexes", "build an HNSW index for many vectors", _DAY, update_indexes),
    Job(
        "backup",
        "back up the database, verify the backup, delete old ones",
        _DAY,
        back_up_daily,
        optional=True,
    ),
)
BY_NAME = {job.name: job for job in JOBS}
