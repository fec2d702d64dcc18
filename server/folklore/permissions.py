"""Permission checks, before anything is written. Row-level security enforces the same in the database."""

from __future__ import annotations

from collections.abc import Sequence

from folklore.callers import Access, Caller, Role
from folklore.errors import NotFound, Refused
from folklore.text import names

# Namespaces that an error lists.
_FEW = 5
_ORDER: tuple[Role, ...] = ("reader", "writer", "admin")
_ACTION: dict[Role, str] = {
    "reader": "read",
    "writer": "write to",
    "admin": "administer",
}


def role_in(caller: Caller, namespace: str) -> Role | None:
    """Return the caller's role in the namespace of this name; None without a grant."""
    if caller.access is None:
        return "admin" if caller.may_write else "reader"
    role = _granted(caller.access, namespace)
    return role if caller.may_write or role is None else "reader"


def require(
    caller: Caller, namespace: str, role: Role, *, dry_run: bool = False
) -> None:
    """Check that the caller has at least this role in a namespace; a `dry_run` is allowed on a read-only server too.

    Raises Refused; NotFound, alike for an existing and a missing namespace, where the caller has no grant.
    """
    if role != "reader" and not dry_run:
        require_writable(caller)
    if caller.access is None:
        return
    granted = _granted(caller.access, namespace)
    if granted is None:
        namespaces = granted_names(caller.access, role)
        hint = _near_or_few(_ACTION[role], namespace, namespaces)
        raise NotFound(
            f"There is no namespace {namespace!r} that you may {_ACTION[role]}.",
            hint=hint,
        )
    if stronger(role, granted):
        hint = (
            "Ask the owner of the server for another token (`folklore tokens create`)."
        )
        error = Refused(
            f"Your token has the role {granted} in {namespace}; this needs {role}.",
            hint=hint,
        )
        error.namespace = namespace
        raise error


def _near_or_few(action: str, requested: str, granted: Sequence[str]) -> str:
    """Return which namespaces a caller may use: those with a similar name, else all if they are few."""
    if near := names.nearest(requested, granted):
        return f"Did you mean {', '.join(near)}?"
    if not granted:
        return f"Your token may {action} none."
    if len(granted) <= _FEW:
        return f"You may {action} {', '.join(granted)}."
    return f"You may {action} {len(granted)} others; memory_status lists them."


def opens(caller: Caller, namespace: str) -> bool:
    """Return True if the namespace of this name exists for the caller; a pattern grants a role in missing ones too."""
    return caller.access is None or names.key(namespace) in {
        names.key(grant.name) for grant in caller.access.grants
    }


def stronger(one: Role, other: Role) -> bool:
    """Return True if the first role permits more than the second."""
    return _ORDER.index(one) > _ORDER.index(other)


def require_writable(caller: Caller) -> None:
    """Check that the server is not read-only for the caller. Raises Refused."""
    if not caller.may_write:
        raise Refused("This server is read-only; nothing was changed.")


def require_owner(caller: Caller, *, dry_run: bool = False) -> None:
    """Check that the caller is the owner of the deployment. Raises Refused."""
    if not dry_run:
        require_writable(caller)
    if caller.access is not None:
        raise Refused(
            "Only the owner of this deployment may do this.",
            hint="It needs a token made with --owner.",
        )


def may_write_somewhere(caller: Caller) -> bool:
    """Return True if the caller may use the tools that write.

    They are offered to a caller who is not identified, so that a call of them fails with the reason.
    """
    if not caller.may_write or caller.access is None or not caller.identified:
        return caller.may_write
    return bool(granted_names(caller.access, "writer"))


def default_namespace(caller: Caller) -> str | None:
    """Return the default namespace of the caller's token, else the only one that it may write to."""
    if caller.home is not None or caller.access is None:
        return caller.home
    namespaces = granted_names(caller.access, "writer")
    if len(namespaces) == 1 and not namespaces[0].endswith("*"):
        return namespaces[0]
    return None


def granted_names(access: Access, role: Role) -> list[str]:
    """Return the namespaces and patterns in which a token has at least this role; patterns end with `*`."""
    matched = tuple(
        pattern.prefix
        for pattern in access.patterns
        if not stronger(role, pattern.role)
    )
    granted = [grant.name for grant in access.grants if not stronger(role, grant.role)]
    return [f"{prefix}*" for prefix in matched] + [
        name for name in granted if not names.key(name).startswith(matched)
    ]


def _granted(access: Access, namespace: str) -> Role | None:
    """Return the strongest role by a name or a pattern; a pattern grants it for a missing namespace too."""
    requested = names.key(namespace)
    roles = [
        grant.role for grant in access.grants if names.key(grant.name) == requested
    ]
    roles += [
        pattern.role
        for pattern in access.patterns
        if requested.startswith(pattern.prefix)
    ]
    return max(roles, key=_ORDER.index, default=None)
