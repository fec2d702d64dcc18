"""What a token does not open is not there for its holder: held by the database, whatever the code above it asks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID, uuid4

import asyncpg
import pytest

from folklore.db.database import Database, PoolLimits
from folklore.db.migrate import migrate, missing_role_commands
from folklore.db.roles import TOKEN_ROLE
from folklore.db.stores.audit import NOWHERE, Audit
from folklore.db.stores.principals import Principals
from folklore.embedding.protocol import Embedder
from folklore.errors import DatabaseUnavailable, InvalidInput, NotFound, Refused, Unauthenticated
from folklore.memory import namespaces as notebooks
from folklore.memory.auth.audit import AuditLine, AuditRequest, read_audit
from folklore.memory.auth.authenticator import ExternalIdentity, TokenAuthenticator
from folklore.memory.auth.tokens import TokenRequest, authenticate, create_token, key_of, list_tokens, revoke_tokens
from folklore.memory.context import MemoryContext
from folklore.memory.permissions import role_in
from folklore.memory.recall.pipeline import RecallRequest, recall
from folklore.memory.recall.search import search
from folklore.memory.records.forget import ForgetRequest, forget
from folklore.memory.records.get import details
from folklore.memory.records.relate import Wish, relate
from folklore.memory.records.store import store
from folklore.memory.records.update import Edit, update
from folklore.memory.status import status
from folklore.model import Caller, Demand, Draft, Link, Relation
from tests.background_jobs import BackgroundJobs
from tests.conftest import Cluster
from tests.person import NOON, Person, contents

OWNER = Caller("root")


@dataclass(frozen=True, slots=True)
class Holder:
    """Somebody with a token."""

    library: MemoryContext
    caller: Caller
    secret: str

    async def store(self, *texts: str, namespace: str) -> list[UUID]:
        drafts = [Draft(text) for text in texts]
        made = await store(self.library, namespace, drafts, caller=self.caller, now=NOON)
        return [item.id for item in made.stored]

    async def recall(self, query: str, **asked: Any) -> list[str]:
        return contents(await recall(self.library, RecallRequest(query, **asked), now=NOON))

    async def search(self, query: str) -> list[str]:
        return contents(await search(self.library, query, now=NOON))

    async def audit(self, *namespaces: str, **asked: Any) -> list[AuditLine]:
        return list(await read_audit(self.library, AuditRequest(namespaces, **asked), caller=self.caller, now=NOON))


async def holder(library: MemoryContext, name: str, *grants: str, **asked: Any) -> Holder:
    made = await create_token(library, TokenRequest(name, grants, **asked), caller=OWNER, now=NOON)
    return await enter(library, made.secret)


async def enter(library: MemoryContext, secret: str) -> Holder:
    caller, _ = await authenticate(Principals(library.database), secret, now=NOON)
    return Holder(library.view_of(caller.access), caller, secret)


@pytest.fixture
async def secrets(database: Database, embedder: Embedder) -> Person:
    """The owner, with something in two notebooks."""
    person = Person(MemoryContext.of(database, embedder), name="root")
    await person.keep("the harbour crane is painted red", namespace="payments")
    await person.keep("the harbour crane belongs to nobody", namespace="board")
    return person


async def test_a_token_opens_what_it_was_granted_and_nothing_else(secrets: Person) -> None:
    alice = await holder(secrets.library, "alice", "payments:reader")

    assert await alice.recall("Who painted the harbour crane?") == ["the harbour crane is painted red"]
    assert await alice.search("harbour crane") == ["the harbour crane is painted red"]
    assert [item.name for item in (await status(alice.library, caller=alice.caller)).namespaces] == ["payments"]
    with pytest.raises(NotFound, match="no namespace 'board'") as hidden:
        await alice.recall("crane", namespaces=("board",))
    with pytest.raises(NotFound, match="no namespace 'nowhere'") as missing:
        await alice.recall("crane", namespaces=("nowhere",))
    assert str(hidden.value).replace("board", "nowhere") == str(missing.value)


async def test_an_id_of_elsewhere_is_an_id_of_nowhere(secrets: Person) -> None:
    (hidden,) = await secrets.keep("another of the board", namespace="board")
    alice = await holder(secrets.library, "alice", "payments:admin")
    (own,) = await alice.store("mine", namespace="payments")

    with pytest.raises(NotFound):
        await details(alice.library, [hidden])
    with pytest.raises(NotFound):
        await update(alice.library, hidden, Edit({"content": "changed"}), caller=alice.caller, now=NOON)
    with pytest.raises(NotFound):
        await forget(alice.library, ForgetRequest((hidden,), erase=True), caller=alice.caller, now=NOON)
    outcome = await relate(alice.library, [Wish(Relation(own, "relates_to", hidden))], caller=alice.caller, now=NOON)
    assert [item.reason for item in outcome.failed] == [f"There is no memory {hidden}."]
    assert (await details(secrets.library, [hidden])).found[0].memory.content == "another of the board"


async def test_a_reader_reads_a_writer_writes_and_an_admin_erases(secrets: Person) -> None:
    reader = await holder(secrets.library, "rita", "payments:reader")
    writer = await holder(secrets.library, "walter", "payments:writer", agent="claude-code")
    admin = await holder(secrets.library, "ada", "payments:admin")

    with pytest.raises(Refused, match="role reader"):
        await reader.store("from a reader", namespace="payments")
    (id_,) = await writer.store("the crane was mended in May", namespace="payments")
    found = (await details(reader.library, [id_])).found[0].memory
    assert (found.author, found.agent) == ("walter", "claude-code")
    changed = await update(writer.library, id_, Edit({"content": "it was June"}), caller=writer.caller, now=NOON)
    assert changed.content == "it was June"
    (other,) = await writer.store("the crane rusts", namespace="payments")
    wish = Wish(Relation(other, "causes", id_))
    with pytest.raises(Refused, match="role reader"):
        await relate(reader.library, [wish], caller=reader.caller, now=NOON)
    assert (await relate(writer.library, [wish], caller=writer.caller, now=NOON)).created == [wish.relation]
    with pytest.raises(Refused, match="needs admin"):
        await forget(writer.library, ForgetRequest((id_,), erase=True), caller=writer.caller, now=NOON)
    await forget(writer.library, ForgetRequest((id_,)), caller=writer.caller, now=NOON)
    await forget(admin.library, ForgetRequest((id_,), erase=True), caller=admin.caller, now=NOON)
    with pytest.raises(NotFound):
        await details(secrets.library, [id_], forgotten=True)


async def test_a_writer_makes_no_namespace_and_learns_of_none(secrets: Person) -> None:
    writer = await holder(secrets.library, "walter", "payments:writer", "boards:reader", "ledger:admin")

    with pytest.raises(NotFound, match="no namespace 'board'") as hidden:
        await writer.store("anything", namespace="board")
    with pytest.raises(NotFound, match="no namespace 'fresh'") as missing:
        await writer.store("anything", namespace="fresh")
    assert str(hidden.value).replace("board", "fresh") == str(missing.value)
    assert hidden.value.hint == "You may write to ledger, payments."
    with pytest.raises(NotFound, match=r"You may write to payments\.$"):
        await writer.store("anything", namespace="payment")
    with pytest.raises(Refused, match="owner"):
        await notebooks.create(writer.library, "fresh", caller=writer.caller, now=NOON)


async def test_a_writer_stores_in_a_language_that_is_new_to_the_namespace(
    secrets: Person, connection: asyncpg.Connection
) -> None:
    writer = await holder(secrets.library, "walter", "payments:writer", "board:reader")

    drafts = [Draft("Der Kran am Hafen wurde gestrichen", language="german"), Draft("the crane was oiled")]
    await store(writer.library, "payments", drafts, caller=writer.caller, now=NOON)

    assert await writer.recall("gestrichene Kräne", branches=("keyword",)) == ["Der Kran am Hafen wurde gestrichen"]
    rows = await connection.fetch("select name, languages from namespaces")
    assert {row["name"]: row["languages"] for row in rows} == {
        "payments": ["english", "german"],
        "board": ["english"],
    }


async def test_writers_that_bring_new_languages_at_once_are_all_served(
    secrets: Person, connection: asyncpg.Connection
) -> None:
    holders = [await holder(secrets.library, f"writer {n}", "payments:writer") for n in range(6)]
    languages = ("german", "french", "italian", "spanish", "dutch", "german")

    await asyncio.gather(
        *(
            store(writer.library, "payments", [Draft(f"by {n}", language=language)], caller=writer.caller, now=NOON)
            for n, (writer, language) in enumerate(zip(holders, languages, strict=True))
        )
    )

    learned = await connection.fetchval("select languages from namespaces where name = 'payments'")
    assert learned == sorted({"english", *languages})
    assert await connection.fetchval("select count(*) from memories where content like 'by %'") == 6


@pytest.mark.parametrize(
    ("change", "rows"),
    [
        ("update namespaces set languages = '{english,german}' where name = 'payments'", "UPDATE 1"),
        ("update namespaces set languages = '{english,german}' where name = 'board'", "UPDATE 0"),
        ("update namespaces set languages = '{english,german}' where name = 'ledger'", "UPDATE 0"),
        ("update namespaces set language = 'german' where name = 'payments'", None),
        ("update namespaces set description = 'mine', languages = '{}' where name = 'payments'", None),
        ("update namespaces set deleted_at = null where name = 'payments'", None),
        (
            "insert into namespaces (id, name, created_at, created_by) values (gen_random_uuid(), 'new', now(), 'x')",
            None,
        ),
    ],
)
async def test_a_writer_changes_the_languages_of_its_namespace_and_nothing_else(
    secrets: Person, connection: asyncpg.Connection, change: str, rows: str | None
) -> None:
    await secrets.keep("a ledger", namespace="ledger")
    writer = await holder(secrets.library, "walter", "payments:writer", "board:reader")
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute(f"set local role {TOKEN_ROLE}")
    await connection.execute("select folklore_enter($1)", key_of(writer.secret))

    if rows is None:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(change)
    else:
        assert await connection.execute(change) == rows
    await transaction.rollback()


async def test_an_admin_renames_his_namespace_and_the_grant_goes_with_it(secrets: Person) -> None:
    admin = await holder(secrets.library, "ada", "payments:admin")

    assert await notebooks.rename(admin.library, "payments", "money", caller=admin.caller, now=NOON) == "money"
    again = await enter(secrets.library, admin.secret)
    assert await again.recall("painted crane", namespaces=("money",)) == ["the harbour crane is painted red"]
    with pytest.raises(NotFound):
        await notebooks.rename(again.library, "board", "mine", caller=again.caller, now=NOON)


async def test_an_owner_token_opens_everything(secrets: Person) -> None:
    owner = await holder(secrets.library, "boss", owner=True)

    assert len(await owner.recall("harbour crane")) == 2
    await owner.store("a new place", namespace="fresh")


async def test_what_was_revoked_has_expired_or_never_was_lets_nobody_in(secrets: Person) -> None:
    alice = await holder(secrets.library, "alice", "payments:reader")
    short = await holder(secrets.library, "alice", "payments:reader", expires="1h")
    await revoke_tokens(secrets.library, [alice.caller.token], caller=OWNER, now=NOON)  # type: ignore[list-item]
    principals = Principals(secrets.library.database)

    # Who was let in before holds a library that shows nothing from this moment on.
    assert await alice.library.namespaces.find(None) == []
    for secret, reason in (
        (alice.secret, "revoked"),
        ("fk_" + "A" * 43, "unknown"),
        ("fk_short", "malformed"),
        ("", "malformed"),
    ):
        with pytest.raises(Unauthenticated) as refused:
            await authenticate(principals, secret, now=NOON)
        assert refused.value.reason == reason
    with pytest.raises(Unauthenticated) as late:
        await authenticate(principals, short.secret, now=NOON.replace(hour=14))
    assert late.value.reason == "expired"


async def test_tokens_in_force_are_listed_and_what_ended_stays_as_it_ended(
    secrets: Person, jobs: BackgroundJobs
) -> None:
    library, later = secrets.library, NOON + timedelta(hours=2)
    good, short, gone = [
        (await holder(library, "alice", "payments:reader", **asked)).caller.token
        for asked in ({}, {"expires": "1h"}, {})
    ]
    assert gone is not None
    await revoke_tokens(library, [gone], caller=OWNER, now=NOON)

    assert [token.id for token in await list_tokens(library, caller=OWNER, now=later)] == [good]
    with pytest.raises(NotFound, match="No token in force"):
        await revoke_tokens(library, [gone], caller=OWNER, now=later)
    jobs.now = NOON + timedelta(days=400)
    await jobs("retention")
    every = await list_tokens(library, caller=OWNER, now=jobs.now, principal="ALICE", every=True)
    assert {token.id: token.revoked_at for token in every} == {good: None, short: None, gone: NOON}


async def test_the_audit_log_is_asked_by_name_time_and_outcome(secrets: Person) -> None:
    alice = await holder(secrets.library, "alice", "payments:writer")
    await alice.store("stored by her", namespace="payments")

    async def told(**asked: Any) -> list[str]:
        request = AuditRequest(namespaces=("payments",), **asked)
        lines = await read_audit(secrets.library, request, caller=OWNER, now=NOON + timedelta(days=2))
        return [line.principal for line in lines if line.action == "store"]

    assert sorted(await told()) == sorted(await told(since="3d")) == ["alice", "root"]
    assert await told(principal="ALICE") == ["alice"]
    assert await told(since="1d") == []
    assert await told(refused=True) == []


async def test_the_audit_log_of_a_namespace_is_for_who_administers_it_and_tells_of_nothing_else(
    secrets: Person,
) -> None:
    writer = await holder(secrets.library, "walter", "payments:writer", "board:admin", agent="cursor")
    admin = await holder(secrets.library, "ada", "payments:admin")
    quiet = replace(admin, caller=replace(admin.caller, may_write=False))
    kept = await writer.store("one", "two", namespace="payments")

    with pytest.raises(Refused, match="needs admin"):
        await writer.audit("payments")
    with pytest.raises(NotFound, match="no namespace 'board'"):
        await admin.audit("board")
    with pytest.raises(Refused, match="owner"):
        await admin.audit()
    told = await admin.audit("payments")
    assert {(line.namespace, line.action) for line in told} == {("payments", "store")}
    [line] = [line for line in told if line.principal == "walter"]
    assert (line.amount, line.outcome, line.agent, line.token) == (2, "done", "cursor", writer.caller.token)
    assert set(line.memories) == set(kept)
    assert await quiet.audit("payments") == told, "reading is no writing"


async def test_the_owner_reads_the_audit_log_of_everything_the_latest_first(secrets: Person) -> None:
    ada = await holder(secrets.library, "ada", "payments:admin")
    await secrets.at(NOON - timedelta(hours=1)).keep("earlier", namespace="payments")
    owner = Holder(secrets.library, replace(OWNER, may_write=False), "")

    told = await owner.audit()

    assert {line.namespace for line in told} == {"payments", "board", None}
    [made] = [line for line in told if line.action == "token_create"]
    assert (made.detail, made.amount) == (f"ada {ada.caller.token}", 1)
    assert [line.at for line in told] == sorted((line.at for line in told), reverse=True)
    assert [line.at for line in await owner.audit(limit=1)] == [NOON]
    assert [line.action for line in await owner.audit(action="token_create")] == ["token_create"]
    assert await owner.audit(limit=1_000) == told
    await Audit(secrets.library.database).refused(
        "memory_recall", caller=ada.caller, now=NOON, amount=3, outcome="not_found", detail="no namespace"
    )
    [line] = await owner.audit(refused=True)
    assert (line.principal, line.action, line.outcome, line.amount) == ("ada", "memory_recall", "not_found", 3)
    assert (line.token, line.detail) == (ada.caller.token, "no namespace")
    for limit in (0, 1_001):
        with pytest.raises(InvalidInput, match="1 to 1000"):
            await owner.audit(limit=limit)


async def test_a_principal_is_one_whatever_the_case_and_loses_its_tokens_and_nobody_elses(secrets: Person) -> None:
    library = secrets.library
    zed = await holder(library, "Zed", "payments:reader")
    made = await create_token(
        library,
        TokenRequest("alice", ("payments:reader", "board:admin"), namespace="board", agent="cursor"),
        caller=OWNER,
        now=NOON,
    )
    again = await create_token(library, TokenRequest("ALICE", owner=True), caller=OWNER, now=NOON)
    entered = await enter(library, made.secret)

    assert again.principal == "alice"
    assert [role_in(entered.caller, name) for name in ("board", "payments", "nowhere")] == ["admin", "reader", None]
    listed = await list_tokens(library, caller=OWNER, now=NOON)
    assert [token.principal for token in listed] == ["alice", "alice", "Zed"]
    [first, _] = await list_tokens(library, caller=OWNER, now=NOON, principal="Alice")
    assert (first.grants, first.home, first.agent) == (("board:admin", "payments:reader"), "board", "cursor")
    await notebooks.delete(library, "board", caller=OWNER, now=NOON)
    [first, _] = await list_tokens(library, caller=OWNER, now=NOON, principal="alice")
    assert (first.grants, first.home) == (("payments:reader",), None)
    caller = (await enter(library, made.secret)).caller
    assert (caller.home, role_in(caller, "board")) == (None, None)

    revoked = await revoke_tokens(library, (), caller=OWNER, now=NOON, principal="Alice")

    assert set(revoked) == {(made.id, "alice"), (again.id, "alice")}
    assert [token.id for token in await list_tokens(library, caller=OWNER, now=NOON)] == [zed.caller.token]
    told = await Holder(library, OWNER, "").audit(action="token_revoke")
    assert {line.detail for line in told} == {f"alice {made.id}", f"alice {again.id}"}


@dataclass
class Authentication:
    """The door of a server over a library; its clock stands still until it is moved."""

    library: MemoryContext
    local: Caller = Caller("local")
    demand: Demand = "auto"
    issuer: Vouching | None = None
    now: datetime = NOON

    def keeper(self) -> TokenAuthenticator:
        async def whole() -> MemoryContext:
            return self.library

        return TokenAuthenticator(
            whole, demand=self.demand, local=lambda: self.local, now=lambda: self.now, issuer=self.issuer
        )

    async def used(self) -> list[datetime | None]:
        """When each token was used last, in the order of their owners' names."""
        return [token.last_used_at for token in await list_tokens(self.library, caller=OWNER, now=NOON)]


