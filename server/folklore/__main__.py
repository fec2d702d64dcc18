"""The `folklore` command; `python -m folklore` is the same."""

import os
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from folklore.client.forked import exit_code
from folklore.client.session_start import answered

if TYPE_CHECKING:
    from folklore.client.remote import Remote


def main() -> None:
    """Run the command that the arguments name."""
    arguments = sys.argv[1:]
    if answered(arguments, os.environ):
        return
    if arguments == ["hook", "cursor"] and _is_answered(arguments):
        return
    if arguments[-1:] == ["serve"] and _is_served(arguments):
        return
    code = exit_code(arguments, os.environ)
    if code is None:
        from folklore.cli.main import main as run

        run()
    sys.exit(code)


def _is_answered(arguments: list[str]) -> bool:
    from folklore.client.cursor_hook import answered as answered_cursor

    return answered_cursor(arguments, os.environ)


def _is_served(arguments: list[str]) -> bool:
    from folklore.client.session import served
    from folklore.log import configure_on_use

    form = os.environ.get("FOLKLORE_LOG_FORMAT")
    configure_on_use("warning", "json" if form == "json" else "console")
    return served(arguments, os.environ, _package)


async def _package(stack: AsyncExitStack, options: Mapping[str, str]) -> "Remote":
    from folklore.cli.operate.serve import open_package

    return await open_package(stack, options)


if __name__ == "__main__":
    main()
