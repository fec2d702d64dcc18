"""A colleague joins a team's server: invitations, their exchange, and the check of the result, with real processes."""

import asyncio
import contextlib
import io
import json
import os
import re
import shlex
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import httpx
import pytest
from mcp import Client, StdioServerParameters

from folklore import pip_install
from folklore.cli.main import outcome
from folklore.config import Settings
from folklore.contract.namespaces import ListNamespacesRequest
from folklore.contract.people import (
    AuditRequest,
    Invitation,
    InviteRequest,
    JoinRequest,
    ListTokensRequest,
    RevokeTokensRequest,
)
from folklore.contract.token_secrets import digest_of, key_of, with_checksum
from folklore.errors import InvalidInput, Refused, Unauthenticated
from folklore.memory.auth.authenticator import INVITED, UNIDENTIFIED
from folklore.server.application import health
from tests import ROOT, forks
from tests.certificates import Issued, issued
from tests.commands import CommandLine, Ran, command_line
from tests.memory.auth.test_isolation import as_role, enter, tokens_of
from tests.person import NOON, Person
from tests.repositories import repository_of
from tests.servers import free_port, on_http, serving, watched
from tests.team import connected
from tests.waiting import STUCK

__all__ = ["command_line"]

SECRET = with_checksum("s" * 43)
OTHER = with_checksum("o" * 43)


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of one person: a home, and commands that run in its directories, in this process unless `processes`."""

    home: Path
    settings: dict[str, str] = field(default_factory=dict)
    processes: bool = False

    async def run(self, line: str, at: Path | None = None, **more: str) -> Ran:
        """Run a command line of `folklore`, with variables before it as a shell takes them."""
        words = shlex.split(line)
        start = words.index("folklore")
        more = dict(word.split("=", 1) for word in words[:start]) | more
        arguments = words[start + 1 :]
        self.home.mkdir(parents=True, exist_ok=True)
        path = os.pathsep.join([str(ROOT), str(ROOT / "server")])
        kept = {
            name: os.environ[name]
            for name in ("PATH", "LANG", "TMPDIR")
            if name in os.environ
        }
        # FOLKLORE_OWN: else each machine leaves a server behind.
        own = {"HOME": str(self.home), "PYTHONPATH": path, "FOLKLORE_OWN": "1"}
        own["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
        return await asyncio.to_thread(
            self._run, arguments, at or self.home, kept | own | self.settings | more
        )

    def _run(self, arguments: list[str], at: Path, environment: dict[str, str]) -> Ran:
        if self.processes:
            command = [*forks.command(), *arguments]
            done = subprocess.run(
                command,
                capture_output=True,
                timeout=STUCK,
                cwd=at,
                env=environment,
                check=False,
            )
            return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
        out, err = (
            io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
            for _ in range(2)
        )
        with (
            pytest.MonkeyPatch.context() as patch,
            contextlib.chdir(at),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            for name in list(os.environ):
                patch.delenv(name)
            for name, value in environment.items():
                patch.setenv(name, value)
            code = outcome(arguments)
        return Ran(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))

    async def done(self, line: str, at: Path | None = None, **more: str) -> str:
        ran = await self.run(line, at, **more)
        assert ran.code == 0, ran.out + ran.err
        return ran.out

    def clone(self, repository: str) -> Path:
        """Return a clone of a repository on this machine."""
        return repository_of(
            self.home / repository, f"git@git.example.com:{repository}.git"
        )

    def kept(self) -> list[str]:
        """Return the files in which tokens are kept here."""
        return [
            path.name for path in (self.home / ".folklore" / "credentials").glob("*")
        ]


@dataclass(frozen=True, slots=True)
class Office:
    """A team's server with its operator's machine."""

    url: str
    operator: Machine
    folder: Path

    def colleague(self, name: str = "carla") -> Machine:
        return Machine(self.folder / name)

    async def invite(self, *options: str, url: str = "") -> str:
        """Return the line of an invitation for carla."""
        chosen = " ".join(options) or "--repo acme/shop"
        return (
            await self.operator.done(
                f"folklore invite carla {chosen} --url {url or self.url}"
            )
        ).strip()


@pytest.fixture
async def office(database_url: str, tmp_path: Path) -> AsyncIterator[Office]:
    operator = Machine(
        tmp_path / "operator",
        {"FOLKLORE_DATABASE_URL": database_url, "FOLKLORE_AUTHOR": "olga"},
    )
    async with serving(
        Settings(database_url=database_url, home=tmp_path / "home", namespace="notes")
    ) as url:
        yield Office(url, operator, tmp_path)


def code_of(line: str) -> str:
    """Return the code in the line of an invitation."""
    return shlex.split(line)[0].removeprefix("FOLKLORE_INVITATION=")


def assistant_of(machine: Machine, at: Path) -> Any:
    """Return a client that starts or calls what the settings of Cursor name, in a directory."""
    entry = json.loads((machine.home / ".cursor" / "mcp.json").read_text())[
        "mcpServers"
    ]["folklore"]
    if "url" in entry:
        return connected(entry["url"].removesuffix("/mcp"), entry.get("headers", {}))
    environment = {
        "HOME": str(machine.home),
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
    }
    environment |= {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "server")])}
    environment |= {"CLAUDE_PROJECT_DIR": str(at), "PATH": os.environ["PATH"]}
    command = StdioServerParameters(
        command=entry["command"], args=entry["args"], env=environment, cwd=at
    )
    return Client(command, read_timeout_seconds=30)


async def test_two_people_share_a_server_after_six_commands(
    database_url: str, tmp_path: Path
) -> None:
    """Two of the six are `pip install`, one on each machine, which made the environment of this test."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    shared = {"FOLKLORE_DATABASE_URL": database_url, "FOLKLORE_AUTHOR": "olga"}
    operator = Machine(tmp_path / "olga", shared, True)
    colleague = Machine(tmp_path / "carla", {}, True)
    (colleague.home / ".cursor").mkdir(parents=True)
    commands: list[str] = [pip_install()]

    settings = watched(tmp_path, database_url=database_url, namespace="")
    commands.append(f"folklore serve --http --url {address}")
    async with on_http(settings, "--url", address, port=port):
        commands.append(
            "folklore invite carla --repo git.example.com/acme/shop --url " + address
        )
        invited = await operator.run(commands[-1])
        assert pip_install() in invited.err
        line = invited.out.strip()
        commands.append(pip_install())
        commands.append(line)
        joined = await colleague.done(line)
        shop = operator.clone("acme/shop")
        other = operator.clone("acme/other")
        await operator.done("folklore store 'We deploy the shop on Tuesdays.'", shop)
        await operator.done(
            "folklore store 'We deploy the other one on Fridays.'", other
        )
        there = colleague.clone("acme/shop")
        commands.append(f"folklore --server {address} recall 'when do we deploy'")
        found = await colleague.done(commands[-1], there)
        elsewhere = await colleague.done(commands[-1], colleague.clone("acme/other"))
        async with assistant_of(colleague, there) as assistant:
            answer = await assistant.call_tool(
                "memory_recall", {"query": "when do we deploy"}
            )
            kept = await assistant.call_tool(
                "memory_store", {"content": "Carla renewed the shop's certificate."}
            )
        seen = await operator.done("folklore log", shop)

    assert len(commands) == 6
    assert "Joined" in joined
    assert "failed" not in joined
    assert "Tuesdays" in found
    assert "Fridays" not in found + elsewhere
    assert not answer.is_error
    assert "Tuesdays" in str(answer.structured_content)
    assert not kept.is_error
    assert "carla" in seen


