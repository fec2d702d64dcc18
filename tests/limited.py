"""Folklore with limits that a test can reach, as a process of its own.

    TEST_LIMITS='{"calls": 2}' python -m tests.limited serve --http      (any arguments of `folklore`)

It is the product's own command line; only the constants of server/limits.py are others. With one worker only.
"""

import json
import os

from folklore.cli.main import main
from folklore.server.application import serve
from folklore.server.limits import Limits

if __name__ == "__main__":
    serve.LIMITS = Limits(**json.loads(os.environ["TEST_LIMITS"]))
    main()
