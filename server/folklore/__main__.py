"""The `folklore` command; `python -m folklore` is the same."""

import os
import sys

from folklore.local.forked import exit_code
from folklore.local.session_start import answered


def main() -> None:
    """Run the command that the arguments name."""
    if answered(sys.argv[1:], os.environ):
        return
    code = exit_code(sys.argv[1:], os.environ)
    if code is None:
        from folklore.cli.main import main as run  # what the start of a session need not wait for

        run()
    sys.exit(code)


if __name__ == "__main__":
    main()
