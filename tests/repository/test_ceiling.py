"""The lines of Folklore and of its tests grow no more."""

import json
import subprocess
from itertools import pairwise

import pytest

from tests import ROOT
from tests.ceiling import FILE, lines

CEILING = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("part", ["shipped", "tests"])
def test_there_are_no_more_lines_than_the_ceiling_allows(part: str) -> None:
    excess = lines()[part] - CEILING[part]

    assert excess <= 0, f"Remove {excess} lines ({part}): as many go as come."


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout


def test_no_commit_raises_the_ceiling() -> None:
    """A source archive has no history, and then nothing to compare."""
    name = FILE.relative_to(ROOT).as_posix()
    commits = git("log", "--reverse", "--format=%H", "--", name).split()
    ceilings = [*(json.loads(git("show", f"{commit}:{name}")) for commit in commits), CEILING]

    for before, after in pairwise(ceilings):
        assert all(after[part] <= before[part] for part in before)
