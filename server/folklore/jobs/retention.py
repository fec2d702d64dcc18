"""Erase for good what was forgotten long enough ago, and drop old entries of the usage and audit logs."""

from __future__ import annotations

from datetime import timedelta

from folklore.db.stores.audit import NOWHERE, Audit
from folklore.db.stores.maintenance import Hygiene
from folklore.db.stores.principals import Principals
from folklore.db.stores.usage import UsageStore
from folklore.jobs.job import Chore, Job
from folklore.model import Caller

UPKEEP = Caller("upkeep")

# Each memory has some fifty postings, found one by one.
_MEMORIES = 100
_ENTRIES = 2_000


async def work(job: Job) -> None:
    """Erase memories, and namespaces, that were forgotten before the retention time, with all that hangs on them.

    What was superseded is history and stays, until it is forgotten itself.
    """
    hygiene, usage, audit = Hygiene(job.database), UsageStore(job.database), Audit(job.database)
    forgotten_before = job.now() - job.rules.retention
    used_before = job.now() - job.rules.usage_kept
    noted_before = job.now() - job.rules.audit_kept
    if not job.dry_run:
        job.count(erased=0, namespaces_erased=0, usage_dropped=0)
    for namespace in await job.library.namespaces.deleted_before(forgotten_before):
        if job.dry_run:
            job.count(namespaces_to_erase=1)
            continue
        # Whoever brought it back since it was listed keeps it.
        erased_it = await job.library.namespaces.erase(
            namespace, caller=UPKEEP, now=job.now(), deleted_before=forgotten_before
        )
        job.count(namespaces_erased=int(erased_it))
        await job.breathe()
    for notebook in await job.notebooks():
        if job.dry_run:
            job.count(
                to_erase=await hygiene.forgotten(notebook.id, forgotten_before),
                usage_to_drop=await usage.old(notebook.id, used_before),
            )
            continue
        while erased := await hygiene.erase_forgotten(notebook.id, forgotten_before, _MEMORIES):
            job.count(erased=erased)
            await job.breathe()
        while dropped := await usage.drop(notebook.id, used_before, _ENTRIES):
            job.count(usage_dropped=dropped)
            await job.breathe()
    if not job.dry_run:
        for namespace in [NOWHERE, *(item.id for item in await job.library.namespaces.find(None))]:
            while dropped := await audit.drop(namespace, noted_before, _ENTRIES):
                job.count(audit_dropped=dropped)
                await job.breathe()
        if gone := await Principals(job.database).drop_expired(job.now() - timedelta(days=1)):
            job.count(tokens_dropped=gone)


CHORE = Chore("retention", "what was forgotten long ago is erased", timedelta(days=1), work)
