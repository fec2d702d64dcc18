"""Isolation: a token reads and writes only what its grants allow, and the database enforces it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID, uuid4

import asyncpg
import pytest
import structlog

from folklore.callers import AuditEntry, Caller, Token
from folklore.contract.health import StatusRequest
from folklore.contract.memories import GetRequest, ResolveRequest
from folklore.contract.namespaces import (
    CreateNamespaceRequest,
    DeleteNamespaceRequest,
    RenameNamespaceRequest,
)
from folklore.contract.people import (
    AuditRequest,
    ListTokensRequest,
    RevokeTokensRequest,
)
from folklore.contract.review import LogRequest
from folklore.contract.token_secrets import key_of, with_checksum
from folklore.db.database import Database, PoolLimits
from folklore.db.migrate import migrate, missing_role_commands
from folklore.db.roles import TOKEN_ROLE
from folklore.db.stores.callers.principals import Principals
from folklore.db.stores.events.audit import NOWHERE, Audit, audit_entry
from folklore.embedding.protocol import Embedder
from folklore.errors import (
    DatabaseUnavailable,
    InvalidInput,
    NotFound,
    Refused,
    Unauthenticated,
)
from folklore.memory.auth.authenticator import TokenAuthenticator
from folklore.memory.auth.tokens import ExternalIdentity, authenticate
from folklore.memory.context import MemoryContext
from folklore.model import Demand, Draft, Link, Relation
from folklore.permissions import role_in
from tests.background_jobs import BackgroundJobs
from tests.conftest import Cluster
from tests.person import NOON, Person, contents
from tests.waiting import STUCK

OWNER = Caller("root")


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder(Person):
    """A user with a token."""

    caller: Caller
    secret: str

    @property
    def token(self) -> UUID:
        assert self.caller.token is not None
        return self.caller.token


async def holder(by: Person, name: str, *grants: str, **asked: Any) -> Holder:
    """Create a token, and return its holder."""
    return await enter(
        by.library, (await by.create_token(name, *grants, **asked)).secret
    )


async def enter(library: MemoryContext, secret: str) -> Holder:
    caller, _ = await authenticate(Principals(library.database), secret, now=NOON)
    return Holder(
        library.view_of(caller.access), name=caller.author, caller=caller, secret=secret
    )


async def recalled(person: Person, query: str, **asked: Any) -> list[str]:
    return contents(await person.recall(query, **asked))


async def searched(person: Person, query: str) -> list[str]:
    return contents(await person.search(query))


async def audited(person: Person, *namespaces: str, **asked: Any) -> list[AuditEntry]:
    entries = await person.call(
        AuditRequest.model_validate({"namespaces": namespaces or None, **asked})
    )
    return list(entries)


async def tokens_of(
    person: Person, principal: str | None = None, *, all_: bool = False
) -> list[Token]:
    tokens = await person.call(ListTokensRequest(principal=principal, all=all_))
    return list(tokens)


@asynccontextmanager
async def as_role(
    connection: asyncpg.Connection, secret: str
) -> AsyncIterator[asyncpg.Connection]:
    """Run SQL as the role of tokens, with the key of one; nothing is kept."""
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute(f"set local role {TOKEN_ROLE}")
    await connection.execute("select folklore_enter($1)", key_of(secret))
    try:
        yield connection
    finally:
        await transaction.rollback()


def read_only(person: Person) -> Person:
    """Return the same user on a read-only server."""
    return replace(person, caller=replace(person.context.caller, may_write=False))


@pytest.fixture(name="owner")
async def owner_of_two(database: Database, embedder: Embedder) -> Person:
    """The owner, with memories in two namespaces."""
    person = Person(MemoryContext.of(database, embedder), name="root")
    await person.keep("the harbour crane is painted red", namespace="payments")
    await person.keep("the harbour crane belongs to nobody", namespace="board")
    return person


async def test_a_token_reads_the_granted_namespaces_alone(owner: Person) -> None:
    alice = await holder(owner, "alice", "payments:reader")

    assert await recalled(alice, "Who painted the harbour crane?") == [
        "the harbour crane is painted red"
    ]
    assert await searched(alice, "harbour crane") == [
        "the harbour crane is painted red"
    ]
    assert [item.name for item in (await alice.call(StatusRequest())).namespaces] == [
        "payments"
    ]
    with pytest.raises(NotFound, match="no namespace 'board'") as hidden:
        await alice.recall("crane", namespaces=("board",))
    with pytest.raises(NotFound, match="no namespace 'nowhere'") as missing:
        await alice.recall("crane", namespaces=("nowhere",))
    assert str(hidden.value).replace("board", "nowhere") == str(missing.value)


async def test_what_several_tokens_store_is_analyzed_together_by_the_server(
    owner: Person, connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("folklore.db.stores.upkeep.planner_statistics._FIRST", 2)
    library = MemoryContext.of(owner.library.database, None)
    for name in ("alice", "bert"):
        created = await owner.create_token(name, "payments:writer")
        writer = await enter(library, created.secret)
        await writer.keep(f"{name} paints the crane", namespace="payments")

    analyzed = "select last_analyze from pg_stat_user_tables where relname = 'memories'"
    async with asyncio.timeout(STUCK):
        while await connection.fetchval(analyzed) is None:
            pass


async def test_an_id_of_another_namespace_is_answered_like_an_unknown_id(
    owner: Person,
) -> None:
    (hidden,) = await owner.keep("another of the board", namespace="board")
    alice = await holder(owner, "alice", "payments:admin")
    (own,) = await alice.keep("mine", namespace="payments")

    with pytest.raises(NotFound):
        await alice.get(hidden)
    with pytest.raises(NotFound):
        await alice.update(hidden, content="changed")
    with pytest.raises(NotFound):
        await alice.forget(hidden, erase=True)
    resolved = await alice.call(ResolveRequest(endings=(hidden.hex[-8:], own.hex[-8:])))
    assert [[memory.id for memory in item.found] for item in resolved] == [[], [own]]
    log = await alice.call(LogRequest())
    assert "mine" in [memory.content for entry in log for memory in entry.memories]
    assert {entry.namespace for entry in log} == {"payments"}
    with pytest.raises(NotFound):
        await alice.call(LogRequest(namespaces=("board",)))
    outcome = await alice.relate(Relation(own, "relates_to", hidden))
    assert [item.reason for item in outcome.failed] == [f"There is no memory {hidden}."]
    assert [memory.content for memory in await owner.get(hidden)] == [
        "another of the board"
    ]


async def test_a_reader_reads_a_writer_writes_and_an_admin_erases(
    owner: Person,
) -> None:
    reader = await holder(owner, "rita", "payments:reader")
    writer = await holder(owner, "walter", "payments:writer", agent="claude-code")
    admin = await holder(owner, "ada", "payments:admin")

    with pytest.raises(Refused, match="role reader"):
        await reader.store("from a reader", namespace="payments")
    (id_,) = await writer.keep("the crane was mended in May", namespace="payments")
    [found] = await reader.get(id_)
    assert (found.author, found.agent) == ("walter", "claude-code")
    assert (await writer.update(id_, content="it was June")).content == "it was June"
    (other,) = await writer.keep("the crane rusts", namespace="payments")
    relation = Relation(other, "causes", id_)
    with pytest.raises(Refused, match="role reader"):
        await reader.relate(relation)
    assert (await writer.relate(relation)).created == [relation]
    with pytest.raises(Refused, match="needs admin"):
        await writer.forget(id_, erase=True)
    await writer.forget(id_)
    await admin.forget(id_, erase=True)
    with pytest.raises(NotFound):
        await owner.call(GetRequest(ids=(id_,), forgotten=True))


async def test_a_writer_creates_no_namespace_and_cannot_find_out_which_exist(
    owner: Person,
) -> None:
    writer = await holder(
        owner, "walter", "payments:writer", "boards:reader", "ledger:admin"
    )

    with pytest.raises(NotFound, match="no namespace 'board'") as hidden:
        await writer.store("anything", namespace="board")
    with pytest.raises(NotFound, match="no namespace 'fresh'") as missing:
        await writer.store("anything", namespace="fresh")
    assert str(hidden.value).replace("board", "fresh") == str(missing.value)
    with pytest.raises(Refused, match="owner"):
        await writer.call(CreateNamespaceRequest(name="fresh"))


async def test_a_writer_adds_a_language_to_its_namespace_by_storing_in_it(
    owner: Person, connection: asyncpg.Connection
) -> None:
    writer = await holder(owner, "walter", "payments:writer", "board:reader")

    drafts = [
        Draft("Der Kran am Hafen wurde gestrichen", language="german"),
        Draft("the crane was oiled"),
    ]
    await writer.store(*drafts, namespace="payments")

    found = await recalled(writer, "gestrichene Kräne", branches=("keyword",))
    assert found == ["Der Kran am Hafen wurde gestrichen"]
    rows = await connection.fetch("select name, languages from namespaces")
    assert {row["name"]: row["languages"] for row in rows} == {
        "payments": ["english", "german"],
        "board": ["english"],
    }


async def test_concurrent_writers_that_add_languages_all_succeed(
    owner: Person, connection: asyncpg.Connection
) -> None:
    holders = [await holder(owner, f"writer {n}", "payments:writer") for n in range(6)]
    languages = ("german", "french", "italian", "spanish", "dutch", "german")

    await asyncio.gather(
        *(
            writer.store(Draft(f"by {n}", language=language), namespace="payments")
            for n, (writer, language) in enumerate(zip(holders, languages, strict=True))
        )
    )

    learned = await connection.fetchval(
        "select languages from namespaces where name = 'payments'"
    )
    assert learned == sorted({"english", *languages})
    assert (
        await connection.fetchval(
            "select count(*) from memories where content like 'by %'"
        )
        == 6
    )


@pytest.mark.parametrize(
    ("change", "rows"),
    [
        (
            "update namespaces set languages = '{english,german}' where name = 'payments'",
            "UPDATE 1",
        ),
        (
            "update namespaces set languages = '{english,german}' where name = 'board'",
            "UPDATE 0",
        ),
        (
            "update namespaces set languages = '{english,german}' where name = 'ledger'",
            "UPDATE 0",
        ),
        ("update namespaces set language = 'german' where name = 'payments'", None),
        (
            "update namespaces set description = 'mine', languages = '{}' where name = 'payments'",
            None,
        ),
        ("update namespaces set deleted_at = null where name = 'payments'", None),
        (
            "insert into namespaces (id, name, created_at, created_by) values (gen_random_uuid(), 'new', now(), 'x')",
            None,
        ),
    ],
)
async def test_a_writer_changes_the_languages_of_its_namespace_and_no_other_column(
    owner: Person, connection: asyncpg.Connection, change: str, rows: str | None
) -> None:
    await owner.keep("a ledger", namespace="ledger")
    writer = await holder(owner, "walter", "payments:writer", "board:reader")

    async with as_role(connection, writer.secret) as role:
        if rows is None:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await role.execute(change)
        else:
            assert await role.execute(change) == rows


async def test_an_admin_renames_a_namespace_and_keeps_the_grant(owner: Person) -> None:
    admin = await holder(owner, "ada", "payments:admin")

    assert (
        await admin.call(RenameNamespaceRequest(name="payments", to="money")) == "money"
    )
    again = await enter(owner.library, admin.secret)
    assert await recalled(again, "painted crane", namespaces=("money",)) == [
        "the harbour crane is painted red"
    ]
    with pytest.raises(NotFound):
        await again.call(RenameNamespaceRequest(name="board", to="mine"))


async def test_a_token_of_an_owner_opens_every_namespace(owner: Person) -> None:
    boss = await holder(owner, "boss", owner=True)

    assert len(await recalled(boss, "harbour crane")) == 2
    await boss.store("a new place", namespace="fresh")


async def test_a_revoked_expired_or_unknown_token_is_refused(owner: Person) -> None:
    alice = await holder(owner, "alice", "payments:reader")
    short = await holder(owner, "alice", "payments:reader", expires="1h")
    await owner.call(RevokeTokensRequest(ids=(alice.token,)))
    principals = Principals(owner.library.database)

    # From now on, a view that was opened before shows nothing.
    assert await alice.library.namespaces.find(None) == []
    for secret, reason in (
        (alice.secret, "revoked"), (with_checksum("A" * 43), "unknown"), ("fk_short", "malformed"), ("", "malformed"),
    ):  # fmt: skip
        with pytest.raises(Unauthenticated) as refused:
            await authenticate(principals, secret, now=NOON)
        assert refused.value.reason == reason
    with pytest.raises(Unauthenticated) as late:
        await authenticate(principals, short.secret, now=NOON.replace(hour=13))
    assert late.value.reason == "expired"


async def test_valid_tokens_are_listed_and_retention_does_not_change_ended_ones(
    owner: Person, jobs: BackgroundJobs
) -> None:
    later = owner.at(NOON + timedelta(hours=2))
    good, short, gone = [
        (await holder(owner, "alice", "payments:reader", **asked)).token
        for asked in ({}, {"expires": "1h"}, {})
    ]
    await owner.call(RevokeTokensRequest(ids=(gone,)))

    assert [token.id for token in await tokens_of(later)] == [good]
    with pytest.raises(NotFound, match="No valid token"):
        await later.call(RevokeTokensRequest(ids=(gone,)))
    jobs.now = NOON + timedelta(days=400)
    await jobs("retention")
    every = await tokens_of(owner.at(jobs.now), "ALICE", all_=True)
    assert {token.id: token.revoked_at for token in every} == {
        good: None,
        short: None,
        gone: NOON,
    }


async def test_the_audit_log_is_filtered_by_name_time_and_outcome(
    owner: Person,
) -> None:
    alice = await holder(owner, "alice", "payments:writer")
    await alice.store("stored by her", namespace="payments")

    async def told(**asked: Any) -> list[str]:
        entries = await audited(owner.at(NOON + timedelta(days=2)), "payments", **asked)
        return [entry.principal for entry in entries if entry.action == "store"]

    assert sorted(await told()) == sorted(await told(since="3d")) == ["alice", "root"]
    assert await told(principal="ALICE") == ["alice"]
    assert await told(since="1d") == []
    assert await told(denied=True) == []


async def test_the_audit_log_of_a_namespace_is_readable_by_its_admins_alone(
    owner: Person,
) -> None:
    writer = await holder(
        owner, "walter", "payments:writer", "board:admin", agent="cursor"
    )
    admin = await holder(owner, "ada", "payments:admin")
    kept = await writer.keep("one", "two", namespace="payments")

    with pytest.raises(Refused, match="needs admin"):
        await audited(writer, "payments")
    with pytest.raises(NotFound, match="no namespace 'board'"):
        await audited(admin, "board")
    with pytest.raises(Refused, match="audit --namespace NAME"):
        await audited(admin)
    entries = await audited(admin, "payments")
    assert {(entry.namespace, entry.action) for entry in entries} == {
        ("payments", "store")
    }
    [entry] = [entry for entry in entries if entry.principal == "walter"]
    assert (entry.amount, entry.outcome, entry.agent, entry.token) == (
        2,
        "done",
        "cursor",
        writer.token,
    )
    assert set(entry.memories) == set(kept)
    assert await audited(read_only(admin), "payments") == entries, (
        "reading needs no right to write"
    )


async def test_the_owner_reads_the_whole_audit_log_newest_first(owner: Person) -> None:
    ada = await holder(owner, "ada", "payments:admin")
    await owner.at(NOON - timedelta(hours=1)).keep("earlier", namespace="payments")
    reader = read_only(owner)

    entries = await audited(reader)

    assert {entry.namespace for entry in entries} == {"payments", "board", None}
    [made] = [entry for entry in entries if entry.action == "token_create"]
    assert (made.detail, made.amount) == (f"ada {ada.token}", 1)
    assert [entry.at for entry in entries] == sorted(
        (entry.at for entry in entries), reverse=True
    )
    assert [entry.at for entry in await audited(reader, limit=1)] == [NOON]
    assert [entry.action for entry in await audited(reader, action="token_create")] == [
        "token_create"
    ]
    assert await audited(reader, limit=1_000) == entries
    async with owner.library.database.session() as session:
        logged = audit_entry(
            "recall",
            caller=ada.caller,
            now=NOON,
            amount=3,
            outcome="not_found",
            detail="gone",
        )
        await session.rows("audit/insert", **logged)
    [entry] = await audited(reader, denied=True)
    assert (entry.principal, entry.action, entry.outcome, entry.amount) == (
        "ada",
        "recall",
        "not_found",
        3,
    )
    assert (entry.token, entry.detail) == (ada.token, "gone")
    for limit in (0, 1_001):
        with pytest.raises(InvalidInput, match=f"between 1 and 1000, got {limit:,}"):
            await audited(reader, limit=limit)


async def test_a_principal_is_the_same_whatever_the_case_and_loses_only_its_own_tokens(
    owner: Person,
) -> None:
    zed = await holder(owner, "Zed", "payments:reader")
    made = await owner.create_token(
        "alice", "payments:reader", "board:admin", namespace="board", agent="cursor"
    )
    again = await owner.create_token("ALICE", owner=True)
    entered = await enter(owner.library, made.secret)

    assert again.principal == "alice"
    assert [
        role_in(entered.caller, name) for name in ("board", "payments", "nowhere")
    ] == ["admin", "reader", None]
    assert [token.principal for token in await tokens_of(owner)] == [
        "alice",
        "alice",
        "Zed",
    ]
    [first, _] = await tokens_of(owner, "Alice")
    assert (first.grants, first.home, first.agent) == (
        ("board:admin", "payments:reader"),
        "board",
        "cursor",
    )
    await owner.call(DeleteNamespaceRequest(name="board"))
    [first, _] = await tokens_of(owner, "alice")
    assert (first.grants, first.home) == (("payments:reader",), None)
    caller = (await enter(owner.library, made.secret)).caller
    assert (caller.home, role_in(caller, "board")) == (None, None)

    revoked = await owner.call(RevokeTokensRequest(principal="Alice"))

    assert {(token.id, token.principal) for token in revoked} == {
        (made.id, "alice"),
        (again.id, "alice"),
    }
    assert [token.id for token in await tokens_of(owner)] == [zed.token]
    entries = await audited(owner, action="token_revoke")
    assert {entry.detail for entry in entries} == {
        f"alice {made.id}",
        f"alice {again.id}",
    }


@dataclass
class Authentication:
    """The authentication of a server; its clock is fixed until it is moved."""

    library: MemoryContext
    local: Caller = Caller("local")
    demand: Demand = "auto"
    issuer: FixedIssuer | None = None
    now: datetime = NOON

    async def memory(self) -> MemoryContext:
        return self.library

    def authenticator(self) -> TokenAuthenticator:
        return TokenAuthenticator(
            self.memory,
            demand=self.demand,
            local=lambda: self.local,
            now=lambda: self.now,
            issuer=self.issuer,
        )

    async def last_uses(self) -> list[datetime | None]:
        """Return the time of the last use of each token, in the order of their principals."""
        return [token.last_used_at for token in await tokens_of(Person(self.library))]


@dataclass
class FixedIssuer:
    """An issuer that identifies every token as carla's; of two roles in one namespace the stronger applies."""

    grants: tuple[str, ...] = ("payments:writer", "payments:reader")
    rules: str = "the first rules"

    async def verify(self, token: str, *, now: datetime) -> ExternalIdentity:
        return ExternalIdentity(
            "carla", self.grants, False, now + timedelta(hours=1), "https://login.test"
        )


