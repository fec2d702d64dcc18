"""Keep an index over the vectors of each large namespace, and none over others."""

from __future__ import annotations

from datetime import timedelta

from folklore.db.stores.vector_indexes import VectorIndexes
from folklore.jobs.job import Chore, Job


async def work(job: Job) -> None:
    """Drop the indexes that nothing needs, build those that are missing. Raises Refused for a pgvector too old."""
    indexes = VectorIndexes(job.database)
    wanted = await indexes.wanted(job.rules.hnsw_from)
    if job.dry_run:
        job.count(to_drop=len(wanted.drops), to_build=len(wanted.builds))
        return
    job.count(dropped=0, built=0)
    for command in wanted.drops:
        await indexes.carry_out(command)
        job.count(dropped=1)
        await job.breathe()
    if wanted.builds:
        await indexes.require_sound()
    for command in wanted.builds:
        await indexes.carry_out(command)
        job.count(built=1)
        await job.breathe()


CHORE = Chore("indexes", "an index over the vectors of each large namespace", timedelta(days=1), work)
