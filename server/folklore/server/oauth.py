"""Access tokens of an identity provider: JWTs of one configured issuer, checked with its published keys.

RFC 9068 (the tokens), RFC 7517 (the keys). PyJWT checks them and reads the keys.
"""

import hashlib
import json
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from http.client import HTTPException
from time import monotonic
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

import jwt

from folklore.config import OAuthSettings
from folklore.errors import ConfigInvalid, Unauthenticated
from folklore.memory import ExternalIdentity
from folklore.server.issuer_keys import IssuerKeys
from folklore.text.clean import clean

# Key pairs only: a shared secret that checks signatures could also make them, and "none" is no signature.
_ALGORITHMS = [
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
]
_TIMEOUT_SECONDS = 10.0
_LEEWAY_SECONDS = 30
_OWNER = "owner"
_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")


class JwtIssuer:
    """The configured issuer, whose keys are found when the first token comes. Raises ConfigInvalid."""

    def __init__(
        self, settings: OAuthSettings, clock: Callable[[], float] = monotonic
    ) -> None:
        if settings.issuer is None or settings.audience is None:
            raise ConfigInvalid(
                "oauth.audience", "goes with oauth.issuer.", hint="Set both."
            )
        for name, url in (("issuer", settings.issuer), ("jwks_url", settings.jwks_url)):
            if url is not None and not _is_safe(url):
                raise ConfigInvalid(
                    f"oauth.{name}",
                    "must be an https address.",
                    hint="http is for issuers on this machine.",
                )
        self._settings = settings
        self._issuer = settings.issuer
        self._keys_url = settings.jwks_url
        self._keys = IssuerKeys(settings.issuer, self._fetch_keys, clock)
        # A digest of the settings: other rules give the same access token other grants.
        self.rules = hashlib.sha256(settings.model_dump_json().encode()).hexdigest()

    async def verify(self, token: str, *, now: datetime) -> ExternalIdentity:
        """Return what a token says if its signature, issuer, audience and times are valid.

        Raises Unauthenticated, Unavailable (the issuer's keys cannot be fetched).
        """
        try:
            kid = jwt.get_unverified_header(token).get("kid")
        except jwt.PyJWTError:
            raise Unauthenticated(
                "malformed", "This is neither a token of Folklore nor a JWT."
            ) from None
        key = await self._keys.find(kid)
        if key is None:
            message = "This access token is signed with a key that its issuer does not publish."
            raise Unauthenticated("untrusted", message)
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
            raise Unauthenticated(
                "expired", "This access token has expired.", hint="Get a new one."
            ) from None
        except (
            jwt.PyJWTError,
            TypeError,
        ) as error:  # TypeError: the algorithm does not fit the key
            raise Unauthenticated(
                "untrusted", f"This access token is not valid here ({error})."
            ) from None
        return self._identity(claims)

    def _identity(self, claims: Mapping[str, Any]) -> ExternalIdentity:
        try:
            expires_at = datetime.fromtimestamp(int(claims["exp"]), UTC)
        except (ValueError, OverflowError, OSError):
            raise Unauthenticated(
                "untrusted", "This access token expires in no possible year."
            ) from None
        grants = self._grants(claims)
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
        is_visible = subject.isprintable() and clean(subject).text == subject
        if not subject or not is_visible or subject.strip() != subject:
            raise Unauthenticated(
                "untrusted",
                "This access token's claim sub is empty or holds invisible characters.",
            )
        return f"{subject} <{self._issuer}>"

    def _grants(self, claims: Mapping[str, Any]) -> list[str]:
        grants = []
        for rule in self._settings.rules:
            values = _values(claims.get(rule.claim))
            # the claim lists grants; an owner needs a rule that says so
            if rule.grant is None:
                grants += [value for value in values if value != _OWNER]
            elif rule.value in values:
                grants.append(rule.grant)
        return grants

    def _fetch_keys(self) -> Sequence[jwt.PyJWK]:
        """Return the published keys that can check signatures. See IssuerKeys for the errors."""
        if self._keys_url is None:
            self._keys_url = _discover(self._issuer)
        client = jwt.PyJWKClient(
            self._keys_url, cache_jwk_set=False, timeout=_TIMEOUT_SECONDS
        )
        return client.get_signing_keys()


def _discover(issuer: str) -> str:
    """Return the address of the issuer's keys: OpenID Connect Discovery, else RFC 8414.

    Raises OSError, ValueError, HTTPException.
    """
    parts = urlsplit(issuer)
    base = issuer.rstrip("/")
    path = parts.path.rstrip("/")
    metadata_url = (
        f"{parts.scheme}://{parts.netloc}/.well-known/oauth-authorization-server{path}"
    )
    problem: Exception | None = None
    for url in (f"{base}/.well-known/openid-configuration", metadata_url):
        try:
            with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310 - checked by _is_safe
                metadata = json.loads(answer.read(1_000_000))
        except (OSError, ValueError, HTTPException) as error:
            if isinstance(error, HTTPError):
                error.close()  # it is the response too, and holds its connection
            problem = error
            continue
        keys = _keys_url(metadata, issuer)
        if keys is None:
            raise ValueError(f"{url} is not of this issuer, or names no keys")
        return keys
    assert problem is not None
    raise problem


def _keys_url(metadata: object, issuer: str) -> str | None:
    """Return the address of the keys that the metadata of this issuer names; None for other metadata."""
    if not isinstance(metadata, dict) or metadata.get("issuer") != issuer:
        return None
    url = metadata.get("jwks_uri")
    if not isinstance(url, str) or not _is_safe(url):
        return None
    return url


def _is_safe(url: str) -> bool:
    parts = urlsplit(url)
    if parts.scheme == "https":
        return True
    return parts.scheme == "http" and parts.hostname in _THIS_MACHINE


def _values(claim: object) -> list[str]:
    """Return the values of a claim: a list of texts, or one text with spaces between values, as scopes are."""
    if isinstance(claim, str):
        return claim.split()
    if isinstance(claim, list):
        return [text for text in claim if isinstance(text, str)]
    return []
