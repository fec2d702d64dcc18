"""numpy, imported when an attribute of it is first used: it takes longer than what a first note or a list needs.

Every store of the database has functions of vectors, so that functions alone could not hold its import back.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

# numpy reads this when it is imported. The threads of its linear algebra spin between the small products of a recall:
# with two, a recall of 20 took 45 ms of processor time more, and was no faster.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


class _Lazy(ModuleType):
    """A module that becomes the one of its name at the first use; for the type checker it is imported."""

    def __getattr__(self, name: str) -> Any:
        """Import the module, and take over its contents."""
        module = import_module(self.__name__)
        vars(self).update(vars(module))
        return getattr(module, name)


if TYPE_CHECKING:
    import numpy as numpy
    from numpy.typing import NDArray as NDArray
else:
    numpy = _Lazy("numpy")
    NDArray = Any  # for annotations, which are never evaluated
