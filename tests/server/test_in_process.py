"""The application in the process of the command or session that it serves."""

import asyncio

import pytest

from folklore.app import App
from folklore.client.access import LOCAL_URL, access_of
from folklore.client.http_client import HttpClient
from folklore.client.remote import Message, Remote
from folklore.client.surroundings import namespace_of
from folklore.config import Settings
from folklore.contract.memories import StoreRequest
from folklore.contract.people import CallerRequest
from folklore.contract.recall import RecallRequest
from folklore.model import Draft
from folklore.server.application.in_process import in_process


def _not_expected(message: Message) -> None:
    raise AssertionError(message)


async def test_a_process_serves_itself_as_its_user_and_is_reached_by_nobody_after_it(
    settings: Settings,
) -> None:
    async with (
        in_process(App(settings)) as server,
        HttpClient(settings, server) as client,
    ):
        await client.call(StoreRequest(memories=(Draft("The queue is NATS."),)))
        found = await client.call(RecallRequest(query="which queue?"))
        caller = await client.call(CallerRequest())

    assert [result.memory.author for result in found.memories] == [settings.author]
    assert caller.namespace == settings.namespace
    with pytest.raises(ConnectionRefusedError):
        (await asyncio.to_thread(server.connect, 1.0)).recv(1)


async def test_what_the_package_knows_is_listed_without_a_database(
    settings: Settings,
) -> None:
    app = App(settings, brief=True)
    listed: Message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    async with in_process(app) as server:
        remote = Remote(
            LOCAL_URL, lambda: access_of(settings, namespace_of(settings)), local=server
        )
        answer = await remote.call(listed, {}, _not_expected, repeatable=True)
        remote.close()

        assert app.started is None
    assert answer["result"]["tools"][0]["name"] == "memory_store"
