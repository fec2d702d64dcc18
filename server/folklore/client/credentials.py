"""Tokens for servers: each in the system's keyring, else in a file that only its owner can read.

A file in the home names each server that has a token, so that a server without one costs no access to the keyring,
which may ask a person to unlock it. The keyring is accessed by a process of its own, `python -m keyring`: it can be
ended if it waits for a person, prints nothing here, and its libraries take no memory of a server that runs for days.
"""

import hashlib
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, urlsplit

from folklore.client.whole_file import replace_file
from folklore.config import home_directory
from folklore.errors import ConfigInvalid, InvalidInput, Unavailable

_SERVICE = "folklore"
_SECONDS = 10.0  # a person may have to unlock the keyring
_DEFAULT_PORTS = {"http": 80, "https": 443}


def read_token(server: str, *, home: Path | None = None) -> str | None:
    """Return the token for a server; None without one.

    Raises Unavailable if it is in the keyring and that does not answer, ConfigInvalid for a damaged file.
    """
    url = normalised(server)
    path = _path(url, home)
    try:
        record = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        record = None
    is_record = isinstance(record, dict)
    if not is_record or not isinstance(record.get("token"), str | None):
        raise ConfigInvalid(
            "token",
            f"{path} cannot be read.",
            hint="Delete it and save the token again.",
        )
    token: str | None = record.get("token")
    if token is None:
        token = _ask_keyring("get", url)
    if token is None:
        raise Unavailable(
            f"The token for {url} is in the system's keyring, which does not answer or no longer has it.",
            hint="Unlock the keyring, or set FOLKLORE_TOKEN.",
        )
    return token


def save_token(server: str, token: str, *, home: Path | None = None) -> str:
    """Keep the token for a server in place of an earlier one, and return in words where it is.

    Raises InvalidInput for a text that is no token.
    """
    url = normalised(server)
    if not (token and token.isascii() and token.isprintable() and " " not in token):
        raise InvalidInput(
            "token", "is not a token.", hint="`folklore tokens create` shows one, once."
        )
    path = _path(url, home)
    record = {"server": url}
    where = "the system's keyring"
    is_taken = _ask_keyring("set", url, token) is not None
    # Some backends take an entry and keep nothing.
    if not is_taken or _ask_keyring("get", url) != token:
        record["token"] = token
        where = f"{path} (mode 0600; this system has no keyring that answers)"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(path, json.dumps(record).encode(), 0o600)
    return where


def delete_token(server: str, *, home: Path | None = None) -> bool:
    """Delete the token for a server. Returns False if there was none."""
    url = normalised(server)
    path = _path(url, home)
    if not path.exists():
        return False
    # one may remain there from before the token was saved in the file
    _ask_keyring("del", url)
    path.unlink(missing_ok=True)
    return True


def normalised(server: str) -> str:
    """Return the address of a server in one spelling: lower case, without default port, trailing slash and /mcp.

    Raises InvalidInput for a text that is no address.
    """
    try:
        parts = urlsplit(server.strip())
        host = parts.hostname
        port = parts.port
    except ValueError:
        host = None
        port = None
    if not host or parts.scheme not in _DEFAULT_PORTS:
        raise InvalidInput(
            "server", "is not an address such as https://memory.example.com."
        )
    address = f"[{host}]" if ":" in host else host
    if port is not None and port != _DEFAULT_PORTS[parts.scheme]:
        address = f"{address}:{port}"
    path = parts.path.rstrip("/").removesuffix("/mcp").rstrip("/")
    return f"{parts.scheme}://{address}{path}"


def _path(url: str, home: Path | None) -> Path:
    """Return the file of a server: one for each, so that two processes never write the same one."""
    host = quote(urlsplit(url).netloc, safe="")
    digest = hashlib.sha256(url.encode()).hexdigest()
    folder = (home or home_directory(os.environ)) / "credentials"
    return folder / f"{host[:100]}-{digest[:12]}.json"


def _ask_keyring(operation: str, url: str, token: str = "") -> str | None:
    """Return what the keyring prints for an operation; None if it fails, has no such entry or does not answer."""
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(  # noqa: S603 - fixed arguments and an address
            # -P: without it, a file keyring.py of the repository in which this process runs would be executed.
            [sys.executable, "-P", "-m", "keyring", operation, _SERVICE, url],
            input=token,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            start_new_session=True,  # no terminal to ask for a password on
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        return done.stdout.strip() if done.returncode == 0 else None
    return None
