"""Hooks of assistants: what is injected into a session, and when nothing is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp import Client

from folklore.text.injected import CLOSING, OPENING


async def hook(client: Client, **arguments: Any) -> str:
    """Return the text that a prompt hook injects; empty for silence."""
    answer = await client.call_tool("client_hook", arguments)
    assert not answer.is_error, answer.content
    if not answer.content:
        return ""
    [block] = answer.content
    output = json.loads(block.text)["hookSpecificOutput"]  # type: ignore[union-attr]
    assert output["hookEventName"] == "UserPromptSubmit"
    return str(output["additionalContext"])


async def kept(client: Client, *contents: str, **fields: Any) -> list[str]:
    """Store memories and return their ids."""
    answer = await client.call_tool("memory_store", {"memories": [{"content": text, **fields} for text in contents]})
    assert answer.structured_content is not None
    return [item["id"] for item in answer.structured_content["stored"]]


FACTS = (
    "We deploy the shop from the Jenkins job shop-deploy, since GitHub Actions cannot reach the cluster.",
    "The invoice service listens on port 8443.",
    "Ana prefers tabs in Makefiles and four spaces everywhere else.",
)


async def test_the_hook_is_callable_and_not_listed(client: Client) -> None:
    assert "client_hook" not in [tool.name for tool in (await client.list_tools()).tools]

    assert await hook(client, prompt="hello") == ""


async def test_a_prompt_gets_the_notes_that_fit(client: Client) -> None:
    [id_, *_] = await kept(client, *FACTS)

    text = await hook(client, prompt="Where do we deploy the shop from?", session="s1")

    assert text.startswith(OPENING)
    assert text.endswith(CLOSING)
    assert id_ in text
    assert "shop-deploy" in text
    assert "8443" not in text


@pytest.mark.parametrize("prompt", ["", "Thanks, that looks good.", "Why is the sky blue at noon?"])
async def test_silence_when_nothing_fits(client: Client, prompt: str) -> None:
    await kept(client, *FACTS)

    assert await hook(client, prompt=prompt, session="s1") == ""
