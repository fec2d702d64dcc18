"""Hooks of assistants: what is injected into a session, and when nothing is."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from mcp import Client

from folklore.app import App
from folklore.config import Settings
from folklore.contract.health import StatsRequest
from folklore.contract.hooks import (
    HookRequest,
    InjectedRequest,
    InjectedText,
    PauseRequest,
    StatementsRequest,
)
from folklore.contract.namespaces import ShareNamespaceRequest
from folklore.db.database import Database
from folklore.mcp.server import build_server
from folklore.memory.context import MemoryContext
from folklore.memory.hooks import note_candidates
from folklore.text.hooks.injected import CLOSING, OPENING
from folklore.text.tokens import estimate
from tests.background_jobs import BackgroundJobs
from tests.conftest import connected
from tests.doors import own_service
from tests.embedders import Waiting
from tests.person import Person

FACTS = (
    "We deploy the shop from the Jenkins job shop-deploy, since GitHub Actions cannot reach the cluster.",
    "The invoice service listens on port 8443.",
    "Ana prefers tabs in Makefiles and four spaces everywhere else.",
)
DEPLOY = "Where do we deploy the shop from?"
PORT = "Which port does the invoice service listen on?"


async def called(client: Client, **arguments: Any) -> str:
    """Return the text of the hidden tool's answer; empty for silence."""
    answer = await client.call_tool("client_hook", arguments)
    assert not answer.is_error, answer.content
    assert answer.structured_content is None
    if not answer.content:
        return ""
    [block] = answer.content
    text = str(block.text)  # type: ignore[union-attr]
    return "" if text == "{}" else text


async def hook(
    client: Client, prompt: str, session: str = "s1", **arguments: Any
) -> str:
    """Return the text that a prompt hook injects; empty for silence."""
    text = await called(client, prompt=prompt, session=session, **arguments)
    if not text:
        return ""
    output = json.loads(text)["hookSpecificOutput"]
    assert output["hookEventName"] == "UserPromptSubmit"
    return str(output["additionalContext"])


async def kept(client: Client, *contents: str, **fields: Any) -> list[str]:
    """Store memories and return their ids."""
    answer = await client.call_tool(
        "memory_store", {"memories": [{"content": text, **fields} for text in contents]}
    )
    assert answer.structured_content is not None
    return [item["id"] for item in answer.structured_content["stored"]]


@pytest.fixture
async def another_process(settings: Settings) -> AsyncIterator[Client]:
    """A client of another process over the same database."""
    app = App(settings)
    async with connected(build_server(own_service(app))) as client:
        yield client
    await app.close()


@pytest.fixture
async def facts(client: Client) -> list[str]:
    """Store FACTS and return their ids."""
    return await kept(client, *FACTS)


@pytest.mark.parametrize("offered", ["core", "all"])
async def test_the_hook_is_callable_and_not_listed(app: App, offered: Any) -> None:
    async with connected(build_server(own_service(app), offered=offered)) as client:
        assert "client_hook" not in [
            tool.name for tool in (await client.list_tools()).tools
        ]
        assert await hook(client, "hello") == ""


async def test_silence_is_json_that_adds_nothing_where_clients_read_json(
    client: Client,
) -> None:
    for event, texts in (
        ("UserPromptSubmit", ["{}"]),
        ("Stop", ["{}"]),
        ("SubagentStop", ["{}"]),
    ):
        answer = await client.call_tool(
            "client_hook", {"event": event, "prompt": "hello", "of_a_newer_plugin": 1}
        )
        assert [block.text for block in answer.content] == texts  # type: ignore[union-attr]


async def test_a_prompt_gets_the_notes_that_fit(
    client: Client, facts: list[str]
) -> None:
    text = await hook(client, DEPLOY)

    assert text.startswith(OPENING)
    assert text.endswith(CLOSING)
    assert f"- [{facts[0][-8:]}, today, by tester] {FACTS[0]}" in text
    assert "Folklore" in text
    assert "data" in text
    assert "8443" not in text


async def test_silence_when_nothing_fits(client: Client, facts: list[str]) -> None:
    for prompt in (
        "",
        "  \n",
        "*",
        "-- ?!",
        "Thanks, that looks good.",
        "continue",
        "Yes, do that.",
        "danke, weiter",
    ):
        assert await hook(client, prompt) == ""


