"""`folklore open`: the console in the browser, at the user's server or the team's.

A link signs in whoever has it, and the arguments of a process are seen by every user of the machine. So the browser
gets the link by a file that only its user reads, as Jupyter does.
"""

import asyncio
import os
import tempfile
import time
import webbrowser
from contextlib import suppress
from html import escape
from pathlib import Path
from urllib.parse import quote

import click

from folklore.cli.context import call, local_server, settings_of, zone_of
from folklore.cli.options import context_and_json
from folklore.cli.output import print_either, print_line
from folklore.client.credentials import normalised
from folklore.client.http_client import HttpClient
from folklore.config import Settings
from folklore.contract.people import CreateLinkRequest
from folklore.errors import Refused, Unavailable
from folklore.text.dates.distance import absolute_time

_PREFIX = "open-"
_KEPT_SECONDS = 120  # as long as a link works
_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>Folklore</title>
<p><a href="{address}">Open the console of Folklore</a></p>
"""


@click.command("open")
@click.option("--no-browser", is_flag=True, help="Print the link instead.")
@context_and_json
def open_(ctx: click.Context, /, no_browser: bool) -> None:
    """Open the console in the browser, signed in by a link that works once, within two minutes.

    Without --server: at your own server, on a port of this machine only, until it ends. With --server: at that server,
    as the person of your token.
    """
    settings = settings_of(ctx)
    if settings.server is None and settings.read_only:
        raise Refused(
            "read_only is set, and the console records its sessions.",
            hint="Unset it for this command.",
        )
    if settings.server is None:
        url = _local_console(ctx, settings)
    else:
        url = normalised(settings.server)
    link = call(ctx, CreateLinkRequest())
    address = f"{url}/open?code={quote(link.code)}"

    def show() -> None:
        if not no_browser and _is_shown(address, settings.home):
            print_line(
                f"The console at {url} opens in your browser. If it does not: folklore open --no-browser"
            )
            return
        print_line(address)
        until = absolute_time(link.expires_at, zone_of(ctx))
        click.echo(
            f"Open this link in a browser. It signs you in once, until {until}.",
            err=True,
        )

    print_either({"url": address, "expires_at": link.expires_at}, show)


def _is_shown(address: str, home: Path) -> bool:
    """Return whether a browser takes a page that leads to an address."""
    try:
        page = _page_to(address, home / "run")
    except OSError:  # a home that cannot be written to: the link is printed
        return False
    return webbrowser.open(page.as_uri())


def _page_to(address: str, folder: Path) -> Path:
    """Write a page that leads to an address, for this user alone; remove those whose links work no more."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for page in folder.glob(f"{_PREFIX}*.html"):
        with suppress(OSError):  # another command removes it too
            age = time.time() - page.stat().st_mtime
            if age > _KEPT_SECONDS:
                page.unlink()
    descriptor, path = tempfile.mkstemp(".html", _PREFIX, folder)  # with mode 0600
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(_PAGE.format(address=escape(address)))
    return Path(path)


def _local_console(ctx: click.Context, settings: Settings) -> str:
    """Return the address of the console of the user's server. Raises Unavailable."""
    local = local_server(ctx, settings)
    if local is None:
        hint = "Run `folklore serve --http`, then `folklore open --server http://127.0.0.1:8765`."
        raise Unavailable(
            "Here each command has a server of its own, and none stays for a browser.",
            hint=hint,
        )

    async def opened() -> str:
        async with HttpClient(settings, local) as client:
            answer = await client.send("POST", "/console", "")
            return str(answer.json()["url"])

    return asyncio.run(opened())
