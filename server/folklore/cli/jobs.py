"""`folklore upkeep`: what is done in the background, by hand and to look at."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from folklore.cli.context import with_app
from folklore.cli.options import json_option
from folklore.cli.output import print_json, print_table
from folklore.errors import InvalidInput, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from folklore.app import App, Running
    from folklore.db.stores.jobs import ChoreState
    from folklore.jobs.job import Chore
    from folklore.jobs.runner import Ran


@click.group()
def upkeep() -> None:
    """Chores that keep the memory in order. A server does them by itself; here by hand."""


@upkeep.command()
@click.argument("chores", nargs=-1)
@click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing.")
@json_option
@click.pass_context
def run(ctx: click.Context, chores: tuple[str, ...], dry_run: bool, as_json: bool) -> int:
    """Run CHORES now, due or not; without a name those that a server would do by itself.

    A chore that another process is at is left to it (busy). Ends with 1 if one failed; the others run all the same.
    """

    async def work(app: App, running: Running) -> int:
        from folklore.jobs.all_jobs import named

        if app.settings.read_only and not dry_run:
            raise Refused("This installation is read-only; upkeep would write.", hint="--dry-run only looks.")
        known = named()
        for name in chores:
            if name not in known:
                raise InvalidInput("chore", f"there is no {name!r}.", hint=f"Use {', '.join(known)}.")
        wanted = [known[name] for name in dict.fromkeys(chores)] or app.keeper.scheduled
        runner = app.keeper.runner(running.database, running.library)
        ran = [await (runner.rehearse(chore) if dry_run else runner.run(chore)) for chore in wanted]
        _print_ran(ran, as_json=as_json)
        return 1 if any(one.outcome == "failed" for one in ran) else 0

    return with_app(ctx, work)


@upkeep.command()
@json_option
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    """What each chore did last, how long it took, and when it is due again."""

    async def work(app: App, running: Running) -> None:
        from folklore.db.stores.jobs import Chores
        from folklore.jobs.all_jobs import ALL

        states = await Chores(running.database).all()
        scheduled = {chore.name for chore in app.keeper.scheduled} if app.settings.upkeep.enabled else set()
        rows = [_row(chore, states.get(chore.name), chore.name in scheduled, app) for chore in ALL]
        if as_json:
            print_json({"chores": rows})
        else:
            columns = ["chore", "state", "last_run", "seconds", "done", "next_due", "error"]
            print_table(columns, [[_cell(row.get(column)) for column in columns] for row in rows])

    with_app(ctx, work)


def _row(chore: Chore, state: ChoreState | None, scheduled: bool, app: App) -> dict[str, Any]:
    row: dict[str, Any] = {
        "chore": chore.name,
        "about": chore.about,
        "every_seconds": int(chore.every.total_seconds()),
        "scheduled": scheduled,
        "state": _state(state, scheduled, app.now()),
    }
    if state is not None:
        row |= {
            "holder": state.holder,
            "started_at": _when(state.started_at, app),
            "last_run": _when(state.finished_at, app),
            "outcome": state.outcome,
            "seconds": None if state.seconds is None else round(state.seconds, 3),
            "done": dict(state.done),
            "next_due": _when(state.next_due, app) if scheduled else None,
            "error": state.error,
        }
    return {name: value for name, value in row.items() if value is not None}


def _state(state: ChoreState | None, scheduled: bool, now: datetime) -> str:
    """What a person wants to know first: is somebody at it, how did it end, does it run by itself at all?"""
    if state is not None and state.holder is not None:
        return "running" if state.leased_until is not None and state.leased_until >= now else "abandoned"
    if state is None or state.outcome is None:
        return "waiting" if scheduled else "off"
    return state.outcome if scheduled else f"{state.outcome} (off)"


def _print_ran(ran: Sequence[Ran], *, as_json: bool) -> None:
    rows = [
        {
            "chore": one.chore,
            "outcome": one.outcome,
            "done": dict(one.done),
            "seconds": round(one.seconds, 3),
            **({"error": one.error} if one.error else {}),
        }
        for one in ran
    ]
    if as_json:
        print_json({"chores": rows})
    else:
        columns = ["chore", "outcome", "done", "seconds", "error"]
        print_table(columns, [[_cell(row.get(column)) for column in columns] for row in rows])


def _cell(value: object) -> object:
    if isinstance(value, dict):
        return _counts(value)
    return "" if value is None else value


def _counts(done: Mapping[str, int]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in done.items())


def _when(moment: datetime | None, app: App) -> str | None:
    return None if moment is None else moment.astimezone(app.zone).isoformat(timespec="seconds")
