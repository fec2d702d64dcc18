"""The bridge: messages of one client on stdio, passed on to a server, the user's or a team's, and back.

Messages pass as they are, so that every tool, resource and prompt of the server can be used, whichever this version
knows. While the server is away, the handshake and the lists are answered from what this package knows, so that a
session that starts then can use the memory later.
"""

import asyncio
import base64
import json
import logging
import re
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import Any, Protocol
from uuid import uuid4

from folklore.client.remote import IMPATIENT, Message, Remote
from folklore.client.stdio import read_lines
from folklore.errors import FolkloreError
from folklore.text.clean import replace_lone_surrogates
from folklore.text.lines import LongLine

log = logging.getLogger(__name__)  # structlog would delay the start

_VERSION = "io.modelcontextprotocol/protocolVersion"
_CALL_ID = "folklore/callId"
# The id of the client's session, in which some things are said once.
_SESSION_ID = "folklore/sessionId"
_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600
_INTERNAL_ERROR = -32603
_FIRST = frozenset({"initialize", "server/discover"})
_LISTS = frozenset(
    {"tools/list", "prompts/list", "resources/list", "resources/templates/list"}
)
# Methods whose results have memories.
_ABOUT_MEMORIES = frozenset({"tools/call", "resources/read"})
# Methods that only read.
_READS = frozenset({"resources/read", "prompts/get", "completion/complete"})
# Tools that may be called twice: they only read, or take idempotency keys.
REPEATABLE = frozenset(
    {
        "memory_get",
        "memory_list",
        "memory_recall",
        "memory_status",
        "memory_store",
        "search_keywords",
    }
)
_AWAY_SECONDS = 5.0
# Calls of one session that a server works on at once; more of them would make other sessions wait.
_MOST_CALLS = 8
# The parameter that the protocol wants repeated in a header, by method.
_NAME_PARAMETERS = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
}
_PRINTABLE = re.compile(r"(?!=\?base64\?)[!-~]([ -~]*[!-~])?")


class Code(Protocol):
    """Knowledge of this machine alone about the code that tool calls and their results concern."""

    async def asked(
        self, params: Message, call: Callable[[Message], Awaitable[Message]]
    ) -> Message:
        """Return the parameters of tools/call with this knowledge.

        `call` sends other parameters of the same tool meanwhile, and returns its result.
        """

    def asked_of_resource(self, params: Message) -> Message:
        """Return the parameters of resources/read with this knowledge."""

    async def answered(self, result: Message) -> Message:
        """Return the result of a tool, or a resource, with this knowledge."""