async def test_an_unidentified_caller_sees_nothing_even_after_the_database_is_back(
    owner: Person,
) -> None:
    async def away() -> MemoryContext:
        raise DatabaseUnavailable("The database is away.")

    authenticator = TokenAuthenticator(
        away, demand="auto", local=lambda: Caller("local"), now=lambda: NOON
    )

    for token in (None, with_checksum("A" * 43)):
        caller = await authenticator.caller_of(token)
        view = Person(owner.library.view_of(caller.access), caller=caller)
        assert await view.library.namespaces.find(None) == []
        with pytest.raises(NotFound):
            await view.store("anything", namespace="payments")


async def test_on_a_read_only_server_a_token_writes_nothing_and_its_use_is_not_stored(
    owner: Person,
) -> None:
    alice = await holder(owner, "alice", "payments:admin")
    server = Authentication(owner.library, local=Caller("local", may_write=False))
    authenticator = server.authenticator()

    caller = await authenticator.caller_of(alice.secret)
    await authenticator.close()

    assert (caller.author, role_in(caller, "payments"), role_in(caller, "board")) == (
        "alice",
        "reader",
        None,
    )
    with pytest.raises(Refused, match="read-only"):
        await replace(alice, caller=caller).store("anything", namespace="payments")
    assert await server.last_uses() == [None]
    local = Person(owner.library, caller=server.local)
    with pytest.raises(Refused, match="read-only"):
        await local.create_token("bob", owner=True)
    assert {item.role for item in (await local.call(StatusRequest())).namespaces} == {
        "reader"
    }


