"""Where one engine keeps its files: everything hangs on the home directory."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Place:
    """The files of one engine. `home` is absolute; two spellings of one directory have one `tag`."""

    home: Path

    @classmethod
    def below(cls, home: Path) -> Place:
        return cls(Path(os.path.abspath(home.expanduser())))  # noqa: PTH100  (resolve() would follow symbolic links)

    @property
    def engine(self) -> Path:
        return self.home / "engine"

    @property
    def data(self) -> Path:
        return self.engine / "data"

    @property
    def sockets(self) -> Path:
        return self.engine / "run"

    @property
    def password(self) -> Path:
        return self.engine / "password"

    @property
    def lock(self) -> Path:
        """Held by whoever starts, joins or stops the engine."""
        return self.engine / "lock"

    @property
    def alive(self) -> Path:
        """Held by the server's own processes, from birth to death of the last one; see `server.Server.launch`."""
        return self.engine / "alive"

    @property
    def watch(self) -> Path:
        """Held by the one watcher of the engine."""
        return self.engine / "watch"

    @property
    def log(self) -> Path:
        return self.home / "logs" / "engine.log"

    @property
    def tag(self) -> str:
        """A short name for this data directory, for process titles and for a socket directory elsewhere."""
        return "folklore-" + hashlib.sha256(os.fsencode(os.path.realpath(self.data))).hexdigest()[:12]
