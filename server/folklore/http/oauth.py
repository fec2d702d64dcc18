"""Access tokens of somebody else: JWTs of one configured issuer, checked by its published keys (RFC 9068, RFC 7517)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime
from time import monotonic
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

import jwt
import structlog

from folklore.config import OAuthSettings
from folklore.errors import ConfigInvalid, Unauthenticated, Unavailable
from folklore.memory.auth.tokens import ExternalIdentity

log = structlog.get_logger(__name__)

# Signatures by a key pair alone: with a shared secret whoever checks could sign too, and "none" is no signature.
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_SECONDS = 10.0
_KEYS_LAST = 300
# A token may name any key: so often at most the issuer is asked whether it has a new one.
_ASK_AGAIN = 30.0
_LEEWAY = 30
# What a rule may grant beside namespace:role.
OWNER = "owner"


class JwtIssuer:
    """One issuer. Its address and its keys are fetched when the first token comes, and kept for five minutes."""

    def __init__(self, settings: OAuthSettings) -> None:
        if settings.issuer is None or settings.audience is None:
            raise ConfigInvalid("oauth.audience", "goes with oauth.issuer.", hint="Set both.")
        for name, url in (("issuer", settings.issuer), ("jwks_url", settings.jwks_url)):
            if url is not None and not _trusty(url):
                raise ConfigInvalid(
                    f"oauth.{name}", "must be an https address.", hint="http is for issuers on this machine."
                )
        self._settings = settings
        self._issuer = settings.issuer
        self._client: jwt.PyJWKClient | None = None
        self._asked = 0.0
        self._lock = asyncio.Lock()
        rules = settings.model_dump_json()
        self._rules = hashlib.sha256(rules.encode()).hexdigest()

    @property
    def rules(self) -> str:
        """What makes grants out of claims, as text: under other rules the same token is another."""
        return self._rules

    async def verify(self, token: str, *, now: datetime) -> ExternalIdentity:
        """What a token says, if its signature, issuer, audience and times are good.

        Raises Unauthenticated, Unavailable (the issuer's keys cannot be had).
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
                leeway=_LEEWAY,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.ExpiredSignatureError:
            raise Unauthenticated("expired", "This access token has expired.", hint="Get a new one.") from None
        except (jwt.PyJWTError, TypeError) as error:  # TypeError: an algorithm that is not for the key it names
            raise Unauthenticated("untrusted", f"This access token is not good here ({error}).") from None
        return self._said(claims)

    def _said(self, claims: Mapping[str, Any]) -> ExternalIdentity:
        settings = self._settings
        principal = claims.get(settings.principal_claim)
        if not isinstance(principal, str) or not principal.strip():
            raise Unauthenticated("untrusted", f"This access token has no claim {settings.principal_claim}.")
        try:
            expires_at = datetime.fromtimestamp(int(claims["exp"]), UTC)
        except (ValueError, OverflowError, OSError):
            raise Unauthenticated("untrusted", "This access token expires in no year there is.") from None
        grants = _texts(claims.get(settings.grants_claim))
        grants += [rule.grant for rule in settings.rules if rule.value in _texts(claims.get(rule.claim))]
        return ExternalIdentity(
            principal=principal,
            grants=[grant for grant in grants if grant != OWNER],
            # Only our own settings make an owner, never a claim by itself.
            owner=any(rule.grant == OWNER and rule.value in _texts(claims.get(rule.claim)) for rule in settings.rules),
            expires_at=expires_at,
            issuer=self._issuer,
        )

    async def _key(self, kid: str | None) -> jwt.PyJWK:
        async with self._lock:
            try:
                keys = await asyncio.to_thread(self._keys, refresh=False)
                found = _find(keys, kid)
                if found is None and monotonic() - self._asked > _ASK_AGAIN:
                    self._asked = monotonic()
                    found = _find(await asyncio.to_thread(self._keys, refresh=True), kid)
            except (jwt.PyJWTError, OSError, ValueError) as error:
                log.warning("issuer_unreachable", issuer=self._issuer, reason=f"{type(error).__name__}: {error}")
                raise Unavailable("The issuer's keys cannot be had right now.", hint="Try again.") from error
        if found is None:
            raise Unauthenticated("untrusted", "This access token is signed with a key that its issuer does not have.")
        return found

    def _keys(self, *, refresh: bool) -> list[jwt.PyJWK]:
        if self._client is None:
            url = self._settings.jwks_url or _discovered(self._issuer)
            self._client = jwt.PyJWKClient(url, lifespan=_KEYS_LAST, timeout=_SECONDS)
        return self._client.get_signing_keys(refresh=refresh)


def _find(keys: list[jwt.PyJWK], kid: str | None) -> jwt.PyJWK | None:
    if kid is None:  # an issuer of one key need not name it
        return keys[0] if len(keys) == 1 else None
    return next((key for key in keys if key.key_id == kid), None)


def _discovered(issuer: str) -> str:
    """Where the issuer says its keys are: OpenID Connect Discovery, else RFC 8414. Raises OSError, ValueError."""
    parts = urlsplit(issuer)
    base = issuer.rstrip("/")
    path = parts.path.rstrip("/")
    known = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-authorization-server{path}"
    problem: Exception | None = None
    for url in (f"{base}/.well-known/openid-configuration", known):
        try:
            with urllib.request.urlopen(url, timeout=_SECONDS) as answer:  # noqa: S310 - checked by _trusty
                said = json.loads(answer.read(1_000_000))
        except (OSError, ValueError) as error:
            if isinstance(error, HTTPError):
                error.close()  # it is the answer as well, and holds its connection
            problem = error
            continue
        named, keys = (said.get("issuer"), said.get("jwks_uri")) if isinstance(said, dict) else (None, None)
        if named != issuer or not isinstance(keys, str) or not _trusty(keys):
            raise ValueError(f"{url} is not of this issuer, or names no keys")
        return keys
    assert problem is not None
    raise problem


def _trusty(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1"))


def _texts(claim: object) -> list[str]:
    """The values of a claim: a list of texts, or texts in one with spaces between them, as scopes are."""
    if isinstance(claim, str):
        return claim.split()
    return [text for text in claim if isinstance(text, str)] if isinstance(claim, list) else []
