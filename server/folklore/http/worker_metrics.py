"""Metrics of several workers: each writes its numbers into files of one folder, and who is asked adds them up.

This is prometheus-client's multiprocess mode, which is on while PROMETHEUS_MULTIPROC_DIR names that folder. The library
looks at it when it is imported, so it must stand in the environment before a worker starts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


@contextmanager
def shared_between(workers: int) -> Iterator[None]:
    """A block in which workers are started and live: several share a folder, which is gone afterwards.

    One worker needs none, and a folder that the environment names already is used and left alone.
    """
    if workers < 2 or os.environ.get(_VARIABLE):
        yield
        return
    with TemporaryDirectory(prefix="folklore-metrics-", ignore_cleanup_errors=True) as folder:
        os.environ[_VARIABLE] = folder
        try:
            yield
        finally:
            os.environ.pop(_VARIABLE, None)


def shared_folder(environ: Mapping[str, str]) -> Path | None:
    """The folder of the workers' numbers, if there are several."""
    named = environ.get(_VARIABLE)
    return Path(named) if named else None


def bury_the_dead(folder: Path) -> None:
    """Forget what workers that have ended had open: their connections are no more. What they counted stays."""
    from prometheus_client.multiprocess import mark_process_dead

    for file in folder.glob("gauge_live*_*.db"):
        found = re.fullmatch(r"gauge_live\w*?_(\d+)\.db", file.name)
        if found is not None and not _lives(int(found[1])):
            mark_process_dead(int(found[1]), path=str(folder))  # type: ignore[no-untyped-call]


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's, or no such question here
        return True
    return True
