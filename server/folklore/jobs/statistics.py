"""Keep the planner's statistics near the truth where autovacuum sleeps or is switched off."""

from __future__ import annotations

from datetime import timedelta

from folklore.db.stores.planner_statistics import PlannerStatistics
from folklore.jobs.job import Chore, Job


async def work(job: Job) -> None:
    """Analyze the tables that plans depend on. Document frequencies need no chore: postings hold them exactly."""
    if not job.dry_run:
        await PlannerStatistics(job.database).analyze()
    job.count(tables=3)


CHORE = Chore("statistics", "what the query planner knows of the tables", timedelta(days=1), work)
