"""`folklore invite` and `folklore join`: a colleague begins to work with a team's server."""

import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import tzinfo
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

import click

from folklore import pip_install
from folklore.callers import Role
from folklore.cli.context import call, settings_of, zone_of
from folklore.cli.operate.install import install
from folklore.cli.operate.server_checks import examine_server
from folklore.cli.options import (
    context_and_json,
    expiry_options,
    one_of,
    period_option,
    repeatable,
)
from folklore.cli.output import print_checks, print_either, print_line, wants_json
from folklore.cli.team.admin import warn_unusable
from folklore.client.authorities import drop_authority, keep_authority
from folklore.client.credentials import delete_token, normalised, read_token, save_token
from folklore.client.http_client import HttpClient, NotCarriedOut
from folklore.config import Settings
from folklore.contract.people import Invitation, InviteRequest, JoinRequest, Membership
from folklore.contract.token_secrets import digest_of, key_of, new_secret
from folklore.errors import Conflict, FolkloreError, InvalidInput, NotFound, Unavailable
from folklore.machine import is_loopback
from folklore.text import names
from folklore.text.dates.distance import absolute_time

_VARIABLE = "FOLKLORE_INVITATION"
_PAUSES = (0.5, 1.0, 2.0)  # seconds before an exchange without an answer is repeated


@click.command()
@click.argument("name")
@repeatable("--repo", "repos", "OWNER/NAME", "A repository, or acme/* for all of acme")
@one_of("--role", get_args(Role), "writer", "There.")
@click.option(
    "--grant",
    "grants",
    multiple=True,
    metavar="NAMESPACE:ROLE",
    help="A further grant, as for `tokens create`.",
)
@expiry_options
@period_option("--within", "3d", "How long the invitation can be used.")
@click.option(
    "--url",
    help="Address of the server for the other machine. Default: --server, or the first of http.allowed_hosts.",
)
@context_and_json
def invite(
    ctx: click.Context,
    /,
    repos: Sequence[str],
    role: str,
    grants: Sequence[str],
    url: str | None,
    **options: Any,
) -> None:
    """Invite NAME: print one line, which that person runs on another machine, once.

    The line has an address and a code, which is in no argument: those are seen by every user of a machine. `folklore
    join` exchanges the code for a token; a code that was used opens
    nothing. `folklore tokens list` shows invitations, and `folklore tokens revoke` withdraws them.
    """
    of_repos = [f"{_namespace_of(repo)}:{role}" for repo in repos]
    full_grants = (*of_repos, *grants)
    if not full_grants:
        raise InvalidInput(
            "repo",
            "is missing.",
            hint="--repo acme/shop, --repo 'acme/*' or --grant payments:writer",
        )
    address = _public_address(settings_of(ctx), url)
    result = call(ctx, InviteRequest(grants=full_grants, **options))
    line = join_line(address, result.code)
    value: dict[str, Any] = {
        "id": str(result.id),
        "name": result.principal,
        "line": line,
        "url": address,
        "code": result.code,
        "valid_until": result.valid_until,
        "created": list(result.created),
    }
    if result.expires_at:
        value["expires_at"] = result.expires_at
    print_either(value, line)
    warn_unusable(result)
    if not wants_json():
        for text in _instructions(result, full_grants, address, zone_of(ctx)):
            click.echo(text, err=True)


def join_line(address: str, code: str) -> str:
    """Return the line that a person runs who is invited."""
    return f"{_VARIABLE}={code} folklore join {address}"


def _instructions(
    invitation: Invitation, grants: Sequence[str], address: str, zone: tzinfo
) -> Iterator[str]:
    until = absolute_time(invitation.valid_until, zone)
    yield f"Send this line to {invitation.principal}. It works once, until {until}, for {', '.join(grants)}."
    yield f"A machine without Folklore needs before it: {pip_install()}"
    if invitation.expires_at:
        yield f"The token ends {absolute_time(invitation.expires_at, zone)}."
    else:
        yield "The token has no end."
    if invitation.created:
        yield f"Created: {', '.join(invitation.created)}."
    yield f"`folklore tokens revoke {invitation.id}` withdraws it."
    if is_loopback(urlsplit(address).hostname or ""):
        yield "This address is reached from this machine only."
    elif address.startswith("http:"):
        yield "This address is not encrypted: everyone on the way can read the token. Use https on other networks."


