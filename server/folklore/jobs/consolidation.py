"""Sum up memories that say nearly the same in reflections, and withdraw reflections whose members changed."""

from __future__ import annotations

from datetime import timedelta

from folklore.db.stores.reflections import Reflections
from folklore.jobs.job import Chore, Job
from folklore.memory.records.consolidate import MOST, carry_out, plan
from folklore.ranking.clusters import Clustering


async def work(job: Job) -> None:
    """Namespace by namespace; one in which nothing changed since the last run is passed over."""
    embedder = job.library.embedder
    if embedder is None:  # no vectors, no clusters
        return
    model = await embedder.model()
    reflections, clustering = Reflections(job.database), Clustering()
    for notebook in await job.notebooks():
        mark = f"{model.id} {await reflections.mark(notebook.id, model.id)}"
        if job.notes.get(str(notebook.id)) == mark:
            job.count(unchanged=1)
            continue
        sources = await reflections.sources(notebook.id, model.id, MOST)
        known = await reflections.known(notebook.id)
        planned = await plan(sources, known, clustering, job.breathe)
        job.count(considered=planned.considered, kept=planned.stay)
        if job.dry_run:
            job.count(to_make=len(planned.make), to_withdraw=len(planned.withdraw))
            continue
        made, withdrawn = await carry_out(
            reflections, job.library, notebook, sources, planned, now=job.now(), breathe=job.breathe
        )
        job.count(made=made, withdrawn=withdrawn)
        if made == len(planned.make):  # else somebody changed a member meanwhile: look again next time
            job.notes[str(notebook.id)] = mark


CHORE = Chore("consolidation", "reflections of memories that say nearly the same", timedelta(days=1), work)
