"""Facts of this machine: the name of its user, its time zone, and which addresses are its own."""

import getpass
import os
from pathlib import Path

# Where Linux has the files of the time zones.
_ZONES = "usr/share/zoneinfo"
# Other files that may name a time zone, and a program of Android.
_OTHER_ZONES = (
    "etc/conf.d/clock",
    "etc/sysconfig/clock",
    "system/bin/getprop",
    "var/db/zoneinfo",
)


def user_name() -> str:
    """Return the name of the user of this process, else the number in place of it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return f"uid-{os.getuid()}"


def zone_name() -> str | None:
    """Return the name of the time zone in TZ, else of this machine's; None if there is none.

    Raises ZoneInfoNotFoundError for files that contradict each other.
    """
    linked = None if os.environ.get("TZ") else linked_zone(Path("/"))
    if linked is not None:
        return linked
    import tzlocal

    return tzlocal.get_localzone_name()


def linked_zone(root: Path) -> str | None:
    """Return the name of the time zone to which etc/localtime leads; None where anything else may name another.

    tzlocal finds the same there, but takes a tenth of a session's start for it, since it looks for packages that hold
    time zones too. `root` is the directory of the system, without symbolic links.
    """
    link = root / "etc/localtime"
    zone = Path(os.path.realpath(link))  # of links in a circle one of them
    zones = root / _ZONES
    if not link.is_symlink() or not zone.is_file() or not zone.is_relative_to(zones):
        return None
    if any((root / other).exists() for other in _OTHER_ZONES):
        return None
    name = zone.relative_to(zones).as_posix()
    try:
        stated = (root / "etc/timezone").read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return name
    except (OSError, UnicodeDecodeError):
        return None
    return name if stated == name else None


def is_loopback(host: str) -> bool:
    """Return True if only this machine reaches the address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    import ipaddress

    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback
