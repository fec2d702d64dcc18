"""The address the server listens on: TLS by files, behind a proxy, reachable from other machines."""

import asyncio
import socket
import ssl
from datetime import UTC, datetime
from pathlib import Path

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from folklore.config import HttpSettings, Settings
from folklore.errors import ConfigInvalid
from folklore.server.application.serve import bind, run, tls_context, uvicorn_config
from tests.certificates import issued
from tests.person import Person
from tests.servers import a_session_of_work, on_http, watched
from tests.team import bearer, library_at


@pytest.mark.strain
@pytest.mark.parametrize("workers", ["1", "2"])
async def test_over_tls_a_client_does_a_session_of_work_and_none_connects_without(
    database_url: str, tmp_path: Path, workers: str
) -> None:
    files = issued(tmp_path / "tls")
    trusting = ssl.create_default_context(cafile=str(files.certificate))
    tls = {"http__tls_cert": str(files.certificate), "http__tls_key": str(files.key)}
    settings = watched(
        tmp_path, database_url=database_url, http__workers=workers, **tls
    )
    async with on_http(settings, trusting=trusting) as server:
        async with (
            httpx2.AsyncClient(verify=trusting, timeout=30) as http,
            Client(
                streamable_http_client(f"{server.url}/mcp", http_client=http),
                read_timeout_seconds=30,
            ) as client,
        ):
            await a_session_of_work(client)
        async with httpx.AsyncClient() as plain:
            with pytest.raises(httpx.TransportError):
                await plain.get(f"http://127.0.0.1:{server.port}/healthz")
            with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                await plain.get(f"{server.url}/healthz")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection(
                "127.0.0.1", server.port, ssl=_only(ssl.TLSVersion.TLSv1_1)
            )
        await server.end()

    assert server.process.returncode == 0
    assert f"https://127.0.0.1:{server.port}" in server.log_text()


def _only(version: ssl.TLSVersion) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = version
    return context


def test_an_unusable_certificate_is_reported_before_anything_listens(
    settings: Settings, tmp_path: Path
) -> None:
    right = issued(tmp_path / "a")
    other = issued(tmp_path / "b")
    locked = issued(tmp_path / "c", password=b"hunter2")
    missing = tmp_path / "missing.pem"
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("not a certificate")

    def said(certificate: Path | None, key: Path | None) -> str:
        http = HttpSettings(tls_cert=certificate, tls_key=key)
        with pytest.raises(ConfigInvalid) as caught:
            run(settings.model_copy(update={"http": http}), "127.0.0.1", 0)
        return str(caught.value)

    assert "http.tls_key: is not set" in said(right.certificate, None)
    assert "http.tls_cert: is not set" in said(None, right.key)
    assert f"http.tls_cert: {missing} cannot be read (No such file" in said(
        missing, right.key
    )
    assert f"http.tls_key: {missing} cannot be read (No such file" in said(
        right.certificate, missing
    )
    assert "is not the key of" in said(right.certificate, other.key)
    assert "in PEM" in said(nonsense, right.key)
    assert "password" in said(locked.certificate, locked.key)


def test_without_files_there_is_no_tls() -> None:
    assert tls_context(None, None) is None


def test_a_taken_port_and_a_wrong_address_are_reported(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            ConfigInvalid,
            match=rf"http\.port: 127\.0\.0\.1:{port} cannot be listened on",
        ):
            run(settings, "127.0.0.1", port)
        monkeypatch.setenv("MAKELEVEL", "1")
        with pytest.raises(ConfigInvalid) as under_make:
            run(settings, "127.0.0.1", port)
        assert "make run PORT=" in str(under_make.value.hint)
    with pytest.raises(ConfigInvalid, match=r"http\.host"):
        run(settings, "192.0.2.1", 0, insecure=True)


def test_a_name_with_several_addresses_is_served_on_one_port_of_all() -> None:
    sockets = bind("localhost", 0)
    try:
        assert len({one.getsockname()[1] for one in sockets}) == 1
    finally:
        for one in sockets:
            one.close()