@dataclass
class Vouching:
    """An issuer that vouches for carla, whatever it is shown; of two roles in one namespace the stronger counts."""

    grants: tuple[str, ...] = ("payments:writer", "payments:reader")
    rules: str = "as agreed"

    async def verify(self, token: str, *, now: datetime) -> ExternalIdentity:
        return ExternalIdentity("carla", self.grants, False, now + timedelta(hours=1), "https://login.test")


async def test_who_comes_while_nobody_can_say_who_he_is_sees_nothing_even_if_that_comes_back(secrets: Person) -> None:
    async def away() -> MemoryContext:
        raise DatabaseUnavailable("The database is away.")

    keeper = TokenAuthenticator(away, demand="auto", local=lambda: Caller("local"), now=lambda: NOON)

    for token in (None, "fk_" + "A" * 43):
        nobody = await keeper.admit(token)
        view = Holder(secrets.library.view_of(nobody.access), nobody, "")
        assert await view.library.namespaces.find(None) == []
        with pytest.raises(NotFound):
            await view.store("anything", namespace="payments")


async def test_a_token_does_not_write_on_a_read_only_server_nor_leaves_a_trace(secrets: Person) -> None:
    alice = await holder(secrets.library, "alice", "payments:admin")
    door = Authentication(secrets.library, local=Caller("local", may_write=False))
    keeper = door.keeper()

    caller = await keeper.admit(alice.secret)
    await keeper.close()

    assert (caller.author, role_in(caller, "payments"), role_in(caller, "board")) == ("alice", "reader", None)
    with pytest.raises(Refused, match="read-only"):
        await replace(alice, caller=caller).store("anything", namespace="payments")
    assert await door.used() == [None]
    with pytest.raises(Refused, match="read-only"):
        await create_token(secrets.library, TokenRequest("bob", owner=True), caller=door.local, now=NOON)
    seen = await status(secrets.library, caller=door.local)
    assert set(seen.roles.values()) == {"reader"}


