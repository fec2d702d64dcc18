"""Secrets of tokens and invitations: how they are written, and what a server keeps of them."""

import hashlib
import secrets
import string
import zlib

# The beginning of a token, and of an invitation.
PREFIX = "fk_"
INVITATION = "fi_"
_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase


def new_secret() -> str:
    """Return a new token: 32 random bytes with their checksum."""
    return with_checksum(secrets.token_urlsafe(32))


def with_checksum(random: str) -> str:
    """Return the token of these 43 characters: the prefix, they, and their CRC-32 as six digits of base 62.

    The checksum shows a typing error without a look into the database, and lets a scanner of leaks recognise a token.
    """
    rest = zlib.crc32(random.encode())
    digits = ""
    for _ in range(6):
        rest, digit = divmod(rest, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return f"{PREFIX}{random}{digits}"


def key_of(secret: str) -> str:
    """Return the SHA-256 of a token in hexadecimal, which proves to the database which token a transaction runs for."""
    return hashlib.sha256(secret.encode()).hexdigest()


def digest_of(key: str) -> bytes:
    """Return the SHA-256 of a key, which is what the database stores."""
    return hashlib.sha256(bytes.fromhex(key)).digest()
