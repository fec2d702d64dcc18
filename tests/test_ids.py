"""Identifiers sort as they were made."""

from folklore.new_ids import Ids


def test_ids_are_of_version_7_and_contain_their_millisecond() -> None:
    ids = Ids()
    made = [ids.next(1_700_000_000_123) for _ in range(20_000)]
    assert made == sorted(set(made))
    assert {(one.version, one.variant, one.int >> 80) for one in made} == {
        (7, "specified in RFC 4122", 1_700_000_000_123)
    }


def test_ids_keep_their_order_when_the_clock_is_set_back_a_little() -> None:
    ids = Ids()
    assert ids.next(1_700_000_005_000) < ids.next(1_700_000_000_000)


def test_ids_follow_a_clock_that_is_set_back_far() -> None:
    ids = Ids()
    ids.next(1_900_000_000_000)
    assert ids.next(1_700_000_000_000).int >> 80 == 1_700_000_000_000


def test_two_processes_never_create_the_same_id() -> None:
    one = Ids()
    other = Ids()
    assert not {one.next(1) for _ in range(1_000)} & {
        other.next(1) for _ in range(1_000)
    }
