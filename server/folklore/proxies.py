"""Proxies that the environment or the system sets for connections to other machines; none for this machine itself."""

import os
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from folklore.machine import is_loopback


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy: `description` names it, without its password; `problem` says why it cannot be used."""

    address: SplitResult
    description: str
    problem: str | None = None


def proxy_for(server: SplitResult) -> Proxy | None:
    """Return the proxy for a server. None for this machine, and for what the settings of proxies leave out."""
    host = server.hostname or ""
    if is_loopback(host) or host in ("0.0.0.0", "::"):  # noqa: S104 - as an address to call
        return None
    from urllib.request import getproxies, proxy_bypass

    value = getproxies().get(server.scheme)
    if not value or proxy_bypass(host):
        return None
    address = urlsplit(value if "://" in value else f"http://{value}")
    source = _variable(server.scheme, value) or "this system's settings"
    try:
        port = address.port
    except ValueError:
        port = None
        usable = False
    else:
        usable = bool(address.hostname)
    if not usable:
        description = f"the proxy of {source}"
        problem = "is not an address such as http://proxy.example.com:3128"
        return Proxy(address, description, problem)
    if port:
        host = f"{address.hostname}:{port}"
    else:
        host = str(address.hostname)
    description = f"the proxy {address.scheme}://{host} of {source}"
    if address.scheme != "http":
        return Proxy(address, description, "must be one that is reached by http://")
    return Proxy(address, description)


def _variable(scheme: str, value: str) -> str | None:
    """Return the name of the variable that sets a proxy."""
    for name in (f"{scheme}_proxy", f"{scheme}_proxy".upper()):
        if os.environ.get(name) == value:
            return name
    return None
