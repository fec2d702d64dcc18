"""`python -m folklore` is the `folklore` command."""

from folklore.cli.main import main

main()
