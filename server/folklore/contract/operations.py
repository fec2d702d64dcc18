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

# Every operation whose result is one value, by name.
OPERATIONS: Mapping[str, type[Request]] = {
    request.operation: request
    for subject in _SUBJECTS
    for request in vars(subject).values()
    if isinstance(request, type)
    and issubclass(request, Request)
    and issubclass(request, Returns)
}