async def test_a_token_is_demanded_as_the_settings_say(owner: Person) -> None:
    for demand, issuer, before, after in (
        ("never", None, False, False),
        ("always", None, True, True),
        ("auto", None, False, True),
        ("auto", FixedIssuer(), True, True),
    ):
        server = Authentication(owner.library, demand=demand, issuer=issuer)  # type: ignore[arg-type]
        assert await server.authenticator().demands_token() is (
            before or bool(await server.last_uses())
        )
        await holder(owner, "alice", "payments:reader")
        assert await server.authenticator().demands_token() is after
        if after:
            with pytest.raises(Unauthenticated, match="needs a token"):
                await server.authenticator().caller_of(None)
        else:
            assert await server.authenticator().caller_of(None) == replace(
                server.local, anonymous=True
            )


async def test_the_last_use_of_a_token_is_stored_once_a_minute_and_never_moves_back(
    owner: Person,
) -> None:
    alice, bob = [
        await holder(owner, name, "payments:reader") for name in ("alice", "bob")
    ]
    server = Authentication(owner.library)
    authenticator = server.authenticator()
    seen = []

    for seconds in (0, 30, 120):
        server.now = NOON + timedelta(seconds=seconds)
        for one in (authenticator, server.authenticator()):  # two servers
            await one.caller_of(alice.secret, f"192.0.2.{seconds}")
            await one.close()
        seen.append(await server.last_uses())
    await Principals(owner.library.database).touch_token(
        id=alice.token, now=NOON, address="192.0.2.77"
    )

    assert seen == [[NOON, None], [NOON, None], [NOON + timedelta(minutes=2), None]]
    assert await server.last_uses() == seen[-1]
    assert [token.last_address for token in await tokens_of(owner)] == [
        "192.0.2.120",
        None,
    ]
    assert bob.token != alice.token


