"""Declaration of a page: its method, its path below the console, its handler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from folklore.http.console.visit import Handler


@dataclass(frozen=True, slots=True)
class PageRoute:
    """Method of a path. A GET changes nothing; a POST comes from a form of the console."""

    method: Literal["GET", "POST"]
    path: str
    handler: Handler


def get(path: str, handler: Handler) -> PageRoute:
    """Declare a page."""
    return PageRoute("GET", path, handler)


def post(path: str, handler: Handler) -> PageRoute:
    """Declare a change."""
    return PageRoute("POST", path, handler)
