"""Who may do what: asked before anything is written, with words for people; the database holds it once more."""

from __future__ import annotations

from typing import Literal

from folklore.errors import NotFound, Refused
from folklore.model import Access, Caller, Role
from folklore.text import names

_ORDER: tuple[Role, ...] = ("reader", "writer", "admin")
_DOES: dict[Role, str] = {"reader": "read", "writer": "write to", "admin": "administer"}


def role_in(caller: Caller, namespace: str) -> Role | None:
    """The caller's role in the namespace of this name; None where it opens nothing."""
    if caller.access is None:
        return "admin" if caller.may_write else "reader"
    role = _granted(caller.access, namespace)
    return role if caller.may_write or role is None else "reader"


def require(caller: Caller, namespace: str, role: Literal["writer", "admin"], *, dry_run: bool = False) -> None:
    """Let through who has at least this role there; for a `dry_run` on a read-only server too.

    Raises Refused; NotFound, alike whether the namespace is there or not, for one that the caller knows nothing of.
    """
    if not dry_run:
        must_write(caller)
    if caller.access is None:
        return
    held = _granted(caller.access, namespace)
    if held is None:
        own = [grant.name for grant in caller.access.grants if _ORDER.index(grant.role) >= _ORDER.index(role)]
        near = names.nearest(namespace, own) or tuple(own[:5])
        raise NotFound(
            f"There is no namespace {namespace!r} that you may {_DOES[role]}.",
            hint=f"You may {_DOES[role]} {', '.join(near)}." if near else f"Your token may {_DOES[role]} none.",
        )
    if _ORDER.index(held) < _ORDER.index(role):
        raise Refused(
            f"Your token has the role {held} in {namespace}; this needs {role}.",
            hint="Ask whoever hands out the tokens (`folklore tokens create`).",
        )


def stronger(one: Role, other: Role) -> bool:
    """Whether one role may do more than the other."""
    return _ORDER.index(one) > _ORDER.index(other)


def must_write(caller: Caller) -> None:
    """Let through who may write at all. Raises Refused."""
    if not caller.may_write:
        raise Refused("This server is read-only; nothing was changed.")


def must_own(caller: Caller) -> None:
    """Let through the deployment's owner. Raises Refused."""
    must_write(caller)
    if caller.access is not None:
        raise Refused("Only the owner of this deployment may do this.", hint="It needs a token made with --owner.")


def may_write_somewhere(caller: Caller) -> bool:
    """Whether the tools that write are of any use to this caller."""
    if not caller.may_write or caller.token is None or caller.access is None:
        return caller.may_write
    return any(grant.role != "reader" for grant in caller.access.grants)


def writing_home(caller: Caller) -> str | None:
    """Where a token writes when the caller does not say: its default, else the only namespace it may write to."""
    if caller.home is not None or caller.access is None:
        return caller.home
    own = [grant.name for grant in caller.access.grants if grant.role != "reader"]
    return own[0] if len(own) == 1 else None


def _granted(access: Access, namespace: str) -> Role | None:
    wanted = names.key(namespace)
    return next((grant.role for grant in access.grants if names.key(grant.name) == wanted), None)
