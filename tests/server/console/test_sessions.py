"""Sessions of the console: begun, found, ended; of what use the table is without the cookie; links that work once."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import asyncpg
import httpx
import pytest

from folklore.callers import Caller
from folklore.contract.people import (
    AuditRequest,
    CreatedToken,
    CreateLinkRequest,
    RevokeTokensRequest,
)
from folklore.db.database import Database
from folklore.db.stores.callers.console_sessions import ConsoleSessionStore
from folklore.embedding.protocol import Embedder
from folklore.errors import DatabaseUnavailable, Refused, Unauthenticated
from folklore.memory.auth.authenticator import UNIDENTIFIED
from folklore.memory.auth.console_sessions import (
    LINK_LENGTH,
    SESSION_LENGTH,
    ConsoleSessions,
    form_token,
)
from folklore.memory.context import MemoryContext
from tests.background_jobs import BackgroundJobs
from tests.doorway import Doorway
from tests.memory.auth.test_isolation import Authentication, FixedIssuer
from tests.person import NOON, Person
from tests.servers import on_http, watched
from tests.team import Team, bearer, library_at
from tests.visitor import visiting
from tests.waiting import STUCK

LOCAL = Caller("tester")


@dataclass
class Server(Authentication):
    """A server on the database, with a clock of its own."""

    local: Caller = LOCAL

    def __post_init__(self) -> None:
        self.tokens = self.authenticator()
        self.sessions = ConsoleSessions(
            self.memory, self.tokens, lambda: self.local, lambda: self.now
        )

    async def sign_in(self, token: str | None) -> str:
        return await self.sessions.begin(await self.tokens.caller_of(token))

    async def link(self, caller: Caller) -> str:
        person = Person(
            self.library.view_of(caller.access), caller=caller, now=self.now
        )
        return (await person.call(CreateLinkRequest())).code


@contextmanager
def unauthenticated(reason: str) -> Iterator[None]:
    with pytest.raises(Unauthenticated) as caught:
        yield
    assert caught.value.reason == reason


@pytest.fixture
async def server(library: MemoryContext) -> Server:
    return Server(library)


@pytest.fixture
async def ann(person: Person) -> CreatedToken:
    await person.keep("The mole is closed.", namespace="harbour")
    return await person.create_token(
        "ann", "harbour:reader", "quay:writer", namespace="quay", agent="browser"
    )


async def test_a_session_has_the_caller_of_its_token(
    server: Server, person: Person, ann: CreatedToken
) -> None:
    owner = await person.create_token("root", owner=True)

    for token in (ann.secret, owner.secret):
        caller = await server.tokens.caller_of(token)
        found = await server.sessions.find(await server.sessions.begin(caller))
        assert found == caller

    assert (
        await server.sessions.find(await server.sign_in(ann.secret))
    ).access is not None


async def test_the_key_of_a_session_opens_what_the_token_may_read_and_no_more(
    server: Server, person: Person, ann: CreatedToken
) -> None:
    await person.keep("Bob alone knows this.", namespace="private")
    caller = await server.sessions.find(await server.sign_in(ann.secret))

    read = await Person(
        server.library.view_of(caller.access), caller=caller
    ).list_memories()

    assert [item.memory.content for item in read.memories] == ["The mole is closed."]


async def test_a_request_of_a_session_takes_two_statements_and_records_the_use(
    database: Database,
    server: Server,
    ann: CreatedToken,
    queries: list[str],
    connection: asyncpg.Connection,
) -> None:
    secret = await server.sign_in(ann.secret)
    await server.tokens.close()
    await server.sessions.find(secret)
    await asyncio.sleep(0.05)
    queries.clear()

    await server.sessions.find(secret)
    await asyncio.sleep(0.05)
    counted = len(queries)
    server.now += timedelta(minutes=5)
    await server.sessions.find(secret)
    await server.tokens.close()

    assert counted == 2
    used = await connection.fetchval(
        "select last_used_at from tokens where id = $1", ann.id
    )
    assert used == NOON + timedelta(minutes=5)


async def test_an_external_token_has_a_session_too(library: MemoryContext) -> None:
    server = Server(library, issuer=FixedIssuer(("notes:reader",)))

    caller = await server.sessions.find(await server.sign_in("header.claims.signature"))

    assert caller.author == "carla"
    assert caller.access is not None
    assert [grant.name for grant in caller.access.grants] == ["notes"]
    server.now += timedelta(hours=1)
    secret = await server.sign_in("header.claims.signature2")
    server.now += timedelta(hours=1)
    with unauthenticated("expired"):
        await server.sessions.find(secret)


async def test_every_sign_in_has_a_secret_of_its_own(
    server: Server, ann: CreatedToken
) -> None:
    secrets = {await server.sign_in(ann.secret) for _ in range(3)}

    assert len(secrets) == 3
    assert len({form_token(secret) for secret in secrets}) == 3
    assert not secrets & {form_token(secret) for secret in secrets}


@pytest.mark.parametrize(
    "secret",
    ["", "a" * 42, "a" * 44, "ä" * 43, "a" * 42 + "\n", "a" * 100_000, "\x00" * 43],
)
async def test_a_malformed_secret_is_refused_without_a_statement(
    server: Server, secret: str, queries: list[str]
) -> None:
    with unauthenticated("malformed"):
        await server.sessions.find(secret)

    assert await server.sessions.exchange(secret) is None
    assert queries == []


async def test_an_unknown_an_expired_and_an_ended_session_are_refused(
    server: Server, ann: CreatedToken
) -> None:
    secret = await server.sign_in(ann.secret)
    ended = await server.sign_in(ann.secret)

    await server.sessions.end(ended)
    await server.sessions.end(ended)
    with unauthenticated("unknown"):
        await server.sessions.find(ended)
    with unauthenticated("unknown"):
        await server.sessions.find("a" * 43)
    server.now += SESSION_LENGTH - timedelta(seconds=1)
    assert (await server.sessions.find(secret)).author == "ann"
    server.now += timedelta(seconds=1)
    with unauthenticated("expired"):
        await server.sessions.find(secret)


async def test_a_revoked_or_expired_token_ends_its_sessions_at_every_server(
    server: Server, library: MemoryContext, person: Person, ann: CreatedToken
) -> None:
    other = Server(library)
    short = await person.create_token("bob", "harbour:reader", expires="1h")
    secret = await server.sign_in(ann.secret)
    brief = await server.sign_in(short.secret)
    link = await server.link(await server.tokens.caller_of(ann.secret))
    assert (await other.sessions.find(secret)).author == "ann"
    assert (await other.sessions.find(brief)).author == "bob"

    await person.call(RevokeTokensRequest(ids=(ann.id,)))
    other.now += timedelta(hours=1)

    for refusing in (server, other):
        with unauthenticated("revoked"):
            await refusing.sessions.find(secret)
    with unauthenticated("expired"):
        await other.sessions.find(brief)
    if begun := await server.sessions.exchange(link):
        with unauthenticated("revoked"):
            await server.sessions.find(begun)


async def test_an_anonymous_session_ends_when_the_first_token_is_created(
    server: Server, person: Person
) -> None:
    secret = await server.sign_in(None)
    linked = await server.sessions.exchange(
        await server.link(await server.tokens.caller_of(None))
    )
    own = await server.sessions.exchange(await server.link(LOCAL))
    assert linked is not None
    assert own is not None
    assert (await server.sessions.find(secret)).author == "tester"
    assert (await server.sessions.find(linked)).author == "tester"

    await person.create_token("ann", "harbour:reader")
    await asyncio.sleep(1.05)  # as for a request without a token

    for anonymous in (secret, linked):
        with unauthenticated("missing"):
            await server.sessions.find(anonymous)
    # The user who runs the server made this link at the database, not over HTTP.
    assert await server.sessions.find(own) == LOCAL


async def test_an_anonymous_session_is_refused_where_every_request_needs_a_token(
    server: Server, library: MemoryContext
) -> None:
    secret = await server.sign_in(None)

    with unauthenticated("missing"):
        await Server(library, demand="always").sessions.find(secret)


# Links


async def test_a_link_begins_one_session_of_its_caller(
    server: Server, person: Person, ann: CreatedToken
) -> None:
    owner = await person.create_token("root", owner=True)
    for token in (ann.secret, owner.secret):
        caller = await server.tokens.caller_of(token)
        code = await server.link(caller)

        with unauthenticated("unknown"):
            await server.sessions.find(code)
        secret = await server.sessions.exchange(code)

        assert secret is not None
        assert secret != code
        assert await server.sessions.find(secret) == caller
        assert await server.sessions.exchange(code) is None
        with unauthenticated("unknown"):
            await server.sessions.find(code)


async def test_of_many_exchanges_at_the_same_time_one_succeeds(
    server: Server, library: MemoryContext, ann: CreatedToken
) -> None:
    code = await server.link(await server.tokens.caller_of(ann.secret))
    others = [server, Server(library)]

    begun = await asyncio.gather(
        *(others[turn % 2].sessions.exchange(code) for turn in range(8))
    )

    [secret] = [one for one in begun if one is not None]
    assert (await server.sessions.find(secret)).author == "ann"


async def test_a_link_lives_for_two_minutes_and_its_session_for_twelve_hours(
    server: Server, ann: CreatedToken
) -> None:
    caller = await server.tokens.caller_of(ann.secret)
    late = await server.link(caller)
    timely = await server.link(caller)

    server.now += LINK_LENGTH - timedelta(seconds=1)
    secret = await server.sessions.exchange(timely)
    server.now += timedelta(seconds=1)

    assert await server.sessions.exchange(late) is None
    assert secret is not None
    server.now += SESSION_LENGTH - timedelta(seconds=2)
    assert (await server.sessions.find(secret)).author == "ann"


async def test_a_session_is_no_link(server: Server, ann: CreatedToken) -> None:
    secret = await server.sign_in(ann.secret)

    assert await server.sessions.exchange(secret) is None
    assert (await server.sessions.find(secret)).author == "ann"


# What the table gives


async def test_the_table_holds_neither_the_secret_nor_the_key(
    server: Server, ann: CreatedToken, connection: asyncpg.Connection
) -> None:
    caller = await server.tokens.caller_of(ann.secret)
    secret = await server.sessions.begin(caller)
    code = await server.link(caller)
    assert caller.access is not None
    key = bytes.fromhex(caller.access.key)

    rows = await connection.fetch("select * from console_sessions")
    held = b"\n".join(
        value if isinstance(value, bytes) else str(value).encode()
        for row in rows
        for value in row
    )

    assert len(rows) == 2
    for hidden in (secret, code, ann.secret, caller.access.key):
        assert hidden.encode() not in held
    assert key not in held
    assert len({row["sealed_key"] for row in rows}) == 2, (
        "the pad of one secret seals no other"
    )
    # Nor is the pad one that follows from what the table has.
    for row in rows:
        pad = bytes(a ^ b for a, b in zip(row["sealed_key"], key, strict=True))
        assert pad not in (row["digest"], hashlib.sha256(row["digest"]).digest())


async def test_a_sealed_key_under_another_session_opens_nothing(
    server: Server, person: Person, ann: CreatedToken, connection: asyncpg.Connection
) -> None:
    """A person who could copy columns between rows would still lack the other's cookie."""
    bob = await person.create_token("bob", "private:writer")
    hers = await server.sign_in(ann.secret)
    his = await server.sign_in(bob.secret)
    await connection.execute(
        """
        update console_sessions mine set token_id = his.token_id, sealed_key = his.sealed_key
        from console_sessions his where mine.digest = $1 and his.digest = $2
        """,
        hashlib.sha256(hers.encode()).digest(),
        hashlib.sha256(his.encode()).digest(),
    )

    with unauthenticated("unknown"):
        await server.sessions.find(hers)
    await connection.execute("update console_sessions set sealed_key = null")
    for secret in (hers, his):
        with unauthenticated("unknown"):
            await server.sessions.find(secret)


