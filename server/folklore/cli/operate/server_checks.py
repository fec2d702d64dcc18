"""Checks of `folklore doctor --server`: from the connection to what the caller may do in this project."""

import os
import ssl
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from folklore import __version__
from folklore.checks import Checks, Doubt
from folklore.client.access import token_for
from folklore.client.assistants.known import CLIENTS, Client, Machine
from folklore.client.assistants.plugin import installation
from folklore.client.credentials import normalised
from folklore.client.http_client import HttpClient, Reply
from folklore.client.project import fork_advice, working_directory
from folklore.config import Settings
from folklore.contract.health import Check, ChecksRequest
from folklore.contract.people import CallerInfo, CallerRequest
from folklore.errors import FolkloreError, Unavailable
from folklore.machine import is_loopback
from folklore.text import names
from folklore.text.dates.distance import absolute_time

_SOON = timedelta(days=7)  # a certificate that ends before then is reported
_CLOCKS = 30.0  # seconds by which clocks may differ unnoticed
_PROBES = 5
# Checks of the server among those of this machine; further ones follow.
_IN_ORDER = ("token", "grants", "memory")


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
    exam = ServerExamination(settings=settings, zone=zone)
    await exam.check("settings", lambda: _settings(exam))
    if exam.failed:
        return exam
    async with HttpClient(settings) as client:
        await exam.check("server", lambda: _server(exam, client))
        reached = not exam.failed
        await exam.check("tls", lambda: _tls(exam), needs=reached)
        await exam.check("token", lambda: _token(exam, client), needs=reached)
        has_caller = exam.caller is not None
        await exam.check("version", lambda: _version(exam), needs=has_caller)
        await exam.check("clock", lambda: _clock(exam), needs=has_caller)
        await exam.check("grants", lambda: _reported(exam, "grants"), needs=has_caller)
        await exam.check("project", lambda: _project(exam), needs=has_caller)
        await exam.check("memory", lambda: _reported(exam, "memory"), needs=has_caller)
        others = [check for check in exam.reported if check.name not in _IN_ORDER]
        exam.checks += others
    await exam.check("assistants", lambda: _assistants(exam))
    return exam


async def _settings(exam: ServerExamination) -> str:
    if exam.settings.token is None:
        source = "no token" if token_for(exam.settings) is None else "a saved token"
    elif "FOLKLORE_TOKEN" in os.environ:
        source = "the token of FOLKLORE_TOKEN"
    else:
        source = "the token of the settings"
    return f"server {exam.server}, with {source}"


async def _server(exam: ServerExamination, client: HttpClient) -> str:
    times = []
    for _ in range(_PROBES):
        reply = await client.send("GET", "/healthz")
        exam.certificate = reply.certificate
        times.append(reply.seconds)
        if reply.status != 200:
            hint = "Is this the address of a Folklore server, with its path?"
            raise Unavailable(
                f"{exam.server}/healthz answered {reply.status}.", hint=hint
            )
    ready = await client.send("GET", "/readyz")
    if _member(ready, "status") != "ready":
        raise Unavailable(
            f"The server runs and is not ready: {_member(ready, 'message') or ready.status}."
        )
    text = f"{exam.server} answers in {1000 * median(times[1:]):.0f} ms"
    if _member(ready, "degraded") is not None:
        raise Doubt(
            f"{text}, and works without a part of it.",
            hint="Its operator sees which in its /readyz and log.",
        )
    return text


def _member(reply: Reply, name: str) -> str | None:
    value = reply.json()
    if isinstance(value, dict) and name in value:
        return str(value[name])
    return None