async def test_a_token_of_an_issuer_has_the_grants_of_the_current_rules_until_it_expires(
    owner: Person, jobs: BackgroundJobs
) -> None:
    library = owner.library
    issuer = FixedIssuer()
    server = Authentication(library, issuer=issuer)

    first = await server.authenticator().caller_of("an.access.token")
    issuer.grants = ("payments:reader", "board:reader")
    issuer.rules = "the second rules"
    then = await server.authenticator().caller_of("an.access.token")

    made = await audited(owner, action="token_create")
    assert {entry.principal for entry in made} == {"issuer https://login.test"}
    assert not await Authentication(library).authenticator().demands_token(), (
        "no token was created here yet"
    )
    own = await holder(owner, "alice", "payments:reader")
    assert (await server.authenticator().caller_of(own.secret)).author == "alice", (
        "our tokens need no issuer"
    )
    with pytest.raises(Unauthenticated, match="not a Folklore token"):
        await Authentication(library).authenticator().caller_of("an.access.token")
    assert (first.author, role_in(first, "payments"), role_in(first, "board")) == (
        "carla",
        "writer",
        None,
    )
    assert (role_in(then, "payments"), role_in(then, "board")) == ("reader", "reader")
    [held, _] = await tokens_of(owner, "carla")
    assert (held.expires_at, held.issuer) == (
        NOON + timedelta(hours=1),
        "https://login.test",
    )
    jobs.now = NOON + timedelta(hours=20)
    assert await jobs("retention") == {}
    jobs.now = NOON + timedelta(hours=26)
    assert await jobs("retention") == {"tokens_dropped": 2}


