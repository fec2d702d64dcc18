"""`folklore tokens` and `folklore audit`."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, get_args

import click

from folklore.cli.context import with_desk
from folklore.cli.options import id_of, json_option, namespaces_option
from folklore.cli.output import print_json, print_table, say
from folklore.model import Role

if TYPE_CHECKING:
    from folklore.memory.service import Service


@click.group()
def tokens() -> None:
    """Tokens: who may come over HTTP, and what each opens. From the first one on, nobody comes without."""


@tokens.command()
@click.option("--name", required=True, help="Whose it is; stands as the author of what is stored with it.")
@click.option(
    "--grant",
    "grants",
    multiple=True,
    metavar="NAMESPACE:ROLE",
    help=f"What it opens: {', '.join(get_args(Role))}; repeatable. A namespace that is new is made.",
)
@click.option("--owner", is_flag=True, help="It opens everything, and makes tokens.")
@click.option("--namespace", help="Where it writes when nobody says. Default: the only one it may write to.")
@click.option("--agent", help="What uses it, such as claude-code; stands beside the author.")
@click.option("--expires", metavar="PERIOD", help="12h, 90d, 8w, 1y. Default: never.")
@json_option
@click.pass_context
def create(
    ctx: click.Context,
    name: str,
    grants: tuple[str, ...],
    owner: bool,
    namespace: str | None,
    agent: str | None,
    expires: str | None,
    as_json: bool,
) -> None:
    """Make a token and show it, once: nobody can read it again."""

    async def work(desk: Service) -> None:
        from folklore.memory.auth.tokens import TokenRequest

        made = await desk.create_token(TokenRequest(name, grants, owner, namespace, agent, expires))
        if as_json:
            value = {"id": str(made.id), "name": made.principal, "token": made.secret, "created": list(made.created)}
            print_json(value | ({"expires_at": made.expires_at.isoformat()} if made.expires_at else {}))
            return
        say(made.secret)
        until = f", until {_day(made.expires_at, desk.zone)}" if made.expires_at else ""
        click.echo(f"This token of {made.principal} (id {made.id}{until}) is shown once: keep it now.", err=True)
        if made.created:
            click.echo(f"Made for it: {', '.join(made.created)}.", err=True)

    with_desk(ctx, work)


@tokens.command("list")
@click.option("--name", help="Only this principal's.")
@click.option("--all", "every", is_flag=True, help="Also what was revoked or has expired.")
@json_option
@click.pass_context
def list_(ctx: click.Context, name: str | None, every: bool, as_json: bool) -> None:
    """List the tokens: whose, what they open, when they were used last; never the tokens themselves."""

    async def work(desk: Service) -> None:
        found = await desk.tokens(name, every)
        rows = [
            {
                "id": str(item.id),
                "name": item.principal,
                "opens": "everything (owner)" if item.owner else " ".join(item.grants),
                "namespace": item.home,
                "agent": item.agent,
                "issuer": item.issuer,
                "expires_at": _day(item.expires_at, desk.zone),
                "used_at": _day(item.last_used_at, desk.zone),
                "revoked_at": _day(item.revoked_at, desk.zone),
            }
            for item in found
        ]
        if as_json:
            print_json({"tokens": [{key: value for key, value in row.items() if value is not None} for row in rows]})
        elif rows:
            shown = [key for key in rows[0] if any(row[key] for row in rows)]
            print_table(shown, [[row[key] or "" for key in shown] for row in rows])
        elif name is not None:
            say(f"{name} has none." if every else f"{name} has none in force.")
        else:
            say("There are none: whoever reaches this server over HTTP on this machine is let in.")

    with_desk(ctx, work)


@tokens.command()
@click.argument("ids", nargs=-1, metavar="[ID…]")
@click.option("--name", help="All tokens of this principal.")
@json_option
@click.pass_context
def revoke(ctx: click.Context, ids: tuple[str, ...], name: str | None, as_json: bool) -> None:
    """Revoke tokens by ID, or all of a principal: from this moment on they open nothing, on every server."""
    wanted = tuple(id_of(text, "folklore tokens list") for text in dict.fromkeys(ids))

    async def work(desk: Service) -> None:
        revoked = await desk.revoke_tokens(wanted, name)
        if as_json:
            print_json({"revoked": [{"id": str(id_), "name": whose} for id_, whose in revoked]})
        for id_, whose in () if as_json else revoked:
            say(f"revoked {id_} of {whose}")

    with_desk(ctx, work)


@click.command()
@namespaces_option
@click.option("--name", help="Only by this principal.")
@click.option(
    "--action",
    help="Only this: store, update, forget, erase, relate, undo, token_create, …; of refused ones what was tried.",
)
@click.option("--refused", is_flag=True, help="Only what was refused.")
@click.option("--since", metavar="PERIOD", help="Only of the last 12h, 7d, 8w, 1y.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@json_option
@click.pass_context
def audit(
    ctx: click.Context,
    namespaces: tuple[str, ...],
    name: str | None,
    action: str | None,
    refused: bool,
    since: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Show who wrote what and when, and who was refused; never a text. Newest first."""

    async def work(desk: Service) -> None:
        from folklore.memory.auth.audit import AuditRequest

        lines = await desk.audit(AuditRequest(namespaces, name, refused, action, since, limit))
        rows = [
            {
                "at": _day(line.at, desk.zone),
                "name": line.principal,
                "agent": line.agent,
                "action": line.action,
                "outcome": line.outcome,
                "namespace": line.namespace,
                "amount": line.amount,
                "memories": [str(id_) for id_ in line.memories],
                "token": None if line.token is None else str(line.token),
                "detail": line.detail,
            }
            for line in lines
        ]
        if as_json:
            print_json({"audit": [{key: value for key, value in row.items() if value} for row in rows]})
        elif rows:
            shown = [key for key in rows[0] if key not in ("memories", "token") and any(row[key] for row in rows)]
            print_table(shown, [[row[key] or "" for key in shown] for row in rows])
        else:
            narrowed = namespaces or name or action or refused or since
            say("Nothing of that was written or refused." if narrowed else "Nothing was written or refused.")

    with_desk(ctx, work)


def _day(moment: datetime | None, zone: tzinfo) -> str | None:
    return None if moment is None else moment.astimezone(zone).isoformat(timespec="seconds")
