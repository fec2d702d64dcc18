"""`folklore open`: the console in the browser, at a server that runs or at one that is started for it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import click

from folklore.cli.context import call, settings_of, zone_of
from folklore.cli.options import context_and_json
from folklore.cli.output import print_json, print_line
from folklore.clients.credentials import normalised
from folklore.config import Settings
from folklore.engine.lock import release, try_lock
from folklore.errors import Refused, Unavailable
from folklore.http.local_servers import find_server, folder_of
from folklore.memory.requests import CreateLinkRequest
from folklore.phases import phase
from folklore.text.dates.distance import absolute_time

_SERVE = ("--http", "--host", "127.0.0.1", "--port", "0", "--until-idle")
_START_SECONDS = 60.0
_POLL_SECONDS = 0.05
_LOG_LINES = 5


@click.command("open")
@click.option("--no-browser", is_flag=True, help="Print the link instead.")
@context_and_json
def open_(ctx: click.Context, /, no_browser: bool, as_json: bool) -> None:
    """Open the console in the browser, signed in by a link that works once, within two minutes.

    Without --server: at a server of yours on this memory, or else at one that is started in the background, on this
    machine only; it ends after 30 minutes without a request, and writes to console.log in the home. With --server: at
    that server, as the person of your token.
    """
    settings = settings_of(ctx)
    if settings.server is None and settings.read_only:
        raise Refused("read_only is set, and the console records its sessions.", hint="Unset it for this command.")
    url = _local_server(ctx, settings) if settings.server is None else normalised(settings.server)
    link = call(ctx, CreateLinkRequest())
    address = f"{url}/open?code={quote(link.code)}"
    if as_json:
        print_json({"url": address, "expires_at": link.expires_at})
    elif not no_browser and webbrowser.open(address):
        print_line(f"The console at {url} opens in your browser. If it does not: folklore open --no-browser")
    else:
        print_line(address)
        until = absolute_time(link.expires_at, zone_of(ctx))
        click.echo(f"Open this link in a browser. It signs you in once, until {until}.", err=True)


def _local_server(ctx: click.Context, settings: Settings) -> str:
    """Return the address of a server on this memory; start one if none runs."""
    with phase("Looking for a server"):
        if (found := find_server(settings)) is not None:
            return found
        with _starting(settings):
            # Another process may have started one meanwhile.
            return find_server(settings) or _start(settings, ctx.find_root().obj["config"])


def _start(settings: Settings, config: Path | None) -> str:
    """Start a server in the background, and return its address once it answers. Raises Unavailable."""
    path = settings.home / "console.log"
    with path.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - this program
            # -P: without it, a file folklore.py of the working directory would be executed.
            [*(sys.executable, "-P", "-m", "folklore", "serve"), *_SERVE],
            env={**os.environ, **_environment(settings, config)},
            cwd=settings.home,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if (found := find_server(settings)) is not None:
            process.returncode = 0  # keeps Popen from warning that the process still runs
            return found
        if process.poll() is not None:
            last = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-_LOG_LINES:]
            raise Unavailable("The server of the console ended at its start.", hint="\n".join([f"{path} ends:", *last]))
        time.sleep(_POLL_SECONDS)
    process.terminate()
    raise Unavailable(f"The server of the console did not answer in {_START_SECONDS:.0f} s.", hint=f"See {path}.")


def _environment(settings: Settings, config: Path | None) -> Mapping[str, str]:
    """Return the settings of a server on the same memory, in the environment: an address may hold a password."""
    values = {
        "FOLKLORE_HOME": str(settings.home),
        "FOLKLORE_SERVER": "",
        # One process on loopback needs no certificate, and its browser could not verify one.
        "FOLKLORE_HTTP__WORKERS": "1",
        "FOLKLORE_HTTP__TLS_CERT": "",
        "FOLKLORE_HTTP__TLS_KEY": "",
    }
    if config is not None:
        values["FOLKLORE_CONFIG"] = str(config.absolute())
    elif given := os.environ.get("FOLKLORE_CONFIG"):
        values["FOLKLORE_CONFIG"] = str(Path(given).expanduser().absolute())
    if settings.database_url is not None:
        values["FOLKLORE_DATABASE_URL"] = settings.database_url.get_secret_value()
    return values


@contextmanager
def _starting(settings: Settings) -> Iterator[None]:
    """Let one process of this home start a server at a time. Raises Unavailable."""
    folder = folder_of(settings.home)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / "lock"
    path.touch(mode=0o600)
    deadline = time.monotonic() + _START_SECONDS
    while (descriptor := try_lock(path)) is None:
        if time.monotonic() > deadline:
            raise Unavailable("Another `folklore open` is starting a server.", hint="Try again.")
        time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        release(descriptor)