async def test_a_token_of_an_issuer_that_arrives_at_many_workers_at_once_is_stored_once(
    owner: Person,
) -> None:
    server = Authentication(owner.library, issuer=FixedIssuer())

    callers = await asyncio.gather(
        *(server.authenticator().caller_of("an.access.token") for _ in range(8))
    )

    assert {(caller.author, role_in(caller, "payments")) for caller in callers} == {
        ("carla", "writer")
    }
    [made] = await tokens_of(owner)
    assert {caller.token for caller in callers} == {made.id}
    assert len(await audited(owner, action="token_create")) == 1


async def test_the_database_holds_no_token_and_its_digest_opens_nothing(
    owner: Person, connection: asyncpg.Connection
) -> None:
    alice = await holder(owner, "alice", "payments:reader")

    held = await connection.fetchrow(
        "select t::text as row, encode(digest, 'hex') as digest from tokens t"
    )
    assert held is not None
    assert alice.secret not in held["row"]
    assert key_of(alice.secret) not in held["row"]
    async with connection.transaction():
        await connection.execute(f"set local role {TOKEN_ROLE}")
        await connection.execute("select folklore_enter($1)", held["digest"])
        assert await connection.fetchval("select count(*) from memories") == 0


TABLES = ("namespaces", "memories", "embeddings", "fresh_words", "packed_namespaces", "packed_memories", "postings",
    "relations", "revisions", "idempotency_keys")  # fmt: skip