async def test_a_token_is_demanded_as_the_settings_say(secrets: Person) -> None:
    for demand, issuer, before, after in (
        ("never", None, False, False),
        ("always", None, True, True),
        ("auto", None, False, True),
        ("auto", Vouching(), True, True),
    ):
        door = Authentication(secrets.library, demand=demand, issuer=issuer)  # type: ignore[arg-type]
        assert await door.keeper().demands_token() is (before or bool(await door.used()))
        await holder(secrets.library, "alice", "payments:reader")
        assert await door.keeper().demands_token() is after
        if after:
            with pytest.raises(Unauthenticated, match="needs a token"):
                await door.keeper().admit(None)
        else:
            assert await door.keeper().admit(None) == door.local


async def test_when_a_token_was_used_is_written_once_a_minute_and_never_goes_back(secrets: Person) -> None:
    alice, bob = [await holder(secrets.library, name, "payments:reader") for name in ("alice", "bob")]
    assert alice.caller.token is not None
    door = Authentication(secrets.library)
    keeper = door.keeper()
    seen = []

    for seconds in (0, 30, 120):
        door.now = NOON + timedelta(seconds=seconds)
        for one in (keeper, door.keeper()):  # two servers
            await one.admit(alice.secret)
            await one.close()
        seen.append(await door.used())
    await Principals(secrets.library.database).used(alice.caller.token, NOON)

    assert seen == [[NOON, None], [NOON, None], [NOON + timedelta(minutes=2), None]]
    assert await door.used() == seen[-1]
    assert bob.caller.token != alice.caller.token


