"""Entry point of the bundle: `folklore serve` with what its user entered, the memory of this machine or a team's."""

import os
import sys

from folklore.cli.main import main

for name in ("FOLKLORE_SERVER", "FOLKLORE_TOKEN", "FOLKLORE_NAMESPACE"):
    # A client hands over an empty field as an empty text, or as the placeholder itself.
    if os.environ.get(name, "").startswith("${") or not os.environ.get(name):
        os.environ.pop(name, None)

sys.argv = ["folklore", "serve"]
main()
