"""The server's TLS certificate and its key, from PEM files that may be renewed while it serves."""

from __future__ import annotations

import ssl
from pathlib import Path
from time import monotonic

from folklore.errors import ConfigInvalid
from folklore.log import get_logger

log = get_logger(__name__)

_LOOK_SECONDS = 1.0


class Certificate:
    """A certificate with its chain and its key; `context` is the TLS context to serve with.

    Each handshake uses the newest files that can be used. Raises ConfigInvalid, which names the file that is missing,
    unreadable or does not belong to the other.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = certificate.expanduser(), key.expanduser()
        self._seen = self._stamps()
        self._looked_at = monotonic()
        self.context = self._newest = _context(*self._files)
        # A context per pair of files: new files loaded into a context in use could leave it with a certificate of one
        # pair and a key of the other.
        self.context.sni_callback = self._use_newest

    def renew(self) -> None:
        """Use the files from now on if they changed. Files that cannot be used are logged, and the old pair stays."""
        seen = self._stamps()
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self._newest = _context(*self._files)
            log.info("certificate_renewed", certificate=str(self._files[0]))
        except (ConfigInvalid, OSError) as error:
            log.error("certificate_unusable", problem=str(error))  # noqa: TRY400 - the message is ours

    def _use_newest(self, connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _of: ssl.SSLContext) -> None:
        if monotonic() - self._looked_at > _LOOK_SECONDS:
            self._looked_at = monotonic()
            self.renew()
        connection.context = self._newest

    def _stamps(self) -> list[tuple[int, ...] | None]:
        return [_stamp(path) for path in self._files]


def certificate_of(certificate: Path | None, key: Path | None) -> Certificate | None:
    """Return the certificate of the settings; None if neither file is set. Raises ConfigInvalid."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        missing = "http.tls_cert" if certificate is None else "http.tls_key"
        raise ConfigInvalid(missing, "is not set.", hint="TLS needs both http.tls_cert and http.tls_key.")
    return Certificate(certificate, key)


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Return what changes when a file is written again or replaced."""
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
        "http.tls_key", "is protected by a password.", hint="Remove it, e.g. `openssl pkey -in KEY -out NEW`."
    )
