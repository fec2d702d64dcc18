"""The servers of this person that serve a memory over HTTP, for `folklore open`.

Each keeps a file in the home with its address and a secret. A file may be left over from a process that was killed, and
its port may belong to another program by then. So a server is asked for a proof: that it knows the secret, and that it
serves the requested memory. Nothing but a random number is sent to it before.
"""

from __future__ import annotations

import hmac
import http.client
import json
import secrets
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from folklore.clients.whole_file import replace_file
from folklore.config import Settings
from folklore.log import get_logger

log = get_logger(__name__)

PROOF_PATH = "/.well-known/folklore"
_ANY = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - replaced, not listened on
# A server that has just started answers late.
_SECONDS = 10.0
_LONGEST_ANSWER = 1_000


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server: the address that it listens on, that of its console, and the secret of its file."""

    address: str
    url: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity of a server: a secret, and the memory that it serves."""

    secret: str = field(repr=False)
    memory: str = field(repr=False)

    @classmethod
    def of(cls, settings: Settings, secret: str | None = None) -> Identity:
        """Return the identity of a server with these settings; with a new secret unless one is given."""
        url = settings.database_url
        memory = f"embedded {settings.home}" if url is None else url.get_secret_value()
        return cls(secret or secrets.token_urlsafe(32), memory)

    def prove(self, number: str) -> str:
        """Return the proof for a random number."""
        return hmac.digest(self.secret.encode(), f"{number} {self.memory}".encode(), "sha256").hex()


def folder_of(home: Path) -> Path:
    """Return the folder of the files."""
    return home / "servers"


@contextmanager
def registered(settings: Settings, identity: Identity, address: str, url: str | None) -> Iterator[None]:
    """Keep the file of a server while it serves. A home that cannot be written makes it known to no command."""
    for name, reachable in _ANY.items():
        address = address.replace(f"//{name}:", f"//{reachable}:")
    path = folder_of(settings.home) / f"{secrets.token_hex(8)}.json"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = asdict(LocalServer(address, url or address, identity.secret))
        replace_file(path, json.dumps(kept).encode(), 0o600)
    except OSError as error:
        log.info("server_not_registered", path=str(path), reason=error.strerror)
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def find_server(settings: Settings) -> str | None:
    """Return the address of the console of a running server on this memory, the one that started last."""
    for path in sorted(folder_of(settings.home).glob("*.json"), key=_modified, reverse=True):
        known = _read(path)
        if known is None:
            continue
        try:
            proven = _is_proven(known, Identity.of(settings, known.secret))
        except ConnectionRefusedError:  # nothing listens there any more
            path.unlink(missing_ok=True)
        except (OSError, http.client.HTTPException, ValueError) as error:
            log.info("server_does_not_answer", address=known.address, reason=str(error))
        else:
            if proven:
                return known.url
    return None


def _is_proven(server: LocalServer, identity: Identity) -> bool:
    number = secrets.token_hex(16)
    with closing(_connection(server.address)) as connection:
        connection.request("GET", f"{PROOF_PATH}?number={number}")
        answer = connection.getresponse().read(_LONGEST_ANSWER)
    value = json.loads(answer)
    given = value.get("proof") if isinstance(value, dict) else None
    return isinstance(given, str) and hmac.compare_digest(given.encode(), identity.prove(number).encode())


def _connection(address: str) -> http.client.HTTPConnection:
    parts = urlsplit(address)
    if parts.scheme != "https":
        return http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=_SECONDS)
    # Its certificate is for its name and not for this address. The proof takes its place.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(str(parts.hostname), parts.port, timeout=_SECONDS, context=context)


def _read(path: Path) -> LocalServer | None:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        return LocalServer(str(value["address"]), str(value["url"]), str(value["secret"]))
    except (OSError, ValueError, KeyError, TypeError):  # deleted meanwhile, or not ours
        return None


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
