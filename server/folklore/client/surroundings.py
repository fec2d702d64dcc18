"""The surroundings of this process: its time zone, and the working copy of its directory."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from folklore.client.code.working_copy import WorkingCopy
from folklore.client.project import project_namespace, working_directory
from folklore.config import Settings
from folklore.errors import ConfigInvalid, InvalidInput
from folklore.text.dates.zones import zone_named


def working_copy(settings: Settings) -> WorkingCopy:
    """Return the working copy of this process; its memories are in the namespace of the setting or of the project."""
    project = cache(
        lambda: project_namespace(working_directory(os.environ), settings.remote)
    )
    return WorkingCopy(
        lambda: working_directory(os.environ), lambda: settings.namespace or project()
    )


def local_zone(settings: Settings) -> ZoneInfo:
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
    import tzlocal

    # files that contradict each other, or a TZ without a name
    with suppress(ZoneInfoNotFoundError, InvalidInput):
        return zone_named(tzlocal.get_localzone_name() or "UTC", "TZ")
    return ZoneInfo("UTC")
