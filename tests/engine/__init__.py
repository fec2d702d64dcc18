"""Tests of the embedded Postgres."""

from pathlib import Path

import pytest

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/exe").exists(), reason="looks at processes through /proc"
)
