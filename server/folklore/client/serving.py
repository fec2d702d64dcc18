"""A bridge on the standard streams of this process, for `folklore serve`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from folklore.client.access import access_of, address_of
from folklore.client.bridge import Bridge
from folklore.client.connections import UserServer
from folklore.client.remote import Remote
from folklore.client.stdio import claim_stdout
from folklore.client.surroundings import SessionSettings, namespace_of, working_copy

if TYPE_CHECKING:
    from folklore.client.code.bridged_code import BridgedCode


async def serve(
    settings: SessionSettings,
    local: UserServer | None,
    open_package: Callable[[AsyncExitStack], Awaitable[Remote]],
) -> None:
    """Pass messages on to the `local` server, else to that of the settings, until standard input ends.

    `open_package` opens the application in this process, which answers the handshake while that server is away.
    """
    url = address_of(settings, local)
    namespace = namespace_of(settings)
    remote = Remote(url, lambda: access_of(settings, namespace), settings.home, local)
    remote.prepare()
    async with AsyncExitStack() as stack:
        bridge = Bridge(
            remote,
            claim_stdout(),
            open_packaged=partial(open_package, stack),
            read_code=partial(_code, namespace),
        )
        await bridge.run()


def _code(namespace: Callable[[], str]) -> BridgedCode:
    # no list needs it
    from folklore.client.code.bridged_code import BridgedCode

    return BridgedCode(working_copy(namespace))
