"""Data of an older major version of Postgres in a home, as an earlier Folklore would have left it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from folklore.engine.account import account_for, make_reachable
from folklore.engine.binaries import installed_binaries
from folklore.engine.cluster import AUTHENTICATION
from folklore.engine.endpoint import USER, recorded_endpoint
from folklore.engine.files import EnginePaths
from folklore.engine.launcher import Server, create_files
from folklore.engine.lock import locked

OLDER = 16
_SECONDS = 60.0


@contextmanager
def older_engine(home: Path) -> Iterator[str]:
    """Run a server of Postgres 16 over a home, created if it is missing, and give the address of its database."""
    paths = EnginePaths(home)
    binaries = installed_binaries(OLDER, ("postgres",))
    assert binaries is not None
    server = Server(paths, binaries, account_for(paths), OLDER)
    create_files(server)
    with locked(paths.lock, _SECONDS):
        if not paths.data.exists():
            _create(server)
        server.bring_up("64MB")
    endpoint = recorded_endpoint(paths)
    assert endpoint is not None
    try:
        yield endpoint.dsn
    finally:
        with locked(paths.lock, _SECONDS):
            server.end()


def _create(server: Server) -> None:
    """Run initdb as this version does, but for the locale: the provider `builtin` came with Postgres 17."""
    if server.account:
        make_reachable(server.paths.engine, server.account)
    outcome = server.binaries.run(
        "initdb",
        *(
            "--pgdata",
            server.paths.data.name,
            "--username",
            USER,
            "--encoding",
            "UTF8",
            "--locale",
            "C.UTF-8",
        ),
        *(
            "--data-checksums",
            "--no-instructions",
            "--set",
            "huge_pages=off",
            "--no-sync",
        ),
        *AUTHENTICATION,
        account=server.account,
        cwd=server.paths.engine,
        timeout=_SECONDS,
    )
    assert outcome.code == 0, outcome.output
    with (server.paths.data / "postgresql.conf").open("a", encoding="utf-8") as file:
        file.write("\ninclude = 'folklore.conf'\n")
