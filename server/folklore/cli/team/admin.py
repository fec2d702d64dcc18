"""Commands that administer a store: `folklore namespaces`, `tags`, `stats`, `tokens` and `audit`."""

from collections.abc import Sequence
from typing import Any, get_args

import click

from folklore.callers import Role
from folklore.cli.context import call, zone_of
from folklore.cli.options import (
    Names,
    ask_option,
    context_and_json,
    expiry_options,
    named,
    namespaces_option,
)
from folklore.cli.output import print_either, print_line, print_rows, row_of, wants_json
from folklore.cli.screen import confirm
from folklore.contract.health import StatsRequest
from folklore.contract.ids import id_of
from folklore.contract.memories import RenameTagRequest
from folklore.contract.namespaces import (
    CreateNamespaceRequest,
    DeleteNamespaceRequest,
    DescribeNamespaceRequest,
    ErasedNamespaces,
    EraseNamespaceRequest,
    ListNamespacesRequest,
    MergedNamespaces,
    MergeNamespacesRequest,
    RenameNamespaceRequest,
    RestoreNamespaceRequest,
    ShareNamespaceRequest,
)
from folklore.contract.people import (
    AuditRequest,
    CreatedToken,
    CreateTokenRequest,
    Invitation,
    ListTokensRequest,
    RevokeTokensRequest,
)
from folklore.contract.requests import without_nulls
from folklore.text.amounts import amount
from folklore.text.dates.distance import absolute_time

# Names in the output, with the attributes that they show if these have others.
_LAST = (
    "invited_until expires_at used_at=last_used_at used_from=last_address revoked_at"
)
_NAMESPACE = "name memories language shared created_at description"
_AUDITED = ("at", "name", "agent", "action", "outcome", "namespace", "amount", "detail")
_ENTRY = "at name=principal agent action outcome namespace amount memories token detail"
_COUNTS = "memories forgotten superseded without_vector sessions characters injected injected_tokens injected_used"

namespaces = click.Group(
    "namespaces", help="Manage namespaces, the shared sets of memories."
)


@namespaces.command("list")
@click.option(
    "--deleted", is_flag=True, help="Deleted namespaces that can still be restored."
)
@context_and_json
def list_namespaces(ctx: click.Context, deleted: bool) -> None:
    """List the namespaces; counts stop at 50,000 (`folklore stats` counts exactly)."""
    namespaces = call(ctx, ListNamespacesRequest(deleted=deleted))
    zone = zone_of(ctx)
    columns = f"{_NAMESPACE} deleted_at deleted_by" if deleted else _NAMESPACE
    rows = []
    for namespace in namespaces:
        memories = namespace.memories or 0
        rows.append(row_of(namespace, columns, zone) | {"memories": memories})
    none = "No namespace was deleted." if deleted else "Nothing has been stored yet."
    _print_rows("namespaces", rows, none, columns.split())


@namespaces.command("create")
@click.argument("name")
@click.option(
    "--language",
    help="The language of texts whose own is neither stated nor clear. Default: english.",
)
@click.option("--description", help="What it is for.")
@click.pass_context
def create_namespace(
    ctx: click.Context, name: str, language: str | None, description: str | None
) -> None:
    """Create an empty namespace; storing into a new name creates one too."""
    request = CreateNamespaceRequest(
        name=name, language=language, description=description
    )
    print_line(f"created {call(ctx, request)}")


@namespaces.command()
@click.argument("name")
@click.argument("to")
@click.pass_context
def rename(ctx: click.Context, name: str, to: str) -> None:
    """Rename the namespace NAME to TO; its memories stay."""
    print_line(f"renamed to {call(ctx, RenameNamespaceRequest(name=name, to=to))}")


@namespaces.command()
@click.argument("name")
@click.argument("description", required=False)
@click.pass_context
def describe(ctx: click.Context, name: str, description: str | None) -> None:
    """Set the description of a namespace; without DESCRIPTION, remove it."""
    call(ctx, DescribeNamespaceRequest(name=name, description=description))
    print_line(f"described {name}")


@namespaces.command()
@click.argument("name")
@click.option("--off", is_flag=True, help="No longer.")
@click.pass_context
def share(ctx: click.Context, name: str, off: bool) -> None:
    """Search the namespace NAME in every project too, as the project's own (such as rules of the whole team)."""
    call(ctx, ShareNamespaceRequest(name=name, off=off))
    print_line(f"{name} is {'no longer ' if off else ''}searched in every project")


@namespaces.command()
@click.argument("name")
@click.option(
    "--erase",
    is_flag=True,
    help="Permanently, with all its memories; it cannot be undone.",
)
@ask_option
@click.pass_context
def delete(ctx: click.Context, name: str, erase: bool, ask: bool) -> None:
    """Delete a namespace with all its memories: hidden at once, and `restore` brings it back for a while.

    --erase takes the namespace in use, or else the deleted ones of this name; without a terminal it needs --yes.
    """
    if erase:
        _erase(ctx, name, ask=ask)
        return
    if ask:
        confirm(f"{name} and all its memories will be deleted. Continue?")
    deleted = call(ctx, DeleteNamespaceRequest(name=name))
    days = deleted.restorable_for.days
    print_line(
        f"deleted {deleted.name}; for {days} days `folklore namespaces restore {deleted.name}` restores it"
    )