async def test_a_token_reads_no_session(server: Server, ann: CreatedToken) -> None:
    caller = await server.tokens.caller_of(ann.secret)
    secret = await server.sessions.begin(caller)
    digest = hashlib.sha256(secret.encode()).digest()

    mine = ConsoleSessionStore(server.library.view_of(caller.access).database)

    assert (
        await ConsoleSessionStore(server.library.database).find(digest=digest)
        is not None
    )
    with pytest.raises(Refused):
        await mine.find(digest=digest)


# Audit log, read-only servers, outages, old rows


async def test_sign_ins_and_links_are_in_the_audit_log(
    server: Server, person: Person, ann: CreatedToken
) -> None:
    caller = await server.tokens.caller_of(ann.secret)
    await server.sessions.begin(caller)
    await server.sessions.exchange(await server.link(caller))
    await server.sessions.exchange("b" * 43)
    await server.sessions.exchange(await server.link(LOCAL))

    entries = await person.call(AuditRequest())
    logged = Counter((entry.action, entry.principal, entry.token) for entry in entries)

    assert logged[("sign_in", "ann", ann.id)] == 2
    assert logged[("link_create", "ann", ann.id)] == 1
    assert (
        logged[("link_create", "tester", None)]
        == logged[("sign_in", "tester", None)]
        == 1
    )


