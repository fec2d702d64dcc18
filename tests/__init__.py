"""The test suite, in folders like those of the code."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
