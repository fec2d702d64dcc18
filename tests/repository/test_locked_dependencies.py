"""Checks that requirements-ci.txt pins every dependency of both pyproject.toml by hash, without an address."""

import re
import tomllib

from packaging.requirements import Requirement

from tests import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
IMPORTERS = tomllib.loads(
    (ROOT / "import" / "pyproject.toml").read_text(encoding="utf-8")
)
LOCKED = (ROOT / "requirements-ci.txt").read_text(encoding="utf-8")
PINNED = re.compile(
    r"^(?P<name>[a-z0-9-]+)(?:\[[a-z,]+\])?==(?P<version>\S+)(?: ; .+?)? \\\n(?P<hashes>(?: .+\n)+)",
    re.MULTILINE,
)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements(group: str) -> list[Requirement]:
    """Return what a group of pyproject.toml names, with the groups that it includes."""
    found = []
    for entry in PROJECT["dependency-groups"][group]:
        found += (
            [Requirement(entry)]
            if isinstance(entry, str)
            else requirements(entry["include-group"])
        )
    return found


def installed() -> list[Requirement]:
    """Return what the two distributions need but each other."""
    named = [
        Requirement(text)
        for project in (PROJECT, IMPORTERS)
        for text in project["project"]["dependencies"]
    ]
    return [each for each in named if each.name != PROJECT["project"]["name"]]


def test_every_dependency_is_pinned_within_its_range() -> None:
    named = [*installed(), *requirements("dev")]
    pinned = {found["name"]: found["version"] for found in PINNED.finditer(LOCKED)}

    missing = [
        str(one)
        for one in named
        if not one.specifier.contains(pinned.get(normal(one.name), "0.dev0"))
    ]

    assert not missing, f"requirements-ci.txt lacks {missing}: run `make lock`."


def test_checkers_and_the_browser_are_installed_later_and_nothing_that_tests_need() -> (
    None
):
    [later] = re.findall(
        r"^LATER := (.+)$",
        (ROOT / "Makefile").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    first = [*installed(), *requirements("test")]

    assert [one.name for one in first if re.fullmatch(later, normal(one.name))] == []
    assert [
        one.name
        for one in requirements("check")
        if not re.fullmatch(later, normal(one.name))
    ] == []


def test_every_pinned_dependency_has_a_hash_and_no_address() -> None:
    lines = [line for line in LOCKED.splitlines() if not line.startswith("#")]
    pins = list(PINNED.finditer(LOCKED))

    assert len(pins) == sum(not line.startswith(" ") for line in lines)
    assert all(
        "--hash=sha256:" in line
        for found in pins
        for line in found["hashes"].splitlines()
    )
    assert not re.search(r"://|--(?:extra-)?index|--find-links|@ file", LOCKED)
