"""Modules that take long to import, imported when an attribute of them is first used."""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

# numpy reads this when it is imported. The threads of its linear algebra spin between the small products of a recall:
# with two, a recall of 20 took 45 ms of processor time more, and was no faster.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


class Lazy(ModuleType):
    """A module that becomes the one of its name at the first use; for the type checker it is imported."""

    def __getattr__(self, name: str) -> Any:
        """Import the module, and take over its contents."""
        module = import_module(self.__name__)
        vars(self).update(vars(module))
        return getattr(module, name)


if TYPE_CHECKING:
    import fcntl as fcntl
    import subprocess as subprocess
    from urllib import request

    import certifi as certifi
    import click as click
    import jinja2 as jinja2
    import numpy as numpy
    import structlog as structlog
    import tzlocal as tzlocal
    import yaml as yaml
    from numpy.typing import NDArray as NDArray

    urllib_request = request
else:
    (
        certifi,
        click,
        fcntl,
        jinja2,
        numpy,
        structlog,
        subprocess,
        tzlocal,
        yaml,
    ) = map(
        Lazy,
        (
            "certifi",
            "click",
            "fcntl",
            "jinja2",
            "numpy",
            "structlog",
            "subprocess",
            "tzlocal",
            "yaml",
        ),
    )
    urllib_request = Lazy("urllib.request")
    NDArray = Any  # for annotations, which are never evaluated