async def test_an_old_note_says_its_age_and_to_verify_it(client: Client) -> None:
    long_ago = (datetime.now(UTC) - timedelta(days=412, hours=1)).isoformat()
    await kept(client, FACTS[0], occurred_at=long_ago)

    assert "412 days old, verify, by tester" in await hook(client, DEPLOY)


async def test_prompts_of_a_session_in_two_processes_get_a_memory_once(
    client: Client, another_process: Client
) -> None:
    await kept(client, *FACTS)

    texts = await asyncio.gather(
        *(hook(one, DEPLOY) for one in (client, another_process) for _ in range(6))
    )

    assert sum(FACTS[0] in text for text in texts) == 1
    assert await hook(client, DEPLOY) == await hook(another_process, DEPLOY) == ""
    assert FACTS[0] in await hook(client, DEPLOY, session="s2")


async def test_notes_that_answer_alike_are_few_and_a_headline_comes_once_more_in_full(
    client: Client, app: App
) -> None:
    texts = {
        port: f"The invoice service listens on port {port} in region {port % 7}."
        for port in range(8440, 8450)
    }
    ids = dict(zip(texts, await kept(client, *texts.values()), strict=True))

    text = await hook(client, PORT)

    assert 1 <= text.count("\n- ") <= 8
    assert estimate(text) <= 350
    port = next(
        port for port, id_ in ids.items() if f"- {id_[-8:]} The invoice" in text
    )
    again = [
        await hook(client, f"Does the invoice service listen on port {port}?")
        for _ in range(2)
    ]
    assert [f"by tester] {texts[port]}" in text for text in again] == [True, False]
    assert [
        str(memory.id) for entry in await ledger(app) for memory in entry.memories
    ].count(ids[port]) == 1


async def test_a_long_note_is_cut_between_sentences_around_what_fits_the_prompt(
    client: Client,
) -> None:
    filler = "Nothing of interest happened in the office on that day either. " * 10
    await kept(
        client,
        f"{filler}The invoice service listens on port 8443, on which it takes TLS. {filler}",
    )

    text = await hook(client, PORT)

    assert "The invoice service listens on port 8443, on which it takes TLS." in text
    assert estimate(text) <= 120


async def test_the_summary_of_a_long_note_stands_for_it(client: Client) -> None:
    filler = "Nothing of interest happened in the office on that day either. " * 10
    summary = "The invoice service listens on port 8443; another port is taken."
    await kept(
        client,
        f"{filler}The invoice service listens on port 8443, on which it takes TLS.",
        summary=summary,
    )

    assert f"by tester] {summary}" in await hook(client, PORT)


