"""Backups of a whole database: written by pg_dump, verified in a copy, restored into a new database."""

from folklore.backup.archive import (
    Archive as Archive,
    Manifest as Manifest,
    archives as archives,
    received as received,
)
from folklore.backup.operations import (
    Store as Store,
    back_up as back_up,
    latest_verified as latest_verified,
    pipe as pipe,
    prune as prune,
    restore as restore,
    verify as verify,
)
from folklore.backup.upgrade import upgrade_engine as upgrade_engine
