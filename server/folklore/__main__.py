"""The `folklore` command; `python -m folklore` is the same."""

import os
import sys

from folklore.session_start import answered


def main() -> None:
    """Run the command that the arguments name."""
    if not answered(sys.argv[1:], os.environ):
        from folklore.cli.main import main as run  # what the start of a session need not wait for

        run()


if __name__ == "__main__":
    main()
