"""Client of a JSON service over HTTP, with retries, a limit for the whole call, and a circuit breaker."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from time import monotonic
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import httpx
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    stop_before_delay,
    wait_exponential,
    wait_random,
)

from folklore.errors import Unavailable
from folklore.log import get_logger
from folklore.machine import is_loopback
from folklore.proxies import proxy_for

log = get_logger(__name__)

# Fewer attempts while a caller waits for the answer to a question, which recall can also answer without the service.
_ATTEMPTS = 4
_ATTEMPTS_INTERACTIVE = 3
_BACKOFF = wait_exponential(multiplier=0.25) + wait_random(0, 0.25)
_TRANSIENT_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
# Statuses by which services reject a request for its size, with the words one of which must be in the answer.
_SIZE_WORDS = ("too long", "too large", "token limit", "tokens")
_TOO_LARGE: dict[int, tuple[str, ...]] = {
    400: (*_SIZE_WORDS, "length", "batch", "context", "maximum"),
    413: ("",),
    422: (*_SIZE_WORDS, "length", "batch", "context", "maximum"),
    500: _SIZE_WORDS,
}


class RequestTooLarge(Exception):
    """The service rejected a request for its size. Its message is not kept: it may repeat a text."""


class _TransientFailure(Exception):
    """A failure that another attempt may avoid, after `retry_after` seconds if the service named a time."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Address:
    """URL and key of a service, the limit for one call in seconds, and the number of calls at a time."""

    url: str
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 30.0
    concurrency: int = 4

    def base(self, endings: tuple[str, ...]) -> str:
        """Return the URL without its query, and without the first of the endings that it has."""
        parts = urlsplit(self.url)
        path = parts.path.rstrip("/")
        ending = next((ending for ending in endings if path.endswith(ending)), "")
        return (
            urlunsplit((parts.scheme, parts.netloc, path.removesuffix(ending), "", ""))
            + "/"
        )

    @property
    def headers(self) -> dict[str, str]:
        """Header with the key. Azure has its own."""
        if self.api_key is None:
            return {}
        if (urlsplit(self.url).hostname or "").endswith(".azure.com"):
            return {"api-key": self.api_key}
        return {"Authorization": f"Bearer {self.api_key}"}


