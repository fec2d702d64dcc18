"""The face of the memory: what the package offers, and the use case of each operation."""

from typing import get_type_hints

import pytest

from folklore import memory
from folklore.contract.operations import OPERATIONS
from folklore.contract.requests import Request
from folklore.memory import operations


@pytest.mark.parametrize("name", memory._MODULES)
def test_each_name_of_the_package_is_found(name: str) -> None:
    assert getattr(memory, name) is not None


def test_a_name_that_the_package_does_not_offer_is_named() -> None:
    with pytest.raises(AttributeError, match="'rank'"):
        memory.rank  # noqa: B018


@pytest.mark.parametrize("kind", OPERATIONS.values())
def test_the_use_case_of_an_operation_takes_its_request(kind: type[Request]) -> None:
    operation = operations._BY_REQUEST[kind]

    context, request, *_ = get_type_hints(operation.use_case).values()

    assert context is memory.RequestContext
    assert issubclass(kind, request)
    if operation.recorder is not None:
        assert callable(operation.record)