async def test_what_an_issuer_vouches_for_lasts_as_long_as_it_says_under_the_rules_of_the_day(
    secrets: Person, jobs: BackgroundJobs
) -> None:
    library, vouching = secrets.library, Vouching()
    door = Authentication(library, issuer=vouching)

    first = await door.keeper().admit("an.access.token")
    vouching.grants, vouching.rules = ("payments:reader", "board:reader"), "agreed anew"
    then = await door.keeper().admit("an.access.token")

    made = await Holder(library, OWNER, "").audit(action="token_create")
    assert {line.principal for line in made} == {"issuer https://login.test"}
    assert not await Authentication(library).keeper().demands_token(), "no token of ours was made yet"
    own = await holder(library, "alice", "payments:reader")
    assert (await door.keeper().admit(own.secret)).author == "alice", "who brings one of ours needs no issuer"
    with pytest.raises(Unauthenticated, match="no token of Folklore"):
        await Authentication(library).keeper().admit("an.access.token")
    assert (first.author, role_in(first, "payments"), role_in(first, "board")) == ("carla", "writer", None)
    assert (role_in(then, "payments"), role_in(then, "board")) == ("reader", "reader")
    [held, _] = await list_tokens(library, caller=OWNER, now=NOON, principal="carla")
    assert (held.expires_at, held.issuer) == (NOON + timedelta(hours=1), "https://login.test")
    jobs.now = NOON + timedelta(hours=20)
    assert await jobs("retention") == {}
    jobs.now = NOON + timedelta(hours=26)
    assert await jobs("retention") == {"tokens_dropped": 2}


