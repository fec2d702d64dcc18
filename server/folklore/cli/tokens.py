"""`folklore tokens` and `folklore audit`."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import get_args

import click

from folklore.cli.context import call, zone_of
from folklore.cli.options import id_of, json_option, namespaces_option
from folklore.cli.output import print_json, print_table, say
from folklore.memory.requests import AuditRequest, CreateTokenRequest, ListTokensRequest, RevokeTokensRequest
from folklore.model import Role


@click.group()
def tokens() -> None:
    """Manage the tokens of people and agents. As soon as one exists, every request over HTTP needs one."""


@tokens.command()
@click.option("--name", required=True, help="The principal: the author of what is stored with the token.")
@click.option(
    "--grant",
    "grants",
    multiple=True,
    metavar="NAMESPACE:ROLE",
    help=f"A grant; roles are {', '.join(get_args(Role))}; repeatable. A new namespace is created.",
)
@click.option("--owner", is_flag=True, help="Grants everything, and may create tokens.")
@click.option("--namespace", help="The default for writing. Default: the only one that it may write to.")
@click.option("--agent", help="The program that uses it, such as claude-code; recorded beside the author.")
@click.option("--expires", metavar="PERIOD", help="12h, 90d, 8w, 1y. Default: never.")
@json_option
@click.pass_context
def create(ctx: click.Context, /, grants: tuple[str, ...], as_json: bool, **options: object) -> None:
    """Create a token and show it, once: only its digest is stored."""
    made = call(ctx, CreateTokenRequest(grants=grants, **options))
    if as_json:
        value = {"id": str(made.id), "name": made.principal, "token": made.secret, "created": list(made.created)}
        print_json(value | ({"expires_at": made.expires_at.isoformat()} if made.expires_at else {}))
        return
    say(made.secret)
    until = f", until {_local(made.expires_at, zone_of(ctx))}" if made.expires_at else ""
    click.echo(f"This token of {made.principal} (id {made.id}{until}) is shown once: keep it now.", err=True)
    if made.created:
        click.echo(f"Created for it: {', '.join(made.created)}.", err=True)


@tokens.command("list")
@click.option("--name", help="Only of this principal.")
@click.option("--all", "all_", is_flag=True, help="Also expired and revoked ones.")
@json_option
@click.pass_context
def list_(ctx: click.Context, name: str | None, all_: bool, as_json: bool) -> None:
    """List the tokens: principal, grants, last use; never the tokens themselves."""
    found, zone = call(ctx, ListTokensRequest(principal=name, all=all_)), zone_of(ctx)
    rows = [
        {
            "id": str(item.id),
            "name": item.principal,
            "grants": "everything (owner)" if item.owner else " ".join(item.grants),
            "namespace": item.home,
            "agent": item.agent,
            "issuer": item.issuer,
            "expires_at": _local(item.expires_at, zone),
            "used_at": _local(item.last_used_at, zone),
            "revoked_at": _local(item.revoked_at, zone),
        }
        for item in found
    ]
    if as_json:
        print_json({"tokens": [{key: value for key, value in row.items() if value is not None} for row in rows]})
    elif rows:
        shown = [key for key in rows[0] if any(row[key] for row in rows)]
        print_table(shown, [[row[key] or "" for key in shown] for row in rows])
    elif name is not None:
        say(f"{name} has no tokens." if all_ else f"{name} has no valid tokens.")
    else:
        say("There are no tokens: every request over HTTP from this machine is accepted.")


@tokens.command()
@click.argument("ids", nargs=-1, metavar="[ID…]")
@click.option("--name", help="All tokens of this principal.")
@json_option
@click.pass_context
def revoke(ctx: click.Context, ids: tuple[str, ...], name: str | None, as_json: bool) -> None:
    """Revoke tokens by ID, or all of a principal, at once and on every server."""
    wanted = tuple(id_of(text, "folklore tokens list") for text in dict.fromkeys(ids))
    revoked = call(ctx, RevokeTokensRequest(ids=wanted, principal=name))
    if as_json:
        print_json({"revoked": [{"id": str(token.id), "name": token.principal} for token in revoked]})
    for token in () if as_json else revoked:
        say(f"revoked {token.id} of {token.principal}")


@click.command()
@namespaces_option
@click.option("--name", "principal", help="Only by this principal.")
@click.option(
    "--action", help="Only this action: store, update, forget, erase, relate, undo, token_create, … or an operation."
)
@click.option("--denied", is_flag=True, help="Only denied accesses.")
@click.option("--since", metavar="PERIOD", help="Only of the last 12h, 7d, 8w, 1y.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@json_option
@click.pass_context
def audit(ctx: click.Context, /, as_json: bool, **options: object) -> None:
    """Show writes and denied accesses with their authors; never a text. Newest first."""
    request = AuditRequest(**options)
    entries, zone = call(ctx, request), zone_of(ctx)
    rows = [
        {
            "at": _local(entry.at, zone),
            "name": entry.principal,
            "agent": entry.agent,
            "action": entry.action,
            "outcome": entry.outcome,
            "namespace": entry.namespace,
            "amount": entry.amount,
            "memories": [str(id_) for id_ in entry.memories],
            "token": None if entry.token is None else str(entry.token),
            "detail": entry.detail,
        }
        for entry in entries
    ]
    if as_json:
        print_json({"audit": [{key: value for key, value in row.items() if value} for row in rows]})
    elif rows:
        shown = [key for key in rows[0] if key not in ("memories", "token") and any(row[key] for row in rows)]
        print_table(shown, [[row[key] or "" for key in shown] for row in rows])
    else:
        say("The audit log holds no such entry." if request != AuditRequest() else "The audit log is empty.")


def _local(moment: datetime | None, zone: tzinfo) -> str | None:
    return None if moment is None else moment.astimezone(zone).isoformat(timespec="seconds")