@click.command()
@click.argument("url")
@click.argument("code", required=False)
@click.option(
    "--ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Certificate (PEM) of your authority.",
)
@click.option(
    "--no-install",
    is_flag=True,
    help="Keep the token only; change no settings of assistants.",
)
@click.pass_context
def join(
    ctx: click.Context,
    url: str,
    code: str | None,
    ca: Path | None,
    no_install: bool,
) -> int:
    """Join a team's server by the line of an invitation: `FOLKLORE_INVITATION=fi_… folklore join URL`.

    Without the variable it asks for the code on the terminal, or reads it from standard input. As the argument CODE,
    other users of this machine see it.

    Exchanges the code for a token, keeps it in the system's keyring or a file of your own, installs Folklore into the
    assistants found here, and checks the connection. Running the same line again repeats what is missing.
    """
    server = normalised(url)
    settings = settings_of(ctx).model_copy(update={"server": server, "token": None})
    code = code or _given_code()
    if ca is not None:
        keep_authority(server, ca, settings.home)
    try:
        caller, token_store = asyncio.run(_exchange(settings, server, code))
    except FolkloreError:
        if ca is not None and read_token(server, home=settings.home) is None:
            drop_authority(server, settings.home)
        raise
    print_line(
        f"Joined {server} as {caller.principal}; the token is kept in {token_store}.",
        fg="green",
    )
    root = ctx.find_root().obj
    root["flags"] |= {"server": server, "token": None}
    root["settings"] = None
    code_of_install = 0 if no_install else _install(ctx, server)
    examination = asyncio.run(examine_server(settings, zone_of(ctx)))
    print_checks(examination.checks)
    if os.environ.get("FOLKLORE_TOKEN"):
        print_line(
            "FOLKLORE_TOKEN is set here: commands use that token and not the kept one.",
            fg="yellow",
        )
    print_line(
        "Next: start your assistant in a repository. For commands in a terminal:"
    )
    print_line(f"  export FOLKLORE_SERVER={server}")
    return examination.exit_code or code_of_install


def _given_code() -> str:
    """Return the code of the variable, else of the terminal or standard input. Raises InvalidInput without one."""
    code = os.environ.pop(_VARIABLE, "").strip()
    if not code and sys.stdin is not None:
        if sys.stdin.isatty():
            code = click.prompt("Code of the invitation (fi_…)", err=True).strip()
        else:
            code = sys.stdin.readline().strip()
    if not code:
        raise InvalidInput(
            "code",
            "is missing.",
            hint=f"Set {_VARIABLE}=fi_…, or write it to standard input; a terminal is asked.",
        )
    return code


async def _exchange(
    settings: Settings, server: str, code: str
) -> tuple[Membership, str]:
    """Exchange a code for a token; return the caller, and in words where the token is kept.

    The token is made and kept here before the exchange, so that none is lost. A kept one is tried first: it is that of
    an exchange whose answer was lost, or that was made before.
    """
    home = settings.home
    former = read_token(server, home=home)
    async with HttpClient(settings, anonymous=True) as client:
        if former is not None:
            with suppress(Conflict):  # the kept token is that of another invitation
                membership = await _redeem(client, code, former)
                return membership, save_token(server, former, home=home)
        secret = new_secret()
        token_store = save_token(server, secret, home=home)
        try:
            return await _redeem(client, code, secret), token_store
        except FolkloreError as error:
            is_refused = not isinstance(error, Unavailable)
            may_be_used = not is_refused and not isinstance(error, NotCarriedOut)
            if former is not None:
                save_token(server, former, home=home)
            elif not may_be_used:
                delete_token(server, home=home)
            if may_be_used:
                hint = "The invitation may have been used. Run the same line again."
                raise Unavailable(error.message, hint=hint) from error
            raise


async def _redeem(client: HttpClient, code: str, secret: str) -> Membership:
    """Send the code with the digest of a secret; repeat it while the server does not answer."""
    request = JoinRequest(code=code, digest=digest_of(key_of(secret)).hex())
    for pause in _PAUSES:
        try:
            return await client.call(request)
        except NotCarriedOut:
            raise
        except Unavailable:
            await asyncio.sleep(pause)
    return await client.call(request)


def _install(ctx: click.Context, server: str) -> int:
    """Install into the assistants found; return the exit code."""
    try:
        return int(ctx.invoke(install) or 0)
    except NotFound as error:
        print_line(error.message)
        print_line(
            f"  Next: `folklore install --server {server} NAME`, once you have one."
        )
    except FolkloreError as error:
        print_line(f"Nothing was installed: {error}", fg="red")
        print_line(
            f"  Next: `folklore install --server {server}`, when that is repaired."
        )
        return error.exit_code
    return 0


def _namespace_of(repo: str) -> str:
    """Return the namespace or pattern of a repository: of acme/shop at GitHub, of its URL, or of repo:acme/shop."""
    text = repo.strip()
    if text.lower().startswith("repo:"):
        return text
    if "://" in text or "@" in text:
        namespace = names.of_project(text)
        if namespace is None:
            raise InvalidInput(
                "repo", f"{text!r} names no repository.", hint="For example: acme/shop"
            )
        return namespace
    return f"repo:{text.removesuffix('.git')}"


def _public_address(settings: Settings, url: str | None) -> str:
    """Return the address of the server for other machines. Raises InvalidInput if it is not known."""
    address = url or settings.server
    if address is None and settings.http.allowed_hosts:
        first = settings.http.allowed_hosts[0]
        address = first if "://" in first else f"https://{first}"
    if address is None and sys.stdin.isatty():
        address = click.prompt(
            "Address of this server for other machines (https://…)", err=True
        )
    if address is None:
        hint = (
            "Pass --url https://folklore.example.com, or name it in http.allowed_hosts."
        )
        raise InvalidInput("url", "the address of this server is not known.", hint=hint)
    return normalised(address)