async def test_an_issuers_token_that_many_workers_meet_at_once_is_made_and_noted_once(secrets: Person) -> None:
    library = secrets.library
    door = Authentication(library, issuer=Vouching())

    callers = await asyncio.gather(*(door.keeper().admit("an.access.token") for _ in range(8)))

    assert {(caller.author, role_in(caller, "payments")) for caller in callers} == {("carla", "writer")}
    [made] = await list_tokens(library, caller=OWNER, now=NOON)
    assert {caller.token for caller in callers} == {made.id}
    assert len(await Holder(library, OWNER, "").audit(action="token_create")) == 1


async def test_the_database_keeps_no_token_and_what_it_keeps_opens_nothing(
    secrets: Person, connection: asyncpg.Connection
) -> None:
    alice = await holder(secrets.library, "alice", "payments:reader")

    held = await connection.fetchrow("select t::text as row, encode(digest, 'hex') as digest from tokens t")
    assert held is not None
    assert alice.secret not in held["row"]
    assert key_of(alice.secret) not in held["row"]
    async with connection.transaction():
        await connection.execute(f"set local role {TOKEN_ROLE}")
        await connection.execute("select folklore_enter($1)", held["digest"])
        assert await connection.fetchval("select count(*) from memories") == 0


TABLES = ("namespaces", "memories", "embeddings", "postings", "relations", "revisions", "idempotency_keys")