CLOSED = ("principals", "tokens", "grants", "audit", "usage", "injections", "assistant_sessions", "jobs",
    "folklore_migrations")  # fmt: skip


@pytest.mark.parametrize(
    "said",
    [
        "", "set folklore.key = ''", "set folklore.key = 'nonsense'", "set folklore.key = '%00'",
        "set folklore.key = '{zeros}'", "set folklore.namespaces = '{board}'", "set row_security = off",
    ],
)  # fmt: skip
async def test_the_login_role_sees_nothing_without_a_key_or_with_a_forged_one(
    said: str, owner: Person, connection: asyncpg.Connection
) -> None:
    await holder(owner, "alice", "payments:admin")
    board = await connection.fetchval("select id from namespaces where name = 'board'")
    await connection.execute(f"set session authorization {TOKEN_ROLE}")
    if said:
        await connection.execute(said.format(zeros="0" * 64, board=board))

    for table in TABLES:
        try:
            assert await connection.fetchval(f"select count(*) from {table}") == 0
        except asyncpg.InsufficientPrivilegeError:
            assert "row_security" in said, "denied, which reveals nothing either"
    for table in CLOSED:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.fetchval(f"select count(*) from {table}")
    for change in (
        "insert into namespaces (id, name, created_at, created_by) values (gen_random_uuid(), 'x', now(), 'x')",
        "alter table memories disable row level security",
        "create policy open on memories using (true)",
        "alter function folklore_opened(text[]) security invoker",
        f"alter role {TOKEN_ROLE} bypassrls",
    ):
        with pytest.raises(asyncpg.PostgresError):
            await connection.execute(change)


async def test_the_login_role_with_a_key_sees_the_granted_namespaces(
    owner: Person, connection: asyncpg.Connection
) -> None:
    alice = await holder(owner, "alice", "payments:reader")
    counted = "select (select count(*) from memories) || ' ' || (select count(*) from fresh_words)"
    before = await connection.fetchval(counted)
    hidden = await connection.fetchval("select id from namespaces where name = 'board'")
    ids = await connection.fetchval(
        "select array_agg(id) from memories where namespace_id = $1", hidden
    )
    await connection.execute(f"set session authorization {TOKEN_ROLE}")

    async with connection.transaction():
        await connection.execute("select folklore_enter($1)", key_of(alice.secret))
        assert [
            row["name"] for row in await connection.fetch("select name from namespaces")
        ] == ["payments"]
        assert await connection.fetchval("select count(*) from memories") == 1
        assert (
            await connection.execute("update memories set content = 'changed'")
            == "UPDATE 0"
        )
        for function in ("postings", "embeddings", "memories"):
            await connection.execute(
                f"select folklore_delete_{function}($1, $2)", hidden, ids
            )
    assert await connection.fetchval("select count(*) from memories") == 0, (
        "the key ended with the transaction"
    )
    await connection.execute("select folklore_delete_memories($1, $2)", hidden, ids)
    await connection.execute("reset session authorization")
    assert await connection.fetchval(counted) == before


