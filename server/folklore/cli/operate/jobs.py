"""`folklore jobs`: run the background jobs by hand, and show their state."""

from dataclasses import asdict
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

import click

from folklore.cli.context import call, zone_of
from folklore.cli.options import context_and_json
from folklore.cli.output import print_either, print_rows, row_of
from folklore.contract.jobs import JobsInfo, JobsRequest, RunJobsRequest
from folklore.contract.requests import without_nulls

if TYPE_CHECKING:
    from folklore.jobs.job import Job

# Of the last run.
_RUN = "holder started_at last_run=finished_at outcome seconds done next_due error"

jobs = click.Group("jobs", help="Background jobs, which a server runs by itself.")


@jobs.command()
@click.argument("names", nargs=-1, metavar="[JOB]...")
@click.option("--dry-run", is_flag=True, help="Count the work; change nothing.")
@context_and_json
def run(ctx: click.Context, names: tuple[str, ...], dry_run: bool) -> int:
    """Run each JOB now, due or not; without JOB, those that a server runs.

    A job that another process runs is skipped (busy). If one fails, the others still run, and the exit code is 1.
    """
    rows: list[Any] = []
    has_failed = False
    for report in call(ctx, RunJobsRequest(jobs=names, dry_run=dry_run)):
        has_failed |= report.outcome == "failed"
        row = asdict(report)
        row["seconds"] = round(report.seconds, 3)
        rows.append(without_nulls(row))
    columns = ["job", "outcome", "done", "seconds", "error"]
    print_either({"jobs": rows}, lambda: print_rows(rows, columns))
    return int(has_failed)


@jobs.command()
@context_and_json
def status(ctx: click.Context) -> None:
    """Show the last run of each job and when it is due again."""
    from folklore.jobs.definitions import JOBS  # imports the database driver

    info = call(ctx, JobsRequest())
    zone = zone_of(ctx)
    rows = [_row(job, info, zone) for job in JOBS]
    columns = ["job", "state", "last_run", "seconds", "done", "next_due", "error"]
    print_either({"jobs": rows}, lambda: print_rows(rows, columns))


def _row(job: "Job", info: JobsInfo, zone: tzinfo) -> dict[str, Any]:
    state = info.row(job.name)
    scheduled = job.name in info.scheduled
    row: dict[str, Any] = {
        "job": job.name,
        "about": job.about,
        "every_seconds": int(job.every.total_seconds()),
        "scheduled": scheduled,
        "state": info.state(job.name),
    }
    if state is not None:
        row |= row_of(state, _RUN, zone)
        row["done"] = dict(state.done)
        if state.seconds is not None:
            row["seconds"] = round(state.seconds, 3)
        if not scheduled:
            del row["next_due"]
    return {name: value for name, value in row.items() if value is not None}
