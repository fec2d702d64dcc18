"""Facts of this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import tzlocal

from folklore.machine import linked_zone, zone_name

VIENNA = "Europe/Vienna"


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The environment, for tests that change TZ: the library keeps the zone that it found first."""
    yield monkeypatch
    monkeypatch.undo()
    tzlocal.reload_localzone()


def machine_with(root: Path, link: str | None, files: dict[str, str]) -> Path:
    """Return the root of a system whose etc/localtime leads to a zone, and with these other files."""
    for zone in (VIENNA, "Europe/Paris"):
        file = root / "usr/share/zoneinfo" / zone
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
    (root / "etc").mkdir()
    if link is not None:
        (root / "etc/localtime").symlink_to(link)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("link", "files"),
    [
        ("../usr/share/zoneinfo/Europe/Vienna", {}),
        ("../usr/share/zoneinfo/Europe/Vienna", {"etc/timezone": f"{VIENNA}\n"}),
    ],
)
def test_the_zone_of_a_plain_linux_is_where_its_link_leads(
    tmp_path: Path,
    link: str,
    files: dict[str, str],
) -> None:
    root = machine_with(tmp_path.resolve(), link, files)

    assert linked_zone(root) == VIENNA


def test_the_zone_of_this_machine_is_the_one_that_the_library_finds(
    environment: pytest.MonkeyPatch,
) -> None:
    environment.delenv("TZ", raising=False)
    tzlocal.reload_localzone()

    assert zone_name() == tzlocal.get_localzone_name()


@pytest.mark.parametrize(
    ("link", "files"),
    [
        (None, {}),
        (None, {"etc/timezone": VIENNA}),
        (None, {"etc/localtime": "TZif"}),
        ("../usr/share/zoneinfo/Europe/Nowhere", {}),
        ("../usr/share/zoneinfo", {}),
        ("localtime", {}),
        ("../var/zones/Europe/Vienna", {"var/zones/Europe/Vienna": ""}),
        ("../usr/share/zoneinfo/Europe/Vienna", {"etc/timezone": "Europe/Paris"}),
        ("../usr/share/zoneinfo/Europe/Vienna", {"etc/timezone": "Wien \u2013"}),
        ("../usr/share/zoneinfo/Europe/Vienna", {"etc/sysconfig/clock": "ZONE=UTC"}),
        ("../usr/share/zoneinfo/Europe/Vienna", {"etc/conf.d/clock": "timezone=UTC"}),
        ("../usr/share/zoneinfo/Europe/Vienna", {"var/db/zoneinfo": "Europe/Paris"}),
        ("../usr/share/zoneinfo/Europe/Vienna", {"system/bin/getprop": ""}),
    ],
)
def test_where_a_file_may_name_another_zone_a_library_reads_them_all(
    tmp_path: Path, link: str | None, files: dict[str, str]
) -> None:
    assert linked_zone(machine_with(tmp_path.resolve(), link, files)) is None


def test_a_zone_in_the_environment_comes_first(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("TZ", VIENNA)
    tzlocal.reload_localzone()

    assert zone_name() == VIENNA