async def test_a_read_only_server_begins_no_session_and_knows_those_of_others(
    server: Server, library: MemoryContext, ann: CreatedToken
) -> None:
    reading = Server(library, local=Caller("tester", may_write=False))
    secret = await server.sign_in(ann.secret)
    code = await server.link(LOCAL)

    with pytest.raises(Refused, match="read-only"):
        await reading.sign_in(ann.secret)
    with pytest.raises(Refused, match="read-only"):
        await reading.sessions.exchange(code)
    with pytest.raises(Refused, match="read-only"):
        await reading.link(await reading.tokens.caller_of(ann.secret))
    found = await reading.sessions.find(secret)
    assert (found.author, found.may_write) == ("ann", False)


async def test_without_the_database_no_caller_is_identified(
    database_url: str, library: MemoryContext, ann: CreatedToken
) -> None:
    doorway = Doorway(database_url)
    await doorway.open()
    async with library_at(doorway.url) as behind:
        server = Server(behind)
        secret = await server.sign_in(ann.secret)
        caller = await server.tokens.caller_of(ann.secret)
        await doorway.shut()

        assert await server.sessions.find(secret) == UNIDENTIFIED
        with pytest.raises(DatabaseUnavailable):
            await server.sessions.begin(UNIDENTIFIED)
        for refused in (
            server.sessions.begin(caller),
            server.sessions.exchange("a" * 43),
            server.sessions.end(secret),
        ):
            with pytest.raises(DatabaseUnavailable):
                await refused
        await doorway.open()
        assert (await server.sessions.find(secret)).author == "ann"
    await doorway.shut()


