"""Proxies of the environment: never for this machine, and named in the error of a connection that used one."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from folklore.config import Settings
from folklore.embedding.http_client import Address, HttpService
from folklore.errors import Unavailable
from folklore.proxies import proxy_for
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.servers import free_port, serving


@pytest.fixture(autouse=True)
def without_proxies() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.lower().endswith("_proxy"):
                patch.delenv(name)
        yield


ELSEWHERE = "http://memory.example.com"


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy"])
async def test_a_server_on_this_machine_is_reached_though_the_proxy_is_not(
    folklore: CommandLine,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    async with serving(settings) as url:
        await folklore.done("--server", url, "status")
        done = await folklore("--server", url, "doctor")

    assert "proxy" not in done.out + done.err


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.8.9.1", "localhost", "memory.localhost", "[::1]", "0.0.0.0"],
)
def test_this_machine_by_any_name_has_no_proxy(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example.com:3128")

    assert proxy_for(urlsplit(f"https://{host}:8765")) is None
    assert proxy_for(urlsplit("https://memory.example.com")) is not None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("127.0.0.1:{port}", "by the proxy http://127.0.0.1:{port} of HTTP_PROXY"),
        ("http://ann:hush@127.0.0.1:{port}", "the proxy http://127.0.0.1:{port} of"),
        ("socks5://127.0.0.1:{port}", "must be one that is reached by http://"),
        ("https://127.0.0.1:{port}", "must be one that is reached by http://"),
        ("http://:{port}", "is not an address such as http://"),
        ("http://proxy:port", "is not an address such as http://"),
        ("http://proxy:99999", "is not an address such as http://"),
    ],
)
async def test_the_error_of_a_connection_names_its_proxy(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch, value: str, words: str
) -> None:
    port = free_port()
    monkeypatch.setenv("HTTP_PROXY", value.format(port=port))

    ran = await folklore("--server", ELSEWHERE, "status")

    assert ran.code == 3
    assert words.format(port=port) in ran.err
    assert "HTTP_PROXY" in ran.err
    assert "hush" not in ran.err


@pytest.mark.parametrize(
    ("given", "left_out"),
    [
        (
            {"HTTP_PROXY": "http://proxy.example.com", "NO_PROXY": "example.org"},
            "example.org,localhost,127.0.0.1,::1",
        ),
        ({"all_proxy": "http://proxy.example.com"}, "localhost,127.0.0.1,::1"),
        ({}, "None"),
    ],
)
def test_libraries_too_leave_this_machine_out(
    given: dict[str, str], left_out: str
) -> None:
    program = """
import os, sys
from folklore.cli.main import main
sys.argv = ["folklore", "--version"]
try:
    main()
finally:
    print(os.environ.get("no_proxy"))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=os.environ | given,
        timeout=60,
        check=True,
    )

    assert done.stdout.split()[-1] == left_out


async def test_a_model_on_this_machine_is_asked_directly_and_another_by_the_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    port = free_port()
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
    monkeypatch.setattr("folklore.embedding.http_client._ATTEMPTS", 1)
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    near = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    answered = await service(near).post("x", {}, timeout=30)
    with pytest.raises(Unavailable, match=f"by the proxy http://127.0.0.1:{port} of"):
        await service("http://model.example.com").post("x", {}, timeout=30)
    server.close()

    assert answered == {}


def service(url: str) -> HttpService:
    return HttpService("model", "embedding", Address(url), Unavailable)
