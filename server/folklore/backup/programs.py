"""pg_dump and pg_restore of the server's own major version, fed and read through pipes."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from folklore.engine import installed_binaries
from folklore.errors import FolkloreError, NotFound

_CHUNK = 1 << 20
_SHOWN_LINES = 5


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of one major version of Postgres, in one folder."""

    folder: Path

    async def dump(self, dsn: str, snapshot: str, out: BinaryIO) -> None:
        """Write a database as it is in a snapshot, in pg_dump's custom format."""
        arguments = [
            "--format=custom",
            "--no-password",
            "--lock-wait-timeout=60s",
            f"--snapshot={snapshot}",
        ]
        async with self._running(
            "pg_dump", arguments, dsn, stdout=asyncio.subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            while chunk := await process.stdout.read(_CHUNK):
                await asyncio.to_thread(out.write, chunk)

    async def restore(self, dsn: str, source: BinaryIO) -> None:
        """Read a dump into an empty database."""
        arguments = ["--no-owner", "--exit-on-error", "--no-password"]
        async with self._running(
            "pg_restore", arguments, dsn, stdin=asyncio.subprocess.PIPE
        ) as process:
            assert process.stdin is not None
            # its exit code has the reason
            with suppress(BrokenPipeError, ConnectionResetError):
                while chunk := await asyncio.to_thread(source.read, _CHUNK):
                    process.stdin.write(chunk)
                    await process.stdin.drain()
            process.stdin.close()

    async def copy(
        self,
        dsn: str,
        snapshot: str | None,
        newer: Programs,
        target: str,
        *,
        create: bool = True,
    ) -> None:
        """Copy a database, as it is in a snapshot or now, to another server, with its owners, settings and privileges.

        The server's programs read it, those of the other server write it. `create` makes a database of the same name
        there, and `target` names any other.
        """
        create_option = ["--create"] if create else []
        dump = [
            "--format=custom",
            "--compress=0",
            "--no-password",
            "--lock-wait-timeout=60s",
        ]
        dump += [f"--snapshot={snapshot}"] if snapshot else []
        source, sink = os.pipe()
        await _all_succeed(
            self._run("pg_dump", [*dump, *create_option], dsn, stdout=sink),
            newer._run(
                "pg_restore",
                ["--exit-on-error", "--no-password", *create_option],
                target,
                stdin=source,
            ),
        )

    async def copy_roles(self, dsn: str, newer: Programs, target: str) -> None:
        """Copy the roles of a server with their passwords and memberships. Those that exist already are changed."""
        source, sink = os.pipe()
        await _all_succeed(
            self._run(
                "pg_dumpall", ["--roles-only", "--no-password"], dsn, stdout=sink
            ),
            # Without ON_ERROR_STOP: to create a role that exists is an error, and its properties follow.
            newer._run(
                "psql",
                ["--no-psqlrc", "--quiet", "--no-password"],
                target,
                stdin=source,
            ),
        )

    async def vacuum(self, dsn: str) -> None:
        """Vacuum and analyze a database, without which a copy is slow at first."""
        await self._run("vacuumdb", ["--analyze", "--quiet", "--no-password"], dsn)

    async def _run(
        self,
        name: str,
        arguments: list[str],
        dsn: str,
        *,
        stdin: int | None = None,
        stdout: int | None = None,
    ) -> None:
        async with self._running(name, arguments, dsn, stdin=stdin, stdout=stdout):
            pass

    @asynccontextmanager
    async def _running(
        self,
        name: str,
        arguments: list[str],
        dsn: str,
        *,
        stdin: int | None = None,
        stdout: int | None = None,
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        """Run a program for the length of the block, and wait for its success. It ends with the block.

        Given descriptors become the program's own, and are closed here.
        """
        address, variables = _without_password(dsn)
        try:
            process = await asyncio.create_subprocess_exec(
                str(self.folder / name),
                *arguments,
                f"--dbname={address}",
                stdin=stdin,
                stdout=stdout,
                stderr=asyncio.subprocess.PIPE,
                env={**os.environ, **variables},
            )
        finally:
            for descriptor in (stdin, stdout):
                if descriptor is not None and descriptor >= 0:
                    os.close(descriptor)
        assert process.stderr is not None
        reading = asyncio.create_task(process.stderr.read())
        try:
            yield process
            output = (await reading).decode("utf-8", "replace").strip()
            if await process.wait() != 0:
                lines = "\n".join(output.splitlines()[:_SHOWN_LINES])
                raise FolkloreError(
                    f"{name} failed: {lines or f'exit code {process.returncode}'}"
                )
        finally:
            reading.cancel()
            if process.returncode is None:
                process.kill()
                await process.wait()


async def _all_succeed(*running: Coroutine[None, None, None]) -> None:
    """Wait for connected programs. Raises an error with the messages of all that failed: one ends the other."""
    outcomes = await asyncio.gather(*running, return_exceptions=True)
    if failures := [
        str(outcome) for outcome in outcomes if isinstance(outcome, BaseException)
    ]:
        raise FolkloreError("\n".join(failures))


def find_programs(major: int) -> Programs:
    """Return the programs of a major version: the embedded engine's, or those of this system.

    Raises NotFound with the package to install.
    """
    if binaries := installed_binaries(major, ("pg_dump", "pg_restore")):
        return Programs(binaries.folder)
    if (path := shutil.which("pg_dump")) and _major_of(path) == major:
        return Programs(Path(path).parent)
    raise NotFound(
        f"There is no pg_dump of Postgres {major} on this machine, which the server's version needs.",
        hint=f"Install it (Debian: postgresql-client-{major}).",
    )


def _major_of(program: str) -> int | None:
    """Return the major version of a program: `pg_dump (PostgreSQL) 17.2` is 17."""
    try:
        process = subprocess.run(  # noqa: S603
            [program, "--version"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
        return int(process.stdout.split()[2].split(".")[0])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None


def _without_password(dsn: str) -> tuple[str, Mapping[str, str]]:
    """Return an address without its password, and the variable for it, which the list of processes does not show."""
    parts = urlsplit(dsn)
    options = dict(parse_qsl(parts.query))
    password = options.pop("password", None)
    login, at, hosts = parts.netloc.rpartition("@")
    user, colon, secret = login.partition(":")
    if colon:
        password = unquote(secret)
    query = urlencode(options, quote_via=quote)
    address = (
        f"{parts.scheme}://{user}{at}{hosts}{parts.path}{'?' if query else ''}{query}"
    )
    return address, {} if password is None else {"PGPASSWORD": password}
