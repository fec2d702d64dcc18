"""Identifiers sort as they were made."""

from __future__ import annotations

from itertools import pairwise

from folklore.memory.ids import Ids, new_id


def test_ids_stand_in_the_order_they_were_made_in() -> None:
    made = [new_id() for _ in range(20_000)]
    assert all(earlier < later for earlier, later in pairwise(made))


def test_ids_of_one_millisecond_are_of_version_7_and_tell_it() -> None:
    ids = Ids()
    made = [ids.next(1_700_000_000_123) for _ in range(20_000)]
    assert made == sorted(set(made))
    assert {(one.version, one.variant, one.int >> 80) for one in made} == {
        (7, "specified in RFC 4122", 1_700_000_000_123)
    }


def test_a_clock_that_is_set_back_a_little_makes_no_id_that_sorts_before() -> None:
    ids = Ids()
    assert ids.next(1_700_000_005_000) < ids.next(1_700_000_000_000)


def test_a_clock_that_was_far_ahead_is_followed_back() -> None:
    ids = Ids()
    ids.next(1_900_000_000_000)
    assert ids.next(1_700_000_000_000).int >> 80 == 1_700_000_000_000


def test_two_processes_do_not_make_the_same_ids() -> None:
    one, other = Ids(), Ids()
    assert not {one.next(1) for _ in range(1_000)} & {other.next(1) for _ in range(1_000)}
