"""The same commands against a server elsewhere: each call of the desk goes over HTTP and comes back as if made here."""

from __future__ import annotations

import inspect
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from zoneinfo import ZoneInfo

import httpx

from folklore import __version__
from folklore.config import Settings
from folklore.errors import ConfigInvalid, FolkloreError, InvalidInput, Unavailable, error_from_code
from folklore.memory.operations import CALLS, Call
from folklore.memory.service import Service
from folklore.project import project_namespace, working_directory

if TYPE_CHECKING:
    from datetime import tzinfo

Result = TypeVar("Result")

_SECONDS = 60.0


async def at_server(settings: Settings, work: Callable[[Service], Awaitable[Result]]) -> Result:
    """Do a command's work at the desk of the server that the settings name."""
    async with _client(settings) as client:
        return await work(_RemoteDesk(client, settings))


async def export_from(settings: Settings, namespaces: tuple[str, ...], embeddings: bool) -> AsyncGenerator[str, None]:
    """The lines of an export of the server that the settings name."""
    async with _client(settings) as client:
        try:
            asked = {"namespaces": namespaces, "embeddings": embeddings}
            async with client.stream("POST", "/api/export", json=asked) as response:
                if response.status_code != httpx.codes.OK:
                    await response.aread()
                    raise _error(response, _json(response))
                async for line in response.aiter_lines():
                    yield line
        except httpx.HTTPError as error:
            raise _unreachable(settings, error) from error


def _client(settings: Settings) -> httpx.AsyncClient:
    headers = {"user-agent": f"folklore/{__version__}"}
    if settings.token is not None:
        token = settings.token.get_secret_value()
        if not (token.isascii() and token.isprintable()):  # no header takes it; "fk_…" copied as it stands, for one
            raise ConfigInvalid("token", "is not a token.", hint="`folklore tokens create` shows one, once.")
        headers["authorization"] = f"Bearer {token}"
    return httpx.AsyncClient(base_url=str(settings.server), headers=headers, timeout=_SECONDS)


def _unreachable(settings: Settings, error: httpx.HTTPError) -> Unavailable:
    return Unavailable(
        f"The server {settings.server} cannot be reached, or broke off ({type(error).__name__}).",
        hint="Check its address and that it runs.",
    )


def _json(response: httpx.Response) -> object:
    try:
        return response.json()
    except ValueError:
        return None


class _Far(Service):
    """A desk without a host: every call is made by `_ask`."""

    def __init__(self, client: httpx.AsyncClient, settings: Settings) -> None:
        self._client = client
        self._settings = settings

    @property
    def zone(self) -> tzinfo:
        return ZoneInfo(self._settings.time_zone)

    async def _ask(self, name: str, call: Call, given: Mapping[str, object]) -> Any:
        try:
            response = await self._client.post(f"/api/{name}", json=call.pack(given))
        except httpx.HTTPError as error:
            raise _unreachable(self._settings, error) from error
        value = _json(response)
        if response.status_code == httpx.codes.OK and isinstance(value, dict) and "result" in value:
            return call.result(value["result"])
        raise _error(response, value)


def _forwarded(name: str, call: Call) -> Callable[..., Awaitable[Any]]:
    signature = inspect.signature(getattr(Service, name))

    async def forward(self: _Far, *arguments: object, **named: object) -> Any:
        given = signature.bind(self, *arguments, **named).arguments
        return await self._ask(name, call, {name: value for name, value in given.items() if name != "self"})

    return forward


for _name, _call in CALLS.items():
    setattr(_Far, _name, _forwarded(_name, _call))


class _RemoteDesk(_Far):
    """The desk of a server; where to write, the settings here may say."""

    async def home(self) -> str:
        """Return where to write: as the settings here say, else as the server does, else this project's namespace."""
        if self._settings.namespace is not None:
            return str(self._settings.namespace)
        try:
            return str(await super().home())
        except InvalidInput:
            return project_namespace(working_directory(os.environ))


def _error(response: httpx.Response, value: object) -> FolkloreError:
    """What the server refused or could not do, as the error it would have been here."""
    said = value.get("error") if isinstance(value, dict) else None
    if not isinstance(said, dict) or not isinstance(said.get("message"), str):
        return Unavailable(
            f"The server answered {response.status_code} and nothing that can be read.",
            hint="Is it a Folklore server of this version?",
        )
    return error_from_code(str(said.get("code")), said["message"], said.get("hint"))
