"""A recalled text in quotation marks is not stored as a new memory."""

import asyncpg
from mcp import Client

from folklore.memory.context.caches import RecalledTexts
from folklore.model import Draft
from tests.mcp.test_tools import call
from tests.person import NOON, Person

TEXT = "We deploy from the release branch, never from main."


async def stored(client: Client, content: str, **more: object) -> tuple[str, str]:
    answer = await call(client, "memory_store", content=content, **more)
    (item,) = answer["stored"]
    return item["id"], item["status"]


async def test_a_recalled_text_in_quotation_marks_is_a_duplicate(
    client: Client,
) -> None:
    id_, _ = await stored(client, TEXT)
    await call(client, "memory_recall", query="deploy")

    assert await stored(client, f'- "{TEXT}"') == (id_, "duplicate")
    assert await stored(client, f"> {TEXT}") == (id_, "duplicate")


async def test_a_text_with_other_words_is_stored_as_it_is(client: Client) -> None:
    id_, _ = await stored(client, TEXT)
    await call(client, "memory_recall", query="deploy")

    for text in (
        f"Remember: {TEXT}",
        f"{TEXT} Since May.",
        "deploy from the release branch",
    ):
        other, status = await stored(client, text)
        assert (other != id_, status) == (True, "stored")


async def test_a_quoted_text_that_was_not_recalled_is_stored_as_it_is(
    client: Client,
) -> None:
    id_, _ = await stored(client, TEXT)

    other, status = await stored(client, f'"{TEXT}"')

    assert (other != id_, status) == (True, "stored")


async def test_the_text_of_a_memory_forgotten_since_is_stored(
    client: Client, connection: asyncpg.Connection
) -> None:
    id_, _ = await stored(client, TEXT)
    await call(client, "memory_recall", query="deploy")
    await connection.execute("update memories set forgotten_at = $1", NOON)

    other, status = await stored(client, f'"{TEXT}"')

    assert (other != id_, status) == (True, "stored")
    (again,) = (await call(client, "memory_recall", query="deploy"))["memories"]
    assert again["content"] == TEXT


async def test_only_the_latest_recalled_texts_are_remembered(person: Person) -> None:
    texts = RecalledTexts(2)
    await person.keep("first text", "second", "third")
    for query in ("first", "second", "third"):
        texts.add(await person.recall(query, limit=1))

    drafts = [Draft('"first text"'), Draft('"third"')]

    assert [
        getattr(draft, "content", None) for draft in texts.unquoted("NOTES", drafts)
    ] == ['"first text"', "third"]
