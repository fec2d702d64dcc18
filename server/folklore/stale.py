"""Changes of the code since a memory about it. This module imports the standard library alone, as a session does."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Stale:
    """Change of a file after a memory about it: time and commit of the first one, or of the removal if it vanished.

    `moved_to` is the new path of a file that git finds renamed.
    """

    path: str
    since: datetime
    commit: str
    vanished: bool = False
    moved_to: str | None = None