class CircuitBreaker:
    """Rejects calls to a service for some time after several failures in a row.

    The pause is `first` seconds long and doubles with each further failure up to `longest`. After a pause one call is
    let through, and the others are rejected until its outcome is known.
    """

    def __init__(
        self,
        *,
        failures: int = 3,
        first: float = 2.0,
        longest: float = 60.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._limit = failures
        self._first = first
        self._longest = longest
        self._clock = clock
        self._failures = 0
        self._open_until = 0.0

    def seconds_to_wait(self) -> float:
        """Return 0 for a call that may go ahead, else the seconds until the next attempt."""
        now = self._clock()
        if self._failures < self._limit:
            return 0.0
        if now < self._open_until:
            return self._open_until - now
        self._open_until = now + self._pause()
        return 0.0

    def record_success(self) -> None:
        """Close the circuit."""
        self._failures = 0

    def record_failure(self) -> None:
        """Count a failed call, with all its attempts, as one failure."""
        self._failures += 1
        if self._failures >= self._limit:
            self._open_until = self._clock() + self._pause()

    def _pause(self) -> float:
        return float(
            min(self._first * 2 ** min(self._failures - self._limit, 20), self._longest)
        )


class HttpService:
    """Client of one service. `name` is for messages, `section` is the service's section in the settings."""

    def __init__(
        self,
        name: str,
        section: str,
        address: Address,
        error: type[Unavailable],
        *,
        endings: tuple[str, ...] = (),
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._name = name
        self._section = section
        self._error = error
        parts = urlsplit(address.url)
        proxy = proxy_for(parts)
        self._by_proxy = "" if proxy is None else f", by {proxy.description}"
        self._client = httpx.AsyncClient(
            # Proxies of the environment are never for this machine.
            trust_env=not is_loopback(parts.hostname or ""),
            base_url=address.base(endings),
            params=dict(parse_qsl(parts.query)),  # such as Azure's api-version
            headers=address.headers,
            timeout=address.timeout,
            transport=transport,
        )
        self._breaker = CircuitBreaker()
        # Interactive calls have a limit of their own, because a backfill can use up the other one.
        self._running = {
            interactive: asyncio.Semaphore(address.concurrency)
            for interactive in (True, False)
        }

    def failure(self, reason: str, *, hint: str | None = None) -> Unavailable:
        """Return an error of this service's class."""
        return self._error(
            f"The {self._name} {reason}.", hint=hint or f"Check {self._section}.url."
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def post(
        self,
        route: str,
        body: Mapping[str, Any],
        *,
        timeout: float,
        interactive: bool = False,
    ) -> Any:
        """Return the JSON that a route answers within `timeout` seconds, all attempts and pauses included.

        Raises RequestTooLarge, and for every other failure the service's class of Unavailable.
        """
        if (wait := self._breaker.seconds_to_wait()) > 0:
            raise self.failure(
                f"has failed several times in a row; the next attempt is in {wait:.0f} s"
            )
        async with self._running[interactive]:
            try:
                answer = await self._post_with_retries(
                    route,
                    body,
                    timeout,
                    _ATTEMPTS_INTERACTIVE if interactive else _ATTEMPTS,
                )
            except RequestTooLarge:
                self._breaker.record_success()
                raise
            except Unavailable:
                self._breaker.record_failure()
                raise
        self._breaker.record_success()
        return answer

    async def _post_with_retries(
        self, route: str, body: Mapping[str, Any], timeout: float, attempts: int
    ) -> Any:
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(_TransientFailure),
            stop=stop_after_attempt(attempts) | stop_before_delay(timeout),
            wait=_pause,
            before_sleep=self._log_retry,
            reraise=True,
        )
        try:
            async with asyncio.timeout(timeout):
                answer: Any = await retrying(self._post_once, route, body)
        except TimeoutError as error:
            raise self.failure(
                f"took longer than {timeout:g} s",
                hint="Try again later, or choose a faster service or model.",
            ) from error
        except _TransientFailure as error:
            count = retrying.statistics["attempt_number"]
            raise self.failure(
                f"{error}, {count} times" if count > 1 else str(error)
            ) from error.__cause__
        return answer

    async def _post_once(self, route: str, body: Mapping[str, Any]) -> Any:
        try:
            response = await self._client.post(route, json=body)
        except httpx.HTTPError as error:
            raise _TransientFailure(
                f"cannot be reached ({type(error).__name__}{self._by_proxy})"
            ) from error
        except (httpx.InvalidURL, UnicodeError) as error:
            raise self.failure("has an invalid address") from error
        if not response.is_success:
            raise self._refusal(response)
        try:
            return response.json()
        except ValueError as error:
            raise _TransientFailure("answered something that is not JSON") from error

    def _refusal(self, response: httpx.Response) -> Exception:
        status = response.status_code
        if any(
            word in response.text[:2000].lower() for word in _TOO_LARGE.get(status, ())
        ):
            return RequestTooLarge()
        if status in _TRANSIENT_STATUSES:
            return _TransientFailure(f"answered {status}", _retry_after(response))
        section = self._section
        if status in (401, 403):
            hint = f"Check {section}.api_key, or FOLKLORE_{section.upper()}__API_KEY."
        elif status == 404:
            hint = f"Check {section}.url and {section}.model: the route or the model may not exist there."
        else:
            hint = f"Check {section}.url, {section}.model and {section}.api_key."
        return self.failure(f"answered {status}", hint=hint)

    def _log_retry(self, state: RetryCallState) -> None:
        log.info(
            "request_retried",
            service=self._name,
            reason=str(_error(state)),
            seconds=round(state.upcoming_sleep, 2),
        )


def _error(state: RetryCallState) -> BaseException | None:
    if state.outcome is None:
        return None
    return state.outcome.exception()


def _pause(state: RetryCallState) -> float:
    error = _error(state)
    if isinstance(error, _TransientFailure) and error.retry_after is not None:
        return error.retry_after
    return _BACKOFF(state)


def _retry_after(response: httpx.Response) -> float | None:
    """Return the seconds in a Retry-After header of either form; None without a valid one."""
    value = response.headers.get("Retry-After", "").strip()
    with suppress(ValueError):
        return max(0.0, float(value))
    with suppress(TypeError, ValueError):
        at = parsedate_to_datetime(value)
        date = parsedate_to_datetime(response.headers.get("Date", ""))
        return max(0.0, (at - date).total_seconds())
    return None


def without_user(url: str) -> str:
    """Return the URL without user and password."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], *parts[2:]))
