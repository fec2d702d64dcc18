"""`folklore stale`: memories of this project whose files changed or vanished since."""

from collections.abc import Sequence
from uuid import UUID

import click

from folklore.cli.context import settings_of, with_operations, zone_of
from folklore.cli.ids import keep_list, with_ids
from folklore.cli.memory_output import print_stale
from folklore.cli.options import context_and_json, repeatable
from folklore.cli.output import one_line, print_either, print_line
from folklore.client.code.calls import confirmation, stale_memories
from folklore.client.code.working_copy import WorkingCopy
from folklore.client.surroundings import namespace_of, working_copy
from folklore.contract.ids import short
from folklore.contract.memories import record_json, stale_json
from folklore.contract.recall import recalled_json
from folklore.contract.requests import Operations
from folklore.errors import InvalidInput, NotFound
from folklore.model import Memory, Recalled


@click.command()
@repeatable("--confirm", "confirmed", "ID", "Declare a memory true of the present code")
@context_and_json
def stale(ctx: click.Context, confirmed: tuple[str, ...]) -> None:
    """List the memories of this project whose files changed or vanished since they were stored or confirmed.

    Run it in a working copy of the project. Committed changes count, from the content that a memory is about.
    """
    copy = working_copy(namespace_of(settings_of(ctx)))
    if not copy.found:
        hint = "Run it in a working copy of the project; `folklore list` lists its memories anywhere."
        raise InvalidInput(
            "directory", "is in no git repository, or git is not installed.", hint=hint
        )
    if confirmed:
        _confirm(ctx, copy, confirmed)
        return
    results = with_operations(ctx, lambda operations: stale_items(operations, copy))
    rows = []
    for result in results:
        row = recalled_json(result, "concise")
        row["files"] = [stale_json([file]) for file in result.stale]
        rows.append(row)
    value = {"namespace": copy.namespace, "stale": rows}
    print_either(value, lambda: _print(ctx, results, copy.namespace))


def _print(ctx: click.Context, results: Sequence[Recalled], namespace: str) -> None:
    zone = zone_of(ctx)
    for number, result in enumerate(results, start=1):
        print_line(one_line(number, result.memory, zone))
        print_stale(result.stale, zone)
    keep_list(ctx, [result.memory.id for result in results])
    if not results:
        print_line(f"{namespace}: no memory is stale.")
        return
    print_line()
    print_line(
        "Still true: folklore stale --confirm ID; no longer: folklore edit ID, or folklore forget ID.",
        dim=True,
    )


async def stale_items(
    operations: Operations, copy: WorkingCopy
) -> tuple[Recalled, ...]:
    """Return the stale memories of the project of a working copy."""
    try:
        return await stale_memories(copy, operations.call)
    except NotFound:  # nothing was stored in this project
        return ()


def _confirm(ctx: click.Context, copy: WorkingCopy, texts: Sequence[str]) -> None:
    async def work(operations: Operations, ids: tuple[UUID, ...]) -> list[Memory]:
        requests = [
            await confirmation(copy, id_, operations.call) for id_ in dict.fromkeys(ids)
        ]
        return [await operations.call(request) for request in requests]

    memories = with_ids(ctx, texts, work)
    lines = []
    for memory in memories:
        line = f"confirmed {short(memory.id)}, revision {memory.revision}"
        if memory.commit:
            line += f", of commit {memory.commit[:12]}"
        lines.append(line)
    value = {"confirmed": [record_json(memory) for memory in memories]}
    print_either(value, "\n".join(lines))