class Bridge:
    """Answers the lines of a client. `write` takes each message for it.

    `open_packaged` opens the application in this process, for the handshake and the lists while the `remote` server is
    away. `read_code` is called once, with the first message about memories, for what this machine knows of the client's
    working copy.
    """

    def __init__(
        self,
        remote: Remote,
        write: Callable[[Message], None],
        open_packaged: Callable[[], Awaitable[Remote]],
        read_code: Callable[[], Code],
    ) -> None:
        self._remote = remote
        self._write = write
        self._open_packaged = open_packaged
        self._read_code = read_code
        self._session = uuid4().hex
        self._calls: dict[str | int, asyncio.Task[None]] = {}
        self._turns = asyncio.Semaphore(_MOST_CALLS)
        self._negotiated: str | None = None

    @cached_property
    def _code(self) -> Code:
        return self._read_code()

    async def run(self) -> None:
        """Answer the lines of standard input until it ends."""
        try:
            await read_lines(self.take)
        finally:
            await self.close()

    def take(self, line: bytes | LongLine) -> None:
        """Take a line of the client, and answer it when the answer is there."""
        if isinstance(line, LongLine):
            self._write(_error(line.id, _INVALID_REQUEST, line.message))
            return
        text = replace_lone_surrogates(line).decode("utf-8", "replace")
        try:
            message = json.loads(text)
        except (ValueError, RecursionError) as error:
            log.warning("unreadable_line %s", type(error).__name__)
            self._write(_error(None, _PARSE_ERROR, "The line cannot be read as JSON."))
            return
        if not isinstance(message, dict) or message.keys().isdisjoint({"id", "method"}):
            problem = "The line must be one JSON-RPC message."
            self._write(_error(None, _INVALID_REQUEST, problem))
        elif message.keys() >= {"id", "method"}:
            self._begin(message)
        elif message.get("method") == "notifications/cancelled":
            # The server is stateless: what cancels a call there is the end of its connection. The client's other
            # notifications would find no session either.
            cancelled = _params(message).get("requestId")
            if isinstance(cancelled, str | int) and cancelled in self._calls:
                self._calls[cancelled].cancel()

    def _begin(self, request: Message) -> None:
        id_ = request["id"]
        if not isinstance(id_, str | int) or not isinstance(request["method"], str):
            problem = "id must be a text or a whole number, and method a text."
            self._write(_error(None, _INVALID_REQUEST, problem))
            return

        def forget(done: asyncio.Task[None]) -> None:
            if self._calls.get(id_) is done:
                del self._calls[id_]

        task = asyncio.create_task(self._serve(request), name="folklore-request")
        self._calls[id_] = task
        task.add_done_callback(forget)

    async def close(self) -> None:
        """Cancel the calls that run, and close the connections."""
        calls = list(self._calls.values())
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        self._remote.close()

    async def _serve(self, request: Message) -> None:
        """Answer a request, whatever happens."""
        try:
            answer = await self._answer(request)
        except FolkloreError as error:
            answer = _failed(request, str(error))
        except Exception:
            log.exception("bridge_crashed")
            answer = _failed(
                request,
                "The bridge to the Folklore server failed; its log on stderr holds the reason.",
            )
        self._write({**answer, "id": request["id"]})

    async def _answer(self, request: Message) -> Message:
        method = request["method"]
        version = _version_of(request)
        if method == "ping" and version is None:
            return {"jsonrpc": "2.0", "result": {}}
        if method in _FIRST | _LISTS:
            answer = await self._listed(request, version)
        else:
            answer = await self._called(await self._tied(request), version)
        result = answer.get("result")
        if not isinstance(result, dict):
            return answer
        negotiated = result.get("protocolVersion")
        if method == "initialize" and isinstance(negotiated, str):
            self._negotiated = negotiated
        # The server has no working copy of the repository: what only this machine knows is added to each result.
        if method in _ABOUT_MEMORIES:
            return {**answer, "result": await self._code.answered(result)}
        return answer

    async def _called(self, request: Message, version: str | None) -> Message:
        async with self._turns:  # the time that a call may take begins with its turn
            return await self._remote.call(
                _with_ids(request, self._session),
                self._headers(request, version),
                self._write,
                repeatable=_is_repeatable(request),
            )

    async def _tied(self, request: Message) -> Message:
        """Return a request with what only this machine knows: the files and the commit that memories are about."""
        if request["method"] not in _ABOUT_MEMORIES:
            return request
        if not isinstance(request.get("params", {}), dict):
            return request  # the server says what is wrong with it
        if request["method"] == "resources/read":
            params = self._code.asked_of_resource(_params(request))
            return {**request, "params": params}

        async def call(params: Message) -> Message:
            meta = _params(request).get("_meta") or {}  # the protocol's version, too
            all_params = {**params, "_meta": {**meta, **params["_meta"]}}
            read = {**request, "params": all_params}
            answer = await self._called(read, _version_of(request))
            result = answer.get("result")
            return result if isinstance(result, dict) else {}

        return {**request, "params": await self._code.asked(_params(request), call)}

    async def _listed(self, request: Message, version: str | None) -> Message:
        """Answer the handshake, or a list: as the server does, else as this package does."""
        headers = self._headers(request, version)
        # A session begins with several lists, one after the other.
        if not self._remote.was_away(_AWAY_SECONDS):
            try:
                return await self._remote.call(
                    request, headers, self._write, repeatable=True, patience=IMPATIENT
                )
            except FolkloreError as error:
                log.warning(
                    "answered_from_the_package %s: %s", request["method"], error
                )
        packaged = await self._open_packaged()
        return await packaged.call(request, headers, self._write, repeatable=True)

    def _headers(self, request: Message, version: str | None) -> dict[str, str]:
        """Return the headers that repeat parts of a message, as the protocol demands."""
        method = request["method"]
        headers = {"mcp-method": _header(method)}
        version = version or self._negotiated
        if version is not None and method != "initialize":
            headers["mcp-protocol-version"] = _header(version)
        name = _params(request).get(_NAME_PARAMETERS.get(method, ""))
        if isinstance(name, str):
            headers["mcp-name"] = _header(name)
        return headers


def _params(request: Message) -> dict[str, Any]:
    params = request.get("params")
    return params if isinstance(params, dict) else {}


def _is_repeatable(request: Message) -> bool:
    """Return whether a request may be sent twice."""
    if request["method"] == "tools/call":
        return _params(request).get("name") in REPEATABLE
    return request["method"] in _READS


def _version_of(request: Message) -> str | None:
    """Return the version that a request of 2026-07-28 and later names itself."""
    meta = _params(request).get("_meta")
    version = meta.get(_VERSION) if isinstance(meta, dict) else None
    return version if isinstance(version, str) else None


def _with_ids(request: Message, session: str) -> Message:
    """Return a tool call with an id of its session, and one of its own from which the server makes idempotency keys.

    So a store that is sent twice, because the answer to the first was lost, is stored once.
    """
    params = _params(request)
    meta = params.get("_meta", {})
    if request["method"] != "tools/call" or not isinstance(meta, dict):
        return request
    with_ids = {_CALL_ID: uuid4().hex, _SESSION_ID: session, **meta}
    return {**request, "params": {**params, "_meta": with_ids}}


def _header(value: str) -> str:
    """Return a value as the protocol writes it into a header: base64 if it is not plain ASCII."""
    if _PRINTABLE.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def _failed(request: Message, text: str) -> Message:
    """Return an error as the answer to a request: of a tool as a result, which the model reads."""
    if request["method"] != "tools/call":
        return _error(request["id"], _INTERNAL_ERROR, text)
    result: Message = {"content": [{"type": "text", "text": text}], "isError": True}
    if _version_of(request) is not None:
        result["resultType"] = "complete"
    return {"jsonrpc": "2.0", "result": result}


def _error(id_: object, code: int, message: str) -> Message:
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}}