async def test_joining_twice_changes_nothing_and_no_other_machine_can_use_the_line(
    office: Office,
) -> None:
    line = await office.invite()
    carla = office.colleague()
    thief = office.colleague("thief")

    first = await carla.done(line)
    [kept] = carla.kept()
    token = (carla.home / ".folklore" / "credentials" / kept).read_text()
    again = await carla.done(line)
    refused = await thief.run(line)

    assert "Joined" in first
    assert "Joined" in again
    assert (carla.home / ".folklore" / "credentials" / kept).read_text() == token
    assert refused.code == 5
    assert "was used already" in refused.err
    assert thief.kept() == []
    assert "carla" in await carla.done(f"folklore --server {office.url} doctor")


async def test_a_second_invitation_replaces_the_kept_token(office: Office) -> None:
    carla = office.colleague()
    await carla.done(await office.invite("--repo acme/shop --role reader"))
    await carla.done(await office.invite("--repo acme/desk"))

    grants = await carla.done(f"folklore --server {office.url} doctor")

    assert "repo:acme/desk:writer" in grants
    assert "acme/shop" not in grants
    assert len(carla.kept()) == 1


@pytest.mark.parametrize("reason", ["expired", "revoked", "unknown", "malformed"])
async def test_a_line_that_is_not_valid_is_refused_and_leaves_nothing(
    office: Office, connection: asyncpg.Connection, reason: str
) -> None:
    line = await office.invite()
    if reason == "expired":
        await connection.execute(
            "update invitations set expires_at = now() - interval '1 second'"
        )
    if reason == "revoked":
        await office.operator.done("folklore tokens revoke --name carla")
    if reason in ("unknown", "malformed"):
        code = code_of(line)
        line = line.replace(code[-4:], "" if reason == "malformed" else "AAAA")
    carla = office.colleague()

    refused = await carla.run(line)

    assert refused.code == 5
    assert {"malformed": "not the code", "unknown": "not known"}.get(
        reason, reason
    ) in refused.err
    assert carla.kept() == []
    async with asyncio.timeout(60):  # denials are written within seconds
        while not (
            audit := json.loads(
                await office.operator.done("folklore audit --denied --json")
            )["audit"]
        ):
            await asyncio.sleep(0.2)
    assert [entry["action"] for entry in audit] == ["join"]
    assert "fi_" not in json.dumps(audit)