async def test_a_temporary_table_of_the_same_name_deceives_no_policy(
    owner: Person, connection: asyncpg.Connection
) -> None:
    alice = await holder(owner, "alice", "payments:reader")
    board = await connection.fetchval("select id from namespaces where name = 'board'")
    await connection.execute(f"set session authorization {TOKEN_ROLE}")
    await connection.execute(
        "create temp table grants (token_id uuid, namespace_id uuid, role text)"
    )
    await connection.execute(
        "insert into pg_temp.grants values ($1, $2, 'admin')", alice.token, board
    )

    async with connection.transaction():
        await connection.execute("select folklore_enter($1)", key_of(alice.secret))
        assert [
            row["name"] for row in await connection.fetch("select name from namespaces")
        ] == ["payments"]


async def test_every_table_has_row_level_security(
    connection: asyncpg.Connection,
) -> None:
    rows = await connection.fetch(
        "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
        " and not relrowsecurity"
    )
    assert {row["relname"] for row in rows} <= {"folklore_migrations"}, (
        "which the role may not read at all"
    )


async def test_a_cached_namespace_is_cached_for_its_caller_alone(owner: Person) -> None:
    alice = await holder(owner, "alice", "payments:reader")
    # the owner's namespaces stay cached for a second
    await owner.recall("crane", namespaces=("board",))

    with pytest.raises(NotFound):
        await alice.recall("crane", namespaces=("board",))


async def test_a_memory_is_read_with_its_relations_right_after_its_namespace_was_renamed(
    owner: Person,
) -> None:
    alice = await holder(owner, "alice", "payments:writer", "board:reader")
    crane, mole = await alice.keep("a crane", "a mole", namespace="payments")
    await alice.relate(Relation(crane, "relates_to", mole))
    await alice.get(crane)  # her namespaces stay cached for a second

    [payments] = await owner.library.namespaces.find(["payments"])
    await owner.library.namespaces.change(
        "namespace_rename", payments.id, name="dues", caller=OWNER, now=NOON
    )
    [found] = (await alice.call(GetRequest(ids=(crane,)))).found

    assert (found.memory.namespace, found.memory.content) == ("dues", "a crane")
    assert [relation.to_id for relation in found.relations] == [mole]


async def test_every_write_is_in_the_audit_log_with_its_author(owner: Person) -> None:
    writer = await holder(owner, "walter", "payments:admin", agent="cursor")
    (id_,) = await writer.keep("one", namespace="payments")
    await writer.update(id_, content="two")
    await writer.forget(id_)
    await writer.forget(id_, erase=True)

    payments = (await owner.library.namespaces.find(["payments"]))[0].id
    log = [
        entry
        for entry in await Audit(owner.library.database).read(
            namespaces=[payments, NOWHERE], fetch=100
        )
        if entry.principal == "walter"
    ]
    assert sorted(entry.action for entry in log) == [
        "erase",
        "forget",
        "store",
        "update",
    ]
    assert {entry.memories for entry in log} == {(id_,)}
    assert {(entry.agent, entry.token, entry.outcome) for entry in log} == {
        ("cursor", writer.token, "done")
    }


async def test_a_connection_after_a_failed_call_serves_the_next_token_with_that_tokens_key(
    owner: Person,
) -> None:
    alice = await holder(owner, "alice", "payments:writer")
    bob = await holder(owner, "bob", "board:writer")

    for _ in range(20):
        with pytest.raises(NotFound):
            await alice.recall("crane", namespaces=("board",))
        with pytest.raises(InvalidInput, match="DivisionByZero"):
            async with alice.library.database.session() as session:
                await session.execute("select 1/0")
        assert await recalled(bob, "harbour crane") == [
            "the harbour crane belongs to nobody"
        ]
        assert await recalled(alice, "harbour crane") == [
            "the harbour crane is painted red"
        ]


async def test_a_store_of_a_token_that_fails_half_way_writes_nothing(
    owner: Person, connection: asyncpg.Connection
) -> None:
    alice = await holder(owner, "alice", "payments:writer")
    draft = Draft(
        "written before the unknown relation is noticed",
        related=(Link(uuid4(), "causes"),),
    )

    with pytest.raises(NotFound, match="no memory"):
        await alice.store(draft, namespace="payments")

    assert await connection.fetchval("select count(*) from memories") == 2


async def test_a_token_revoked_during_a_call_is_refused_by_the_database(
    owner: Person,
) -> None:
    alice = await holder(owner, "alice", "payments:writer")
    await owner.call(RevokeTokensRequest(ids=(alice.token,)))

    with pytest.raises(Refused, match="any more"):
        await alice.store("after authentication", namespace="payments")


def as_user(dsn: str, name: str) -> str:
    """Return the address of the same database for another role, whose password is x."""
    parts = urlsplit(dsn)
    return urlunsplit(
        parts._replace(netloc=f"{name}:x@{parts.netloc.rpartition('@')[2]}")
    )


