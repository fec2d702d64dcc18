"""Notes at the moment of an edit: which memories it concerns, in the forms that assistants send."""

import json
from typing import Any

import pytest
from mcp import Client

from folklore.app import App
from folklore.config import Settings
from folklore.mcp.server import build_server
from folklore.text.tokens import estimate
from tests.conftest import connected
from tests.doors import own_service
from tests.memory.hooks.test_hooks import called, kept

MONEY = "Money is integer cents: price_cents, never a DecimalField, since the invoices were rounded twice."
LABELS = "Generated files, written by make labels."
OTHERS = [
    f"Chapter {number} describes harbour number {number} and its lighthouse keeper."
    for number in range(40)
]
PRICED = "class Price(models.Model):\n    amount = models.DecimalField(max_digits=8)  # price_cents of the invoices"


async def edited(
    client: Client, path: str = "shop/prices.py", text: str = PRICED, **arguments: Any
) -> str:
    """Return the text that a hook after an edit injects; empty for silence."""
    arguments = {
        "event": "PostToolUse",
        "path": path,
        "text": text,
        "session": "s1",
        **arguments,
    }
    answer = await called(client, **arguments)
    if not answer:
        return ""
    output = json.loads(answer)["hookSpecificOutput"]
    assert output["hookEventName"] == arguments["event"]
    return str(output["additionalContext"])


async def test_an_edit_gets_the_memory_that_its_text_concerns_once_a_session(
    client: Client,
) -> None:
    await kept(client, MONEY, *OTHERS)

    assert MONEY in await edited(client)
    assert await edited(client) == ""
    assert MONEY in await edited(client, session="s2", event="PreToolUse")


async def test_an_edit_gets_the_memories_that_are_tied_to_its_file(
    client: Client,
) -> None:
    await kept(client, LABELS, paths=["web/labels.json"])
    await kept(client, "The team likes tea.", paths=["web/other.json"])
    await kept(client, "Long. " * 500, paths=["web/labels.json"])

    text = await edited(client, "/work/shop/web/labels.json", "{}", cwd="/work/shop")

    assert LABELS in text
    assert estimate(text) < 200
    assert await edited(client, "web/labels.json.bak", "{}", session="s2") == ""


async def test_a_word_counts_more_that_a_memory_writes_as_code_and_that_the_path_lacks(
    client: Client,
) -> None:
    await kept(
        client,
        "Forbidden: `zap`, `infow` and `desugar`.",
        "Wanted: zebra, quagga and okapi.",
        *OTHERS,
    )

    assert "`zap`" in await edited(client, "svc/keys.go", "zap infow desugar")
    assert await edited(client, "svc/keys.go", "zebra quagga okapi") == ""


@pytest.mark.parametrize(
    "text",
    [
        "Fixed in billing/de.json.",
        "Never edit billing/*.json",
        "`billing/**/*.json`: no",
    ],
)
async def test_an_edit_gets_the_memories_that_write_its_path_or_a_pattern_of_it(
    client: Client, text: str
) -> None:
    await kept(
        client, text, "Fixed in billing/*", "Fixed in src/billing/de.json", *OTHERS
    )

    assert (text in await edited(client, "billing/de.json", "{}")) is ("**" not in text)


async def test_an_edit_gets_three_memories_at_most(client: Client) -> None:
    await kept(
        client,
        *(f"Labels of size {size} are generated." for size in range(5)),
        paths=["web/labels.json"],
    )

    assert (await edited(client, "web/labels.json", "{}")).count("Labels of size") == 3


async def test_an_edit_that_concerns_nothing_gets_nothing(client: Client) -> None:
    await kept(client, MONEY, *OTHERS)

    for text in (
        "def add(a, b):\n    return a + b",
        "",
        "x = 1",
        "The lighthouse of the harbour.",
    ):
        assert await edited(client, text=text) == ""


async def test_the_forms_of_other_tools_are_read(client: Client) -> None:
    await kept(client, MONEY, *OTHERS)
    patch = f"*** Begin Patch\n*** Update File: shop/prices.py\n@@\n-old\n+{PRICED.replace(chr(10), chr(10) + '+')}\n"

    assert MONEY in await edited(client, text="", content=PRICED)
    assert MONEY in await edited(client, "", "", command=patch, session="s2")
    assert await edited(client, "", "", command="ls -l", session="s3") == ""


async def test_notes_of_edits_can_be_switched_off(
    client: Client, settings: Settings
) -> None:
    await kept(client, MONEY, *OTHERS)
    app = App(settings.model_copy(update={"moments": ("prompt",)}))
    async with connected(build_server(own_service(app))) as silent:
        assert await edited(silent) == ""
    await app.close()