@pytest.mark.parametrize(
    "said",
    [
        "",
        "set folklore.key = ''",
        "set folklore.key = 'nonsense'",
        "set folklore.key = '%00'",
        "set folklore.key = '{zeros}'",
        "set folklore.namespaces = '{board}'",
        "set row_security = off",
    ],
)
async def test_the_login_role_sees_nothing_without_a_key_or_with_a_forged_one(
    said: str, secrets: Person, connection: asyncpg.Connection
) -> None:
    await holder(secrets.library, "alice", "payments:admin")
    board = await connection.fetchval("select id from namespaces where name = 'board'")
    await connection.execute(f"set session authorization {TOKEN_ROLE}")
    if said:
        await connection.execute(said.format(zeros="0" * 64, board=board))

    for table in TABLES:
        try:
            assert await connection.fetchval(f"select count(*) from {table}") == 0
        except asyncpg.InsufficientPrivilegeError:
            assert "row_security" in said, "refused, which tells nothing either"
    for table in ("principals", "tokens", "grants", "audit", "usage", "jobs", "folklore_migrations"):
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


async def test_the_login_role_with_a_key_sees_what_it_opens(secrets: Person, connection: asyncpg.Connection) -> None:
    alice = await holder(secrets.library, "alice", "payments:reader")
    await connection.execute(f"set session authorization {TOKEN_ROLE}")

    async with connection.transaction():
        await connection.execute("select folklore_enter($1)", key_of(alice.secret))
        assert [row["name"] for row in await connection.fetch("select name from namespaces")] == ["payments"]
        assert await connection.fetchval("select count(*) from memories") == 1
        assert await connection.execute("update memories set content = 'changed'") == "UPDATE 0"
        assert await connection.execute("delete from postings") == "DELETE 0"
    assert await connection.fetchval("select count(*) from memories") == 0, "the key went with the transaction"


