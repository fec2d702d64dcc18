"""Facts of this machine: the name of its user, and which addresses are its own."""

import getpass
import os


def user_name() -> str:
    """Return the name of the user of this process, else the number in place of it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return f"uid-{os.getuid()}"


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
