"""Grants by pattern: repo:acme/* opens the namespaces that match, later ones too, and no others."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import asyncpg
import pytest

from folklore.contract.health import StatusRequest
from folklore.contract.namespaces import (
    DeleteNamespaceRequest,
    ListNamespacesRequest,
    MergeNamespacesRequest,
    RenameNamespaceRequest,
    RestoreNamespaceRequest,
)
from folklore.contract.people import RevokeTokensRequest
from folklore.contract.token_secrets import key_of
from folklore.db.database import Database
from folklore.embedding.protocol import Embedder
from folklore.errors import FolkloreError, InvalidInput, NotFound, RateLimited, Refused
from folklore.memory.auth.tokens import ExternalIdentity, store_external_token
from folklore.memory.context import MemoryContext
from folklore.permissions import default_namespace
from tests.memory.auth.test_isolation import (
    Holder,
    as_role,
    enter,
    holder,
    recalled,
    tokens_of,
)
from tests.person import NOON, Person

SHOP = "repo:acme/shop"
DESK = "repo:acme/desk"
NEAR = "repo:acmecorp/shop"


@pytest.fixture
async def owner(database: Database, embedder: Embedder) -> Person:
    """The owner, with a memory in each of several namespaces."""
    person = Person(MemoryContext.of(database, embedder), name="root")
    for namespace in (SHOP, DESK, NEAR):
        await person.keep(f"the crane of {namespace} is red", namespace=namespace)
    return person


async def seen(person: Holder) -> list[str]:
    """Return the namespaces that a new request of this token sees, by the status and by the list."""
    again = await enter(person.library.root, person.secret)
    status = sorted(
        item.name for item in (await again.call(StatusRequest())).namespaces
    )
    assert (
        sorted(item.name for item in await again.call(ListNamespacesRequest()))
        == status
    )
    answer = await again.recall("crane", limit=50, namespaces=("*",))
    assert {result.memory.namespace for result in answer.memories} <= set(status)
    return status


async def rows_of(connection: asyncpg.Connection, secret: str) -> list[str]:
    """Return the namespaces that direct SQL sees with a token, which are those of the memories it sees."""
    async with as_role(connection, secret) as role:
        listed = await role.fetch("select name from namespaces order by name")
        of_memories = await role.fetch(
            "select distinct n.name from memories m join namespaces n on n.id = m.namespace_id order by 1"
        )
        counted = await role.fetchval(
            "select count(distinct namespace_id) from memories"
        )
    assert counted == len(of_memories)
    assert {row["name"] for row in of_memories} <= {row["name"] for row in listed}
    return [row["name"] for row in listed]


async def test_a_pattern_opens_the_namespaces_that_match_and_those_created_later(
    owner: Person, connection: asyncpg.Connection
) -> None:
    alice = await holder(owner, "alice", "repo:acme/*:reader")

    assert await seen(alice) == [DESK, SHOP]
    await owner.keep("the crane of repo:acme/new is red", namespace="repo:acme/new")
    await owner.keep(
        "the crane of repo:acme/group/deep is red", namespace="repo:acme/group/deep"
    )
    await owner.keep("the crane of elsewhere is red", namespace="elsewhere")

    assert await seen(alice) == [DESK, "repo:acme/group/deep", "repo:acme/new", SHOP]
    assert await rows_of(connection, alice.secret) == [
        DESK,
        "repo:acme/group/deep",
        "repo:acme/new",
        SHOP,
    ]
    with pytest.raises(NotFound):
        await alice.recall("crane", namespaces=(NEAR,))


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("repo:acme/*", ["repo:acme/x", "Repo:ACME/y", "repo:acme/0"],
         ["repo:acmecorp/x", "repo:acme:x", "xrepo:acme/x"]),
        ("repo:a_b/*", ["repo:a_b/x", "repo:A_B/y"], ["repo:axb/x", "repo:a_bc/x", "repo:a-b/x", "repo:a.b/x"]),
        ("repo:ACME/*", ["repo:acme/x", "repo:Acme/y"], ["repo:acmé/x", "repo:acm/x"]),
        ("repo:é/*", ["repo:é/x"], ["repo:É/x", "repo:e/x", "repo:éa/x"]),
        ("repo:*", ["repo:acme/x", "repo:z", "REPO:y"], ["repos:x", "repo-x", "repo/x", "report:x"]),
        ("a.b/*", ["a.b/c", "A.B/d"], ["axb/c", "a.b", "a.bc/d", "a.b0", "a.b-/d"]),
        ("repo:acme/i/*", ["repo:acme/I/x"], ["repo:acme/ı/x", "repo:acme/İ/x", "repo:acme/x"]),
    ],
)  # fmt: skip
async def test_a_near_match_is_no_match(
    owner: Person,
    connection: asyncpg.Connection,
    pattern: str,
    matching: list[str],
    others: list[str],
) -> None:
    for namespace in (*matching, *others):
        await owner.keep("another memory", namespace=namespace)

    alice = await holder(owner, "alice", f"{pattern}:writer")

    expected = [
        *matching,
        *(name for name in (SHOP, DESK, NEAR) if name.startswith(pattern[:-1].lower())),
    ]
    assert await seen(alice) == sorted(expected)
    assert sorted(await rows_of(connection, alice.secret)) == sorted(expected)
    for hidden in others:
        with pytest.raises(NotFound):
            await alice.store("anything", namespace=hidden)


@pytest.mark.parametrize(
    "text",
    [
        "*",
        "**",
        "acme*",
        "repo:*/x",
        "repo:acme/*/*",
        "/*",
        ":*",
        "repo:acme/**",
        "repo:/*",
        "%/*",
    ],
)
async def test_a_pattern_covers_whole_levels_alone(owner: Person, text: str) -> None:
    with pytest.raises(InvalidInput):
        await owner.create_token("alice", f"{text}:reader")


async def test_percent_is_no_character_of_a_pattern_and_the_database_takes_it_literally(
    owner: Person, connection: asyncpg.Connection
) -> None:
    alice = await holder(owner, "alice", "repo:nothing/*:reader")
    for prefix in ("%/", "repo:acm_/", "repo:%/", "repo:acme%/", "\\/"):
        await connection.execute("update pattern_grants set prefix = $1", prefix)
        assert await seen(alice) == []
    for prefix in ("", "/", "repo:acme", "repo:acme/s"):
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute("update pattern_grants set prefix = $1", prefix)


async def test_a_writer_creates_a_namespace_that_its_pattern_matches_by_storing_into_it(
    owner: Person, connection: asyncpg.Connection
) -> None:
    writer = await holder(
        owner, "walter", "repo:acme/*:writer", "repo:acmecorp/*:reader"
    )

    stored = await writer.store(
        "the crane of repo:acme/new is blue", namespace="repo:acme/new"
    )
    assert stored.namespace == "repo:acme/new"
    again = await enter(owner.library, writer.secret)
    assert await recalled(again, "blue crane", namespaces=("repo:acme/new",)) == [
        "the crane of repo:acme/new is blue"
    ]
    row = await connection.fetchrow(
        "select created_by, shared from namespaces where name = 'repo:acme/new'"
    )
    assert row is not None
    assert (row["created_by"], row["shared"]) == ("walter", "never")
    for namespace in ("repo:acmecorp/new", "repo:acmeco/new", "new"):
        with pytest.raises((NotFound, Refused)):
            await writer.store("anything", namespace=namespace)
    assert (
        await connection.fetchval(
            "select count(*) from namespaces where name like '%new'"
        )
        == 1
    )


async def test_writers_who_create_one_namespace_at_the_same_time_all_store_into_it(
    owner: Person, connection: asyncpg.Connection
) -> None:
    writers = [
        await holder(owner, f"writer{n}", "repo:acme/*:writer") for n in range(6)
    ]

    await asyncio.gather(
        *(
            writer.store(f"memory {n}", namespace="repo:acme/fresh")
            for n, writer in enumerate(writers)
        )
    )

    assert (
        await connection.fetchval(
            "select count(*) from namespaces where name = 'repo:acme/fresh'"
        )
        == 1
    )
    assert (
        await connection.fetchval(
            "select count(*) from memories where content like 'memory %'"
        )
        == 6
    )


@pytest.mark.parametrize(
    ("name", "values", "allowed"),
    [
        ("repo:acme/direct", "", True), ("Repo:Acme/direct", "", True), ("repo:acmecorp/direct", "", False),
        ("repo:other/direct", "", False), ("direct", "", False), ("repo:acme/direct", "shared = 'always'", False),
        ("repo:acme/direct", "deleted_at = now()", False),
    ],
)  # fmt: skip
async def test_direct_sql_of_a_writer_creates_matching_namespaces_alone(
    owner: Person, connection: asyncpg.Connection, name: str, values: str, allowed: bool
) -> None:
    writer = await holder(
        owner, "walter", "repo:acme/*:writer", "repo:acmecorp/*:reader"
    )
    column, _, value = values.partition(" = ")
    more, shown = (f", {column}", f", {value}") if column else ("", "")
    insert = (
        f"insert into namespaces (id, name, created_at, created_by{more}) "
        f"values (gen_random_uuid(), $1, now(), 'walter'{shown}) returning name"
    )

    async with as_role(connection, writer.secret) as role:
        if allowed:
            assert await role.fetchval(insert, name) == name
        else:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await role.fetchval(insert, name)


async def test_the_role_of_a_pattern_is_enforced_by_the_database(
    owner: Person, connection: asyncpg.Connection
) -> None:
    reader = await holder(owner, "rita", "repo:acme/*:reader")
    writer = await holder(owner, "walter", "repo:acme/*:writer")
    admin = await holder(owner, "ada", "repo:acme/*:admin")
    change = "update memories set content = 'changed' where content like '%repo:acme/shop is red'"
    erase = "select count(*) from namespaces n, folklore_delete_memories(n.id, $1)"
    unindex = "select folklore_delete_postings(n.id, $1) from namespaces n"
    ids = [row["id"] for row in await connection.fetch("select id from memories")]

    for person, changed, deleted in ((reader, 0, 0), (writer, 1, 0), (admin, 1, 2)):
        async with as_role(connection, person.secret) as role:
            assert await role.execute(change) == f"UPDATE {changed}"
        async with as_role(connection, person.secret) as role:
            before = await role.fetchval("select count(*) from fresh_words")
            await role.execute(unindex, ids)
            after = await role.fetchval("select count(*) from fresh_words")
            assert (before > 0, after) == (True, before if person is reader else 0)
            assert await role.fetchval(erase, ids) == deleted
    assert await connection.fetchval("select count(*) from memories") == len(ids)
    for table in ("pattern_grants", "invitations", "console_sessions", "tokens"):
        async with as_role(connection, admin.secret) as role:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await role.execute(f"select * from {table}")


async def test_the_strongest_of_several_grants_holds(
    owner: Person, connection: asyncpg.Connection
) -> None:
    alice = await holder(
        owner, "alice", "repo:acme/*:reader", f"{SHOP}:writer", "repo:*:reader"
    )
    bob = await holder(owner, "bob", "repo:acme/*:writer", f"{SHOP}:reader")

    await alice.store("from alice", namespace=SHOP)
    with pytest.raises(Refused, match="role reader"):
        await alice.store("from alice", namespace=DESK)
    await bob.store("from bob", namespace=SHOP)
    assert await seen(alice) == sorted([SHOP, DESK, NEAR])
    assert await rows_of(connection, alice.secret) == sorted([SHOP, DESK, NEAR])
    listed = await tokens_of(owner, "alice")
    assert listed[0].grants == (
        "repo:*:reader",
        "repo:acme/*:reader",
        "repo:acme/shop:writer",
    )


async def test_renamed_namespaces_enter_and_leave_a_pattern_and_stay_with_a_grant_by_name(
    owner: Person, connection: asyncpg.Connection
) -> None:
    alice = await holder(owner, "alice", "repo:acme/*:reader")
    bob = await holder(owner, "bob", f"{SHOP}:reader")

    await owner.call(RenameNamespaceRequest(name=SHOP, to="repo:acmecorp/moved"))
    assert await seen(alice) == [DESK] == await rows_of(connection, alice.secret)
    assert await seen(bob) == ["repo:acmecorp/moved"]
    await owner.call(RenameNamespaceRequest(name=NEAR, to="repo:acme/came"))
    assert (
        await seen(alice)
        == ["repo:acme/came", DESK]
        == await rows_of(connection, alice.secret)
    )


async def test_deleted_restored_and_merged_namespaces_follow_the_pattern(
    owner: Person, connection: asyncpg.Connection
) -> None:
    alice = await holder(owner, "alice", "repo:acme/*:reader")

    await owner.call(DeleteNamespaceRequest(name=SHOP))
    assert await seen(alice) == [DESK] == await rows_of(connection, alice.secret)
    await owner.call(RestoreNamespaceRequest(name=SHOP))
    assert await seen(alice) == [DESK, SHOP] == await rows_of(connection, alice.secret)
    await owner.call(MergeNamespacesRequest(name=SHOP, into=NEAR))
    assert await seen(alice) == [DESK] == await rows_of(connection, alice.secret)
    async with as_role(connection, alice.secret) as role:
        assert (
            await role.fetchval(
                "select count(*) from memories where content like '%acme/shop%'"
            )
            == 0
        )
    await owner.call(MergeNamespacesRequest(name=SHOP, into=NEAR, undo=True))
    assert await seen(alice) == [DESK, SHOP]
    await owner.call(MergeNamespacesRequest(name=NEAR, into=SHOP))
    again = await enter(owner.library, alice.secret)
    assert f"the crane of {NEAR} is red" in await recalled(
        again, "crane", namespaces=(SHOP,)
    )


async def test_a_revoked_or_expired_token_opens_nothing_by_its_pattern(
    owner: Person, connection: asyncpg.Connection
) -> None:
    alice = await holder(owner, "alice", "repo:acme/*:admin")
    bob = await holder(owner, "bob", "repo:acme/*:admin", expires="1h")
    assert await rows_of(connection, alice.secret) == [DESK, SHOP]

    await owner.call(RevokeTokensRequest(principal="alice"))
    await connection.execute(
        "update tokens set expires_at = $1 where id = $2",
        NOON - timedelta(days=1),
        bob.token,
    )

    for person in (alice, bob):
        assert await rows_of(connection, person.secret) == []
        with pytest.raises(FolkloreError):
            await person.store("late", namespace=SHOP)
        with pytest.raises(FolkloreError):
            await person.store("late", namespace="repo:acme/late")
    assert (
        await connection.fetchval(
            "select count(*) from namespaces where name like '%late'"
        )
        == 0
    )


async def test_the_default_namespace_of_a_token_is_one_that_it_may_write_to(
    owner: Person,
) -> None:
    given = await holder(owner, "bob", "team:*:writer", namespace="team:one")

    assert default_namespace(given.caller) == "team:one"
    with pytest.raises(InvalidInput, match="may not write there"):
        await owner.create_token("dora", "team:*:reader", namespace="team:one")


async def test_a_principal_creates_at_most_100_namespaces_an_hour(
    owner: Person, connection: asyncpg.Connection
) -> None:
    alice = await holder(owner, "alice", "repo:acme/*:admin")
    bob = await holder(owner, "bob", "repo:acme/*:writer")
    insert = (
        "insert into namespaces (id, name, created_at, created_by, deleted_at)"
        " select gen_random_uuid(), 'repo:acme/n' || n, $1::timestamptz, 'alice',"
        " case when n % 2 = 0 then $1::timestamptz end from generate_series(1, 99) n"
    )
    await connection.execute(insert, NOON - timedelta(minutes=50))

    await alice.store("the hundredth", namespace="repo:acme/last")
    with pytest.raises(
        RateLimited, match="alice created 100 namespaces within an hour"
    ) as refused:
        await (await enter(owner.library, alice.secret)).store(
            "one more", namespace="repo:acme/more"
        )
    again = await enter(owner.library, alice.secret)
    await again.store("known", namespace="repo:acme/last")
    await bob.store("by another", namespace="repo:acme/bobs")
    await owner.keep("by the owner", namespace="repo:acme/owners")
    later = replace(again, now=NOON + timedelta(minutes=11))
    await later.store("later", namespace="repo:acme/later")

    assert refused.value.code == "rate_limited"
    made = [name for name in await seen(again) if "/n" not in name]
    assert made == [
        "repo:acme/bobs",
        DESK,
        "repo:acme/last",
        "repo:acme/later",
        "repo:acme/owners",
        SHOP,
    ]


async def test_the_claims_of_one_subject_create_at_most_100_namespaces_an_hour(
    owner: Person, connection: asyncpg.Connection
) -> None:
    async def store(subject: str, names: range) -> None:
        grants = tuple(f"claimed-{number}:reader" for number in names)
        principal = f"{subject} <https://login.example.com>"
        identity = ExternalIdentity(
            principal,
            grants,
            False,
            NOON + timedelta(hours=1),
            "https://login.example.com",
        )
        await store_external_token(
            owner.library, identity, key=key_of(f"{subject} {names}"), now=NOON
        )

    await store("carla", range(100))
    with pytest.raises(RateLimited, match="carla <https"):
        await store("carla", range(95, 105))
    await store("carla", range(50))
    await store("dora", range(100, 105))

    assert (
        await connection.fetchval(
            "select count(*) from namespaces where name like 'claimed-%'"
        )
        == 105
    )


async def test_an_issuers_access_token_grants_by_pattern(
    owner: Person, connection: asyncpg.Connection
) -> None:
    identity = ExternalIdentity(
        "carla <https://login.example.com>",
        ("repo:acme/*:reader", "repo:ACME/*:writer", f"{DESK}:reader"),
        owner=False,
        expires_at=NOON + timedelta(hours=1),
        issuer="https://login.example.com",
    )
    await store_external_token(owner.library, identity, key=key_of("jwt"), now=NOON)

    rows = await connection.fetch("select prefix, role from pattern_grants")
    assert [(row["prefix"], row["role"]) for row in rows] == [("repo:acme/", "writer")]
