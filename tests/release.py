"""Releases: one version in all files, notes from the changelog, the bundle for Claude Desktop.

python -m tests.release set 0.2.0      writes the version everywhere and dates the changelog
python -m tests.release check v0.2.0   fails unless all files are ready to be released under this tag
python -m tests.release notes 0.2.0    prints what the changelog has on this version
"""

import json
import os
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

from tests import ROOT

CHANGELOG = "CHANGELOG.md"

_VERSION = re.compile(r"\d+\.\d+\.\d+")
_JSON = r'"version": "([^"]+)"'
# What each file says its version is, as the first group.
_PLACES = {
    "pyproject.toml": r'(?m)^version = "([^"]+)"|"folklore-import==([^"]+)"',
    "import/pyproject.toml": r'(?m)^version = "([^"]+)"|"folklore-mcp==([^"]+)"',
    "server/folklore/__init__.py": r'(?m)^__version__ = "([^"]+)"',
    "server.json": _JSON,
    "deploy/mcpb/manifest.json": _JSON,
    "deploy/mcpb/pyproject.toml": r'(?m)^version = "([^"]+)"|"folklore-mcp==([^"]+)"',
}
# What the commands that install Folklore name while it is not published, and where.
_UNPUBLISHED = re.compile(r" @ git\+https://[\w./-]+(?:#[\w=]+)?")
COMMANDS = ("server/folklore/__init__.py", "docs/how-to/team.md", "plugin/README.md")
_PLUGINS = (
    "plugin",
    ".claude-plugin",
    ".agents",
)  # manifests of plugins and of marketplaces


def places() -> dict[Path, str]:
    """Return each file that holds the version, and the pattern that finds it there."""
    manifests = (
        path for folder in _PLUGINS for path in sorted((ROOT / folder).rglob("*.json"))
    )
    return {ROOT / name: pattern for name, pattern in _PLACES.items()} | dict.fromkeys(
        manifests, _JSON
    )


def versions() -> dict[str, set[str]]:
    """Return the versions that each file holds, at least one for files other than those of plugins."""
    found = {}
    for path, pattern in places().items():
        hits = {
            text
            for match in re.finditer(pattern, _read(path))
            for text in match.groups()
            if text
        }
        if hits or path.relative_to(ROOT).as_posix() in _PLACES:
            found[path.relative_to(ROOT).as_posix()] = hits
    return found


def current() -> str:
    """Return the version of pyproject.toml."""
    [version] = versions()["pyproject.toml"]
    return version


def notes(version: str) -> str:
    """Return the section of the changelog on a version, without its heading. Raises ValueError."""
    sections = re.split(r"(?m)^## ", _read(ROOT / CHANGELOG))[1:]
    for section in sections:
        heading, _, text = section.partition("\n")
        if heading.split(" ")[0].strip("[]") == version and text.strip():
            return text.strip()
    raise ValueError(
        f"{CHANGELOG} has no notes on {version}. Run `make version VERSION={version}`."
    )


def faults(tag: str, owner: str | None = None) -> list[str]:
    """Return what must be mended before a release under this tag; `owner` is that of the repository on GitHub."""
    version = tag.removeprefix("v")
    found = []
    if not tag.startswith("v") or not _VERSION.fullmatch(version):
        found.append(f"The tag must be v and a version, such as v0.2.0, got {tag}.")
    for name, said in versions().items():
        if said != {version}:
            found.append(
                f"{name} must hold version {version}, has {', '.join(sorted(said)) or 'none'}."
            )
    try:
        notes(version)
    except ValueError as error:
        found.append(str(error))
    namespace = json.loads(_read(ROOT / "server.json"))["name"].split("/")[0]
    if owner is not None and namespace != f"io.github.{owner.lower()}":
        found.append(
            f"The registry admits io.github.{owner.lower()} from this repository, server.json has {namespace}. "
            "Change the name in server.json, README.md and deploy/Containerfile."
        )
    return found


def set_version(version: str) -> None:
    """Write the version into all files, name the published package, date the changelog. Raises ValueError."""
    if not _VERSION.fullmatch(version):
        raise ValueError(
            f"The version must have three numbers, such as 0.2.0, got {version}."
        )
    changes = _read(ROOT / CHANGELOG)
    if "## Unreleased\n" not in changes:
        raise ValueError(f"{CHANGELOG} has no section Unreleased.")
    dated = f"## Unreleased\n\n## {version} - {datetime.now(UTC):%Y-%m-%d}\n"
    (ROOT / CHANGELOG).write_text(
        changes.replace("## Unreleased\n", dated, 1), encoding="utf-8"
    )
    for name in COMMANDS:
        (ROOT / name).write_text(
            _UNPUBLISHED.sub("", _read(ROOT / name)), encoding="utf-8"
        )
    for path, pattern in places().items():
        path.write_text(
            re.sub(pattern, lambda match: _with(match, version), _read(path)),
            encoding="utf-8",
        )


def _with(match: re.Match[str], version: str) -> str:
    place = next(group for group, text in enumerate(match.groups(), 1) if text)
    start, end = (offset - match.start() for offset in match.span(place))
    return match[0][:start] + version + match[0][end:]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def main(command: str = "", argument: str = "") -> None:
    if command == "set":
        set_version(argument)
    elif command == "notes":
        print(notes(argument))
    elif command == "check":
        problems = faults(argument, os.environ.get("GITHUB_REPOSITORY_OWNER"))
        for problem in problems:
            print(problem, file=sys.stderr)
        sys.exit(bool(problems))
    else:
        raise ValueError(f"The command must be set, check or notes, got {command!r}.")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except ValueError as error:
        sys.exit(str(error))