def test_an_accepted_connection_sends_small_packets_at_once() -> None:
    (listening,) = bind("127.0.0.1", 0)
    with (
        listening,
        socket.create_connection(listening.getsockname()),
        listening.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


@pytest.mark.parametrize("wrong", ["proxy.example", "10.0.0.1/8", "*"])
def test_a_trusted_proxy_is_an_address_or_a_network(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"does not appear|host bits"):
        HttpSettings(trusted_proxies=(wrong,))

    assert HttpSettings(trusted_proxies=("10.0.0.0/8", "::1")).trusted_proxies == (
        "10.0.0.0/8",
        "::1",
    )


async def test_insecure_serves_a_reachable_address_without_tokens_and_warns(
    database_url: str, tmp_path: Path
) -> None:
    settings = watched(
        tmp_path,
        database_url=database_url,
        http__allowed_hosts='["memory.example", "https://Wiki.example/team"]',
    )
    async with (
        on_http(settings, "--insecure", host="0.0.0.0") as server,
        httpx.AsyncClient() as client,
    ):
        by_name = await client.get(
            f"{server.url}/readyz", headers={"Host": "memory.example"}
        )
        by_address = await client.get(
            f"{server.url}/readyz", headers={"Host": "wiki.example"}
        )
        by_another = await client.get(
            f"{server.url}/readyz", headers={"Host": "evil.example"}
        )
        told = server.log_text()

    assert (by_name.status_code, by_address.status_code, by_another.status_code) == (
        200,
        200,
        421,
    )
    assert "EVERY client" in told
    assert "warning" in told


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    request = Request(scope, receive)
    assert request.client is not None
    await JSONResponse({"client": request.client.host, "scheme": request.url.scheme})(
        scope, receive, send
    )


async def test_only_a_trusted_proxy_names_the_client(settings: Settings) -> None:
    async def asked(*trusted: str) -> dict[str, str]:
        http = HttpSettings(trusted_proxies=trusted)
        config = uvicorn_config(settings.model_copy(update={"http": http}), "127.0.0.1")
        config.app = echo
        config.factory = False
        config.load()
        transport = httpx.ASGITransport(config.loaded_app, client=("10.0.0.2", 4000))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://here"
        ) as client:
            headers = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
            return dict((await client.get("/", headers=headers)).json())

    assert await asked() == {"client": "10.0.0.2", "scheme": "http"}
    assert await asked("10.0.0.0/24") == {"client": "203.0.113.9", "scheme": "https"}
    assert await asked("10.0.1.0/24") == {"client": "10.0.0.2", "scheme": "http"}


async def test_a_reachable_address_is_served_once_there_is_a_token(
    database_url: str, tmp_path: Path
) -> None:
    settings = watched(tmp_path, database_url=database_url)
    with pytest.raises(AssertionError, match=r"(?s)no token is needed.*--insecure"):
        async with on_http(settings, host="0.0.0.0"):
            pass
    async with library_at(database_url) as library:
        made = await Person(library, name="root", now=datetime.now(UTC)).create_token(
            "alice", "notes:writer"
        )
    async with (
        on_http(settings, host="0.0.0.0") as server,
        httpx.AsyncClient(base_url=server.url) as client,
    ):
        without = await client.post("/api/status", json={})
        with_one = await client.post(
            "/api/status", json={}, headers=bearer(made.secret)
        )
        log = server.log_text()

    assert (without.status_code, with_one.status_code) == (401, 200)
    assert "EVERY client" not in log


async def test_a_reachable_address_is_refused_where_tokens_are_never_needed(
    database_url: str, tmp_path: Path
) -> None:
    settings = watched(
        tmp_path, database_url=database_url, http__authentication="never"
    )
    async with library_at(database_url) as library:
        await Person(library, name="root").create_token("a", "notes:writer")

    with pytest.raises(AssertionError, match="no token is needed"):
        async with on_http(settings, host="0.0.0.0"):
            pass
