"""`folklore hook cursor` at the user's server, on the standard library and small modules: Cursor waits for it.

Where the settings are not plain, the command does the same (cli/operate/hook.py).
"""

from __future__ import annotations

import json
import logging
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from folklore.client.local_server import LocalServer, home_of
from folklore.client.session import PlainSettings, plain_settings
from folklore.client.session_start import (
    SECONDS,
    exchange,
    has_database,
    has_plain_settings,
    limit_time,
    read_json,
    request_of_cursor,
    write,
)

log = logging.getLogger(__name__)


def answered(arguments: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Print the answer to an event, within four seconds; False, before it was read, if the command is to do it."""
    home = home_of(environ)
    is_possible = os.name == "posix" and not environ.get("FOLKLORE_OWN")
    if list(arguments) != ["hook", "cursor"] or home is None or not is_possible:
        return False
    server = LocalServer(home, environ)
    if not has_plain_settings(server, environ):
        return False
    settings = plain_settings(server, environ)
    if settings is None:
        return False
    # the first server creates it, and no hook can wait for that
    if not has_database(environ, home, server.settings_file.splitlines()):
        return True
    try:
        server.connect(SECONDS).close()
    except OSError:
        return False
    fields = request_of_cursor(read_json())
    if fields is None:
        return True
    if not fields["directory"]:
        fields["directory"] = os.getcwd()
    limit_time()
    try:
        text = _text(json.loads(exchange(server, environ, fields)), settings)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except TimeoutError:
        return True
    except (OSError, ValueError, LookupError, TypeError) as error:
        log.warning("hook_failed: %s", type(error).__name__)
        return True
    if text:
        write(json.dumps({"additional_context": text}, ensure_ascii=False))
    return True


def _text(answer: Any, settings: PlainSettings) -> str:
    """Return the notes of an answer, marked where their files changed. Raises LookupError and TypeError without one."""
    if "error" in answer:
        log.warning("hook_failed: %s", answer["error"]["message"])
        return ""
    result = answer["result"]
    text = str(result["text"])
    anchors = result.get("anchors")
    if not anchors:
        return text
    return _marked(text, anchors, settings)


def _marked(text: str, sent_anchors: Any, settings: PlainSettings) -> str:
    """Return notes that are about files, marked where these changed."""
    # Most events get none: they need not wait for what reads a working copy.
    import asyncio

    from folklore.client.code.marks import marked_text
    from folklore.client.surroundings import namespace_of, working_copy
    from folklore.contract.anchors import read_anchors

    anchors = read_anchors(sent_anchors)
    if not anchors:
        return text
    copy = working_copy(namespace_of(settings))
    return asyncio.run(marked_text(copy, text, anchors))