async def test_a_temporary_table_of_the_same_name_deceives_no_policy(
    secrets: Person, connection: asyncpg.Connection
) -> None:
    alice = await holder(secrets.library, "alice", "payments:reader")
    board = await connection.fetchval("select id from namespaces where name = 'board'")
    await connection.execute(f"set session authorization {TOKEN_ROLE}")
    await connection.execute("create temp table grants (token_id uuid, namespace_id uuid, role text)")
    await connection.execute("insert into pg_temp.grants values ($1, $2, 'admin')", alice.caller.token, board)

    async with connection.transaction():
        await connection.execute("select folklore_enter($1)", key_of(alice.secret))
        assert [row["name"] for row in await connection.fetch("select name from namespaces")] == ["payments"]


async def test_every_table_has_row_level_security(connection: asyncpg.Connection) -> None:
    rows = await connection.fetch(
        "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
        " and not relrowsecurity"
    )
    assert {row["relname"] for row in rows} <= {"folklore_migrations"}, "which the role may not read at all"


async def test_a_remembered_namespace_is_remembered_for_its_caller_only(secrets: Person) -> None:
    alice = await holder(secrets.library, "alice", "payments:reader")
    await secrets.recall("crane", namespaces=("board",))  # the owner's answer is remembered for a second

    with pytest.raises(NotFound):
        await alice.recall("crane", namespaces=("board",))


async def test_a_memory_is_read_whole_in_the_moment_its_namespace_is_called_otherwise(secrets: Person) -> None:
    alice = await holder(secrets.library, "alice", "payments:writer", "board:reader")
    crane, mole = await alice.store("a crane", "a mole", namespace="payments")
    await relate(alice.library, [Wish(Relation(crane, "relates_to", mole))], caller=alice.caller, now=NOON)
    await details(alice.library, [crane])  # what she may read is remembered for a second

    [payments] = await secrets.library.namespaces.find(["payments"])
    await secrets.library.namespaces.rename(payments.id, "dues", caller=OWNER, now=NOON)
    [found] = (await details(alice.library, [crane])).found

    assert (found.memory.namespace, found.memory.content) == ("dues", "a crane")
    assert [tie.to_id for tie in found.relations] == [mole]


async def test_every_write_is_in_the_audit_log_with_who_did_it(secrets: Person) -> None:
    writer = await holder(secrets.library, "walter", "payments:admin", agent="cursor")
    (id_,) = await writer.store("one", namespace="payments")
    await update(writer.library, id_, Edit({"content": "two"}), caller=writer.caller, now=NOON)
    await forget(writer.library, ForgetRequest((id_,)), caller=writer.caller, now=NOON)
    await forget(writer.library, ForgetRequest((id_,), erase=True), caller=writer.caller, now=NOON)

    payments = (await secrets.library.namespaces.find(["payments"]))[0].id
    log = [
        entry
        for entry in await Audit(secrets.library.database).latest([payments, NOWHERE], limit=100)
        if entry.principal == "walter"
    ]
    assert sorted(entry.action for entry in log) == ["erase", "forget", "store", "update"]
    assert {entry.memories for entry in log} == {(id_,)}
    assert {(entry.agent, entry.token, entry.outcome) for entry in log} == {("cursor", writer.caller.token, "done")}


async def test_a_connection_whose_call_failed_or_was_cut_off_serves_the_next_token_only_with_its_own_key(
    secrets: Person,
) -> None:
    alice = await holder(secrets.library, "alice", "payments:writer")
    bob = await holder(secrets.library, "bob", "board:writer")

    for _ in range(20):
        with pytest.raises(NotFound):
            await alice.recall("crane", namespaces=("board",))
        with pytest.raises(InvalidInput, match="DivisionByZero"):
            async with alice.library.database.session() as session:
                await session.execute("select 1/0")
        assert await bob.recall("harbour crane") == ["the harbour crane belongs to nobody"]
        assert await alice.recall("harbour crane") == ["the harbour crane is painted red"]


async def test_a_call_of_a_token_that_fails_half_way_leaves_nothing(
    secrets: Person, connection: asyncpg.Connection
) -> None:
    alice = await holder(secrets.library, "alice", "payments:writer")
    draft = Draft("written before it is known that it cannot be", related=(Link(uuid4(), "causes"),))

    with pytest.raises(NotFound, match="no memory"):
        await store(alice.library, "payments", [draft], caller=alice.caller, now=NOON)

    assert await connection.fetchval("select count(*) from memories") == 2


async def test_a_token_revoked_in_the_middle_of_a_call_is_refused_by_the_database(secrets: Person) -> None:
    alice = await holder(secrets.library, "alice", "payments:writer")
    await revoke_tokens(secrets.library, [alice.caller.token], caller=OWNER, now=NOON)  # type: ignore[list-item]

    with pytest.raises(Refused, match="any more"):
        await alice.store("after it was let in", namespace="payments")


