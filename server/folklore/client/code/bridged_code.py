"""Memories tied to code, for a bridge: it alone has the working copy, and passes an assistant's calls on as JSON."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from folklore.client.code.marks import marked_answer, marked_text
from folklore.client.code.tied import tied_json
from folklore.client.code.working_copy import WorkingCopy
from folklore.contract.anchors import ANCHORS, Anchor, read_anchors
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
        if not isinstance(arguments, dict) or not isinstance(meta, dict):
            return params
        if not await asyncio.to_thread(self._has_project):
            return params

        async def read(id_: str) -> object:
            asks_for_anchors = {ANCHORS: True}
            arguments = {"ids": [id_]}
            result = await call(
                {"name": _READ, "arguments": arguments, "_meta": asks_for_anchors}
            )
            return (result.get("_meta") or {}).get(ANCHORS)

        tied = await tied_json(self.copy, str(params.get("name")), arguments, read)
        return {**params, "arguments": tied, "_meta": {**meta, ANCHORS: True}}

    def _has_project(self) -> bool:
        """Return True in the working copy of a project; git is asked once."""
        return self.copy.found and bool(self.copy.namespace)

    def asked_of_resource(self, params: Json) -> Json:
        """Return the parameters of resources/read, which ask the server for what `answered` needs."""
        meta = params.get("_meta") or {}
        if not isinstance(meta, dict):
            return params
        return {**params, "_meta": {**meta, ANCHORS: True}}

    async def answered(self, result: Json) -> Json:
        """Return the result of a tool, or a resource, with marks on the memories whose files changed since."""
        meta = result.get("_meta")
        if not isinstance(meta, dict) or ANCHORS not in meta:
            return result
        anchors = read_anchors(meta[ANCHORS])
        result = dict(result)
        del result["_meta"]
        others = {name: value for name, value in meta.items() if name != ANCHORS}
        if others:
            result["_meta"] = others
        if anchors:
            result |= await self._marked(result, anchors)
        return result

    async def _marked(self, result: Json, anchors: Mapping[str, Anchor]) -> Json:
        """Return the members of a result that have marks."""
        value = result.get("structuredContent")
        if isinstance(value, dict):
            marked = await marked_answer(self.copy, value, anchors)
            if marked == value:
                return {}
            text = json_text(marked, separators=(",", ":"))
            texts = [{"type": "text", "text": text}]
            return {"content": texts, "structuredContent": marked}
        contents = result.get("contents")
        if isinstance(contents, list):
            return {
                "contents": [await self._resource(each, anchors) for each in contents]
            }
        content = result.get("content")
        if isinstance(content, list):
            return {"content": [await self._hook(each, anchors) for each in content]}
        return {}

    async def _resource(self, content: Any, anchors: Mapping[str, Anchor]) -> Any:
        with suppress(KeyError, TypeError, ValueError):
            value = json.loads(content["text"])
            marked = await marked_answer(self.copy, value, anchors)
            if marked != value:
                return {**content, "text": json_text(marked)}
        return content

    async def _hook(self, content: Any, anchors: Mapping[str, Anchor]) -> Any:
        text = content.get("text") if isinstance(content, dict) else None
        if not isinstance(text, str):
            return content
        return {**content, "text": await marked_text(self.copy, text, anchors)}
