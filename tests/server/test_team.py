"""Several people at one server: each reads and writes what their token grants, and nothing shows the rest."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from folklore.config import Settings
from folklore.contract.people import AuditRequest, ListTokensRequest
from folklore.contract.token_secrets import with_checksum
from folklore.db.stores.events.audit import NOWHERE, Audit
from folklore.memory.context import MemoryContext
from folklore.server.auth import FailedTokens
from tests.commands import CommandLine, Ran, command_line  # noqa: F401 - the fixture `folklore`
from tests.servers import free_port, on_http, serving, watched
from tests.team import Team, bearer, called, library_at, refused, root
from tests.waiting import STUCK
from tests.wire import MCP, message

ID = "01993b44-7f4b-7000-8000-000000000000"
API = "/api/list_namespaces"
LIST = message("tools/list")
WRITING = {"memory_store", "memory_update", "memory_forget", "memory_relate"}


@pytest.fixture(scope="module")
async def team(
    address: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Team]:
    settings = watched(
        tmp_path_factory.mktemp("team"),
        database_url=address,
        log_level="debug",
        namespace="",
    )
    async with library_at(address) as library, on_http(settings) as server:
        made = Team(server, library)
        await made.keep("the harbour crane is painted red", namespace="payments")
        await made.keep("the harbour crane belongs to nobody", namespace="board")
        await made.token("root", owner=True)
        yield made
        assert "fk_" not in server.log.read_text(encoding="utf-8")


async def test_a_request_without_a_valid_token_is_refused(team: Team) -> None:
    good = await team.token("alice", "payments:reader")
    revoked = await team.token("alice", "payments:reader")
    await team.revoke(revoked)
    wrong = with_checksum("A" * 43)
    misspelt = good.secret[:-1] + ("A" if good.secret[-1] != "A" else "B")

    async with httpx.AsyncClient(base_url=team.url) as client:
        for headers, reason in (
            ({}, "needs a token"),
            ({"Authorization": ""}, "has no token"),
            ({"Authorization": "Basic YTpi"}, "not of the scheme Bearer"),
            ({"Authorization": "Bearer"}, "has no token"),
            (bearer("fk_short"), "not a Folklore token"),
            (bearer("fi_short"), "code of an invitation, not a token"),
            (bearer(misspelt), "a typing error"),
            (bearer("eyJhbGciOiJub25lIn0.e30."), "not a Folklore token"),
            (bearer(wrong), "not known"),
            (bearer(revoked.secret), "was revoked"),
        ):
            for method, path in (
                ("POST", "/mcp"),
                ("GET", "/mcp"),
                ("POST", API),
                ("POST", "/messages/"),
            ):
                answer = await client.request(
                    method,
                    path,
                    json=LIST if method == "POST" else None,
                    headers=MCP | headers,
                )
                assert answer.status_code == 401, (headers, path)
                assert reason in answer.json()["error"]["message"]
                assert answer.headers["www-authenticate"].startswith("Bearer")
            assert (await client.get("/sse", headers=headers)).status_code == 401
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/readyz")).status_code == 200
        twice = [
            ("Authorization", f"Bearer {good.secret}"),
            ("Authorization", f"Bearer {good.secret}"),
        ]
        assert (
            await client.post("/mcp", json=LIST, headers=[*MCP.items(), *twice])
        ).status_code == 401


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("{token}", "lacks the word Bearer"),
        ('Bearer "{token}"', "in quotation marks"),
        ("'Bearer {token}'", "in quotation marks"),
        ("Bearer Bearer {token}", "the word Bearer twice"),
        ("Basic {token}", "not of the scheme Bearer"),
        ("Bearer ${{FOLKLORE_TOKEN}}", "did not replace"),
        ("Bearer ${{env:FOLKLORE_TOKEN}}", "did not replace"),
        ("Bearer $FOLKLORE_TOKEN", "did not replace"),
        ("Bearer %FOLKLORE_TOKEN%", "did not replace"),
        ("Bearer {{{{ folklore_token }}}}", "did not replace"),
        ("${{FOLKLORE_TOKEN}}", "did not replace"),
        ("Bearer <your token>", "did not replace"),
    ],
)
async def test_a_token_that_is_not_read_as_one_is_answered_with_how_to_write_it(
    team: Team, value: str, words: str
) -> None:
    good = await team.token("alice", "payments:reader")
    headers = MCP | {"Authorization": value.format(token=good.secret)}
    async with httpx.AsyncClient(base_url=team.url, headers=headers) as client:
        # More often than wrong tokens may be tried: a client that is set up wrongly goes on asking.
        for _ in range(70):
            answer = await client.post("/mcp", json=LIST)

            assert answer.status_code == 401
        assert words in answer.json()["error"]["message"]
        assert "Authorization: Bearer fk_" in answer.json()["error"]["message"]
        assert good.secret not in answer.text


async def test_the_authorization_scheme_is_read_in_any_case(team: Team) -> None:
    good = await team.token("alice", "payments:reader")
    async with httpx.AsyncClient(base_url=team.url) as client:
        for scheme in (
            "Bearer",
            "bearer",
            "BEARER",
            "Bearer ",
        ):  # RFC 7235: the scheme in any case, some spaces
            answer = await client.post(
                API, json={}, headers={"Authorization": f"{scheme} {good.secret}"}
            )
            assert answer.status_code != 401, scheme
        for scheme in ("Basic", "Token"):
            answer = await client.post(
                API, json={}, headers={"Authorization": f"{scheme} {good.secret}"}
            )
            assert answer.status_code == 401, scheme
        without = await client.post(API, json={})

    assert answer.headers["www-authenticate"].startswith(
        'Bearer realm="folklore", error="invalid_token", error_desc'
    )
    # RFC 6750: no error code
    assert without.headers["www-authenticate"] == 'Bearer realm="folklore"'


async def test_metrics_behind_a_proxy_need_an_owners_token(team: Team) -> None:
    owner = await team.token("boss", owner=True)
    admin = await team.token("ada", "payments:admin")
    proxied = {"X-Forwarded-For": "127.0.0.1"}
    async with httpx.AsyncClient(base_url=team.url) as client:
        statuses = [
            (await client.get("/metrics", headers=proxied | headers)).status_code
            for headers in (
                {},
                bearer(admin.secret),
                bearer(with_checksum("A" * 43)),
                bearer(owner.secret),
            )
        ]

    assert statuses == [403, 403, 401, 200]


@pytest.mark.parametrize("sse", [False, True])
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_reader_is_not_shown_the_tools_that_write(
    team: Team, sse: bool, mode: str
) -> None:
    reader = await team.token("rita", "payments:reader")
    writer = await team.token("walter", "payments:writer", "board:reader")
    admin = await team.token("ada", "payments:admin")

    async with team.assistant(reader.secret, sse=sse, mode=mode) as client:
        shown = {tool.name for tool in (await client.list_tools()).tools}
        found = await called(
            client, "memory_recall", query="Who painted the harbour crane?"
        )
    async with team.assistant(writer.secret, sse=sse, mode=mode) as client:
        all_ = {tool.name for tool in (await client.list_tools()).tools}
    async with team.assistant(admin.secret, sse=sse, mode=mode) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == all_

    assert all_ - shown == WRITING
    assert (found["searched"], len(found["memories"])) == (["payments"], 1)


@pytest.mark.parametrize("sse", [False, True])
async def test_author_and_default_namespace_are_those_of_the_token(
    team: Team, sse: bool
) -> None:
    token = await team.token(
        "walter",
        "payments:writer",
        "board:writer",
        namespace="board",
        agent="claude-code",
    )

    async with team.assistant(token.secret, sse=sse) as client:
        stored = await called(
            client, "memory_store", content=f"The board meets on Mondays ({sse})."
        )
        kept = (await called(client, "memory_get", ids=[stored["stored"][0]["id"]]))[
            "memories"
        ][0]

    assert stored["namespace"] == "board"
    assert (kept["author"], kept["agent"]) == ("walter", "claude-code")


async def test_an_owner_writes_to_the_tokens_default_and_never_to_the_servers_project(
    team: Team,
) -> None:
    made = await team.token("ops", owner=True, namespace="ops")
    bare = await team.token("ops", owner=True)

    async with team.assistant(made.secret) as client:
        assert (
            await called(client, "memory_store", content="Deploys stop on Fridays.")
        )["namespace"] == "ops"
    async with team.assistant(bare.secret) as client:
        assert "namespace: is missing" in await refused(
            client, "memory_store", content="anything"
        )


async def test_discovery_is_open_and_other_unknown_paths_need_a_token(
    team: Team,
) -> None:
    async with httpx.AsyncClient(base_url=team.url) as client:
        for path in (
            "oauth-protected-resource",
            "oauth-protected-resource/mcp",
            "oauth-authorization-server",
            "x",
        ):
            assert (await client.get(f"/.well-known/{path}")).status_code == 404
        for path in (
            "/healthzmcp",
            "/readyz/mcp",
            "/metricsx",
            "/nowhere",
            "/.well-known",
        ):
            assert (await client.get(path)).status_code == 401, path


@pytest.mark.parametrize(
    "path",
    ["/healthz", "/readyz", "/metrics", "/.well-known/oauth-authorization-server"],
)
async def test_open_paths_are_open_to_reading_methods_only(
    team: Team, path: str
) -> None:
    async with httpx.AsyncClient(base_url=team.url) as client:
        read = [
            (await client.request(method, path)).status_code
            for method in ("GET", "HEAD")
        ]
        tried = [
            (await client.request(method, path, json=LIST)).status_code
            for method in ("POST", "PUT", "DELETE")
        ]
        before = (await client.options(path)).status_code

    discovery = path.startswith("/.well-known/")
    assert read == [404 if discovery else 200] * 2
    assert tried == [401] * 3
    assert before == (404 if discovery else 401)


async def test_a_forgotten_memory_is_shown_to_writers_and_not_to_readers(
    team: Team,
) -> None:
    writer = await team.token("walter", "payments:writer")
    reader = await team.token("rita", "payments:reader")
    (gone,) = await team.keep("the vault's code is on the door", namespace="payments")
    ids = [str(gone)]
    requests: dict[str, dict[str, Any]] = {
        "get": {"ids": ids, "forgotten": True},
        "history": {"id": str(gone)},
    }
    async with httpx.AsyncClient(base_url=team.url) as client:
        await client.post(
            "/api/forget", json={"ids": ids}, headers=bearer(writer.secret)
        )
        for call, body in requests.items():
            to_writer = await client.post(
                f"/api/{call}", json=body, headers=bearer(writer.secret)
            )
            to_reader = await client.post(
                f"/api/{call}", json=body, headers=bearer(reader.secret)
            )

            assert "vault" in to_writer.text, call
            assert "vault" not in to_reader.text, call


async def test_names_counts_and_ids_of_other_namespaces_are_hidden(team: Team) -> None:
    (hidden,) = await team.keep("the board's secret plan", namespace="board")
    token = await team.token("walter", "payments:admin")

    async with team.assistant(token.secret) as client:
        status = await called(client, "memory_status")
        names = (await client.read_resource("memory://namespaces")).contents[0]
        errors = [
            await refused(client, "memory_recall", query="plan", namespaces=["board"]),
            await refused(client, "memory_recall", query="plan", namespaces=["bored"]),
            await refused(client, "memory_store", content="x", namespace="board"),
            await refused(client, "memory_get", ids=[str(hidden)]),
            await refused(client, "memory_forget", ids=[str(hidden)], erase=True),
            await refused(client, "memory_update", id=str(hidden), content="x"),
        ]
        found = await called(client, "search_keywords", query="secret plan board")

    assert [(item["name"], item["role"]) for item in status["namespaces"]] == [
        ("payments", "admin")
    ]
    assert "board" not in names.text  # type: ignore[union-attr]
    assert errors[0].replace("'board'", "'bored'") == errors[1]
    assert all("secret plan" not in text for text in errors)
    assert found["searched"] == ["payments"]


async def test_a_token_revoked_in_the_middle_of_a_session_fails_at_once(
    team: Team,
) -> None:
    token = await team.token("alice", "payments:reader")

    async with team.assistant(token.secret, sse=True, mode="legacy") as client:
        await called(client, "memory_recall", query="crane")
        await team.revoke(token)
        with pytest.raises(Exception):  # noqa: B017 - each client has its own exception for a 401
            await asyncio.wait_for(
                client.call_tool("memory_recall", {"query": "crane"}), 3
            )


async def test_a_session_accepts_only_the_token_that_began_it(team: Team) -> None:
    alice = await team.token("alice", "payments:reader")
    bob = await team.token("bob", "board:reader")

    async with (
        httpx.AsyncClient(base_url=team.url, timeout=10) as client,
        client.stream("GET", "/sse", headers=bearer(alice.secret)) as stream,
    ):
        lines = stream.aiter_lines()
        endpoint = None
        async for line in lines:
            if line.startswith("data:"):
                endpoint = line.removeprefix("data:").strip()
                break
        assert endpoint is not None
        theirs = await client.post(endpoint, json=LIST, headers=bearer(bob.secret))
        own = await client.post(endpoint, json=LIST, headers=bearer(alice.secret))

    assert (theirs.status_code, own.status_code) == (404, 202)


async def test_denied_accesses_are_counted_with_the_namespace_where_the_caller_may_read(
    team: Team,
) -> None:
    dan = await team.token("dan", "payments:reader", "repo:acme/*:reader")
    revoked = await team.token("dan", "x:reader")
    ada = await team.token("ada", "payments:admin", "board:admin")
    (kept,) = await team.keep("the crane is inspected in May", namespace="payments")
    await team.revoke(revoked)
    drafts = [{"content": "The crane is blue."}]
    tried: list[tuple[str, dict[str, Any]]] = [("forget", {"ids": [str(kept)]})]
    tried += [
        ("store", {"memories": drafts, "namespace": at})
        for at in ("payments", *["board"] * 3, "repo:acme/none")
    ]
    asked = {"namespaces": ["payments", "board"], "denied": True, "principal": "dan"}

    async with httpx.AsyncClient(base_url=team.url) as client:
        answers = [
            await client.post(f"/api/{name}", json=body, headers=bearer(dan.secret))
            for name, body in tried
        ]
        await client.post("/mcp", json=LIST, headers=MCP | bearer(revoked.secret))
        async with asyncio.timeout(120):
            counts = Counter[tuple[str | None, str, str]]()
            # written two seconds after the answers, those of a time as one entry
            while counts.total() <= len(tried):
                await asyncio.sleep(0.2)
                log = await team.owner.call(AuditRequest(denied=True, principal="dan"))
                each = [
                    Counter({(item.namespace, item.action, item.outcome): item.amount})
                    for item in log
                ]
                counts = sum(each, Counter())
        seen = (
            await client.post("/api/audit", json=asked, headers=bearer(ada.secret))
        ).json()["result"]

    assert [answer.status_code for answer in answers] == [403, 403, 404, 404, 404, 403]
    assert counts == {
        ("payments", "forget", "refused"): 1, ("payments", "store", "refused"): 1, (None, "store", "refused"): 1,
        (None, "store", "not_found"): 3, (None, "http /mcp", "unauthenticated"): 1,
    }  # fmt: skip
    assert {(entry["namespace"], entry["action"]) for entry in seen} == {
        ("payments", "forget"),
        ("payments", "store"),
    }
    assert not any("fk_" in (item.detail or "") for item in log)


async def test_the_time_and_the_address_of_the_last_use_of_a_token_are_stored(
    team: Team,
) -> None:
    token = await team.token("una", "payments:reader")
    began = datetime.now(UTC)
    async with team.assistant(token.secret) as client:
        await called(client, "memory_recall", query="crane")

    async with asyncio.timeout(120):
        while not (
            listed := (await team.owner.call(ListTokensRequest(principal="una")))[0]
        ).last_used_at:
            await asyncio.sleep(0.1)
    assert began <= listed.last_used_at <= datetime.now(UTC)
    assert listed.last_address == "127.0.0.1"


async def test_the_first_token_makes_tokens_necessary(
    settings: Settings, library: MemoryContext
) -> None:
    limited = settings.http.model_copy(update={"rate_per_minute": 5})
    async with (
        serving(settings.model_copy(update={"http": limited})) as url,
        httpx.AsyncClient(base_url=url) as client,
    ):
        # more than a fifth of five a minute: without a token there is no rate limit
        for _ in range(3):
            assert (await client.post(API, json={})).json() == {"result": []}
        made = await root(library).create_token("alice", "notes:writer")
        async with asyncio.timeout(120):  # "no token exists" is cached for a second
            while (await client.post(API, json={})).status_code != 401:
                await asyncio.sleep(0.1)
        assert (
            await client.post(API, json={}, headers=bearer(made.secret))
        ).status_code == 200


async def test_each_principal_has_its_own_rate_and_pending_denials_are_written_at_the_end(
    settings: Settings, library: MemoryContext
) -> None:
    owner = root(library)
    limited = settings.http.model_copy(update={"rate_per_minute": 10})
    alice = await owner.create_token("alice", "notes:writer")
    again = await owner.create_token("Alice", "notes:writer")
    bob = await owner.create_token("bob", "notes:writer")
    async with (
        serving(settings.model_copy(update={"http": limited})) as url,
        httpx.AsyncClient(base_url=url) as client,
    ):

        async def status(secret: str, path: str = API) -> int:
            return (
                await client.post(path, json={}, headers=bearer(secret))
            ).status_code

        tried = [
            await status(secret)
            for secret in (alice.secret, again.secret, alice.secret, bob.secret)
        ]
        for path in (API, "/mcp", "/messages/", "/metrics", "/whatever/fk_secret"):
            assert await status(with_checksum("A" * 43), path) == 401
    log = await Audit(library.database).read(
        namespaces=[NOWHERE], fetch=100, refused=True
    )

    assert tried == [200, 200, 429, 200]
    assert sorted((item.action, item.principal, item.detail) for item in log) == [
        (f"http {what}", "unknown", "unknown")
        for what in ("/api/", "/mcp", "/messages/", "/metrics", "other")
    ]


async def test_many_wrong_tokens_are_slowed_and_a_right_one_at_the_same_address_goes_on(
    settings: Settings, library: MemoryContext
) -> None:
    async with (
        serving(settings) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        alice = await root(library).create_token("alice", "notes:writer")

        async def status(secret: str) -> int:
            return (await client.post(API, json={}, headers=bearer(secret))).status_code

        before = await status(alice.secret)
        wrong: set[int] = set()
        # on a slow machine the sixty a minute come back while they are spent
        async with asyncio.timeout(STUCK):
            while 429 not in wrong:
                wrong |= {
                    *await asyncio.gather(
                        *(
                            status(with_checksum(f"{number:043d}"))
                            for number in range(70)
                        )
                    )
                }
        after = await status(alice.secret)
        missing = (await client.post(API, json={})).status_code

    assert (before, after, missing) == (200, 200, 401)
    assert wrong <= {401, 429}


def test_wrong_tokens_of_one_address_do_not_hinder_another_and_are_forgotten() -> None:
    now = [0.0]
    failures = FailedTokens(clock=lambda: now[0])
    for _ in range(1_000):
        failures.failed("10.0.0.1")

    assert failures.wait("10.0.0.1", "fk_x") > 0
    assert failures.wait("10.0.0.2", "fk_x") == 0
    now[0] = 1.0
    assert failures.wait("10.0.0.1", "fk_x") == 0


async def test_a_read_only_server_writes_no_denials(
    database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = watched(
        tmp_path_factory.mktemp("reads"), database_url=database_url, read_only="true"
    )
    async with library_at(database_url) as library:
        async with (
            on_http(settings) as server,
            httpx.AsyncClient(base_url=server.url) as client,
        ):
            await Team(server, library).token("alice", "notes:writer")
            assert (
                await client.post(
                    "/mcp", json=LIST, headers=bearer(with_checksum("A" * 43))
                )
            ).status_code == 401
            await server.end()
            assert "_not_logged" not in server.log_text()
        assert (
            await Audit(library.database).read(
                namespaces=[NOWHERE], fetch=100, refused=True
            )
            == []
        )


async def test_without_the_database_every_call_fails_as_unavailable_and_shows_no_address(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    settings = watched(
        tmp_path_factory.mktemp("away"),
        database_url=f"postgresql://x@127.0.0.1:{free_port()}/none",
    )
    secret = with_checksum("A" * 43)
    async with (
        on_http(settings) as server,
        httpx.AsyncClient(base_url=server.url) as client,
    ):
        answer = await client.post(API, json={}, headers=bearer(secret))
        async with Team(server, None).assistant(secret) as assistant:  # type: ignore[arg-type]
            message = await refused(assistant, "memory_recall", query="x")

        without = await client.post(API, json={})

    assert (answer.status_code, answer.json()["error"]["code"]) == (
        503,
        "database_unavailable",
    )
    assert "database" in message
    for text in (answer.text, message):
        assert "127.0.0.1" not in text
    assert (without.status_code, "notes" in without.text) == (503, False)


async def test_commands_work_with_a_server_as_they_do_without(
    team: Team, folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await team.token("boss", owner=True)
    monkeypatch.setenv("FOLKLORE_NAMESPACE", "remote")

    async def at(secret: str, *words: str, code: int = 0, **more: str) -> Any:
        for name, value in {"FOLKLORE_TOKEN": secret, **more}.items():
            monkeypatch.setenv(name, value)
        ran = await folklore("--server", team.url, *words)
        assert ran.code == code, ran.err
        return ran

    made = (
        await at(
            owner.secret,
            "tokens",
            "create",
            "--name",
            "Carla",
            "--grant",
            "remote:admin",
            "--json",
        )
    ).json
    assert made["created"] == ["remote"]
    secret = made["token"]
    stored = (
        await at(
            secret,
            "store",
            "The mole is closed in winter.",
            "--tag",
            "harbour",
            "--json",
        )
    ).json
    id_ = stored["stored"][0]["id"]
    assert stored["namespace"] == "remote"
    assert (await at(secret, "recall", "When is the mole closed?", "--json")).json[
        "memories"
    ][0]["id"] == id_
    assert (await at(secret, "search", "mole", "--json")).json["memories"][0][
        "id"
    ] == id_
    assert (await at(secret, "list", "--tag", "harbour", "--json")).json["memories"][0][
        "id"
    ] == id_
    shown = (await at(secret, "show", id_, "--json")).json["memories"][0]
    assert (shown["author"], shown["content"]) == (
        "Carla",
        "The mole is closed in winter.",
    )
    editor = "sed -i -e 's/mole is/pier is/' -e 's/^tags:/importance: 0.5\\ntags:/'"
    edited = (
        await at(secret, "edit", id_, "--json", EDITOR=editor, VISUAL=editor)
    ).json
    assert (edited["content"], edited["importance"]) == (
        "The pier is closed in winter.",
        0.5,
    )
    assert edited["tags"] == ["harbour"]
    assert (await at(secret, "show", id_[-6:], "--json")).json["memories"][0][
        "id"
    ] == id_
    assert (await at(secret, "list")).out.count(id_[-8:]) == 1
    assert (await at(secret, "show", "1", "--json")).json["memories"][0]["id"] == id_
    assert "Carla stored a memory in remote" in (await at(secret, "log")).out
    assert (await at(secret, "undo", "--json")).json["undone"][0]["change"][
        "action"
    ] == "update"
    assert f"server {team.url}" in (await at(secret)).out
    assert (await at(secret, "forget", id_, "--json")).json["forgotten"]
    assert (await at(secret, "undo", id_, "--json")).json["undone"][0]["change"][
        "action"
    ] == "forget"
    assert len((await at(secret, "history", id_, "--json")).json["revisions"]) == 4
    assert [
        item["name"]
        for item in (await at(secret, "namespaces", "list", "--json")).json[
            "namespaces"
        ]
    ] == ["remote"]
    assert (await at(secret, "stats", "--json")).json["total"]["memories"] == 1
    log = (await at(secret, "audit", "-n", "remote", "--json")).json["audit"]
    assert {line["action"] for line in log} >= {"store", "forget", "undo"}
    assert "payments" not in (
        await at(secret, "recall", "crane", "-n", "payments", code=4)
    ).err.replace("'payments'", "")
    await at(secret, "audit", code=5)
    await at(
        secret, "tokens", "create", "--name", "x", "--grant", "remote:reader", code=5
    )
    await at(secret, "namespaces", "create", "mine", code=5)
    await at(secret, "namespaces", "delete", "remote", "--erase", "--yes", code=5)
    await at(secret, "jobs", "run", code=5)
    await at(with_checksum("A" * 43), "recall", "x", code=5)
    revoked = (await at(owner.secret, "tokens", "revoke", made["id"], "--json")).json
    assert revoked["revoked"] == [{"id": made["id"], "name": "Carla"}]
    await at(secret, "recall", "x", code=5)
    listed = (
        await at(owner.secret, "tokens", "list", "--name", "carla", "--all", "--json")
    ).json["tokens"]
    assert [("revoked_at" in item, item["grants"]) for item in listed] == [
        (True, "remote:admin")
    ]
    erased = await at(
        owner.secret, "namespaces", "delete", "Remote", "--erase", "--yes"
    )
    assert erased.out.splitlines() == ["erased remote with 1 memory"]


async def test_an_export_from_a_server_holds_what_the_token_may_read(
    team: Team, folklore: CommandLine, tmp_path: Path
) -> None:
    made = await team.token("alice", "payments:reader")
    owner = await team.token("boss", owner=True)

    async def export(secret: str, *words: str) -> Ran:
        return await folklore(
            "export",
            tmp_path / "out.jsonl",
            *words,
            "--server",
            team.url,
            "--token",
            secret,
        )

    ran = await export(made.secret, "--json")
    assert ran.code == 0, ran.err
    lines = [
        json.loads(line)
        for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert lines[0]["folklore"] == 1
    assert {line["namespace"] for line in lines[1:]} == {"payments"}
    assert (
        ran.json["exported"] == sum(line["type"] == "memory" for line in lines[1:]) > 0
    )
    assert "board" not in (tmp_path / "out.jsonl").read_text(encoding="utf-8").lower()
    assert (await export(made.secret, "-n", "board")).code == 4
    assert (await export(with_checksum("A" * 43))).code == 5
    assert (await export(owner.secret)).code == 0
    assert '"board"' in (tmp_path / "out.jsonl").read_text(encoding="utf-8")


async def test_the_options_server_and_token_are_accepted_in_any_place(
    team: Team, folklore: CommandLine
) -> None:
    made = await team.token("alice", "payments:reader")

    for words in (
        (
            "recall",
            "harbour crane",
            "--server",
            team.url,
            "--token",
            made.secret,
            "--json",
        ),
        (
            "recall",
            "--json",
            f"--token={made.secret}",
            "harbour crane",
            f"--server={team.url}",
        ),
        (
            "--server",
            team.url,
            "recall",
            "harbour crane",
            "--json",
            "--token",
            made.secret,
        ),
    ):
        ran = await folklore(*words)
        assert ran.code == 0, ran.err
        assert ran.json["searched"] == ["payments"]
    ran = await folklore("recall", "x", "--server")
    assert ran.code == 2


async def test_a_server_that_cannot_be_reached_is_a_clear_error(
    folklore: CommandLine,
) -> None:
    ran = await folklore("--server", f"http://127.0.0.1:{free_port()}", "recall", "x")
    assert (ran.code, "cannot be reached" in ran.err) == (3, True)
    ran = await folklore("--server", "127.0.0.1:1", "recall", "x")
    assert (ran.code, "server: must be an address such as https://" in ran.err) == (
        2,
        True,
    )


INVALID: list[tuple[str, dict[str, Any], int, str]] = [
    ("nothing", {}, 404, "no operation"),
    ("recall", {}, 400, "query"),
    ("recall", {"query": "x", "limit": "many"}, 400, "limit: must be a whole number."),
    (
        "recall",
        {"query": "x", "limit": 10**30},
        400,
        "limit: must be between 1 and 100",
    ),
    ("recall", {"query": "x", "more": 1}, 400, "more"),
    (
        "recall",
        {"query": "x", "ranking": {"fetch_multiplier": 1e9}},
        400,
        "fetch_multiplier",
    ),
    (
        "forget",
        {"filters": {"kinds": ["note"], "session": ""}, "dry_run": True},
        400,
        "session",
    ),
    ("revoke_tokens", {"principal": " "}, 400, "principal"),
    (
        "store",
        {"namespace": "payments", "memories": [{"content": "x", "author": "boss"}]},
        400,
        "author",
    ),
    ("store", {"namespace": "payments", "memories": [{"content": ""}]}, 400, "content"),
    ("update", {"id": ID, "changes": {"content": 5}}, 400, "content"),
    ("update", {"id": ID, "changes": {"importance": "high"}}, 400, "importance"),
    ("update", {"id": ID, "changes": {"tags": [5]}}, 400, "tags"),
    ("update", {"id": ID, "changes": {"occurred_at": [1]}}, 400, "occurred_at"),
    ("update", {"id": ID, "changes": {"mood": 5}}, 400, "mood"),
    ("update", {"id": ID, "changes": {"content": "x"}}, 404, "no memory"),
]


async def test_an_invalid_request_to_the_api_names_the_problem(team: Team) -> None:
    owner = await team.token("boss", owner=True)
    async with httpx.AsyncClient(
        base_url=team.url, headers=bearer(owner.secret)
    ) as client:
        for operation, body, status, words in INVALID:
            answer = await client.post(f"/api/{operation}", json=body)

            assert answer.status_code == status, (operation, body)
            assert words in answer.json()["error"]["message"], (operation, body)


async def test_a_stream_of_sse_ends_with_its_token_and_others_stay_open(
    team: Team,
) -> None:
    almost_an_hour_ago = datetime.now(UTC) - timedelta(minutes=60, seconds=-3)
    lasting = await team.token("lara", "payments:reader")
    revoked = await team.token("sam", "payments:reader")
    expiring = await team.owner.at(almost_an_hour_ago).create_token(
        "eve", "payments:reader", expires="1h"
    )
    ended: dict[str, datetime] = {}

    async def listen(name: str, secret: str) -> None:
        async with client.stream("GET", "/sse", headers=bearer(secret)) as stream:
            assert stream.status_code == 200
            opened[name].set()
            async for _ in stream.aiter_lines():
                pass
        ended[name] = datetime.now(UTC)

    opened = {"lara": asyncio.Event(), "sam": asyncio.Event(), "eve": asyncio.Event()}
    async with httpx.AsyncClient(base_url=team.url, timeout=30) as client:
        secrets = {
            "lara": lasting.secret,
            "sam": revoked.secret,
            "eve": expiring.secret,
        }
        tasks = [
            asyncio.create_task(listen(name, secret))
            for name, secret in secrets.items()
        ]
        for event in opened.values():
            await event.wait()
        await asyncio.sleep(2.5)  # the server looks at the tokens meanwhile
        before = set(ended) - {"eve"}
        await team.revoke(revoked)
        async with asyncio.timeout(STUCK):
            await asyncio.gather(*tasks[1:])
        lasts = not tasks[0].done()
        tasks[0].cancel()
        await asyncio.wait(tasks)

    assert before == set()
    assert lasts
    assert "Traceback" not in team.server.log_text()
    assert expiring.expires_at is not None
    assert ended["eve"] > expiring.expires_at
