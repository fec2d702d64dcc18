"""The directory of the homes of a module's engines."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.test_engine import processes, temporary_room
from tests.waiting import eventually


@pytest.fixture(scope="module")
def room() -> Iterator[Path]:
    """Give the directory of all homes; at the end, prove that no process of any test is left."""
    with temporary_room() as room:
        yield room
        eventually(lambda: not processes(str(room)))
