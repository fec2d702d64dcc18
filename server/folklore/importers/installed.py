"""The formats that this installation reads: Folklore's own, and those of the importers that are installed."""

import shlex
import sys
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from folklore import requirement_of_importers
from folklore.errors import InvalidInput
from folklore.importers import FileFormat, Format, Importer
from folklore.importers.encodings import head_of
from folklore.importers.json_lines import json_lines

GROUP = "folklore.importers"
# The distribution that is released with this one, and its entry point.
PACKAGE = "folklore-import"
# The formats that PACKAGE reads, so that they can be named where it is not installed.
FORMATS_OF_PACKAGE = (
    "mcp-memory-json",
    "mem0",
    "mcp-memory-service",
    "markdown",
    "rules",
    "claude-memory",
    "web",
    "git",
    "conversations",
)
_OWN: dict[str, Format] = {"jsonl": FileFormat(json_lines)}
_HEAD_BYTES = 4096
_BEFORE_JSON = b"\xef\xbb\xbf \t\r\n"


@cache
def importers() -> tuple[Importer, ...]:
    """Return the importers that are installed. Raises InvalidInput for one whose module is missing."""
    return tuple(_load(entry) for entry in entry_points(group=GROUP))


def _load(entry: EntryPoint) -> Importer:
    try:
        importer: Importer = entry.load()
    except ModuleNotFoundError as error:
        raise InvalidInput(
            "FILE",
            f"the importer {entry.name} is installed in part only: {error}.",
            hint="Remove its package and install it again.",
        ) from error
    return importer


def _is_installed() -> bool:
    return PACKAGE in entry_points(group=GROUP).names


def formats() -> dict[str, Format]:
    """Return the formats that can be read here, by name."""
    readable = dict(_OWN)
    for importer in importers():
        readable |= importer.formats
    return readable


def format_names() -> list[str]:
    """Return the names of all known formats, also of those that cannot be read here."""
    return list(dict.fromkeys((*_OWN, *FORMATS_OF_PACKAGE, *formats())))


def format_of(name: str) -> Format:
    """Return a format by its name. Raises InvalidInput if it cannot be read here."""
    readable = formats()
    if name not in readable:
        raise InvalidInput(
            "format",
            f"{name} is read by the package {PACKAGE}, which is not installed.",
            hint=how_to_install(),
        )
    return readable[name]


def found_format(source: str) -> str:
    """Return the format of a source, by its name and content; `jsonl` if nothing else is known.

    Raises InvalidInput, which names what the file is if that is known and not read, or what is to be installed.
    """
    for importer in importers():
        name = importer.recognise(source)
        if name is not None:
            return name
    if not _is_installed():
        _refuse_other(source)
    return "jsonl"


def check_format(name: str, source: str) -> None:
    """Raise InvalidInput for a source that this format cannot be, as far as an importer knows."""
    for importer in importers():
        importer.check(name, source)


def description_of(source: str) -> str | None:
    """Return a sentence on a file of which no line could be read, None if nothing is known of it."""
    path = Path(source)
    if not path.is_file():
        return None
    for importer in importers():
        description = importer.describe(path)
        if description is not None:
            return description
    if not _is_installed():
        return (
            f"No line of {path.name} is as `folklore export` writes it. The package {PACKAGE}, "
            f"which reads other formats, is not installed. {how_to_install()}"
        )
    return None


def how_to_install() -> str:
    """Return the command that installs the package into this environment, as a sentence."""
    python = shlex.quote(sys.executable)
    requirement = shlex.quote(requirement_of_importers())
    # uv makes environments without pip
    if find_spec("pip") is None:
        return f"Run: uv pip install --python {python} {requirement}"
    return f"Run: {python} -m pip install {requirement}"


def _refuse_other(source: str) -> None:
    """Raise InvalidInput for what can have no lines of JSON; standard input and a pipe may."""
    path = Path(source)
    is_stream = source == "-" or (
        path.exists() and not (path.is_file() or path.is_dir())
    )
    if is_stream or (path.is_file() and _may_be_json(path)):
        return
    if path.exists():
        problem = "is not as `folklore export` writes it"
        read = "other formats"
    else:
        problem = "is no file here"
        read = "addresses, the history of a repository (`git`) and other formats"
    raise InvalidInput(
        "FILE",
        f"{source} {problem}, and the package {PACKAGE}, which reads {read}, is not installed.",
        hint=how_to_install(),
    )


def _may_be_json(path: Path) -> bool:
    """Return whether a file begins as JSON does, or is empty, or cannot be read, which is reported later."""
    try:
        with path.open("rb") as file:
            head = head_of(file, _HEAD_BYTES)
    except (OSError, InvalidInput):
        return True
    return head.lstrip(_BEFORE_JSON)[:1] in (b"{", b"[", b"")