async def test_retention_deletes_sessions_and_links_that_expired(
    server: Server,
    ann: CreatedToken,
    jobs: BackgroundJobs,
    connection: asyncpg.Connection,
) -> None:
    server.now = jobs.now - SESSION_LENGTH
    await server.sign_in(ann.secret)
    await server.link(LOCAL)
    server.now = jobs.now
    kept = await server.sign_in(ann.secret)

    assert await jobs("retention") == {"sessions_dropped": 2}
    assert await connection.fetchval("select count(*) from console_sessions") == 1
    assert (await server.sessions.find(kept)).author == "ann"


# Over HTTP


@pytest.fixture(scope="module")
async def workers(
    address: str, embedder: Embedder, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Team]:
    """A server of two workers."""
    settings = watched(
        tmp_path_factory.mktemp("workers"), database_url=address, http__workers="2"
    )
    async with (
        library_at(address, embedder) as library,
        on_http(settings, alone=True) as running,
    ):
        yield Team(running, library)
        assert not running.crashes()


async def test_every_worker_knows_a_session_and_its_end(workers: Team) -> None:
    created = await workers.token("ann", "harbour:reader")
    async with visiting(workers.url, created.secret) as ann:
        # Each of its own connection, so that both workers answer some.
        answers = await asyncio.gather(
            *(statuses(workers.url, ann.http.cookies) for _ in range(12))
        )
        assert set(answers) == {200}
        await workers.revoke(created)
        answers = await asyncio.gather(
            *(statuses(workers.url, ann.http.cookies) for _ in range(12))
        )
        assert set(answers) == {303}


async def statuses(url: str, cookies: httpx.Cookies) -> int:
    async with httpx.AsyncClient(
        base_url=url,
        cookies=cookies,
        headers={"Accept": "text/html"},
        timeout=STUCK,
    ) as client:
        return (await client.get("/")).status_code


async def test_a_link_of_the_api_signs_in_once(workers: Team) -> None:
    created = await workers.token("ann", "harbour:reader")
    async with httpx.AsyncClient(
        base_url=workers.url, headers={"Accept": "text/html"}, timeout=STUCK
    ) as client:
        made = await client.post(
            "/api/create_link", json={}, headers=bearer(created.secret)
        )
        code = made.json()["result"]["code"]
        first = await client.get("/open", params={"code": code})
        again = await client.get("/open", params={"code": code})
        home = await client.get("/")
        stranger = await client.post("/api/create_link", json={})

    assert (
        first.status_code,
        again.status_code,
        home.status_code,
        stranger.status_code,
    ) == (303, 403, 200, 401)
    assert "ann" in home.text
