"""Checks of `folklore doctor --server`: from the connection to what the caller may do in this project."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from folklore import __version__
from folklore.cli.client import HttpClient, Reply, token_for
from folklore.clients.credentials import normalised
from folklore.clients.known import CLIENTS, Client, Machine
from folklore.clients.plugin import is_installed
from folklore.config import Settings, is_loopback
from folklore.errors import FolkloreError, Unavailable
from folklore.memory.health.checks import Checks, Doubt
from folklore.memory.requests import CallerRequest, ChecksRequest
from folklore.memory.results import CallerInfo, Check
from folklore.text import names
from folklore.text.dates.distance import absolute_time

_SOON = timedelta(days=7)  # a certificate that ends before then is reported
_CLOCKS = 30.0  # seconds by which clocks may differ unnoticed
_PROBES = 5
# Checks of the server among those of this machine; further ones follow.
_OWN_PLACES = ("token", "grants", "memory")


@dataclass(slots=True)
class ServerExamination(Checks):
    """The checks of a server so far, and the findings that later checks need."""

    settings: Settings = field(kw_only=True)
    zone: tzinfo = UTC
    certificate: Mapping[str, Any] | None = None
    caller: CallerInfo | None = None
    offset: float = 0.0
    reported: tuple[Check, ...] = ()

    @property
    def server(self) -> str:
        """The address of the server in one spelling."""
        return normalised(str(self.settings.server))


async def examine_server(settings: Settings, zone: tzinfo) -> ServerExamination:
    """Check the server that the settings name, and what its caller may do."""
    found = ServerExamination(settings=settings, zone=zone)
    await found.check("settings", lambda: _settings(found))
    if found.failed:
        return found
    async with HttpClient(settings) as client:
        await found.check("server", lambda: _server(found, client))
        reached = not found.failed
        await found.check("tls", lambda: _tls(found), needs=reached)
        await found.check("token", lambda: _token(found, client), needs=reached)
        known = found.caller is not None
        await found.check("version", lambda: _version(found), needs=known)
        await found.check("clock", lambda: _clock(found), needs=known)
        await found.check("grants", lambda: _reported(found, "grants"), needs=known)
        await found.check("project", lambda: _project(found), needs=known)
        await found.check("memory", lambda: _reported(found, "memory"), needs=known)
        found.checks += [check for check in found.reported if check.name not in _OWN_PLACES]
    await found.check("assistants", lambda: _assistants(found))
    return found


async def _settings(found: ServerExamination) -> str:
    token = "no token" if token_for(found.settings) is None else "a saved token"
    if found.settings.token is not None:
        token = "the token of FOLKLORE_TOKEN" if "FOLKLORE_TOKEN" in os.environ else "the token of the settings"
    return f"server {found.server}, with {token}"


async def _server(found: ServerExamination, client: HttpClient) -> str:
    times = []
    for _ in range(_PROBES):
        reply = await client.send("GET", "/healthz")
        found.certificate = reply.certificate
        times.append(reply.seconds)
        if reply.status != 200:
            raise Unavailable(
                f"{found.server}/healthz answered {reply.status}.",
                hint="Is this the address of a Folklore server, with its path?",
            )
    ready = await client.send("GET", "/readyz")
    state = _member(ready, "status")
    if state not in ("ready", "degraded"):
        raise Unavailable(f"The server runs and is not ready: {_member(ready, 'message') or ready.status}.")
    shown = f"{found.server} answers in {1000 * median(times[1:]):.0f} ms"
    if state == "degraded":
        raise Doubt(f"{shown}, and works without a part of it.", hint="Its operator sees which in its /readyz and log.")
    return shown


def _member(reply: Reply, name: str) -> str | None:
    try:
        value = json.loads(reply.body)
    except ValueError:
        return None
    return str(value[name]) if isinstance(value, dict) and name in value else None


async def _tls(found: ServerExamination) -> str:
    if found.certificate is None:
        if is_loopback(urlsplit(found.server).hostname or ""):
            return "not needed: the server is on this machine"
        raise Doubt(
            "The connection is not encrypted: tokens and memories can be read on the way.",
            hint="Serve it behind a proxy with TLS, or set http.tls_cert (docs/how-to/http-server.md).",
        )
    import ssl

    ends = datetime.fromtimestamp(ssl.cert_time_to_seconds(found.certificate["notAfter"]), UTC)
    issuer = {name: value for ((name, value),) in found.certificate.get("issuer", ()) if name}
    by = issuer.get("organizationName") or issuer.get("commonName") or "an unnamed authority"
    shown = f"certificate by {by}, until {absolute_time(ends, found.zone)}"
    if ends - datetime.now(UTC) < _SOON:
        raise Doubt(f"{shown}.", hint="Its operator should renew it.")
    return shown


async def _token(found: ServerExamination, client: HttpClient) -> str:
    began = datetime.now(UTC)
    caller = await client.call(CallerRequest())
    found.offset = (caller.at - (began + (datetime.now(UTC) - began) / 2)).total_seconds()
    found.reported = await client.call(ChecksRequest())
    found.caller = caller
    return await _reported(found, "token")


async def _reported(found: ServerExamination, name: str) -> str:
    """Return the detail of a check that the server made. Raises Doubt, FolkloreError."""
    check = next(check for check in found.reported if check.name == name)
    if check.status == "ok":
        return check.detail
    raise (Doubt if check.status == "warning" else FolkloreError)(check.detail, hint=check.hint)


async def _version(found: ServerExamination) -> str:
    assert found.caller is not None
    if found.caller.version != __version__:
        raise Doubt(
            f"The server has {found.caller.version}, this is {__version__}.",
            hint="Bring both to one version if a command fails.",
        )
    return f"{__version__}, on both sides"


async def _clock(found: ServerExamination) -> str:
    if abs(found.offset) > _CLOCKS:
        ahead = "ahead of" if found.offset > 0 else "behind"
        raise Doubt(
            f"The server's clock is {abs(found.offset):,.0f} s {ahead} this one.",
            hint="Let both follow a time server: relative times and the ends of tokens depend on it.",
        )
    return "within a second of the server's" if abs(found.offset) < 1 else f"{abs(found.offset):.0f} s apart"


async def _project(found: ServerExamination) -> str:
    assert found.caller is not None
    namespace, role = found.caller.namespace, found.caller.role
    if namespace is None:
        return "none"
    if role is None and namespace == names.DEFAULT:
        return "none: this directory is in no repository"
    if role is None:
        raise Doubt(
            f"{namespace}: your token does not open the namespace of this directory.",
            hint="Ask the owner of the server for a grant, or work in a directory of a project that it opens.",
        )
    state = "" if found.caller.exists else "; nothing is stored there yet"
    return f"{namespace}: {role}{state}"


async def _assistants(found: ServerExamination) -> str:
    here = [client for client in CLIENTS.values() if client.is_here(Machine())]
    if not here:
        return "none found on this machine"
    installed = [client.title for client in here if _has_entry(client)]
    missing = [client.title for client in here if client.title not in installed]
    if not installed:
        raise Doubt(
            f"Folklore is not installed into {', '.join(missing)}.", hint=f"folklore install --server {found.server}"
        )
    return f"installed into {', '.join(installed)}" + (f"; not into {', '.join(missing)}" if missing else "")


def _has_entry(client: Client) -> bool:
    try:
        return is_installed(client, Machine())
    except (FolkloreError, OSError):
        return False
