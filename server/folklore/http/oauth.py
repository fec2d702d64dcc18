"""Access tokens of an identity provider: JWTs of one configured issuer, checked with its published keys.

RFC 9068 (the tokens), RFC 7517 (the keys). PyJWT checks them and keeps the keys.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import urllib.request
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

import jwt

from folklore.config import OAuthSettings
from folklore.errors import ConfigInvalid, Unauthenticated, Unavailable
from folklore.log import get_logger
from folklore.memory.auth.tokens import ExternalIdentity
from folklore.text.clean import clean

log = get_logger(__name__)

# Key pairs only: a shared secret that checks signatures could also make them, and "none" is no signature.
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_TIMEOUT_SECONDS = 10.0
_LEEWAY_SECONDS = 30
_OWNER = "owner"


class JwtIssuer:
    """The configured issuer, whose keys are found when the first token comes. Raises ConfigInvalid."""

    def __init__(self, settings: OAuthSettings) -> None:
        if settings.issuer is None or settings.audience is None:
            raise ConfigInvalid("oauth.audience", "goes with oauth.issuer.", hint="Set both.")
        for name, url in (("issuer", settings.issuer), ("jwks_url", settings.jwks_url)):
            if url is not None and not _is_safe(url):
                raise ConfigInvalid(
                    f"oauth.{name}", "must be an https address.", hint="http is for issuers on this machine."
                )
        self._settings = settings
        self._issuer = settings.issuer
        self._client: jwt.PyJWKClient | None = None
        self._lock = asyncio.Lock()
        # A digest of the settings: other rules give the same access token other grants.
        self.rules = hashlib.sha256(settings.model_dump_json().encode()).hexdigest()

    async def verify(self, token: str, *, now: datetime) -> ExternalIdentity:
        """Return what a token says if its signature, issuer, audience and times are valid.

        Raises Unauthenticated, Unavailable (the issuer's keys cannot be fetched).
        """
        try:
            kid = jwt.get_unverified_header(token).get("kid")
        except jwt.PyJWTError:
            raise Unauthenticated("malformed", "This is neither a token of Folklore nor a JWT.") from None
        key = await self._key(kid)
        try:
            claims = jwt.decode(
                token,
                key.key,
                algorithms=_ALGORITHMS,
                audience=self._settings.audience,
                issuer=self._issuer,
                leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.ExpiredSignatureError:
            raise Unauthenticated("expired", "This access token has expired.", hint="Get a new one.") from None
        except (jwt.PyJWTError, TypeError) as error:  # TypeError: the algorithm does not fit the key
            raise Unauthenticated("untrusted", f"This access token is not valid here ({error}).") from None
        return self._identity(claims)

    def _identity(self, claims: Mapping[str, Any]) -> ExternalIdentity:
        try:
            expires_at = datetime.fromtimestamp(int(claims["exp"]), UTC)
        except (ValueError, OverflowError, OSError):
            raise Unauthenticated("untrusted", "This access token expires in no possible year.") from None
        grants = list(self._grants(claims))
        return ExternalIdentity(
            principal=self._principal(claims["sub"]),
            grants=[grant for grant in grants if grant != _OWNER],
            owner=_OWNER in grants,
            expires_at=expires_at,
            issuer=self._issuer,
        )

    def _principal(self, subject: str) -> str:
        """Return `subject <issuer>`, which no local principal can be called: their names hold no "://".

        Raises Unauthenticated for a subject with characters that cannot be seen: it would look like another one's.
        """
        if not subject.isprintable() or clean(subject).text != subject or not subject.strip() == subject != "":
            raise Unauthenticated("untrusted", "This access token's claim sub is empty or holds invisible characters.")
        return f"{subject} <{self._issuer}>"

    def _grants(self, claims: Mapping[str, Any]) -> Iterator[str]:
        for rule in self._settings.rules:
            values = _values(claims.get(rule.claim))
            if rule.grant is None:  # the claim lists grants; an owner needs a rule that says so
                yield from (value for value in values if value != _OWNER)
            elif rule.value in values:
                yield rule.grant

    async def _key(self, kid: str | None) -> jwt.PyJWK:
        async with self._lock:  # PyJWT fetches under a lock of its own; waiting here takes no thread
            try:
                return await asyncio.to_thread(self._find_key, kid)
            except (jwt.PyJWTError, OSError, ValueError) as error:
                log.warning("issuer_unreachable", issuer=self._issuer, reason=f"{type(error).__name__}: {error}")
                raise Unavailable("The issuer's keys cannot be fetched now.", hint="Try again.") from error

    def _find_key(self, kid: str | None) -> jwt.PyJWK:
        """Return the key of this id; an issuer with one key need not name it. Unknown ids ask it twice a minute."""
        if self._client is None:
            url = self._settings.jwks_url or _discover(self._issuer)
            self._client = jwt.PyJWKClient(url, timeout=_TIMEOUT_SECONDS)
        keys = self._client.get_signing_keys()
        if kid is None and len(keys) == 1:
            return keys[0]
        try:
            return self._client.get_signing_key(kid or "")
        except jwt.PyJWKClientConnectionError:
            raise
        except jwt.PyJWKClientError:
            message = "This access token is signed with a key that its issuer does not publish."
            raise Unauthenticated("untrusted", message) from None


def _discover(issuer: str) -> str:
    """Return the address of the issuer's keys: OpenID Connect Discovery, else RFC 8414. Raises OSError, ValueError."""
    parts = urlsplit(issuer)
    base = issuer.rstrip("/")
    path = parts.path.rstrip("/")
    known = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-authorization-server{path}"
    problem: Exception | None = None
    for url in (f"{base}/.well-known/openid-configuration", known):
        try:
            with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310 - checked by _is_safe
                metadata = json.loads(answer.read(1_000_000))
        except (OSError, ValueError) as error:
            if isinstance(error, HTTPError):
                error.close()  # it is the response too, and holds its connection
            problem = error
            continue
        named, keys = (metadata.get("issuer"), metadata.get("jwks_uri")) if isinstance(metadata, dict) else (None, None)
        if named != issuer or not isinstance(keys, str) or not _is_safe(keys):
            raise ValueError(f"{url} is not of this issuer, or names no keys")
        return keys
    assert problem is not None
    raise problem


def _is_safe(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1"))


def _values(claim: object) -> list[str]:
    """Return the values of a claim: a list of texts, or one text with spaces between values, as scopes are."""
    if isinstance(claim, str):
        return claim.split()
    return [text for text in claim if isinstance(text, str)] if isinstance(claim, list) else []
