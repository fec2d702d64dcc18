"""Cursors: valid for one query, and rejected if they were changed."""

import base64
from datetime import UTC, timezone
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from folklore.errors import InvalidInput
from folklore.memory.context.pagination import (
    given_before,
    given_cursor,
    is_given,
    list_key_of,
)
from folklore.model import Filters

QUESTION = ("query", ("a",), Filters(kinds=("note",)))
zones = st.sampled_from([UTC, timezone.max, timezone.min])


@given(st.lists(st.uuids(), max_size=50), st.text(st.characters(exclude_categories=[])))
def test_a_cursor_holds_the_ids_that_were_returned_for_its_query(
    ids: list[UUID], question: str
) -> None:
    cursor = given_cursor(ids[:20], frozenset(), (question, QUESTION))
    later = given_cursor(
        ids[20:], given_before(cursor, (question, QUESTION)), (question, QUESTION)
    )

    before = given_before(later, (question, QUESTION))
    assert later is not None
    assert all(is_given(id_, before) for id_ in ids)
    assert not is_given(UUID(int=5), frozenset())
    assert later.isascii()
    assert not set(later) & set("+/= \n")


@given(st.text(st.characters(exclude_categories=[]), max_size=80))
def test_an_invalid_cursor_is_rejected_with_the_next_step(text: str) -> None:
    for read in (given_before, list_key_of):
        with pytest.raises(InvalidInput, match=r"cursor: is not valid.*leave it out"):
            read(text, QUESTION)


@pytest.mark.parametrize(
    "text", ["[" * 50_000, '{"a":' * 50_000, "9" * 5_000, "[1e999]", '["NaN", NaN]']
)
def test_hostile_json_in_a_cursor_is_rejected(text: str) -> None:
    for read in (given_before, list_key_of):
        with pytest.raises(InvalidInput):
            read(base64.urlsafe_b64encode(text.encode()).decode(), QUESTION)
