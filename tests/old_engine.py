"""Data of an older major version of Postgres, as an older Folklore would have left it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from folklore.engine.account import account_for, make_programs_readable, make_reachable
from folklore.engine.binaries import find_binaries
from folklore.engine.endpoint import recorded_endpoint
from folklore.engine.files import EnginePaths
from folklore.engine.launcher import Server, _create_files

OLD = 16


@contextmanager
def old_engine(home: Path, major: int = OLD) -> Iterator[str]:
    """Run an engine of the older version in a home for the length of the block; give the address of its database."""
    paths = EnginePaths(home)
    server = Server(paths, find_binaries(major), account_for(paths))
    _create_files(server)
    if not paths.data.exists():
        _create_data(server)
    server.bring_up("64MB")
    endpoint = recorded_endpoint(paths)
    assert endpoint is not None
    try:
        yield endpoint.dsn
    finally:
        server.halt()


def _create_data(server: Server) -> None:
    """Create the data directory: `folklore.engine.cluster` knows the options of its own version only."""
    paths = server.paths
    if server.account:
        make_programs_readable(server.binaries.folder, server.account)
        make_reachable(paths.engine, server.account)
    done = server.binaries.run(
        *("initdb", "--pgdata", "data", "--username", "folklore", "--encoding", "UTF8", "--locale", "C.UTF-8"),
        *("--auth-local", "trust", "--auth-host", "reject", "--no-instructions"),
        account=server.account,
        cwd=paths.engine,
        timeout=120,
    )
    assert done.code == 0, done.output
    with (paths.data / "postgresql.conf").open("a", encoding="utf-8") as file:
        file.write("\ninclude = 'folklore.conf'\n")
