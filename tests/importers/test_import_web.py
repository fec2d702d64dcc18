"""Import of pages of the web: converted, updated by a repeated import, and only from addresses that may be read."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from folklore.errors import InvalidInput
from folklore_import.web_pages import web_pages
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.importers.test_import_claude import exported

PAGE = """<html><head><title>Runbook</title><script>track()</script></head><body><nav>Home</nav><main>
<h1>Deploy</h1><p>Run <code>make ship</code>, see <a href="/x">the list</a>.</p>
<h2>Rollback</h2><pre>ship --back</pre></main></body></html>"""


class Site:
    """A web server on loopback: a page, a redirect to its other name, a large page, one nested deep, an image."""

    def __init__(self) -> None:
        self.page = PAGE
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                other = (
                    f"http://127.0.0.1:{site.port}/page"
                    if self.path == "/moved"
                    else "http://[x"
                )
                status, form, body = {
                    "/page": (200, "text/html; charset=utf-8", site.page),
                    "/notes.md": (
                        200,
                        "text/markdown",
                        "# Notes\n\nKept as they are.\n",
                    ),
                    **dict.fromkeys(("/moved", "/astray"), (302, "text/html", "")),
                    "/unmoved": (304, "", ""),
                    "/letters": (200, "text/plain; charset=none", "x"),
                    "/large": (200, "text/html", "x" * 2_100_000),
                    "/deep": (200, "text/html", "<div>" * 5_000 + "x"),
                    "/image": (200, "image/png", "x"),
                }.get(self.path, (404, "text/plain", "no"))
                self.send_response(status)
                self.send_header("content-type", form)
                if status == 302:
                    self.send_header("location", other)
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_args: object) -> None:
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        self.address = f"http://localhost:{self.port}"


@pytest.fixture
def site() -> Iterator[Site]:
    """Serve the site for one test."""
    site = Site()
    thread = Thread(target=site.server.serve_forever, args=(0.01,))
    thread.start()
    yield site
    site.server.shutdown()
    thread.join()
    site.server.server_close()


async def test_pages_become_memories_by_section_and_a_repeated_import_changes_what_changed(
    folklore: CommandLine, site: Site
) -> None:
    command = (
        "import",
        f"{site.address}/page#top",
        f"{site.address}/notes.md",
        "--private-host",
        "localhost",
    )
    first = await folklore.json(*command)
    second = await folklore.json(*command)
    site.page = PAGE.replace("make ship", "make release").partition("<h2>")[0]
    third = await folklore.json(*command)

    assert (
        first["format"],
        first["stored"],
        second["stored"],
        second["overwritten"],
    ) == ("web", 3, 0, 0)
    assert (third["overwritten"], third["removed"]) == (1, 1)
    memories = await exported(folklore)
    assert "Deploy\n\nRun `make release`, see the list." in memories
    assert (
        memories["Notes\n\nKept as they are."]["source"]
        == f"{site.address}/notes.md#Notes"
    )


@pytest.mark.parametrize(
    ("path", "hosts", "message"),
    [
        ("/page", [], "must begin with https://"),
        (
            "/moved",
            ["localhost"],
            "must begin with https://",
        ),  # to 127.0.0.1, which was not named
        ("/large", ["localhost"], "at most 2,000,000 bytes"),
        ("/deep", ["localhost"], "nested too deep"),
        ("/image", ["localhost"], "image/png, not a page"),
        ("/none", ["localhost"], "answers with the status 404"),
        *((path, ["localhost"], "cannot be read") for path in ("/astray", "/letters")),
        ("/unmoved", ["localhost"], "answers with the status 304"),
    ],
)
def test_pages_that_may_not_or_cannot_be_read_are_named(
    site: Site, path: str, hosts: list[str], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        web_pages([f"{site.address}{path}"], hosts)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "10.0.0.1",
        "[::1]",
        "169.254.169.254",
        "0.0.0.0",
        "2130706433",
    ],
)
def test_private_and_local_addresses_are_refused(host: str) -> None:
    with pytest.raises(InvalidInput, match="private or local address"):
        web_pages([f"https://{host}/"], [])


@pytest.mark.parametrize(
    "url", ["https://", "https://user:word@host/", "https://[", "ftp://host/"]
)
def test_what_is_no_address_of_a_page_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        web_pages([url], [])
