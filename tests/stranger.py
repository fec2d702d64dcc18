"""Another user of the machine: requests that a process of `nobody` sends. Only root may become another user."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

NOBODY = 65534
needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root may send requests as another user"
)

_PROGRAM = """
import encodings.idna, http.client, json, os, sys

# After the imports, which another user may not be allowed to read.
user = int(sys.argv[1])
os.setgroups([])
os.setgid(user)
os.setuid(user)
answers = []
for method, url, body, headers in json.load(sys.stdin):
    host, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request(method, f"/{path}", body, headers)
    response = connection.getresponse()
    answers.append([response.status, dict(response.getheaders()), response.read().decode()])
    connection.close()
print(json.dumps(answers))
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """A response as the other user got it; names of headers in lower case."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass(frozen=True, slots=True)
class Sent:
    """A request of the other user."""

    method: str
    url: str
    body: str | None = None
    headers: Mapping[str, str] | None = None


async def as_nobody(*requests: Sent) -> list[Seen]:
    """Send these requests, each on a connection of its own."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-c", _PROGRAM, str(NOBODY)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    sent = [
        [one.method, one.url, one.body, dict(one.headers or {})] for one in requests
    ]
    async with asyncio.timeout(120):
        output, _ = await process.communicate(json.dumps(sent).encode())
    assert process.returncode == 0
    return [
        Seen(status, {name.lower(): value for name, value in headers.items()}, text)
        for status, headers, text in json.loads(output)
    ]
