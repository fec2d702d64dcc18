"""HTML of the console: the templates, their filters, and the static files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from folklore.contract.ids import short
from folklore.model import Memory
from folklore.server.requested import requested_zone
from folklore.text.amounts import amount
from folklore.text.dates.byline import byline
from folklore.text.dates.distance import absolute_time, distance
from folklore.text.dates.zones import in_zone

if TYPE_CHECKING:
    import jinja2

_ROOM = "folklore.server.console"
_STATIC_TYPES: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file that every visitor gets: a style, a script or a picture."""

    content: bytes
    media_type: str


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Return the static files by name."""
    by_name = {}
    for file in files(_ROOM).joinpath("static").iterdir():
        media_type = _STATIC_TYPES.get(PurePosixPath(file.name).suffix)
        if media_type is not None:
            by_name[file.name] = StaticFile(file.read_bytes(), media_type)
    return by_name


@cache
def static_version() -> str:
    """Return a digest of all static files, which is part of their addresses: a browser may keep them for ever."""
    digest = hashlib.sha256()
    for name, file in sorted(static_files().items()):
        digest.update(name.encode() + b"\0" + file.content)
    return digest.hexdigest()[:12]


@cache
def _environment() -> jinja2.Environment:
    """Return the templates, read at the first page. Every value is escaped; an unknown name is an error."""
    import jinja2

    loader = jinja2.PackageLoader(_ROOM)
    undefined = jinja2.StrictUndefined
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=undefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "ago": ago,
        "byline": byline_of,
        "day": day,
        "short": short,
        "count": count,
        "amount": amount,
    }
    return environment


def html(template: str, values: Mapping[str, Any]) -> str:
    """Return a rendered template."""
    return _environment().get_template(template).render(values)


# Filters


def ago(moment: datetime | None) -> Markup | str:
    """Return a time element: the distance from now; date, time and zone in its title."""
    if moment is None:
        return "never"
    zone = _zone()
    at = in_zone(moment, zone)
    exact = absolute_time(at, zone)
    text = distance(at, datetime.now(UTC)) or exact
    return Markup('<time datetime="{}" title="{} {}">{}</time>').format(
        at.isoformat(timespec="seconds"), exact, zone, text
    )


def day(moment: datetime) -> str:
    """Return the date of a time."""
    return in_zone(moment, _zone()).date().isoformat()


def byline_of(memory: Memory) -> str:
    """Return the author of a memory, and who changed its text last."""
    return byline(memory.author, memory.changed_by, memory.changed_at, _zone())


def _zone() -> tzinfo:
    return requested_zone() or UTC


def count(number: float) -> str:
    """Return a number with separators of thousands."""
    return f"{number:,}"