async def _tls(exam: ServerExamination) -> str:
    if exam.certificate is None:
        if is_loopback(urlsplit(exam.server).hostname or ""):
            return "not needed: the server is on this machine"
        hint = "Serve it behind a proxy with TLS, or set http.tls_cert (docs/how-to/http-server.md)."
        raise Doubt(
            "The connection is not encrypted: tokens and memories can be read on the way.",
            hint=hint,
        )
    seconds = ssl.cert_time_to_seconds(exam.certificate["notAfter"])
    ends = datetime.fromtimestamp(seconds, UTC)
    issuer = dict(pairs[0] for pairs in exam.certificate.get("issuer", ()))
    organisation = issuer.get("organizationName")
    by = organisation or issuer.get("commonName") or "an unnamed authority"
    text = f"certificate by {by}, until {absolute_time(ends, exam.zone)}"
    if ends - datetime.now(UTC) < _SOON:
        raise Doubt(f"{text}.", hint="Its operator should renew it.")
    return text


async def _token(exam: ServerExamination, client: HttpClient) -> str:
    began = datetime.now(UTC)
    caller = await client.call(CallerRequest())
    middle = began + (datetime.now(UTC) - began) / 2
    exam.offset = (caller.at - middle).total_seconds()
    exam.reported = await client.call(ChecksRequest())
    exam.caller = caller
    return await _reported(exam, "token")


async def _reported(exam: ServerExamination, name: str) -> str:
    """Return the detail of a check that the server made. Raises Doubt, FolkloreError."""
    check = next(check for check in exam.reported if check.name == name)
    if check.status == "ok":
        return check.detail
    if check.status == "warning":
        raise Doubt(check.detail, hint=check.hint)
    raise FolkloreError(check.detail, hint=check.hint)


async def _version(exam: ServerExamination) -> str:
    assert exam.caller is not None
    if exam.caller.version != __version__:
        hint = "Bring both to one version if a command fails."
        raise Doubt(
            f"The server has {exam.caller.version}, this is {__version__}.", hint=hint
        )
    return f"{__version__}, on both sides"


async def _clock(exam: ServerExamination) -> str:
    if abs(exam.offset) > _CLOCKS:
        ahead = "ahead of" if exam.offset > 0 else "behind"
        hint = "Let both follow a time server: relative times and the ends of tokens depend on it."
        raise Doubt(
            f"The server's clock is {abs(exam.offset):,.0f} s {ahead} this one.",
            hint=hint,
        )
    if abs(exam.offset) < 1:
        return "within a second of the server's"
    return f"{abs(exam.offset):.0f} s apart"


async def _project(exam: ServerExamination) -> str:
    assert exam.caller is not None
    namespace = exam.caller.namespace
    role = exam.caller.role
    if namespace is None:
        return "none"
    if role is None and namespace == names.DEFAULT:
        return "none: this directory is in no repository"
    if role is None:
        hint = "Ask the owner of the server for a grant, or work in a directory of a project that it opens."
        raise Doubt(
            f"{namespace}: your token does not open the namespace of this directory.",
            hint=hint,
        )
    state = "" if exam.caller.exists else "; nothing is stored there yet"
    advice = fork_advice(working_directory(os.environ), exam.settings.remote)
    return f"{namespace}: {role}{state}{advice}"


async def _assistants(exam: ServerExamination) -> str:
    here = [client for client in CLIENTS.values() if client.is_here(Machine())]
    if not here:
        return "none found on this machine"
    titles: dict[str, list[str]] = defaultdict(list)
    for client in here:
        titles[_installation(client, exam.server)].append(client.title)
    installed = titles["of this server"]
    missing = titles["none"]
    others = titles["another"]
    hint = f"folklore install --server {exam.server}"
    if others:
        raise Doubt(
            f"Folklore in {', '.join(others)} does not use this server.", hint=hint
        )
    if not installed:
        raise Doubt(f"Folklore is not installed into {', '.join(missing)}.", hint=hint)
    text = f"installed into {', '.join(installed)}"
    if missing:
        text += f"; not into {', '.join(missing)}"
    return text


def _installation(client: Client, server: str) -> str:
    with suppress(FolkloreError, OSError):
        return installation(client, Machine(), server)
    return "none"
