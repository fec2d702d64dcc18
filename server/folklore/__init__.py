"""Folklore: one long-term memory for AI coding assistants that a whole team shares."""

__version__ = "0.1.0"
