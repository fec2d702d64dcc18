"""Runs of faults: python -m tests.faults --runs 10 --seed 1 (or: make faults RUNS=10 SEED=1)."""

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.faults.site import site
from tests.faults.trial import Report, trial
from tests.temporary_engine import temporary_home

_RUNS_OF_A_SITE = 25
_LATE = 5.0  # seconds


def main() -> int:
    """Report each run in a line and all in the last; return 1 if something was violated."""
    parser = argparse.ArgumentParser(
        description="Clients call two servers while faults strike."
    )
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        help="of the first run; each next run has the next one",
    )
    parser.add_argument(
        "--keep",
        type=Path,
        help="folder for the logs of runs that violated something or came back late",
    )
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.runs)
    reports = []
    for first in range(0, len(seeds), _RUNS_OF_A_SITE):
        reports += asyncio.run(
            runs(seeds[first : first + _RUNS_OF_A_SITE], options.keep)
        )
    print(_summary(reports))
    return 1 if any(report.violations for report in reports) else 0


async def runs(seeds: range, keep: Path | None = None) -> list[Report]:
    """Run each seed on one site, and print what happened."""
    reports = []
    with temporary_home() as home, tempfile.TemporaryDirectory() as folder:
        # Postgres, which does not run as root, loads a library from it
        Path(folder).chmod(0o755)
        async with site(Path(folder), home) as struck:
            for seed in seeds:
                report = await trial(struck, seed)
                print("\n  ".join(_lines(report)), flush=True)
                reports.append(report)
                if keep and (report.violations or report.recovery > _LATE):
                    struck.copy_logs(keep / str(seed))
    return reports


def _lines(report: Report) -> Iterator[str]:
    calls = ", ".join(f"{count} {kind}" for kind, count in sorted(report.calls.items()))
    yield (
        f"{report.seed}: {'; '.join(report.faults)}: {calls}; {report.injected} errors of the disk, "
        f"{report.lost_writes} writes not synced, back in {report.recovery:.1f} s, {len(report.violations)} violations"
    )
    yield from report.violations


def _summary(reports: list[Report]) -> str:
    calls = sum((report.calls for report in reports), Counter())
    slowest = max(report.recovery for report in reports)
    violated = sum(len(report.violations) for report in reports)
    return (
        f"{len(reports)} runs, {sum(calls.values())} calls ({calls['200']} answered), "
        f"{sum(report.injected for report in reports)} errors of the disk, "
        f"{sum(report.lost_writes for report in reports)} writes not synced at a loss of power, "
        f"back in at most {slowest:.1f} s: {violated} violations"
    )


if __name__ == "__main__":
    sys.exit(main())
