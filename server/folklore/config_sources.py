"""Where settings come from: a file, and variables of the environment, some of which are misspelt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from folklore.errors import ConfigInvalid

_PREFIX = "FOLKLORE_"
_NEAR = 0.85
# Where Kubernetes and Docker tell of services called folklore or folklore-http.
_OF_OTHERS = ("tcp://", "udp://")


def read_file(path: Path | None) -> dict[str, Any]:
    """The settings of a file by name; none without a file. Raises ConfigInvalid."""
    if path is None:
        return {}
    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigInvalid("config", f"{path} cannot be read ({error.strerror}).") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigInvalid("config", f"{path} is not valid YAML.", hint="See config.example.yaml.") from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict) or not all(isinstance(name, str) for name in loaded):
        raise ConfigInvalid("config", f"{path} must hold settings by name.", hint="See config.example.yaml.")
    return loaded


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """For a name of the file that is no setting (`http.prot`), the nearest that is one; empty if none is near."""
    near = get_close_matches(name, [setting.replace("__", ".") for setting in known], 1)
    return f"Did you mean {near[0]}? " if near else ""


def misspelt(environ: Mapping[str, str], known: Iterable[str]) -> tuple[str, str] | None:
    """A variable that is nearly one of the `known` settings (`read_only`, `http__port`), and which; None if none is.

    What a section that there is has not, is for others to say. Variables that only begin as ours do are left alone:
    orchestrators make such for every service of that name.
    """
    names = [f"{_PREFIX}{name}".upper() for name in known]
    for variable, value in environ.items():
        spelled = variable.upper()
        section, nested, _ = spelled.partition("__")
        if spelled in names or (nested and section in names) or value.startswith(_OF_OTHERS):
            continue
        if spelled.startswith(_PREFIX) and (near := get_close_matches(spelled, names, 1, _NEAR)):
            return variable, near[0]
    return None
