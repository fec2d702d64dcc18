"""Paths of files and folders as people, tools and stack traces write them: one spelling for each."""

import posixpath
import re
from urllib.parse import unquote

MAX_PATHS = 64
# The root of a repository.
ROOT = "."
_OTHER_URL = re.compile(r"(?!file:)[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_FILE_URL = re.compile(r"file:(?://[^/]*)?(?=/)", re.IGNORECASE)
_DRIVE = re.compile(r"/?([A-Za-z]):(?=/|$)")
# Lines, as compilers (a.py:12:5), editors (a.py:12-20) and hosting services (a.py#L12-L20) append them.
_LINES = re.compile(
    r"(?<=[^:/])(?::\d+(?:[:-]\d+)*:?|#L\d+(?:C\d+)?(?:-L?\d+(?:C\d+)?)?)$"
)

# Characters at the end of a path in which lines are looked for.
_LONGEST_LINES = 200


def plain_path(text: str) -> str:
    """Return a path with slashes, without `file://`, line numbers, `.`, inner `..` and a slash at its end.

    Idempotent. The path is not looked up: a file whose own name ends in `:12` loses that end.
    """
    path = text
    plainer = _plainer(path)
    while plainer != path:  # each step uncovers others: a line number after a slash
        path = plainer
        plainer = _plainer(path)
    return path


def _plainer(text: str) -> str:
    path = text.strip()
    if _OTHER_URL.match(path):
        return path.rstrip("/")
    if url := _FILE_URL.match(path):
        path = unquote(path[url.end() :])
    path = path.replace("\\", "/")
    if lines := _LINES.search(path, max(len(path) - _LONGEST_LINES, 0)):
        path = path[: lines.start()]
    path = posixpath.normpath(path) if path else ROOT
    if drive := _DRIVE.match(path):  # /c:/work, as URLs have it
        path = f"{drive[1].upper()}:{path[drive.end() :]}"
    return path


def is_inside(path: str) -> bool:
    """Return True for a plain path that is relative to the root of a repository and stays below it."""
    is_outside = path == ".." or path.startswith(("/", "~", "../"))
    return not (is_outside or _DRIVE.match(path) or _OTHER_URL.match(path))
