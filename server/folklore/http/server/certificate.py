"""The server's TLS certificate and its key, from PEM files."""

import ssl
from pathlib import Path

from folklore.errors import ConfigInvalid


def tls_context(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """Return the TLS context to serve with; None if neither file is set.

    Raises ConfigInvalid, which names the file that is missing, unreadable or does not belong to the other.
    """
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        missing = "http.tls_cert" if certificate is None else "http.tls_key"
        raise ConfigInvalid(missing, "is not set.", hint="TLS needs both http.tls_cert and http.tls_key.")
    certificate, key = certificate.expanduser(), key.expanduser()
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
