"""Commits whose messages give reasons: each becomes a memory, tied to the commit and the files that it changed."""

import re
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from time import monotonic

from folklore.client.code.git import Commit, Git, GitFailed
from folklore.errors import InvalidInput
from folklore_import.lines import cues_of, id_of, line_of

_SECONDS = 60.0  # for git, in a large repository
_READ = 20_000  # commits, the newest ones
MOST_COMMITS = 1_000  # of a project; older reasons are seldom those of today's code
_CHARACTERS = 120  # of reasons: less repeats the subject
_LONGEST = 8_000
_FILES = 8  # a commit that changes more is about none of them
# Lines that say nothing about the change: trailers, and the subjects of squashed commits.
_TRAILER = re.compile(
    r"(?:[A-Z][A-Za-z]*-)+[a-z-]+: |(?:Fixes|Closes|Refs?|Change-Id|PR|Issue)\b[: ]|\(cherry picked from"
)
_SUBJECT = re.compile(r"\s*+[*-] .{0,72}$")
# What a forge adds to the subject of a merged change.
_NUMBER = re.compile(r"(?<!\s)\s*\([#!]\d+\)$")
_REVERT = re.compile(r"This reverts commit ([0-9a-f]{7,40})")


def commit_lines(root: Path) -> list[bytes]:
    """Return the commits of a repository that say why, the newest first, as lines of an import. Raises InvalidInput."""
    try:
        commits = Git(root, monotonic() + _SECONDS).commits(_READ)
    except GitFailed as error:
        if str(error) == "CalledProcessError":
            hint = "A repository without commits has nothing to import."
        else:
            hint = None
        raise InvalidInput(
            "FILE", f"{root}: the history cannot be read ({error}).", hint=hint
        ) from None
    by_people = (commit for commit in commits if not commit.author.endswith("[bot]"))
    lines = (
        _line(commit, reasons)
        for commit in by_people
        if (reasons := _reasons(commit.body))
    )
    return list(islice(lines, MOST_COMMITS))


def _reasons(body: str) -> str:
    """Return the part of a message's body that explains, empty if it is too short to; a revert needs no more words."""
    lines = (
        line
        for line in body.splitlines()
        if not (_TRAILER.match(line) or _SUBJECT.match(line))
    )
    text = "\n".join(line.rstrip() for line in lines).strip()
    enough = len(text) >= _CHARACTERS or _REVERT.search(text)
    return text[:_LONGEST] if enough else ""


def _line(commit: Commit, reasons: str) -> bytes:
    revert = _REVERT.search(reasons) is not None
    fix = (
        re.match(r"(?:bug|hot)?fix(?:es|ed)?\b", commit.subject, re.IGNORECASE)
        is not None
    )
    return line_of(
        {
            "id": id_of("commit", commit.id),
            "content": f"{commit.subject}\n\n{reasons}",
            "kind": "decision" if revert else "bug" if fix else "note",
            "cues": cues_of(_NUMBER.sub("", commit.subject)),
            "tags": ["git", *(["revert"] if revert else [])],
            "source": f"commit {commit.id[:12]}",
            "commit": commit.id,
            "paths": list(commit.paths) if len(commit.paths) <= _FILES else [],
            "occurred_at": datetime.fromtimestamp(commit.at, UTC).isoformat(),
        }
    )
