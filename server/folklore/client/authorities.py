"""Certificate authorities of servers: those of this machine, and for a server one of its own, kept in the home."""

import hashlib
import ssl
from pathlib import Path

from folklore.errors import InvalidInput


def tls_context(server: str, home: Path | None) -> ssl.SSLContext:
    """Return how certificates are checked: by the authorities of this machine or of certifi, and the server's own."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    if not context.cert_store_stats()["x509_ca"]:
        import certifi

        context.load_verify_locations(certifi.where())
    if home is not None and _path(server, home).exists():
        context.load_verify_locations(_path(server, home))
    return context


def keep_authority(server: str, certificate: Path, home: Path) -> None:
    """Keep the certificate of the authority that issued a server's own (PEM). Raises InvalidInput, OSError."""
    text = certificate.read_text(encoding="ascii", errors="replace")
    try:
        ssl.create_default_context(cadata=text)
    except ssl.SSLError as error:
        raise InvalidInput(
            "ca", f"{certificate} holds no certificate in PEM."
        ) from error
    path = _path(server, home)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(text, encoding="ascii")


def drop_authority(server: str, home: Path) -> None:
    """Delete the certificate kept for a server, if there is one."""
    _path(server, home).unlink(missing_ok=True)


def _path(server: str, home: Path) -> Path:
    digest = hashlib.sha256(server.encode()).hexdigest()
    return home / "authorities" / f"{digest[:24]}.pem"