async def test_a_database_that_cannot_switch_to_the_role_refuses_tokens_and_serves_all_else(
    cluster: Cluster, template: str, embedder: Embedder
) -> None:
    """A managed database, whose user may neither create roles nor switch to them."""
    name = f"plain_{uuid4().hex[:8]}"
    await cluster.admin.execute(f"create role {name} login password 'x'")
    try:
        async with cluster.new_database() as place:
            await cluster.admin.execute(f"alter database {place} owner to {name}")
            dsn = cluster.address(place)
            admin = await asyncpg.connect(dsn)
            await admin.execute("create extension vector")
            await admin.execute(f"alter schema public owner to {name}")
            await admin.close()
            theirs = as_user(dsn, name)
            with structlog.testing.capture_logs() as logged:
                assert await migrate(theirs)
            database = Database(theirs, PoolLimits(minimum=0, maximum=2))
            await database.open()
            person = Person(MemoryContext.of(database, embedder), name="root")
            await person.keep("all else works", namespace="payments")
            alice = await holder(person, "alice", "payments:reader")

            assert await missing_role_commands(theirs) == [
                f"grant folklore_app to {name}"
            ]
            for _ in range(4):  # more often than there are connections
                with pytest.raises(DatabaseUnavailable, match="folklore_app") as told:
                    await alice.recall("works")
            assert "folklore db role" in str(told.value)
            assert [
                line["log_level"]
                for line in logged
                if line["event"] == "role_not_complete"
            ] == ["warning"]
            assert not await Principals(database).has_role()
            # A login role of its own needs no such grant.
            await cluster.admin.execute(
                f"create role {name}_requests login password 'x' in role {TOKEN_ROLE}"
            )
            separate = Database(theirs, login_dsn=as_user(dsn, f"{name}_requests"))
            await separate.open()
            assert await Principals(separate).has_role()
            alice = replace(
                alice,
                library=MemoryContext.of(separate, embedder).view_of(
                    alice.caller.access
                ),
            )
            assert await recalled(alice, "works") == ["all else works"]
            await separate.close()
            await database.close()
    finally:
        await cluster.admin.execute(f"drop role if exists {name}_requests")
        await cluster.admin.execute(f"drop role {name}")


async def test_tokens_are_created_while_others_are_used(owner: Person) -> None:
    """On Citus both lock reference tables."""
    alice = await holder(owner, "alice", "payments:reader")
    principals = Principals(owner.library.database)

    async def use() -> None:
        for second in range(20):
            await principals.touch_token(
                id=alice.token,
                now=NOON + timedelta(seconds=second),
                address="192.0.2.77",
            )

    created = await asyncio.gather(
        *(owner.create_token(f"bob {n}", "payments:reader") for n in range(8)),
        use(),
        use(),
    )

    assert len({token.id for token in created if token}) == 8


async def test_a_role_that_was_complete_before_a_migration_lacks_only_the_new_grants(
    database_url: str, connection: asyncpg.Connection
) -> None:
    await connection.execute(f"revoke all on audit from {TOKEN_ROLE}")
    await connection.execute("alter table memories add column later text")
    await connection.execute(f"grant delete on relations to {TOKEN_ROLE}")

    *revocations, update, insert = await missing_role_commands(database_url)

    # On Citus a token deletes by policies.
    one_node = await connection.fetchval(
        "select to_regclass('pg_dist_partition') is null"
    )
    assert [
        text.startswith("revoke update, delete on memories,") for text in revocations
    ] == [True] * one_node
    assert update.startswith("grant update (content, ")
    assert "later" in update
    assert not {"author", "agent", "id", "created_at", "search"} & set(
        re.findall(r"\w+", update)
    )
    assert insert == f"grant insert on audit to {TOKEN_ROLE}"


async def test_the_idempotency_keys_of_a_token_hold_within_its_namespace_until_the_memory_is_forgotten(
    owner: Person, connection: asyncpg.Connection
) -> None:
    alice = await holder(owner, "alice", "payments:writer")
    known = Draft("the harbour crane is painted red", idempotency_key="k")
    await owner.store(
        Draft("the harbour crane belongs to nobody", idempotency_key="k"),
        namespace="board",
    )

    async def say(draft: Draft) -> tuple[UUID, str]:
        [item] = (await alice.store(draft, namespace="payments")).stored
        return item.id, item.status

    first, status_ = await say(known)
    assert (await say(known), status_) == ((first, "duplicate"), "duplicate")
    with pytest.raises(InvalidInput, match="idempotency_key"):
        await say(Draft("something else", idempotency_key="k"))
    await owner.forget(first)
    again, status_ = await say(Draft("something else", idempotency_key="k"))

    assert (again != first, status_) == (True, "stored")
    rows = await connection.fetch(
        "select memory_id from idempotency_keys where memory_id <> $1", again
    )
    assert len(rows) == 1, "that of the other namespace"
    assert rows[0]["memory_id"] != first


async def test_a_reading_session_of_a_token_cannot_write(owner: Person) -> None:
    alice = await holder(owner, "alice", "payments:admin")

    with pytest.raises(DatabaseUnavailable, match="read-only"):
        async with alice.library.database.session() as session:
            await session.execute("delete from postings")
