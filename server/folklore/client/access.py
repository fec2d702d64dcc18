"""The headers of a request to a server: the token, and headers that name the project and the time zone."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from folklore.client.connections import UserServer
from folklore.client.project import working_directory
from folklore.client.surroundings import SessionSettings, local_zone
from folklore.errors import ConfigInvalid

LOCAL_URL = "http://localhost"  # of the user's own server, whatever its socket is


@dataclass(frozen=True, slots=True)
class Access:
    """Token of every request, and its headers that name the project and the time zone."""

    token: str | None
    headers: Mapping[str, str]

    @property
    def all_headers(self) -> dict[str, str]:
        """The headers with the token."""
        if not self.token:
            return dict(self.headers)
        return {**self.headers, "authorization": f"Bearer {self.token}"}


def address_of(settings: SessionSettings, local: UserServer | None) -> str:
    """Return the address of the `local` server of the user, or of the one that the settings name."""
    if local is not None:
        return LOCAL_URL
    from folklore.client.credentials import normalised

    return normalised(str(settings.server))


def access_of(
    settings: SessionSettings, namespace: Callable[[], str], *, anonymous: bool = False
) -> Access:
    """Return what requests to the server of the settings carry, else those to the user's own.

    `namespace` is that of this process, as namespace_of returns it.
    Raises ConfigInvalid for a text that is no token, and as read_token does.
    """
    token = None if anonymous else token_for(settings)
    return Access(token, request_headers(settings, namespace))


def token_for(settings: SessionSettings) -> str | None:
    """Return the token for the server: that of the settings, else the saved one.

    Raises ConfigInvalid for a text that is no token, and as read_token does.
    """
    if settings.token is None:
        if settings.server is None:
            return None
        from folklore.client.credentials import read_token

        return read_token(settings.server, home=settings.home)
    token = settings.token.get_secret_value()
    # such as "fk_…", copied with the ellipsis
    if not (token.isascii() and token.isprintable()):
        raise ConfigInvalid(
            "token", "is not a token.", hint="`folklore tokens create` shows one, once."
        )
    return token


def request_headers(
    settings: SessionSettings, namespace: Callable[[], str]
) -> dict[str, str]:
    """Return the headers of every request to the server: the namespace, the time zone; to the user's, more."""
    stated = {"namespace": namespace()}
    if settings.server is None:
        stated["author"] = settings.author
        if not settings.namespace:
            stated["directory"] = str(working_directory(os.environ))
    headers = {}
    for name, value in stated.items():
        headers[f"folklore-{name}"] = quote(value, safe="")
    headers["folklore-time-zone"] = str(local_zone(settings))
    return headers
