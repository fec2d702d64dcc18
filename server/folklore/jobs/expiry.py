"""Forget what expired. Recall hides it anyway; forgotten, it is on its way to be erased."""

from __future__ import annotations

from datetime import timedelta

from folklore.db.stores.maintenance import Hygiene
from folklore.jobs.job import Chore, Job

_BATCH = 500


async def work(job: Job) -> None:
    """Forget, softly, memories whose `expires_at` has passed."""
    hygiene = Hygiene(job.database)
    job.count(**({"expired": 0} if job.dry_run else {"forgotten": 0}))
    for notebook in await job.notebooks():
        if job.dry_run:
            job.count(expired=await hygiene.expired(notebook.id, job.now()))
            continue
        while forgotten := await hygiene.forget_expired(notebook.id, job.now(), _BATCH):
            job.count(forgotten=forgotten)
            await job.breathe()


CHORE = Chore("expiry", "what expired is forgotten", timedelta(hours=1), work)
