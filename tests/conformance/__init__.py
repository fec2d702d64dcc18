"""Folklore before the official conformance suite and the clients that others wrote: `python -m tests.conformance`."""