async def test_a_session_has_a_budget(
    client: Client, facts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(note_candidates, "_SESSION_TOKENS", 50)

    assert FACTS[0] in await hook(client, DEPLOY)
    assert await hook(client, PORT) == ""


async def test_a_long_prompt_is_asked_by_its_ends_and_marks_are_no_operators(
    client: Client, facts: list[str]
) -> None:
    log = (
        "\n".join(
            f"12:00:{second:02} worker {second} finished task {second * 7}"
            for second in range(60)
        )
        * 5
    )

    assert FACTS[1] in await hook(client, f"{PORT}\n```\n{log}\n```\n")
    assert FACTS[0] in await hook(
        client, 'I saw "exit code 7" -deploy: where do we deploy the shop from?'
    )


async def test_words_alone_decide_while_the_model_is_slow(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Waiting()
    person = Person(MemoryContext.of(database, model), project="notes")
    model.go.set()
    await person.keep(*FACTS)
    model.go.clear()
    monkeypatch.setattr(note_candidates, "_SLOW", 0.0)

    assert (
        FACTS[0][:30]
        in (await person.call(HookRequest(prompt=DEPLOY, session="s1"))).text
    )


async def test_notes_of_other_projects_are_injected_if_their_namespace_is_shared(
    client: Client, app: App
) -> None:
    await client.call_tool(
        "memory_store", {"content": FACTS[1], "namespace": "everywhere"}
    )
    assert await hook(client, PORT) == ""

    await own_service(app).call(ShareNamespaceRequest(name="everywhere"))

    assert FACTS[1] in await hook(client, PORT)


async def test_the_project_is_that_of_the_directory(
    settings: Settings, tmp_path: Path
) -> None:
    app = App(settings.model_copy(update={"namespace": None}))
    repositories = {name: tmp_path / name for name in ("shop", "site")}
    for folder in repositories.values():
        folder.mkdir()
        done = await asyncio.create_subprocess_exec("git", "init", "-q", str(folder))
        assert await done.wait() == 0
    async with connected(build_server(own_service(app))) as client:
        await client.call_tool(
            "memory_store", {"content": FACTS[0], "namespace": "repo:shop"}
        )

        assert await hook(client, DEPLOY, cwd=str(repositories["site"])) == ""
        assert FACTS[0] in await hook(client, DEPLOY, cwd=str(repositories["shop"]))
    await app.close()


async def test_a_read_only_server_records_nothing_and_so_injects_nothing(
    client: Client, settings: Settings
) -> None:
    await kept(client, *FACTS)
    app = App(settings.model_copy(update={"read_only": True}))
    async with connected(build_server(own_service(app))) as reader:
        assert await hook(reader, DEPLOY) == ""
        assert "3 notes of notes" in await started(app)
    await app.close()


# The end of a turn, and of a context


async def stop(client: Client, message: str, session: str = "s1") -> str:
    text = await called(client, event="Stop", session=session, message=message)
    if not text:
        return ""
    output = json.loads(text)
    assert output["decision"] == "block"
    return str(output["reason"])


async def test_an_assertion_that_was_not_stored_is_asked_for_once_with_its_words(
    client: Client,
) -> None:
    await hook(client, "We have to choose a queue.")

    assert await stop(client, "There are Kafka and NATS.") == ""
    assert '1. "We will use NATS, since nobody here runs Kafka."' in await stop(
        client, "Agreed. We will use NATS, since nobody here runs Kafka."
    )
    assert await stop(client, "We decided to use NATS.") == ""
    assert await stop(client, "We decided to use NATS.", session="s2") != ""


async def test_each_new_assertion_of_a_person_is_asked_for_three_times_a_session(
    client: Client,
) -> None:
    prompts = (
        "Benutze ab jetzt immer httpx statt requests. Danke!", "recuerda que los viernes no desplegamos",
        "Note: the gateway listens on 8443.", "Never push to main.",
    )  # fmt: skip
    asked = []
    for prompt in prompts:
        await hook(client, prompt)
        asked.append(await stop(client, "Done."))

    assert '1. "Benutze ab jetzt immer httpx statt requests."' in asked[0]
    assert "Danke" not in asked[0]
    assert '1. "recuerda que los viernes no desplegamos"' in asked[1]
    assert "8443" in asked[2]
    assert asked[3] == ""


async def test_the_nearest_memory_stands_beside_an_assertion(
    client: Client, facts: list[str]
) -> None:
    await hook(
        client,
        "From now on we deploy the shop from Argo and not from the Jenkins job shop-deploy.",
        session="s2",
    )

    assert f"[{facts[0][-8:]}, today, by tester] {FACTS[0]}" in await stop(
        client, "Done.", session="s2"
    )


async def proposed(app: App, *drop: str) -> list[str]:
    return [
        one.sentence
        for one in await own_service(app).call(StatementsRequest(drop=drop))
    ]


async def test_what_was_not_stored_is_proposed_until_it_is_stored_or_dropped(
    client: Client, app: App
) -> None:
    await hook(
        client, "Never push to main. The key is ghp_" + "a1B2" * 9 + ", remember that."
    )
    await hook(client, "Bitte merke dir: freitags wird nicht deployt.", session="s2")
    await hook(client, "Remember: the red crane is Ana's.", session="s2")
    await kept(client, "The red crane belongs to Ana.")

    assert await proposed(app) == [
        "Never push to main.",
        "Bitte merke dir: freitags wird nicht deployt.",
    ]

    await stop(client, "Done.", session="s2")
    # in another language, in the turn in which it was asked for
    await kept(client, "No deployments on Fridays.")
    assert await stop(client, "Done: we decided to use NATS.", session="s2") == ""

    assert await proposed(app) == ["Never push to main."]
    assert await proposed(app, "Never push to main.") == []


async def test_a_memory_settles_at_most_one_assertion_and_reading_loses_none(
    client: Client, app: App
) -> None:
    ada = "From now on all release notes are written by Ada."
    ida = "From now on all release notes are read by Ida."
    lamps = "We agreed that lamps are replaced by LEDs only."
    key = "Remember that the garage code changes each month."
    await hook(client, f"{ada} {ida} {lamps}")
    await stop(client, "Done.")
    await kept(
        client, "All release notes are read by Ida.", "The canteen closes at noon."
    )

    for _ in range(3):
        assert await proposed(app) == [ada, lamps]
        await stop(client, "Done.")
    await hook(client, key)
    assert key in await stop(client, "Done.")
    await kept(client, "Zugang zum Parkhaus rotiert.", "Das Parkhaus hat zwei Etagen.")
    assert await stop(client, "Done.") == ""
    assert await proposed(app) == [ada, lamps]


async def test_what_is_private_in_a_prompt_is_neither_searched_nor_kept(
    client: Client, app: App
) -> None:
    await kept(client, *FACTS)

    assert (
        await hook(
            client, f"<private>{DEPLOY} From now on we use NATS.</private> Thanks."
        )
        == ""
    )
    assert await stop(client, "<private>We decided to use NATS.") == ""
    assert await own_service(app).call(StatementsRequest()) == ()


@pytest.mark.parametrize("session", [False, True])
async def test_a_pause_silences_every_hook_until_it_ends(
    client: Client, app: App, *, session: bool
) -> None:
    await kept(client, *FACTS)
    await hook(client, "Hello.", session="s1")
    await own_service(app).call(PauseRequest(session=session))

    assert await hook(client, DEPLOY) == ""
    assert await stop(client, "We decided to use NATS.") == ""
    assert await called(client, event="PreCompact", session="s1") == ""
    assert await started(app) == ""
    assert (await hook(client, DEPLOY, session="s2") == "") is not session

    await own_service(app).call(PauseRequest(minutes=0, session=session))

    assert FACTS[0] in await hook(client, DEPLOY)


async def test_before_a_compaction_decisions_are_kept_in_the_summary(
    client: Client,
) -> None:
    text = await called(client, event="PreCompact", session="s1")

    assert "To store in Folklore" in text
    assert not text.startswith("{")


# The start of a session


async def started(app: App, session: str = "s1", source: str = "startup") -> str:
    return (
        await own_service(app).call(
            HookRequest(event="SessionStart", session=session, source=source)
        )
    ).text


async def test_a_session_of_a_small_store_starts_with_all_its_notes(
    client: Client, app: App
) -> None:
    ids = await kept(client, *FACTS, "This is long. " * 80)

    text = await started(app)

    assert "4 notes of notes, all below" in text
    assert [id_ for id_ in ids if id_[-8:] not in text] == []
    assert FACTS[0] in text
    assert estimate(text) <= 350
    assert await hook(client, DEPLOY) == ""  # it was given whole


async def test_a_session_of_a_larger_store_starts_with_what_there_is_and_what_counts(
    client: Client, app: App
) -> None:
    await kept(
        client,
        *(f"Chapter {number} describes a harbour." for number in range(20)),
        tags=["book"],
    )
    [decision] = await kept(
        client, "The queue is NATS, since nobody here runs Kafka.", kind="decision"
    )
    [pinned] = await kept(client, "Never push to main.", pinned=True, tags=["git"])

    text = await started(app)

    assert "22 notes of notes (book 20); 2 are below, memory_recall finds all." in text
    assert pinned[-8:] in text
    assert decision[-8:] in text
    assert "Chapter" not in text
    assert estimate(text) <= 350


async def test_a_session_of_a_larger_store_may_start_with_the_newest_notes(
    client: Client, app: App
) -> None:
    await kept(
        client, *(f"Chapter {number} describes a harbour." for number in range(20))
    )

    assert (await started(app)).count("\n- [") == 8


async def test_the_start_of_a_session_is_the_same_until_something_changes(
    client: Client, app: App
) -> None:
    long = "This decision has many words and a long explanation. " * 30
    await kept(client, *(f"{number}: {long}" for number in range(8)), kind="decision")

    first = await started(app, "s1")

    assert estimate(first) <= 350
    assert first.count("\n- [") == 8
    assert await started(app, "s1") == first
    assert await started(app, "s2") == first
    await hook(client, "What was in the long explanation?", session="s3")
    assert await started(app, "s4") == first
    await kept(client, "The ninth decision is short.", kind="decision")
    assert "ninth" in await started(app, "s5")


async def test_changes_since_a_past_session_are_shown(
    client: Client, app: App, connection: asyncpg.Connection
) -> None:
    await kept(
        client,
        "The harbour crane is red.",
        *(f"Crane {number} is grey." for number in range(12)),
    )
    await started(app, "yesterday")
    await connection.execute(
        "update assistant_sessions set started_at = $1",
        datetime.now(UTC) - timedelta(days=2),
    )
    await connection.execute(
        "update memories set updated_at = $1", datetime.now(UTC) - timedelta(days=3)
    )
    await kept(client, "The harbour crane was painted green.")

    text = await started(app, "today")

    assert "1 changed since" in text
    assert "green" in text
    assert "is red" not in text


async def test_after_a_compaction_the_session_may_get_its_notes_again(
    client: Client, app: App
) -> None:
    await kept(client, FACTS[0], kind="decision")
    await kept(client, FACTS[1], *(f"Crane {number} is grey." for number in range(12)))
    await started(app)
    assert FACTS[1] in await hook(client, PORT)

    text = await started(app, source="compact")

    assert FACTS[0] in text
    assert "To store in Folklore" in text
    assert await hook(client, DEPLOY) == ""
    assert FACTS[1] in await hook(client, PORT)


# What was injected, stored again


async def test_an_injected_note_is_not_stored_again_nor_in_a_new_memory(
    client: Client, facts: list[str]
) -> None:
    injected = await hook(client, DEPLOY)
    assert (
        await hook(client, f"{injected}\nThanks, that looks good.", session="s2") == ""
    ), "it is no part of a prompt"
    assert FACTS[1] in await hook(client, f"{injected}\n{PORT}", session="s3")

    refused = await client.call_tool("memory_store", {"content": injected})
    [id_] = await kept(client, f"{injected}\nThe job shop-deploy runs on Fridays.")

    assert refused.is_error
    assert "stored already" in str(refused.content)
    answer = await client.call_tool("memory_get", {"ids": [id_]})
    assert answer.structured_content is not None
    assert (
        answer.structured_content["memories"][0]["content"]
        == "The job shop-deploy runs on Fridays."
    )


# The ledger


async def ledger(app: App, **arguments: Any) -> list[InjectedText]:
    """Return what was injected, after the uses of this process were written."""
    assert app.usage.queue is not None
    await app.usage.queue.close()
    found: tuple[InjectedText, ...] = await own_service(app).call(
        InjectedRequest(**arguments)
    )
    return list(found)


async def test_the_ledger_has_the_text_that_was_given(
    client: Client, facts: list[str], app: App
) -> None:
    text = await hook(client, DEPLOY)

    [entry] = await ledger(app)

    assert entry.text == text
    assert entry.tokens == estimate(text)
    assert (entry.session, entry.author, entry.event) == (
        "s1",
        "tester",
        "UserPromptSubmit",
    )
    assert [
        (str(memory.id), memory.namespace, memory.used) for memory in entry.memories
    ] == [(facts[0], "notes", None)]
    assert entry.memories[0].tokens == pytest.approx(entry.tokens, abs=1)


async def test_another_author_does_not_see_what_was_injected(
    client: Client, app: App, settings: Settings
) -> None:
    await kept(client, *FACTS)
    await hook(client, DEPLOY)
    other = App(settings.model_copy(update={"author": "another"}))

    assert await ledger(other) == []
    # on this machine every author is the owner
    assert len(await ledger(other, everyone=True)) == 1
    await other.close()


@pytest.mark.parametrize(
    ("tool", "arguments", "used"),
    [
        ("memory_recall", {"query": DEPLOY}, "recalled"),
        ("search_keywords", {"query": "shop-deploy"}, "recalled"),
        ("memory_get", {"ids": ["ID"]}, "read"),
        ("memory_update", {"id": "ID", "tags": ["deploy"]}, "updated"),
        ("memory_store", {"content": FACTS[0]}, "confirmed"),
        (
            "memory_store",
            {"content": "We deploy the shop from Argo.", "supersedes": "ID"},
            "superseded",
        ),
    ],
)
async def test_a_use_of_what_was_injected_is_recorded(
    client: Client,
    facts: list[str],
    app: App,
    tool: str,
    arguments: dict[str, Any],
    used: str,
) -> None:
    await hook(client, DEPLOY)

    answer = await client.call_tool(
        tool, json.loads(json.dumps(arguments).replace("ID", facts[0]))
    )

    assert not answer.is_error
    [entry] = await ledger(app)
    assert [memory.used for memory in entry.memories] == [used]


async def test_the_recall_of_a_hook_is_no_use(
    client: Client, app: App, connection: asyncpg.Connection
) -> None:
    await kept(client, *FACTS)
    await hook(client, DEPLOY)
    await hook(client, DEPLOY, session="s2")

    assert {
        memory.used for entry in await ledger(app) for memory in entry.memories
    } == {None}
    assert await connection.fetchval("select sum(recall_count) from memories") == 0


async def test_a_quotation_in_the_answer_or_the_next_prompt_is_a_use(
    client: Client, app: App
) -> None:
    await kept(client, *FACTS)
    await hook(client, DEPLOY, session="s1")
    await hook(client, PORT, session="s2")
    await hook(client, PORT, session="s3")

    await stop(
        client, "It is deployed from the Jenkins job shop-deploy by hand.", session="s1"
    )
    await hook(
        client, "So the invoice service listens on port 8443, and then?", session="s2"
    )
    await stop(client, "The weather is fine.", session="s3")

    used = {
        entry.session: [memory.used for memory in entry.memories]
        for entry in await ledger(app)
    }
    assert used == {"s1": ["quoted"], "s2": ["quoted"], "s3": [None]}


async def test_a_quotation_in_a_stored_memory_is_a_use(
    client: Client, facts: list[str], app: App
) -> None:
    await hook(client, PORT)

    await kept(
        client,
        "Since the invoice service listens on port 8443, the firewall of the office must let it pass.",
    )
    await stop(client, "Done.")

    [entry] = await ledger(app)
    assert [memory.used for memory in entry.memories] == ["quoted"]


async def test_a_memory_that_was_never_used_becomes_a_headline_and_is_recalled_as_before(
    client: Client,
) -> None:
    [id_, *_] = await kept(client, *FACTS)
    recalled = (
        await client.call_tool("memory_recall", {"query": DEPLOY})
    ).structured_content

    texts = [await hook(client, DEPLOY, session=f"s{session}") for session in range(5)]

    assert FACTS[0] in texts[3]
    assert f"- {id_[-8:]} We deploy the shop from the Jenkins" in texts[4]
    assert FACTS[0] not in texts[4]
    assert (
        await client.call_tool("memory_recall", {"query": DEPLOY})
    ).structured_content == recalled


async def test_an_erased_memory_leaves_the_ledger(
    client: Client, app: App, connection: asyncpg.Connection
) -> None:
    [id_, *_] = await kept(client, *FACTS)
    await hook(client, DEPLOY)

    await client.call_tool("memory_forget", {"ids": [id_], "erase": True})

    assert await connection.fetchval("select count(*) from injections") == 0


async def test_old_entries_of_the_ledger_are_dropped(
    client: Client,
    facts: list[str],
    connection: asyncpg.Connection,
    jobs: BackgroundJobs,
) -> None:
    await hook(client, DEPLOY)
    jobs.now = datetime.now(UTC) + timedelta(days=400)

    assert await jobs.dry_run("retention") == {"to_erase": 0, "usage_to_drop": 1}
    assert (await jobs("retention"))["usage_dropped"] == 1

    assert await connection.fetchval("select count(*) from injections") == 0
    assert await connection.fetchval("select count(*) from assistant_sessions") == 0


async def test_stats_sum_up_what_was_injected(
    client: Client, facts: list[str], app: App
) -> None:
    text = await hook(client, DEPLOY)
    await client.call_tool("memory_recall", {"query": DEPLOY})
    [entry] = await ledger(app)

    [counted] = (await own_service(app).call(StatsRequest())).namespaces

    assert (counted.injected, counted.injected_used) == (1, 1)
    assert counted.injected_tokens == sum(memory.tokens for memory in entry.memories)
    assert counted.injected_tokens == pytest.approx(estimate(text), abs=1)
