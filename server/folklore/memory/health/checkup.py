"""Checks of a server from within: the caller's token and grants, the memory; for the owner the jobs and the backups."""

from datetime import datetime, timedelta

from folklore.checks import Checks, Doubt
from folklore.contract.health import (
    BackupInfo,
    Check,
    ChecksRequest,
    Status,
    StatusRequest,
)
from folklore.contract.jobs import JobsInfo, JobsRequest
from folklore.contract.people import CallerInfo, CallerRequest, ListTokensRequest
from folklore.errors import FolkloreError
from folklore.memory.auth.caller import describe_caller
from folklore.memory.auth.tokens import list_tokens
from folklore.memory.context import RequestContext
from folklore.memory.health.status import read_jobs, read_status
from folklore.text.amounts import amount
from folklore.text.dates.distance import absolute_time

_SOON = timedelta(days=7)  # a token that ends before then is reported
_GRANTS = 10  # grants
_OLD_BACKUP = timedelta(days=3)  # while one is made each day


async def read_checks(
    context: RequestContext, _request: ChecksRequest
) -> tuple[Check, ...]:
    """Check what the caller has, and for the owner what runs."""
    checks = Checks()
    caller = await describe_caller(context, CallerRequest())
    status = await read_status(context, StatusRequest())
    await checks.check("token", lambda: _token(context, caller))
    await checks.check("grants", lambda: _grants(caller))
    await checks.check("memory", lambda: _memory(status))
    await checks.check("embeddings", lambda: _embeddings(status))
    if caller.owner:
        jobs = await read_jobs(context, JobsRequest())
        await checks.check("tokens", lambda: _tokens(context))
        await checks.check("jobs", lambda: _jobs(jobs))
        if "backup" in jobs.scheduled:
            backups = await context.backups()
            await checks.check("backup", lambda: _backup(context, backups))
    return tuple(checks.checks)


async def _token(context: RequestContext, caller: CallerInfo) -> str:
    agent = f" with {caller.agent}" if caller.agent else ""
    if caller.token is None:
        return f"none, and none is needed: you are {caller.principal}"
    if caller.expires_at is None:
        return f"{caller.principal}{agent}, without an end"
    text = f"{caller.principal}{agent}, until {absolute_time(caller.expires_at, context.zone)}"
    if _ends_soon(caller.expires_at, caller.at):
        raise Doubt(
            f"{text}.", hint="Ask for a new invitation (`folklore invite`) before that."
        )
    return text


async def _tokens(context: RequestContext) -> str:
    tokens = await list_tokens(context, ListTokensRequest())
    soon = [
        token
        for token in tokens
        if token.issuer is None and _ends_soon(token.expires_at, context.now)
    ]
    if soon:
        principals = ", ".join(
            dict.fromkeys(token.principal for token in soon[:_GRANTS])
        )
        hint = "Invite these people again, or create new tokens for their programs."
        raise Doubt(
            f"{len(soon):,} of {len(tokens):,} end within {_SOON.days} days: those of {principals}.",
            hint=hint,
        )
    return f"{len(tokens):,} valid" if tokens else "none"


def _ends_soon(expires_at: datetime | None, now: datetime) -> bool:
    return expires_at is not None and expires_at - now < _SOON


async def _grants(caller: CallerInfo) -> str:
    reading = "" if caller.may_write else "; the server is read-only"
    if caller.owner:
        return f"everything (owner){reading}"
    if not caller.grants:
        raise FolkloreError(
            "The token opens no namespace.",
            hint="Ask the owner of the server for a grant.",
        )
    text = ", ".join(caller.grants[:_GRANTS])
    more = len(caller.grants) - _GRANTS
    return f"{text}{f' and {more} more' if more > 0 else ''}{reading}"


async def _memory(status: Status) -> str:
    count = sum(item.memories for item in status.namespaces)
    text = f"{amount(count, 'memory')} in {amount(len(status.namespaces), 'namespace')}"
    if status.degraded:
        raise Doubt(
            f"{text}; recall works without its dense branch: {status.degraded[0].reason}"
        )
    return text


async def _embeddings(status: Status) -> str:
    if status.model is None:
        return "none: memories are found by keyword only"
    if not (pending := status.pending_embeddings):
        return f"complete in {status.model.provider}/{status.model.name}"
    hint = "The job `embeddings` makes them within an hour; `folklore embeddings backfill` makes them now."
    raise Doubt(
        f"{pending:,} memories are found by keyword only: their embeddings are pending.",
        hint=hint,
    )


async def _jobs(jobs: JobsInfo) -> str:
    wrong = [
        name for name in jobs.scheduled if jobs.state(name) in ("failed", "abandoned")
    ]
    if ahead := [name for name in jobs.scheduled if jobs.is_ahead(name)]:
        hint = "They run again within minutes. Compare the clocks of the servers of this database."
        raise Doubt(
            f"The last run of {', '.join(ahead)} lies in the future: a clock was ahead.",
            hint=hint,
        )
    if not wrong:
        if jobs.scheduled:
            return f"{', '.join(jobs.scheduled)}"
        return "none runs at this server"
    row = jobs.row(wrong[0])
    if row is not None and row.error:
        reason = row.error
    else:
        reason = "its process ended before it"
    hint = f"It is tried again by itself. `folklore jobs run {wrong[0]}` runs it now."
    raise Doubt(f"The last run of {', '.join(wrong)} failed: {reason}", hint=hint)


async def _backup(context: RequestContext, backups: tuple[BackupInfo, ...]) -> str:
    verified = [backup for backup in backups if backup.verified_at is not None]
    if not verified:
        return "none yet; a server that is used makes one a day"
    age = context.now - verified[0].created_at
    text = f"verified, {age.days} days old: {verified[0].name}"
    if age > _OLD_BACKUP:
        raise Doubt(
            f"{text}.",
            hint="Look at the job `backup`, or run `folklore backup` where the server runs.",
        )
    return text
