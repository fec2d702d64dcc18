"""Model that follows a script, in the three APIs that assistants speak: Anthropic, OpenAI Responses, Gemini.

It calls the scripted tools one after the other, then says "done", and keeps every request.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """Call of a tool by the model. `namespace` is the one that Codex groups the tools of a server in.

    Arguments that are a text are those of a custom tool of Codex, such as `apply_patch`.
    """

    name: str
    arguments: Json | str
    namespace: str | None = None


@dataclass(slots=True)
class Model:
    """Running model: where it listens, what it calls, what it was asked."""

    url: str
    script: Sequence[ToolCall] = ()
    requests: list[Json] = field(default_factory=list)

    def following(self, *script: ToolCall) -> Model:
        """Follow another script, and forget the requests until now."""
        self.script = script
        self.requests = []
        return self

    def turns(self) -> list[Json]:
        """Return the requests that offer tools: an assistant asks for titles and the like too."""
        return [request for request in self.requests if request.get("tools")]


def _anthropic(
    body: Json, step: ToolCall | None, number: int
) -> Iterator[tuple[str, Json]]:
    if step is None:
        block: Json = {"type": "text", "text": "done"}
        start = {**block, "text": ""}
        delta = {"type": "text_delta", "text": "done"}
        reason = "end_turn"
    else:
        block = {
            "type": "tool_use",
            "id": f"toolu_{number}",
            "name": step.name,
            "input": {},
        }
        start = block
        delta = {"type": "input_json_delta", "partial_json": json.dumps(step.arguments)}
        reason = "tool_use"
    message = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [],
    }
    usage = {"input_tokens": 1, "output_tokens": 1}
    yield (
        "message_start",
        {
            "message": {
                **message,
                "stop_reason": None,
                "stop_sequence": None,
                "usage": usage,
            }
        },
    )
    yield "content_block_start", {"index": 0, "content_block": start}
    yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    yield (
        "message_delta",
        {
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": 1},
        },
    )
    yield "message_stop", {}


def _responses(
    _body: Json, step: ToolCall | None, number: int
) -> Iterator[tuple[str, Json]]:
    if step is None:
        text = {"type": "output_text", "text": "done", "annotations": []}
        item: Json = {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "content": [text],
        }
    else:
        custom = isinstance(step.arguments, str)
        item = {
            "type": "custom_tool_call" if custom else "function_call",
            "id": f"fc_{number}",
            "name": step.name,
        }
        item |= (
            {"input": step.arguments}
            if custom
            else {"arguments": json.dumps(step.arguments)}
        )
        item |= {"call_id": f"call_{number}"} | (
            {"namespace": step.namespace} if step.namespace else {}
        )
    details = {
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, **details}
    response = {
        "id": f"resp_{number}",
        "object": "response",
        "status": "in_progress",
        "output": [],
    }
    yield "response.created", {"response": response}
    yield (
        "response.output_item.added",
        {"output_index": 0, "item": {**item, "status": "in_progress"}},
    )
    yield (
        "response.output_item.done",
        {"output_index": 0, "item": {**item, "status": "completed"}},
    )
    yield (
        "response.completed",
        {
            "response": {
                **response,
                "status": "completed",
                "output": [item],
                "usage": usage,
            }
        },
    )


def _gemini(
    _body: Json, step: ToolCall | None, _number: int
) -> Iterator[tuple[str, Json]]:
    part: Json = (
        {"text": "done"}
        if step is None
        else {"functionCall": {"name": step.name, "args": step.arguments}}
    )
    candidate = {
        "content": {"role": "model", "parts": [part]},
        "finishReason": "STOP",
        "index": 0,
    }
    yield (
        "",
        {
            "candidates": [candidate],
            "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 2},
        },
    )


_APIS = {
    "/v1/messages": _anthropic,
    "/v1/responses": _responses,
    ":streamGenerateContent": _gemini,
}


def _results(value: object) -> int:
    """Count the results of tools in a request, in any of the three forms."""
    if isinstance(value, list):
        return sum(map(_results, value))
    if not isinstance(value, dict):
        return 0
    kind = str(value.get("type"))
    own = (
        kind == "tool_result"
        or kind.endswith("_call_output")
        or "functionResponse" in value
    )
    return int(own) + (0 if own else sum(map(_results, value.values())))


@contextmanager
def scripted_model() -> Iterator[Model]:
    """Yield a model on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("application/json", b"{}")

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = self.path.partition("?")[0]
            api = next((api for end, api in _APIS.items() if path.endswith(end)), None)
            if api is None:
                self._answer(
                    "application/json", b'{"input_tokens": 1, "totalTokens": 1}'
                )
                return
            body = json.loads(raw)
            model.requests.append(body)
            done = _results(
                body.get("messages") or body.get("input") or body.get("contents")
            )
            step = (
                model.script[done]
                if body.get("tools") and done < len(model.script)
                else None
            )
            events = api(body, step, len(model.requests))
            lines = [
                (f"event: {kind}\n" if kind else "")
                + f"data: {json.dumps(({'type': kind} if kind else {}) | data)}\n\n"
                for kind, data in events
            ]
            self._answer("text/event-stream", "".join(lines).encode())

        def _answer(self, kind: str, content: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *_arguments: object) -> None:  # noqa: A002 - the name of the base class
            """Stay silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        model = Model(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield model
        finally:
            server.shutdown()
            thread.join()