async def test_a_refused_line_keeps_the_token_of_an_earlier_one(
    office: Office, connection: asyncpg.Connection
) -> None:
    carla = office.colleague()
    await carla.done(await office.invite())
    line = await office.invite("--repo acme/desk")
    await connection.execute(
        "update invitations set expires_at = now() where redeemed_at is null"
    )

    refused = await carla.run(line)

    assert refused.code == 5
    assert "repo:acme/shop:writer" in await carla.done(
        f"folklore --server {office.url} doctor"
    )


async def test_an_address_where_no_server_answers_is_named_and_nothing_is_kept(
    office: Office,
) -> None:
    carla = office.colleague()
    code = code_of(await office.invite())

    nowhere = await carla.run(f"folklore join http://127.0.0.1:{free_port()} {code}")
    plain = await carla.run(
        f"folklore join {office.url.replace('http:', 'https:')} {code}"
    )
    below = await carla.run(f"folklore join {office.url}/elsewhere {code}")
    wrong = await carla.run(f"folklore join nonsense {code}")

    assert (nowhere.code, below.code, wrong.code) == (3, 1, 2)
    assert "needs a token" in below.err
    assert "cannot be reached" in nowhere.err
    assert "answers without TLS" in plain.err
    assert "such as https://" in wrong.err
    assert carla.kept() == []
    await carla.done(f"folklore join {office.url}/mcp/ {code}")