def _erase(ctx: click.Context, name: str, *, ask: bool) -> None:
    only = None  # another namespace may have the name when the question is answered
    if ask:
        preview = call(ctx, EraseNamespaceRequest(name=name, dry_run=True))
        confirm(f"Erase {_summary(preview)} permanently?")
        only = preview.ids
    erased = call(ctx, EraseNamespaceRequest(name=name, only=only))
    print_line(f"erased {_summary(erased)}")
    if erased.remaining:
        print_line(
            f"{erased.remaining:,} of this name were deleted earlier: `folklore namespaces list --deleted`"
        )


@namespaces.command()
@click.argument("name")
@click.option(
    "--into",
    required=True,
    metavar="NAME",
    help="The namespace that gets the memories.",
)
@click.option("--undo", is_flag=True, help="Restore NAME, and move its memories back.")
@click.option("--dry-run", is_flag=True, help="Only show what would be moved.")
@ask_option
@click.pass_context
def merge(
    ctx: click.Context, name: str, into: str, undo: bool, dry_run: bool, ask: bool
) -> None:
    """Move all memories of NAME into another namespace, with histories, relations and usage, and delete NAME."""
    request = MergeNamespacesRequest(name=name, into=into, undo=undo, dry_run=dry_run)
    if ask and not dry_run and not undo:
        preview = call(ctx, request.model_copy(update={"dry_run": True}))
        confirm(
            f"Move {_moved(preview)} into {preview.into}, after which {preview.name} is deleted?"
        )
    done = call(ctx, request)
    verb = "would move" if dry_run else "moved"
    print_line(f"{verb} {_moved(done)} from {done.name} into {done.into}")


def _moved(merged: MergedNamespaces) -> str:
    notes = []
    if merged.duplicates:
        notes.append(f"{merged.duplicates:,} superseded by the same text")
    if merged.known:
        notes.append(f"{merged.known:,} more are there already")
    memories = amount(merged.memories, "memory")
    if not notes:
        return memories
    return f"{memories} ({', '.join(notes)})"


@namespaces.command()
@click.argument("name")
@click.pass_context
def restore(ctx: click.Context, name: str) -> None:
    """Restore the namespace of this name that was deleted last."""
    print_line(f"restored {call(ctx, RestoreNamespaceRequest(name=name))}")


@click.command()
@namespaces_option
@context_and_json
def stats(ctx: click.Context, namespaces: Names) -> None:
    """Count exactly what is stored, and what hooks injected into sessions; reads every memory of the namespaces."""
    result = call(ctx, StatsRequest(namespaces=namespaces))
    zone = zone_of(ctx)
    counts = _COUNTS.split()
    if result.model is None:  # then no embedding is pending
        counts.remove("without_vector")
    columns = ["name", *counts, "oldest", "newest"]
    rows = [row_of(item, " ".join(columns), zone) for item in result.namespaces]
    total = {count: sum(row[count] for row in rows) for count in counts}
    value = without_nulls(
        {
            "namespaces": [without_nulls(row) for row in rows],
            "total": total,
            "model": result.model,
            "engine": result.engine,
        }
    )
    if len(rows) > 1:
        rows.append({"name": "all", **total})
    print_either(value, lambda: print_rows(rows, columns))


def _summary(erased: ErasedNamespaces) -> str:
    name = erased.name
    if len(erased.ids) > 1:
        name += f" ({len(erased.ids):,} deleted namespaces)"
    return f"{name} with {amount(erased.memories, 'memory')}"


tags = click.Group("tags", help="Manage the tags of a namespace.")


@tags.command("rename")
@click.argument("tag")
@click.argument("to")
@click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    callback=named,
    help="Default: the project's namespace.",
)
@click.option("--undo", is_flag=True, help="Take back the last renaming of TAG to TO.")
@click.option("--dry-run", is_flag=True, help="Only show what would be renamed.")
@context_and_json
def rename_tag(ctx: click.Context, /, **options: Any) -> None:
    """Rename TAG to TO, with the tags below it, on all memories of a namespace; TO may be in use."""
    done = call(ctx, RenameTagRequest(**options))
    value = {
        "namespace": done.namespace,
        "tags": dict(done.tags),
        "memories": done.memories,
    }
    renamed = ", ".join(f"{old} → {new}" for old, new in done.tags.items())
    outcome = "would be renamed" if options["dry_run"] else "renamed"
    text = f"{renamed}: {outcome} on {amount(done.memories, 'memory')}"
    if done.kept:
        value |= {"kept": done.kept}
        text += f"\n{done.kept:,} were changed since and kept; `folklore undo ID` goes back by single changes"
    print_either(value, text)


tokens = click.Group(
    "tokens",
    help="Manage the tokens of people and agents. As soon as one exists, every request over HTTP needs one.",
)


