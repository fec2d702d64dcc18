"""`folklore export`."""

import os
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

import click

from folklore.cli.context import with_operations
from folklore.cli.options import context_and_json, namespaces_option
from folklore.cli.output import print_either, wants_json
from folklore.contract.lines import is_memory
from folklore.contract.transfer import ExportRequest
from folklore.errors import InvalidInput
from folklore.phases import phase
from folklore.text.amounts import amount


@click.command()
@click.argument("file", default="-", type=click.Path(dir_okay=False, allow_dash=True))
@namespaces_option
@click.option(
    "--embeddings",
    is_flag=True,
    help="Also write vectors, so that an import need not compute them.",
)
@context_and_json
def export(ctx: click.Context, /, file: str, **options: object) -> None:
    """Write every memory to FILE (- or nothing: stdout) as JSON Lines, forgotten and superseded ones too.

    With --json, the number of memories is printed as JSON; that needs a FILE.
    """
    if wants_json() and file == "-":
        raise click.UsageError(
            "--json needs a FILE: stdout has the export itself, which is JSON Lines anyway."
        )
    request = ExportRequest(**options)
    count = with_operations(
        ctx, lambda operations: _write(operations.export(request), file)
    )
    if file != "-":
        value = {"file": file, "exported": count}
        print_either(value, f"{amount(count, 'memory')} exported to {file}")


async def _write(lines: AsyncGenerator[str, None], file: str) -> int:
    """Write the lines of an export to a file; return the number of memories."""
    memories = 0
    async with aclosing(lines):
        with _target(file) as out, phase("Exporting") as advance:
            async for line in lines:
                out.write(line.encode() + b"\n")
                if is_memory(line):
                    memories += 1
                    advance(memories, 0)
    return memories


@contextmanager
def _target(file: str) -> Iterator[IO[bytes]]:
    """Open the file to write; it gets its name only when it is whole, so that a failure keeps an older one."""
    if file == "-":
        yield sys.stdout.buffer
        return
    path = Path(file)
    # a device or a named pipe is written to, not replaced
    if path.exists() and not path.is_file():
        with path.open("wb") as out:
            yield out
        return
    try:
        # In the folder of the file that a symbolic link names: only there is renaming atomic.
        whole = path.resolve()
        part = NamedTemporaryFile(  # noqa: SIM115
            dir=whole.parent, prefix=f".{whole.name}.", suffix=".part", delete=False
        )
    except OSError as error:
        raise InvalidInput(
            "FILE", f"{file} cannot be written ({error.strerror})."
        ) from error
    try:
        with part:
            yield part
        os.replace(part.name, whole)  # noqa: PTH105
    finally:
        Path(part.name).unlink(missing_ok=True)
