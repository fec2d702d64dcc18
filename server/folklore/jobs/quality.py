"""Score memories by how often they were of use, fading with time."""

from __future__ import annotations

from datetime import timedelta

from folklore.db.stores.embeddings import FIRST
from folklore.db.stores.maintenance import Hygiene
from folklore.jobs.job import Chore, Job
from folklore.ranking.quality import Decay, protected, quality

_BATCH = 500
# A change of less than this is not worth a new version of the row; recall only asks whether a score is below 0.05.
_STEP = 0.01


async def work(job: Job) -> None:
    """Write the quality of memories that were recalled or confirmed at least once, where it changed visibly."""
    hygiene, decay = Hygiene(job.database), Decay()
    for notebook in await job.notebooks():
        after = FIRST
        while worths := await hygiene.worths(notebook.id, after=after, batch=_BATCH):
            after = worths[-1].id
            scored = [
                (
                    worth,
                    quality(
                        recalls=worth.recalls,
                        confirmations=worth.confirmations,
                        used_at=worth.used_at,
                        now=job.now(),
                        fades=not protected(worth.kind, worth.tags, worth.importance, decay),
                        decay=decay,
                    ),
                )
                for worth in worths
            ]
            changed = [
                (worth, value)
                for worth, value in scored
                if value is not None and (worth.quality is None or abs(worth.quality - value) >= _STEP)
            ]
            written = 0
            if changed and not job.dry_run:
                written = await hygiene.write_qualities(notebook.id, changed)
            job.count(seen=len(worths), **({"to_score": len(changed)} if job.dry_run else {"scored": written}))
            await job.breathe()


CHORE = Chore("quality", "how much each memory proved worth", timedelta(days=1), work)
