"""Declaration of a page: its method, its path below the console, its handler."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from folklore.http.console.visit import Handler


@dataclass(frozen=True, slots=True)
class PageRoute:
    """Method of a path. A GET changes nothing; a POST comes from a form of the console."""

    method: Literal["GET", "POST"]
    path: str
    handler: Handler


get, post = partial(PageRoute, "GET"), partial(PageRoute, "POST")
