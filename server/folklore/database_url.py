"""The hosts of an address; that of a Postgres may name several, each with a port of its own."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit


def is_postgres(address: str) -> bool:
    """Whether it is the address of a Postgres, as far as that can be read."""
    try:
        parts = urlsplit(address)
        hosts(parts)
    except ValueError:
        return False
    return parts.scheme in ("postgresql", "postgres")


def hosts(address: SplitResult) -> list[tuple[str, int | None]]:
    """Host (IPv6 without its brackets) and port of each, in their order. Raises ValueError for what is neither."""
    named = address.netloc.rpartition("@")[2].split(",")
    if len(named) > 1 and "" in named:
        raise ValueError("a comma stands without a host")
    return [_host(one) for one in named]


def _host(named: str) -> tuple[str, int | None]:
    parts = urlsplit(f"//{named}")
    if parts.port == 0:
        raise ValueError("there is no port 0")
    return parts.hostname or "", parts.port
