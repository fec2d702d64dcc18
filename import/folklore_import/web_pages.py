"""Pages of the web, as Markdown for an import: of public addresses alone, within limits of size and time."""

import ipaddress
import socket
from collections.abc import Collection, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

import bs4
import httpx
import markdownify
import yaml

from folklore.errors import InvalidInput
from folklore.proxies import proxy_for
from folklore_import.pages import PAGE_CHARACTERS, PageFile, Pages

_MOST_PAGES = 100
_SECONDS = 20.0  # for one page, redirects included
_REDIRECTS = 5
_BYTES = PAGE_CHARACTERS
_HTML = ("text/html", "application/xhtml+xml")
# Parts of a page that are not its text.
_FURNITURE = (
    "script",
    "style",
    "noscript",
    "template",
    "nav",
    "header",
    "footer",
    "aside",
    "form",
    "svg",
    "iframe",
)


def web_pages(urls: Sequence[str], private_hosts: Collection[str]) -> list[Pages]:
    """Fetch pages, each an origin of its own. Raises InvalidInput.

    A page that cannot be fetched fails the import before anything is written. Private and local addresses are read only
    for hosts in `private_hosts`, in redirects too, since a public page must not lead to services of this network.
    """
    addresses = list(dict.fromkeys(urldefrag(url).url for url in urls))
    if len(addresses) > _MOST_PAGES:
        raise InvalidInput(
            "FILE",
            f"at most {_MOST_PAGES} pages can be imported at once, got {len(addresses)}.",
        )
    pages = []
    with (
        httpx.Client(timeout=_SECONDS, headers={"user-agent": "folklore"}) as client,
        TemporaryDirectory() as folder,
    ):
        for url in addresses:
            path = Path(folder, "page.md")
            path.write_text(_fetched(client, url, private_hosts), encoding="utf-8")
            pages.append(Pages("web", f"web {url}", [PageFile(path, url)]))
    return pages


def _fetched(client: httpx.Client, url: str, private_hosts: Collection[str]) -> str:
    deadline = monotonic() + _SECONDS
    try:
        for _ in range(_REDIRECTS + 1):
            target, host = _checked(url, private_hosts)
            # The connection goes to the address that was checked: a second lookup might have another answer.
            request = client.build_request(
                "GET",
                target,
                headers={"host": host.netloc},
                extensions={"sni_hostname": host.hostname},
            )
            response = client.send(request, stream=True)
            try:
                if response.has_redirect_location:
                    url = urljoin(url, response.headers["location"])
                    continue
                if response.status_code != httpx.codes.OK:
                    raise InvalidInput(
                        "FILE", f"{url} answers with the status {response.status_code}."
                    )
                return _markdown(url, response, _body(url, response, deadline))
            finally:
                response.close()
    except (
        httpx.HTTPError,
        OSError,
        ValueError,
        LookupError,
    ) as error:  # of a redirect; of a charset
        proxy = proxy_for(urlsplit(url))
        by_proxy = "" if proxy is None else f", by {proxy.description}"
        words = f"{str(error) or type(error).__name__}{by_proxy}"
        raise InvalidInput("FILE", f"{url} cannot be read ({words}).") from None
    raise InvalidInput("FILE", f"{url} is behind more than {_REDIRECTS} redirects.")


def _checked(url: str, private_hosts: Collection[str]) -> tuple[httpx.URL, Any]:
    """Return the URL with the address of its host in place of the name, and its parts. Raises InvalidInput."""
    try:
        parts = urlsplit(url)
        target = httpx.URL(url)
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except (ValueError, httpx.InvalidURL):
        raise InvalidInput(
            "FILE",
            f"{url} is not the address of a page.",
            hint="Write https://host/path.",
        ) from None
    if not host or "@" in parts.netloc:
        raise InvalidInput(
            "FILE",
            f"{url} must name a host, and no user.",
            hint="Write https://host/path.",
        )
    is_private = host in private_hosts
    if parts.scheme != "https" and not (is_private and parts.scheme == "http"):
        raise InvalidInput(
            "FILE",
            f"{url} must begin with https://.",
            hint="A host of --private-host may have http.",
        )
    return target.copy_with(
        host=_address(host, port, is_private=is_private), port=port
    ), parts


def _address(host: str, port: int, *, is_private: bool) -> str:
    """Return the first address of a host. Raises InvalidInput unless all are public, or it is a private host."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [
        ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in entries
    ]
    if not is_private and not all(
        address.is_global and not address.is_multicast for address in addresses
    ):
        hint = f"If its pages may become memories, repeat with --private-host {host}."
        raise InvalidInput("FILE", f"{host} has a private or local address.", hint=hint)
    return str(addresses[0])


def _body(url: str, response: httpx.Response, deadline: float) -> bytes:
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > _BYTES:
            raise InvalidInput("FILE", f"{url} must be at most {_BYTES:,} bytes.")
        if monotonic() > deadline:
            raise InvalidInput(
                "FILE",
                f"{url} took more than {_SECONDS:.0f} seconds.",
                hint="Try again later.",
            )
    return bytes(body)


def _markdown(url: str, response: httpx.Response, body: bytes) -> str:
    """Return a page as Markdown: converted from HTML, or as it is."""
    form = (
        response.headers.get("content-type", "text/html")
        .partition(";")[0]
        .strip()
        .lower()
    )
    if form not in _HTML:
        if not form.startswith("text/"):
            raise InvalidInput(
                "FILE",
                f"{url} is {form}, not a page.",
                hint="Pages are HTML, Markdown or plain text.",
            )
        return body.decode(response.charset_encoding or "utf-8", errors="replace")
    try:
        return _converted(body, response.charset_encoding)
    except RecursionError:
        raise InvalidInput("FILE", f"{url} is nested too deep to be read.") from None


def _converted(body: bytes, encoding: str | None) -> str:
    soup = bs4.BeautifulSoup(body, "html.parser", from_encoding=encoding)
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    for element in soup(_FURNITURE):
        element.decompose()
    content = soup.find("main") or soup.find("article") or soup.body or soup
    text = markdownify.MarkdownConverter(
        heading_style="ATX", strip=["a", "img"]
    ).convert_soup(content)
    if title:
        return f"---\n{yaml.safe_dump({'title': title}, allow_unicode=True)}---\n{text}"
    return text
