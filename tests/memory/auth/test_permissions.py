"""Permissions are decided by role: what a grant by name or pattern allows, and what a refusal says."""

from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any, cast
from uuid import uuid4

import pytest
from hypothesis import given, strategies as st

from folklore.callers import Access, Caller, Grant, PatternGrant, Role
from folklore.db.stores.namespaces import Namespaces
from folklore.errors import NotFound, RateLimited, Refused
from folklore.memory.context.new_namespaces import require_new_namespace
from folklore.permissions import (
    default_namespace,
    granted_names,
    may_write_somewhere,
    opens,
    require,
    require_owner,
    role_in,
    stronger,
)
from tests.person import NOON

ROLES: tuple[Role, ...] = ("reader", "writer", "admin")
OWNER = Caller("root")
READ_ONLY = "This server is read-only; nothing was changed."


def holder(*grants: str, **fields: Any) -> Caller:
    """Return the caller of a token with these grants, `name:role` or `prefix*:role`."""
    pairs = [
        (name, cast(Role, role))
        for name, _, role in (grant.rpartition(":") for grant in grants)
    ]
    named = [
        Grant(uuid4(), name, role) for name, role in pairs if not name.endswith("*")
    ]
    patterns = [
        PatternGrant(name[:-1], role) for name, role in pairs if name.endswith("*")
    ]
    return Caller(
        "alice",
        access=Access(uuid4(), "0" * 64, tuple(named), tuple(patterns)),
        **fields,
    )


SHOP = holder(
    "Shop:reader",
    "repo:acme/api:writer",
    "board:admin",
    "repo:acme/*:reader",
    "repo:acme/ops/*:admin",
)


@pytest.mark.parametrize(
    ("namespace", "role"),
    [
        ("shop", "reader"), ("SHOP", "reader"), ("shops", None), ("sho", None), ("board", "admin"), ("", None),
        ("repo:acme/api", "writer"),  # the stronger of a name and a pattern
        ("Repo:Acme/New", "reader"), ("repo:acme/ops/x", "admin"), ("repo:acme", None), ("repo:acmecorp/x", None),
    ],
)  # fmt: skip
def test_a_caller_has_the_strongest_role_of_the_grants_for_a_name(
    namespace: str, role: Role | None
) -> None:
    assert role_in(SHOP, namespace) == role
    assert role_in(replace(SHOP, may_write=False), namespace) == (role and "reader")
    assert [
        role_in(replace(OWNER, may_write=writes), namespace) for writes in (True, False)
    ] == ["admin", "reader"]
    for needed, dry_run in product(ROLES, (False, True)):
        require(OWNER, namespace, needed, dry_run=dry_run)
        if role is None:
            with pytest.raises(NotFound):
                require(SHOP, namespace, needed, dry_run=dry_run)
        elif ROLES.index(role) < ROLES.index(needed):
            with pytest.raises(Refused) as refused:
                require(SHOP, namespace, needed, dry_run=dry_run)
            assert str(refused.value) == (
                f"Your token has the role {role} in {namespace}; this needs {needed}."
                " Ask the owner of the server for another token (`folklore tokens create`)."
            )
            assert refused.value.namespace == namespace
        else:
            require(SHOP, namespace, needed, dry_run=dry_run)


@pytest.mark.parametrize("caller", [OWNER, SHOP])
def test_a_read_only_server_refuses_what_writes_and_no_trial_of_it(
    caller: Caller,
) -> None:
    caller = replace(caller, may_write=False)

    require(caller, "board", "reader")
    require(caller, "board", "admin", dry_run=True)
    for role in ("writer", "admin"):
        with pytest.raises(Refused, match=f"^{READ_ONLY}$"):
            require(caller, "board", role)
        with pytest.raises(Refused, match=f"^{READ_ONLY}$"):  # whether or not it exists
            require(caller, "hidden", role)


@pytest.mark.parametrize(
    ("grants", "role", "reason", "hint"),
    [
        (["shop:reader"], "reader", "you may read", "Did you mean shop?"),
        (
            ["shop:reader"],
            "writer",
            "you may write to",
            "Your token may write to none.",
        ),
        (
            ["shop:reader", "shot:admin"],
            "admin",
            "you may administer",
            "Did you mean shot?",
        ),
        (
            [f"n{n}:reader" for n in range(7)],
            "reader",
            "you may read",
            "You may read 7 others; memory_status lists them.",
        ),
        (
            ["repo:x/*:writer", "z:admin"],
            "writer",
            "you may write to",
            "You may write to repo:x/*, z.",
        ),
        (
            ["shop:writer", "board:writer"],
            "writer",
            "you may write to",
            "Did you mean shop?",
        ),
        ([], "reader", "you may read", "Your token may read none."),
    ],
)
def test_a_missing_namespace_and_one_without_a_grant_are_refused_alike(
    grants: list[str], role: Role, reason: str, hint: str
) -> None:
    with pytest.raises(NotFound) as refused:
        require(holder(*grants), "shoq", role)

    assert str(refused.value) == f"There is no namespace 'shoq' that {reason}. {hint}"
    assert refused.value.namespace is None


