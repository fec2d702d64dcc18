"""Benchmarks of Folklore: one module per question, each run by `python -m benchmarks.NAME` (docs/how-to/measure.md)."""
