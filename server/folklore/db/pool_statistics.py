"""How busy the pools are, for whoever watches."""

from __future__ import annotations

from dataclasses import dataclass

from folklore.db.database import Database


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Connections of all pools of one database: lent, open and idle, how many there may be; and who waits for one."""

    in_use: int
    idle: int
    waiting: int
    most: int


def occupancy(database: Database) -> Occupancy:
    """As it is at this moment. Asks nothing of Postgres."""
    in_use = idle = waiting = most = 0
    for pool in set(database._pools.values()):
        resting = pool.get_idle_size()
        idle += resting
        in_use += pool.get_size() - resting
        most += pool.get_max_size()
        # asyncpg does not tell who waits; tests/test_metrics.py notices if this ceases to be where they do.
        queue = getattr(pool, "_queue", None)
        waiting += sum(not waiter.done() for waiter in getattr(queue, "_getters", ()))
    return Occupancy(in_use, idle, waiting, most)
