"""A service spoken to in JSON over HTTP: tried again where that may help, never for longer than the caller can wait."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import httpx
import structlog

from folklore.embedding.circuit_breaker import Breaker
from folklore.errors import EmbedderUnavailable, Unavailable

log = structlog.get_logger(__name__)

# Somebody waits for the answer to a question, and can be answered without.
_ATTEMPTS, _ATTEMPTS_WAITED_FOR = 4, 3
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
# Statuses by which services say that a request holds too much, with the words that must say so too.
_TOO_LARGE = ("too long", "too large", "token limit", "tokens")
_TOO_MUCH: dict[int, tuple[str, ...]] = {
    400: (*_TOO_LARGE, "length", "batch", "context", "maximum"),
    413: ("",),
    422: (*_TOO_LARGE, "length", "batch", "context", "maximum"),
    500: _TOO_LARGE,
}


class TooMuch(Exception):
    """The service refused a request for its size. Its words are not kept: they may repeat a text."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a service is, who we are there, how long one attempt may take (seconds), how many run at once."""

    url: str
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 30.0
    concurrency: int = 4

    @property
    def base(self) -> str:
        """The URL before the route, which may stand in it or not, and without its query."""
        parts = urlsplit(self.url)
        path = parts.path.rstrip("/")
        for route in ("/embeddings", "/rerank"):
            path = path.removesuffix(route)
        return urlunsplit((parts.scheme, parts.netloc, path, "", "")) + "/"

    @property
    def parameters(self) -> dict[str, str]:
        """The URL's own query, such as Azure's api-version."""
        return dict(parse_qsl(urlsplit(self.url).query))

    @property
    def headers(self) -> dict[str, str]:
        """How the key is shown; Azure wants it in a header of its own."""
        if self.api_key is None:
            return {}
        if (urlsplit(self.url).hostname or "").endswith(".azure.com"):
            return {"api-key": self.api_key}
        return {"Authorization": f"Bearer {self.api_key}"}


class Service:
    """One client for the life of the process. `what` names it in messages, `setting` where it is configured."""

    def __init__(
        self,
        what: str,
        setting: str,
        address: Address,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        error: type[Unavailable] = EmbedderUnavailable,
    ) -> None:
        self._what = what
        self._setting = setting
        self._address = address
        self._error = error
        self._client = httpx.AsyncClient(
            base_url=address.base,
            params=address.parameters,
            headers=address.headers,
            timeout=address.timeout,
            transport=transport,
        )
        self._breaker = Breaker()
        # Questions have a lane of their own: somebody waits for them, and a backfill may fill the other.
        self._lanes = {waited_for: asyncio.Semaphore(address.concurrency) for waited_for in (True, False)}

    def fail(self, reason: str, *, hint: str | None = None) -> Unavailable:
        """An error of this service's kind."""
        return self._error(f"The {self._what} {reason}.", hint=hint or f"Check {self._setting}.url.")

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def post(self, route: str, body: Mapping[str, Any], *, patience: float, waited_for: bool = False) -> Any:
        """The JSON a route answers, within `patience` seconds, all attempts and pauses counted.

        Raises TooMuch, and for anything else the service's own kind of Unavailable.
        """
        if (wait := self._breaker.wait()) > 0:
            raise self.fail(f"has failed again and again and is asked again in {wait:.0f} s")
        async with self._lanes[waited_for]:
            try:
                answer = await self._tried(route, body, patience, _ATTEMPTS_WAITED_FOR if waited_for else _ATTEMPTS)
            except TooMuch:
                self._breaker.succeeded()
                raise
            except Unavailable:
                self._breaker.failed()
                raise
        self._breaker.succeeded()
        return answer

    async def _tried(self, route: str, body: Mapping[str, Any], patience: float, attempts: int) -> Any:
        clock = asyncio.get_running_loop().time
        deadline = clock() + patience
        reason = ""
        for attempt in range(attempts):
            wait: float | None = None
            try:
                async with asyncio.timeout_at(deadline):
                    response = await self._client.post(route, json=body)
            except TimeoutError as error:
                raise self.fail(
                    f"took longer than {patience:g} s",
                    hint=f"Raise {self._setting}.timeout_seconds if it is just slow.",
                ) from error
            except httpx.HTTPError as error:
                reason = f"cannot be reached ({type(error).__name__})"
            except (httpx.InvalidURL, UnicodeError) as error:
                raise self.fail("has an address that is none") from error
            else:
                if response.is_success:
                    try:
                        return response.json()
                    except ValueError:
                        reason = "answered something that is not JSON"
                else:
                    self._give_up_on(response)
                    reason = f"answered {response.status_code}"
                    wait = _retry_after(response)
            backoff = 0.25 * 2**attempt * random.uniform(0.5, 1.5)  # noqa: S311 - spreads retries, guards nothing
            pause = backoff if wait is None else wait
            if attempt + 1 == attempts or clock() + pause > deadline:
                break
            log.info("tried_again", service=self._what, reason=reason, seconds=round(pause, 2))
            await asyncio.sleep(pause)
        raise self.fail(f"{reason}, {attempt + 1} times" if attempt else reason)

    def _give_up_on(self, response: httpx.Response) -> None:
        """Raise for a refusal that asking again would not change."""
        status = response.status_code
        if any(word in response.text[:2000].lower() for word in _TOO_MUCH.get(status, ())):
            raise TooMuch
        if status in _PASSING:
            return
        if status in (401, 403):
            hint = f"Check {self._setting}.api_key, or FOLKLORE_{self._setting.upper()}__API_KEY."
        elif status == 404:
            hint = f"Check {self._setting}.url and {self._setting}.model: neither the route nor the model may be there."
        else:
            hint = f"Check {self._setting}.url, {self._setting}.model and the key."
        raise self.fail(f"answered {status}", hint=hint)


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds, from either form of Retry-After."""
    given = response.headers.get("Retry-After", "").strip()
    try:
        return max(0.0, float(given))
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(given)
        sent = parsedate_to_datetime(response.headers.get("Date", ""))
        return max(0.0, (at - sent).total_seconds())
    except (TypeError, ValueError):
        return None


def without_secrets(url: str) -> str:
    """The URL without user and password, to be written down."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
