"""The surroundings of this process: its time zone, and the working copy of its directory."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from folklore.client.project import project_namespace, working_directory
from folklore.errors import ConfigInvalid, InvalidInput
from folklore.machine import zone_name
from folklore.text.dates.zones import zone_named

if TYPE_CHECKING:
    from folklore.client.code.working_copy import WorkingCopy


class Secret(Protocol):
    """A text that is not to be shown."""

    def get_secret_value(self) -> str:
        """Return it."""


class SessionSettings(Protocol):
    """The settings that concern one session or command, and not the server that it calls."""

    @property
    def home(self) -> Path:
        """The directory of tokens and certificates."""

    @property
    def server(self) -> str | None:
        """The address of a team's server."""

    @property
    def token(self) -> Secret | None:
        """The token for that server."""

    @property
    def author(self) -> str:
        """The name of who works."""

    @property
    def namespace(self) -> str | None:
        """The namespace of all projects, if it is not that of each."""

    @property
    def remote(self) -> str | None:
        """The remote by which a project is named."""

    @property
    def time_zone(self) -> str | None:
        """The time zone, if it is not that of the machine."""


def namespace_of(settings: SessionSettings) -> Callable[[], str]:
    """Return a function that returns the namespace of this process: that of the setting, else the project.

    It asks git for the project once, at its first call.
    """

    @cache
    def namespace() -> str:
        if settings.namespace:
            return settings.namespace
        return project_namespace(working_directory(os.environ), settings.remote)

    return namespace


def working_copy(namespace: Callable[[], str]) -> WorkingCopy:
    """Return the working copy of this process, whose memories are in a namespace, as namespace_of returns it."""
    from folklore.client.code.working_copy import WorkingCopy

    return WorkingCopy(lambda: working_directory(os.environ), namespace)


def local_zone(settings: SessionSettings) -> ZoneInfo:
    """Return the time zone of who runs this process: the setting, else the machine's; UTC if its name is unknown.

    Raises ConfigInvalid for a setting that is no time zone.
    """
    if settings.time_zone is not None:
        try:
            return zone_named(settings.time_zone, "time_zone")
        except InvalidInput as error:
            raise ConfigInvalid(
                "time_zone", "is not a time zone.", hint=error.hint
            ) from None
    # files that contradict each other, or a TZ without a name
    with suppress(ZoneInfoNotFoundError, InvalidInput):
        return zone_named(zone_name() or "UTC", "TZ")
    return ZoneInfo("UTC")
