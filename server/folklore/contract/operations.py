"""Every operation, by name: this module imports the requests of all subjects."""

from collections.abc import Mapping

from folklore.contract import (
    health,
    hooks,
    jobs,
    memories,
    models,
    namespaces,
    people,
    recall,
    review,
    transfer,
)
from folklore.contract.requests import Request, Returns

_SUBJECTS = (
    memories,
    recall,
    namespaces,
    people,
    models,
    jobs,
    health,
    hooks,
    review,
    transfer,
)


def _operations() -> dict[str, type[Request]]:
    operations: dict[str, type[Request]] = {}
    for subject in _SUBJECTS:
        for member in vars(subject).values():
            if not isinstance(member, type) or not issubclass(member, Request):
                continue
            if issubclass(member, Returns):
                operations[member.operation] = member
    return operations


# Every operation whose result is one value, by name.
OPERATIONS: Mapping[str, type[Request]] = _operations()