async def test_the_code_comes_from_standard_input_or_a_terminal_and_is_asked_for_by_name(
    office: Office, folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped, typed = [code_of(await office.invite()) for _ in range(2)]
    arguments = ("join", office.url, "--no-install")

    from_pipe = await asyncio.to_thread(
        lambda: folklore.process(*arguments, stdin=f"{piped}\n".encode())
    )
    without = await asyncio.to_thread(lambda: folklore.process(*arguments))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("click.prompt", lambda *_, **__: f" {typed} ")
    from_terminal = await folklore(*arguments)

    assert "Joined" in from_pipe.out
    assert "Joined" in from_terminal.out
    assert without.code == 2
    assert "FOLKLORE_INVITATION" in without.err


async def test_an_answer_that_ends_early_is_a_lost_server(tmp_path: Path) -> None:
    async def killed(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.readuntil(b"}")
        writer.write(b'HTTP/1.0 200 OK\r\n\r\n{"progress": [1, 2]}\n')
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(killed, "127.0.0.1", 0) as serving:
        port = serving.sockets[0].getsockname()[1]
        ran = await Machine(tmp_path).run(
            f"folklore --server http://127.0.0.1:{port} jobs run quality"
        )

    assert (
        ran.code,
        "closed the connection (it ended during the call)" in ran.err,
    ) == (3, True)


async def test_a_join_sends_no_token_of_another_server(tmp_path: Path) -> None:
    carla = Machine(tmp_path)
    received = []

    async def no_folklore(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        received.append(await reader.readuntil(b"}"))
        writer.write(b"HTTP/1.0 404 Not Found\r\n\r\n<html>nothing here</html>")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(no_folklore, "127.0.0.1", 0) as serving:
        address = f"http://127.0.0.1:{serving.sockets[0].getsockname()[1]}"
        ran = await carla.run(
            f"folklore join {address} fi_{'x' * 22}", FOLKLORE_TOKEN=SECRET
        )

    assert ran.code == 3
    assert "Is it a Folklore server" in ran.err
    assert [b"\r\nauthorization:" in request.lower() for request in received] == [False]
    assert carla.kept() == []


async def test_a_token_that_cannot_be_kept_leaves_the_invitation_unused(
    office: Office,
) -> None:
    line = await office.invite()
    blocked = office.colleague("blocked")
    (blocked.home / ".folklore").mkdir(parents=True)
    (blocked.home / ".folklore" / "credentials").write_text(
        "a file in place of the folder"
    )

    refused = await blocked.run(line)

    assert refused.code != 0
    assert "Joined" in await office.colleague().done(line)


@asynccontextmanager
async def through_a_proxy(
    server: str, *, dropped: int = 0, prefix: str = "", files: Issued | None = None
) -> AsyncIterator[str]:
    """A reverse proxy: it drops the first answers to exchanges, serves below a path, and with files over TLS."""
    left = dropped

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal left
        # a client that disconnects
        with suppress(OSError, asyncio.IncompleteReadError):
            first, *fields = (
                (await reader.readuntil(b"\r\n\r\n")).rstrip(b"\r\n").split(b"\r\n")
            )
            named = dict(line.lower().split(b": ", 1) for line in fields)
            body = await reader.readexactly(int(named.get(b"content-length", b"0")))
            kept = [
                line
                for line in fields
                if line.lower().split(b":")[0] not in (b"host", b"connection")
            ]
            sent = [
                first.replace(f" {prefix}/".encode(), b" /", 1),
                *kept,
                b"Host: localhost",
                b"Connection: close",
            ]
            inner_reader, inner_writer = await asyncio.open_connection(
                "127.0.0.1", urlsplit(server).port
            )
            inner_writer.write(b"\r\n".join(sent) + b"\r\n\r\n" + body)
            answer = await inner_reader.read()
            inner_writer.close()
            if b"POST /api/join" in first and left > 0:
                left -= 1
                writer.transport.abort()
                return
            writer.write(answer)
            await writer.drain()
        writer.close()

    tls = None
    if files is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(files.certificate, files.key)
    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    port = listening.sockets[0].getsockname()[1]
    try:
        yield f"{'http' if tls is None else 'https'}://localhost:{port}{prefix}"
    finally:
        listening.close()


async def test_an_exchange_whose_answer_was_lost_is_repeated_and_ends_well(
    office: Office,
) -> None:
    carla = office.colleague()

    async with through_a_proxy(office.url, dropped=2) as address:
        await carla.done(await office.invite(url=address))

    assert len(carla.kept()) == 1


async def test_a_join_that_never_got_an_answer_succeeds_when_it_is_run_again(
    office: Office,
) -> None:
    carla = office.colleague()
    async with through_a_proxy(office.url, dropped=4) as address:
        line = await office.invite(url=address)
        lost = await carla.run(line)
        again = await carla.run(line)

    assert lost.code == 3
    assert "Run the same line again" in lost.err
    assert "Joined" in again.out


async def test_a_server_with_an_own_authority_under_a_path_behind_a_proxy_is_joined(
    office: Office,
) -> None:
    files = issued(office.folder / "tls")
    async with through_a_proxy(
        office.url, prefix="/tools/memory", files=files
    ) as address:
        line = await office.invite(url=address)
        carla = office.colleague()
        (carla.home / ".cursor").mkdir(parents=True)
        untrusted = await carla.run(line)
        assert carla.kept() == []
        nonsense = await carla.run(f"{line} --ca {files.key}")
        joined = await carla.run(f"{line} --ca {files.certificate}")
        await office.operator.done(
            "folklore store 'The shop closes at noon.' --namespace repo:acme/shop"
        )
        shop = carla.clone("acme/shop")
        found = await carla.done(
            f"folklore --server {address} recall 'when does the shop close'", shop
        )
        checks = json.loads(
            await carla.done(f"folklore --server {address} doctor --json", shop)
        )["checks"]
        async with assistant_of(carla, shop) as assistant:
            answer = await assistant.call_tool(
                "memory_recall", {"query": "when does the shop close"}
            )

    assert untrusted.code == 3
    assert "certificate" in untrusted.err
    assert "--ca FILE" in untrusted.err
    assert (nonsense.code, joined.code) == (2, 0)
    assert "noon" in found
    assert "noon" in str(answer.structured_content)
    by_name = {check["name"]: check for check in checks}
    assert "certificate by localhost" in by_name["tls"]["detail"]
    assert by_name["project"] == {
        "name": "project",
        "status": "ok",
        "detail": "repo:acme/shop: writer",
    }


async def test_doctor_over_a_server_says_what_is_wrong(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    carla = office.colleague()
    shop = carla.clone("acme/shop")
    without = await carla.run(f"folklore --server {office.url} doctor --json", shop)
    await carla.done(await office.invite("--repo acme/shop --role reader --expires 2d"))
    good = json.loads(
        await carla.done(f"folklore --server {office.url} doctor --json", shop)
    )
    other = json.loads(
        await carla.done(
            f"folklore --server {office.url} doctor --json", carla.clone("acme/other")
        )
    )
    with monkeypatch.context() as patch:
        # seconds for which an answer of /readyz is kept
        patch.setattr(health, "_VALID", 0.0)
        patch.setattr(health, "_full_disk", lambda *_: "disk_low")
        little = json.loads(
            await carla.done(f"folklore --server {office.url} doctor --json", shop)
        )
    await office.operator.done("folklore tokens revoke --name carla")
    (carla.home / ".claude").mkdir()
    await carla.done("folklore install claude-code")
    revoked = await carla.run(f"folklore --server {office.url} doctor --json", shop)
    away = await carla.run(
        f"folklore --server http://127.0.0.1:{free_port()} doctor --json", shop
    )

    assert without.json["ok"]  # without any token in the database none is needed
    status = {
        check["name"]: (check["status"], check["detail"]) for check in good["checks"]
    }
    assert good["ok"]
    assert status["project"] == ("ok", "repo:acme/shop: reader")
    assert status["grants"] == ("ok", "repo:acme/shop:reader")
    assert status["token"][0] == "warning"
    assert "carla, until" in status["token"][1]
    assert {check["name"]: check["status"] for check in other["checks"]}[
        "project"
    ] == "warning"
    assert {check["name"]: check["status"] for check in little["checks"]}[
        "server"
    ] == "warning"
    assert revoked.code == 1
    assert [
        check["status"] for check in revoked.json["checks"] if check["name"] == "token"
    ] == ["failed"]
    assert "Folklore in Claude Code does not use this server." in json.dumps(
        revoked.json
    )
    assert away.code == 3
    assert [
        check["name"] for check in away.json["checks"] if check["status"] == "failed"
    ] == ["server"]


async def test_jobs_and_embeddings_are_shown_over_a_server_by_role(
    office: Office,
) -> None:
    await office.operator.done("folklore store 'one fact' --namespace repo:acme/shop")
    await office.operator.done("folklore store 'a hidden fact' --namespace hidden")
    owner = (
        await office.operator.done("folklore tokens create --name boss --owner")
    ).strip()
    carla = office.colleague()
    await carla.done(await office.invite())

    jobs = await carla.run(
        f"folklore --server {office.url} jobs status --json", FOLKLORE_TOKEN=owner
    )
    here = json.loads(await office.operator.done("folklore jobs status --json"))
    refused = await carla.run(f"folklore --server {office.url} jobs status --json")
    mine = await carla.run(f"folklore --server {office.url} embeddings status --json")
    whole = await carla.run(
        f"folklore --server {office.url} embeddings status --json", FOLKLORE_TOKEN=owner
    )

    assert [row["job"] for row in jobs.json["jobs"]] == [
        row["job"] for row in here["jobs"]
    ]
    assert refused.code == 5
    assert [row["namespace"] for row in mine.json["namespaces"]] == ["repo:acme/shop"]
    assert [row["namespace"] for row in whole.json["namespaces"]] == [
        "hidden",
        "repo:acme/shop",
    ]
    assert mine.json["models"][0]["embedded"] == 1
    assert whole.json["models"][0]["embedded"] == 2


async def test_wrong_codes_of_one_address_are_slowed_down(office: Office) -> None:
    async with httpx.AsyncClient(base_url=office.url) as client:
        wrong = {"code": "fi_" + "w" * 22, "digest": "0" * 64}
        answers = [await client.post("/api/join", json=wrong) for _ in range(30)]

    assert {answer.status_code for answer in answers[:12]} == {401}
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["retry-after"]) >= 1


async def test_the_exchange_is_the_one_call_without_a_token(office: Office) -> None:
    await office.invite()
    async with httpx.AsyncClient(base_url=office.url) as client:
        for path in (
            "/api/join/",
            "/api/status",
            "/api/invite",
            "/api/join/../status",
            "/api//join",
        ):
            assert (await client.post(path, json={})).status_code == 401, path
        assert (await client.get("/api/join")).status_code == 401
        assert (await client.post("/api/join", json={})).status_code == 400


async def invited(owner: Person, *grants: str, **more: Any) -> Invitation:
    asked = {"expires": "never"} | more
    return await owner.call(
        InviteRequest(name="carla", grants=grants or ("payments:writer",), **asked)
    )


def request_of(invitation: Invitation, secret: str = SECRET) -> JoinRequest:
    return JoinRequest(code=invitation.code, digest=digest_of(key_of(secret)).hex())


async def test_of_two_exchanges_at_the_same_time_one_gets_the_token(
    person: Person,
) -> None:
    for _ in range(5):
        invitation = await invited(person)
        secrets = [with_checksum(f"{os.urandom(16).hex():x<43}") for _ in range(6)]

        outcomes = await asyncio.gather(
            *(person.call(request_of(invitation, secret)) for secret in secrets),
            return_exceptions=True,
        )

        assert sorted(type(outcome).__name__ for outcome in outcomes) == [
            "Membership",
            *["Unauthenticated"] * 5,
        ]
        winner = next(
            secret
            for secret, outcome in zip(secrets, outcomes, strict=True)
            if not isinstance(outcome, BaseException)
        )
        await (await enter(person.library, winner)).store(
            "from carla", namespace="payments"
        )
        for secret in set(secrets) - {winner}:
            with pytest.raises(Unauthenticated):
                await enter(person.library, secret)


async def test_the_same_exchange_again_is_answered_alike_and_recorded_once(
    person: Person,
) -> None:
    invitation = await invited(person)

    answers = await asyncio.gather(
        *(person.call(request_of(invitation)) for _ in range(5))
    )

    assert {answer.principal for answer in answers} == {"carla"}
    entries = await person.call(AuditRequest(action="join"))
    assert [(entry.principal, entry.token) for entry in entries] == [
        ("carla", invitation.id)
    ]
    [made] = await person.call(AuditRequest(action="invite"))
    assert made.principal == person.name


async def test_a_secret_of_another_token_is_not_taken_over(person: Person) -> None:
    first = await invited(person)
    second = await invited(person, "board:admin")
    await person.call(request_of(first))

    with pytest.raises(Exception, match="belongs to another token"):
        await person.call(request_of(second))

    await person.call(request_of(second, OTHER))
    access = (await enter(person.library, SECRET)).caller.access
    assert access is not None
    assert {grant.name for grant in access.grants} == {"payments"}


async def test_an_invitation_opens_nothing_before_its_exchange(
    person: Person, connection: asyncpg.Connection
) -> None:
    await person.keep("a memory", namespace="payments")
    invitation = await invited(person)

    with pytest.raises(Unauthenticated):
        await enter(person.library, invitation.code)
    async with as_role(connection, invitation.code) as role:
        assert await role.fetchval("select count(*) from memories") == 0
    tables = [
        row[0]
        for row in await connection.fetch(
            "select tablename from pg_tables where schemaname = 'public'"
        )
    ]
    for table in tables:
        for row in await connection.fetch(f"select t::text from {table} t"):
            assert invitation.code not in row[0]


async def test_invitations_are_listed_with_tokens_until_they_end(
    person: Person,
) -> None:
    invitation = await invited(person, "repo:acme/*:writer", expires="90d", within="2d")

    [listed] = await person.call(ListTokensRequest())
    assert listed.invited_until == NOON + timedelta(days=2)
    assert listed.expires_at == NOON + timedelta(days=90)
    assert listed.grants == ("repo:acme/*:writer",)
    later = person.at(NOON + timedelta(days=2))
    assert await tokens_of(later) == []
    assert len(await tokens_of(later, all_=True)) == 1
    with pytest.raises(Unauthenticated, match="has expired"):
        await later.call(request_of(invitation))
    await person.call(request_of(invitation))
    [listed] = await later.call(ListTokensRequest())
    assert listed.invited_until is None


async def test_a_revoked_invitation_and_a_read_only_server_exchange_nothing(
    person: Person,
) -> None:
    invitation = await invited(person)
    other = await invited(person)
    await person.call(RevokeTokensRequest(ids=(invitation.id,)))

    with pytest.raises(Unauthenticated, match="was revoked"):
        await person.call(request_of(invitation))
    context = person.context
    reading = Person(
        person.library, caller=type(context.caller)("reader", may_write=False)
    )
    with pytest.raises(Refused, match="read-only"):
        await reading.call(request_of(other))


async def test_only_the_owner_invites_and_to_grants_that_exist(person: Person) -> None:
    created = await person.create_token("alice", "payments:admin")
    alice = await enter(person.library, created.secret)

    with pytest.raises(Refused, match="Only the owner"):
        await invited(alice)
    for wrong in (
        {"grants": ()},
        {"within": "31d"},
        {"within": "soon"},
        {"grants": ("payments:boss",)},
    ):
        with pytest.raises(InvalidInput):
            await person.call(
                InviteRequest.model_validate(
                    {"name": "bob", "grants": ["payments:reader"], **wrong}
                )
            )


async def test_the_address_for_an_invitation_is_asked_if_it_is_not_known(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = await folklore("invite", "carla", "--repo", "acme/shop")
    assert unknown.code == 2
    assert "--url https://folklore.example.com" in unknown.err
    assert (await folklore.json("tokens", "list"))["tokens"] == []

    monkeypatch.setenv("FOLKLORE_HTTP__ALLOWED_HOSTS", '["named.example.com"]')
    assert "folklore join https://named.example.com\n" in await folklore.done(
        "invite", "dan", "--repo", "acme/shop"
    )
    await folklore.done("tokens", "revoke", "--name", "dan")
    monkeypatch.setenv(
        "FOLKLORE_HTTP__ALLOWED_HOSTS",
        '["https://Memory.example.com/team/mcp/", "other"]',
    )
    out = await folklore.done(
        "invite", "carla", "--repo", "acme/shop", "--repo", "acme/*"
    )
    made = await folklore.json(
        "invite",
        "carla",
        "--repo",
        "git@git.example.com:acme/desk.git",
        "--role",
        "reader",
    )

    assert re.fullmatch(
        r"FOLKLORE_INVITATION=fi_\S+ folklore join https://memory.example.com/team\n",
        out,
    )
    assert out.count("\n") == 1
    assert (
        made["line"] == f"FOLKLORE_INVITATION={made['code']}"
        " folklore join https://memory.example.com/team"
    )
    listed = (await folklore.json("tokens", "list"))["tokens"]
    assert [row["grants"] for row in listed] == [
        "repo:acme/*:writer repo:acme/shop:writer",
        "repo:git.example.com/acme/desk:reader",
    ]
    assert all("invited_until" in row for row in listed)


async def test_a_chosen_digest_gives_nothing_to_callers_without_a_token(
    person: Person,
) -> None:
    await person.keep("a memory", namespace="payments")
    digest = digest_of("0" * 64).hex()
    await person.call(JoinRequest(code=(await invited(person)).code, digest=digest))

    for caller in (UNIDENTIFIED, INVITED):
        nobody = Person(person.library.view_of(caller.access), caller=caller)
        assert await nobody.call(ListNamespacesRequest()) == ()
