"""The schema of a database as one text, the same for the same schema."""

import re

from folklore.engine.binaries import find_binaries

# Settings of the session, and the random key of `\restrict`.
_NOISE = re.compile(r"^(SET |\\|SELECT pg_catalog\.set_config|--).*\n", re.MULTILINE)


def schema_text(dsn: str) -> str:
    """Return the commands that pg_dump prints for the schema of a database."""
    dumped = find_binaries().run(
        "pg_dump",
        "--schema-only",
        "--no-owner",
        "--no-privileges",
        "--no-comments",
        "--no-sync",
        dsn,
        timeout=60,
    )
    if dumped.code != 0:
        raise RuntimeError(dumped.output)
    return _NOISE.sub("", dumped.output)