@tokens.command("create")
@click.option(
    "--name",
    required=True,
    help="The principal: the author of what is stored with the token.",
)
@click.option(
    "--grant",
    "grants",
    multiple=True,
    metavar="NAMESPACE:ROLE",
    help=f"A grant; roles are {', '.join(get_args(Role))}; repeatable. A new namespace is created. "
    "repo:acme/*:writer grants all that begin with repo:acme/, later ones too.",
)
@click.option("--owner", is_flag=True, help="Grants everything, and may create tokens.")
@click.option(
    "--namespace",
    help="The default for writing. Default: the only one that it may write to.",
)
@click.option(
    "--agent",
    help="The program that uses it, such as claude-code; recorded with the author.",
)
@expiry_options
@context_and_json
def create_token(ctx: click.Context, /, **options: object) -> None:
    """Create a token and show it, once: only its digest is stored."""
    token = call(ctx, CreateTokenRequest(**options))
    value = {
        "id": str(token.id),
        "name": token.principal,
        "token": token.secret,
        "created": list(token.created),
    }
    if token.expires_at:
        value["expires_at"] = token.expires_at.isoformat()
    print_either(value, token.secret)
    warn_unusable(token)
    if not wants_json():
        until = "without an end"
        if token.expires_at:
            until = f"until {absolute_time(token.expires_at, zone_of(ctx))}"
        click.echo(
            f"This token of {token.principal} (id {token.id}, {until}) is shown once: keep it now.",
            err=True,
        )
        if token.created:
            click.echo(f"Created for it: {', '.join(token.created)}.", err=True)


def warn_unusable(made: CreatedToken | Invitation) -> None:
    """Warn about a token that requests cannot use yet."""
    if not made.usable:
        click.echo(
            "Tokens cannot be used until the database's administrator ran `folklore db role | psql …`.",
            err=True,
        )


@tokens.command("list")
@click.option("--name", callback=named, help="Only of this principal.")
@click.option("--all", "all_", is_flag=True, help="Also expired and revoked ones.")
@context_and_json
def list_tokens(ctx: click.Context, name: str | None, all_: bool) -> None:
    """List the tokens and invitations: principal, grants, last use; never the tokens themselves."""
    tokens = call(ctx, ListTokensRequest(principal=name, all=all_))
    zone = zone_of(ctx)
    rows = []
    for token in tokens:
        row = row_of(token, "id name=principal", zone)
        row["grants"] = "everything (owner)" if token.owner else " ".join(token.grants)
        row |= row_of(token, f"namespace=home agent issuer {_LAST}", zone)
        rows.append(row)
    none = (
        "There are no tokens: over HTTP a server admits the user who started it alone."
    )
    if name is not None:
        none = f"{name} has no tokens." if all_ else f"{name} has no valid tokens."
    _print_rows("tokens", rows, none)


@tokens.command()
@click.argument("ids", nargs=-1, metavar="[ID…]")
@click.option("--name", callback=named, help="All tokens of this principal.")
@context_and_json
def revoke(ctx: click.Context, ids: tuple[str, ...], name: str | None) -> None:
    """Revoke tokens by ID, or all of a principal, at once and on every server."""
    hint = "`folklore tokens list` shows ids."
    token_ids = tuple(id_of(text, "ID", hint) for text in dict.fromkeys(ids))
    revoked = call(ctx, RevokeTokensRequest(ids=token_ids, principal=name))
    rows = [{"id": str(token.id), "name": token.principal} for token in revoked]
    lines = [f"revoked {token.id} of {token.principal}" for token in revoked]
    print_either({"revoked": rows}, "\n".join(lines))


@click.command()
@namespaces_option
@click.option("--name", "principal", callback=named, help="Only by this principal.")
@click.option(
    "--action",
    help="Only this action: store, update, forget, erase, relate, undo, token_create, … or an operation.",
)
@click.option("--denied", is_flag=True, help="Only denied accesses.")
@click.option("--since", metavar="PERIOD", help="Only of the last 12h, 7d, 8w, 1y.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@context_and_json
def audit(ctx: click.Context, /, **options: object) -> None:
    """Show writes and denied accesses with their authors; never a text. Newest first."""
    request = AuditRequest(**options)
    entries = call(ctx, request)
    zone = zone_of(ctx)
    rows = []
    shown = set[str]()
    for entry in entries:
        values = row_of(entry, _ENTRY, zone).items()
        row = {name: value for name, value in values if value}
        shown |= row.keys()
        rows.append(row)
    none = "The audit log is empty."
    if request != AuditRequest():
        none = "The audit log holds no such entry."
    columns = [name for name in _AUDITED if name in shown]
    _print_rows("audit", rows, none, columns)


def _print_rows(
    name: str, rows: Sequence[dict[str, Any]], none: str, columns: Sequence[str] = ()
) -> None:
    """Print rows as JSON under a name, without what is not set, or as a table; without rows a sentence."""
    value = {name: [without_nulls(row) for row in rows]}
    print_either(value, (lambda: print_rows(rows, columns)) if rows else none)
