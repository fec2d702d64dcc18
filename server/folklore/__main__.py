"""The `folklore` command; `python -m folklore` is the same."""

import os
import sys

from folklore.client.forked import exit_code
from folklore.client.session_start import answered
from folklore.lazy import Lazy

cli = Lazy("folklore.cli.main")  # the start of a session need not wait for it


def main() -> None:
    """Run the command that the arguments name."""
    if answered(sys.argv[1:], os.environ):
        return
    code = exit_code(sys.argv[1:], os.environ)
    if code is None:
        cli.main()
    sys.exit(code)


if __name__ == "__main__":
    main()