async def test_a_caller_of_a_read_only_server_writes_nowhere(secrets: Person) -> None:
    alice = await holder(secrets.library, "alice", "payments:admin")
    quiet = replace(alice, caller=replace(alice.caller, may_write=False))

    with pytest.raises(Refused, match="read-only"):
        await quiet.store("anything", namespace="payments")


def as_user(dsn: str, name: str) -> str:
    """The same database for somebody else, whose password is x."""
    parts = urlsplit(dsn)
    return urlunsplit(parts._replace(netloc=f"{name}:x@{parts.netloc.rpartition('@')[2]}"))


async def test_where_the_role_may_not_be_taken_tokens_say_so_and_all_else_works(
    cluster: Cluster, template: str, embedder: Embedder
) -> None:
    """A managed database, whose user may neither make roles nor take them."""
    name = f"plain_{uuid4().hex[:8]}"
    await cluster.admin.execute(f"create role {name} login password 'x'")
    try:
        async with cluster.new_database() as place:
            await cluster.admin.execute(f"alter database {place} owner to {name}")
            dsn = cluster.address(place)
            owner = await asyncpg.connect(dsn)
            await owner.execute("create extension vector")
            await owner.execute(f"alter schema public owner to {name}")
            await owner.close()
            theirs = as_user(dsn, name)
            assert await migrate(theirs)
            database = Database(theirs, PoolLimits(minimum=0, maximum=2))
            await database.open()
            person = Person(MemoryContext.of(database, embedder), name="root")
            await person.keep("all else works", namespace="payments")
            alice = await holder(person.library, "alice", "payments:reader")

            assert await missing_role_commands(theirs) == [f"grant folklore_app to {name}"]
            for _ in range(4):  # more often than there are connections
                with pytest.raises(DatabaseUnavailable, match="folklore_app") as told:
                    await alice.recall("works")
            assert "folklore db role" in str(told.value)
            # A login role of its own needs no such grant.
            await cluster.admin.execute(f"create role {name}_requests login password 'x' in role {TOKEN_ROLE}")
            apart = Database(theirs, login_dsn=as_user(dsn, f"{name}_requests"))
            await apart.open()
            alice = replace(alice, library=MemoryContext.of(apart, embedder).view_of(alice.caller.access))
            assert await alice.recall("works") == ["all else works"]
            await apart.close()
            await database.close()
    finally:
        await cluster.admin.execute(f"drop role if exists {name}_requests")
        await cluster.admin.execute(f"drop role {name}")


async def test_a_role_that_was_complete_before_a_migration_lacks_only_what_that_brought(
    database_url: str, connection: asyncpg.Connection
) -> None:
    await connection.execute(f"revoke all on idempotency_keys from {TOKEN_ROLE}")

    assert await missing_role_commands(database_url) == [f"grant select, insert, delete on idempotency_keys to {TOKEN_ROLE}"]


async def test_keys_of_a_token_that_writes_are_remembered_replayed_and_free_again_within_its_namespaces(
    secrets: Person, connection: asyncpg.Connection
) -> None:
    alice = await holder(secrets.library, "alice", "payments:writer")
    known = Draft("the harbour crane is painted red", idempotency_key="k")
    await secrets.store(Draft("the harbour crane belongs to nobody", idempotency_key="k"), namespace="board")

    async def say(draft: Draft) -> tuple[UUID, str]:
        [item] = (await store(alice.library, "payments", [draft], caller=alice.caller, now=NOON)).stored
        return item.id, item.status

    first, status_ = await say(known)
    assert (await say(known), status_) == ((first, "duplicate"), "duplicate")
    with pytest.raises(InvalidInput, match="idempotency_key"):
        await say(Draft("something else", idempotency_key="k"))
    await secrets.forget(first)
    again, status_ = await say(Draft("something else", idempotency_key="k"))

    assert (again != first, status_) == (True, "stored")
    rows = await connection.fetch("select memory_id from idempotency_keys where memory_id <> $1", again)
    assert len(rows) == 1, "that of the other namespace"
    assert rows[0]["memory_id"] != first


async def test_a_session_of_a_token_that_reads_cannot_write(secrets: Person) -> None:
    alice = await holder(secrets.library, "alice", "payments:admin")

    with pytest.raises(DatabaseUnavailable, match="read-only"):
        async with alice.library.database.session() as session:
            await session.execute("delete from postings")
