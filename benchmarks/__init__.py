"""Benchmarks of Folklore: one module per question, each run by `python -m benchmarks.NAME` (docs/how-to/measure.md)."""

import os

import folklore.lazy  # noqa: F401 - limits the threads of numpy, which benchmarks import, as in a server

# Figures are of the bundled model unless the settings name another: `auto` would depend on what is installed.
os.environ.setdefault("FOLKLORE_EMBEDDING__PROVIDER", "bundled")
