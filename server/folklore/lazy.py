"""Libraries that take long to import, imported when an attribute of them is first used: a short command needs none."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as numpy
    import yaml as yaml
    from numpy.typing import NDArray as NDArray
else:

    class _Lazy(ModuleType):
        """A module that becomes the one of its name at the first use."""

        def __getattr__(self, name: str) -> Any:
            module = import_module(self.__name__)
            vars(self).update(vars(module))
            return getattr(module, name)

    numpy = _Lazy("numpy")
    yaml = _Lazy("yaml")
    NDArray = Any  # for annotations, which are never evaluated
