"""Pay the embedding debt."""

from __future__ import annotations

from datetime import timedelta

from folklore.db.stores.embeddings import Debts
from folklore.jobs.job import Chore, Job
from folklore.memory.models.pending_embeddings import pay


async def work(job: Job) -> None:
    """Give a vector to each memory that owes one in this process' model. Raises EmbedderUnavailable."""
    embedder = job.library.embedder
    if embedder is None:  # search by word only: nothing is owed
        return
    debts = Debts(job.database)
    namespaces = [notebook.id for notebook in await job.notebooks()]
    if job.dry_run:
        model = await embedder.model()
        job.count(owing=sum((await debts.count(namespaces, model.id)).values()))
        return
    job.count(embedded=0)
    async for paid in pay(debts, embedder, namespaces, now=job.now()):
        job.count(embedded=paid.written)
        if paid.wordless:
            job.count(wordless=paid.wordless)
        if left := paid.memories - paid.written - paid.wordless:
            job.count(left=left)
        await job.breathe()


CHORE = Chore("embeddings", "vectors for memories that owe one", timedelta(hours=1), work)
