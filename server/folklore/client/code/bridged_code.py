"""Memories tied to code, for a bridge: it alone has the working copy, and passes an assistant's calls on as JSON."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from folklore.client.code.calls import ANCHORS, marked_json, tied_json
from folklore.client.code.working_copy import WorkingCopy
from folklore.text.hooks.marks import json_text

Json = dict[str, Any]
_READ = "memory_get"


@dataclass(frozen=True, slots=True)
class BridgedCode:
    """Knowledge of a bridge's machine about the code that tool calls and their results concern."""

    copy: WorkingCopy

    async def asked(
        self, params: Json, call: Callable[[Json], Awaitable[Json]]
    ) -> Json:
        """Return the parameters of tools/call with paths relative to the root, and the present code of what is stored.

        They ask the server for what `answered` needs. `call` sends parameters, and returns the result of the tool.
        """
        arguments = params.get("arguments") or {}
        meta = params.get("_meta") or {}
        # Both are found by git, once.
        ready = await asyncio.to_thread(
            lambda: self.copy.found and bool(self.copy.namespace)
        )
        if not ready or not isinstance(arguments, dict) or not isinstance(meta, dict):
            return params

        async def read(id_: str) -> object:
            result = await call(
                {"name": _READ, "arguments": {"ids": [id_]}, "_meta": {ANCHORS: True}}
            )
            return (result.get("_meta") or {}).get(ANCHORS)

        tied = await tied_json(self.copy, str(params.get("name")), arguments, read)
        return {**params, "arguments": tied, "_meta": {**meta, ANCHORS: True}}

    async def answered(self, result: Json) -> Json:
        """Return the result of a tool with marks on the memories whose files changed since."""
        meta = result.get("_meta")
        if not isinstance(meta, dict) or ANCHORS not in meta:
            return result
        rest = {name: value for name, value in meta.items() if name != ANCHORS}
        result = {name: value for name, value in result.items() if name != "_meta"} | (
            {"_meta": rest} if rest else {}
        )
        value = result.get("structuredContent")
        if (
            not isinstance(value, dict)
            or (marked := await marked_json(self.copy, value, meta[ANCHORS])) == value
        ):
            return result
        text = json_text(marked, separators=(",", ":"))
        return {
            **result,
            "content": [{"type": "text", "text": text}],
            "structuredContent": marked,
        }
