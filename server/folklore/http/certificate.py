"""TLS by files: the server's certificate and its key, also when they are renewed while it serves."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import structlog

from folklore.errors import ConfigInvalid

log = structlog.get_logger(__name__)

_LOOK_SECONDS = 10.0


class Certificate:
    """A certificate with its chain and its key, from PEM files; `context` is what to serve TLS with.

    Raises ConfigInvalid, which names the file that is missing, unreadable or does not belong to the other.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = certificate.expanduser(), key.expanduser()
        self._seen = self._stamps()
        self.context = self._newest = _context(*self._files)
        # Each connection takes the newest when it begins. To load new files into a context in use could leave it with
        # a certificate of one and a key of another.
        self.context.sni_callback = self._show_newest

    def renew(self) -> None:
        """Show the files, if they are others by now, to whoever connects from then on; broken ones are only told of."""
        seen = self._stamps()
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self._newest = _context(*self._files)
            log.info("the renewed certificate is in use", certificate=str(self._files[0]))
        except (ConfigInvalid, OSError) as error:
            log.error("the renewed certificate cannot be used, the old one stays", problem=str(error))  # noqa: TRY400

    async def keep_new(self) -> None:
        """Look after the files from time to time, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            await asyncio.to_thread(self.renew)

    def _show_newest(self, connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _of: ssl.SSLContext) -> None:
        connection.context = self._newest

    def _stamps(self) -> list[tuple[int, ...] | None]:
        return [_stamp(path) for path in self._files]


def certificate_of(certificate: Path | None, key: Path | None) -> Certificate | None:
    """The certificate of the settings; None when neither file is set. Raises ConfigInvalid."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        missing = "http.tls_cert" if certificate is None else "http.tls_key"
        raise ConfigInvalid(missing, "is not set.", hint="TLS needs both http.tls_cert and http.tls_key.")
    return Certificate(certificate, key)


def _stamp(path: Path) -> tuple[int, ...] | None:
    """What is different of a file that was written anew, or of another one in its place."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    for setting, path in (("http.tls_cert", certificate), ("http.tls_key", key)):
        try:
            path.open("rb").close()
        except OSError as error:
            raise ConfigInvalid(setting, f"{path} cannot be read ({error.strerror}).") from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigInvalid("http.tls_key", f"{key} is not the key of {certificate}.") from error
        raise ConfigInvalid(
            "http.tls_cert", f"{certificate} and {key} are not a certificate and its key in PEM ({error.reason})."
        ) from error
    return context


def _no_password() -> str:
    raise ConfigInvalid(
        "http.tls_key", "is protected by a password.", hint="Take it off, e.g. `openssl pkey -in KEY -out NEW`."
    )