def test_a_pattern_opens_no_namespace_that_is_missing() -> None:
    opened = [
        name
        for name in ("shop", "BOARD", "repo:acme/api", "repo:acme/new", "hidden")
        if opens(SHOP, name)
    ]

    assert opened == ["shop", "BOARD", "repo:acme/api"]
    assert opens(OWNER, "hidden")


def test_only_the_owner_of_a_server_that_is_not_read_only_may_do_what_needs_one() -> (
    None
):
    readers = replace(OWNER, may_write=False)

    require_owner(OWNER)
    require_owner(readers, dry_run=True)
    with pytest.raises(Refused, match=f"^{READ_ONLY}$"):
        require_owner(readers)
    for dry_run in (False, True):
        with pytest.raises(Refused) as refused:
            require_owner(holder("board:admin", "a:*:admin"), dry_run=dry_run)
        assert (
            str(refused.value)
            == "Only the owner of this deployment may do this. It needs a token made with --owner."
        )


@pytest.mark.parametrize(
    ("caller", "writes", "default"),
    [
        (OWNER, True, None), (replace(OWNER, may_write=False), False, None),
        (replace(OWNER, home="shop"), True, "shop"), (holder("shop:writer", "board:reader"), True, "shop"),
        (holder("shop:admin"), True, "shop"), (holder("shop:admin", may_write=False), False, "shop"),
        (holder("shop:writer", "board:writer"), True, None),
        (holder("shop:writer", "board:writer", home="board"), True, "board"), (holder("shop:reader"), False, None),
        (holder("repo:x/*:writer"), True, None), (holder("repo:x/*:writer", "repo:x/y:writer"), True, None),
        (holder("repo:x/*:reader", "repo:x/y:writer"), True, "repo:x/y"), (holder(), False, None),
        (holder(identified=False), True, None), (holder(identified=False, may_write=False), False, None),
    ],
)  # fmt: skip
def test_tools_that_write_are_offered_to_who_may_write_and_the_default_is_the_only_namespace(
    caller: Caller, writes: bool, default: str | None
) -> None:
    assert (may_write_somewhere(caller), default_namespace(caller)) == (writes, default)


def test_names_that_a_pattern_covers_are_not_named_beside_it() -> None:
    assert SHOP.access is not None
    assert granted_names(SHOP.access, "reader") == [
        "repo:acme/*",
        "repo:acme/ops/*",
        "Shop",
        "board",
    ]
    assert granted_names(SHOP.access, "writer") == [
        "repo:acme/ops/*",
        "repo:acme/api",
        "board",
    ]
    assert granted_names(SHOP.access, "admin") == ["repo:acme/ops/*", "board"]


GRANTS = st.sampled_from(
    [f"{name}:{role}" for name in ("a", "A:x", "a:y", "a:*", "a:x/*") for role in ROLES]
)


@given(
    st.lists(GRANTS, max_size=5), GRANTS, st.sampled_from(["a", "a:x", "A:X/z", "b"])
)
def test_another_grant_never_takes_a_role_away_and_a_role_is_one_that_was_granted(
    grants: list[str], added: str, name: str
) -> None:
    before = role_in(holder(*grants), name)
    after = role_in(holder(*grants, added), name)

    assert before is None or (after is not None and not stronger(before, after))
    assert after is None or after in {
        grant.rpartition(":")[2] for grant in (*grants, added)
    }
    assert [role_in(holder(grant), name) for grant in grants].count(
        before
    ) > 0 or before is None


class Created:
    """Return how many namespaces one principal created since a time."""

    def __init__(self, count: int) -> None:
        self.count = count

    async def created(self, **of: Any) -> int:
        assert of == {"author": "alice", "since": NOON - timedelta(hours=1)}
        return self.count


async def test_a_principal_creates_100_namespaces_an_hour() -> None:
    await require_new_namespace(cast(Namespaces, Created(99)), "alice", NOON)
    with pytest.raises(RateLimited) as refused:
        await require_new_namespace(cast(Namespaces, Created(100)), "alice", NOON)

    assert str(refused.value) == (
        "alice created 100 namespaces within an hour, which is the most."
        " Store into one of them, or wait; the owner of the server may create more."
    )
