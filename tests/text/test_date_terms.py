"""Date terms of a query."""

from datetime import date

import pytest
from hypothesis import given, strategies as st

from folklore.text.dates.date_terms import date_terms, tokens_with_dates


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("what happened on 7 May 2023?", {"@2023-05-07": 1.0}),
        ("what happened on May 7th, 2023?", {"@2023-05-07": 1.0}), ("the release of 2023-05-07", {"@2023-05-07": 1.0}),
        ("who came in June?", {"@06": 1.0}), ("plans for July 2023", {"@2023-07": 1.0}),
        ("how often in 2023", {"@2023": 1.0}), ("the party of 29 February", {"@02-29": 1.0}), ("may I march on?", {}),
        ("plans from mid-2023", {"@2023": 1.0}), ("CVE-2023-66416 in blog/2023/post", {}), ("31 February 2023", {}),
    ],
)  # fmt: skip
def test_a_named_date_gives_its_terms(query: str, terms: dict[str, float]) -> None:
    assert {
        term: weight for term, weight in date_terms(query).items() if weight == 1.0
    } == terms


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("Was wurde am 5. März 2024 beschlossen?", {"@2024-03-05"}), ("la réunion du 5 mars 2024", {"@2024-03-05"}),
        ("a reunião de 5 de março de 2024", {"@2024-03-05"}), ("la reunión del 5 de mayo", {"@05-05"}),
        ("Warum fiel der Server im Dezember aus?", {"@12"}), ("en mars", {"@03"}), ("storing in maart", {"@03"}),
        ("сбой в марте", {"@03"}), ("релиз 5 марта 2024", {"@2024-03-05"}), ("riunione di marzo 2024", {"@2024-03"}),
        ("2024年3月5日的会议", {"@2024-03-05"}), ("2024年3月の会議", {"@2024-03"}), ("3月5日の会議", {"@03-05"}),
        ("2024년 3월 5일 회의", {"@2024-03-05"}), ("2024年の計画", {"@2024"}), ("三个月的计划", set()),
        ("who is Marco in Marco's team", set()), ("the Mars rover", set()), ("life on mars", set()),
    ],
)  # fmt: skip
def test_a_date_in_another_language_gives_its_terms(
    query: str, terms: set[str]
) -> None:
    found = {term for term, weight in date_terms(query).items() if weight == 1.0}
    assert found == terms


def test_days_close_to_a_named_day_weigh_less_with_each_day() -> None:
    weights = date_terms("on 7 May 2023")

    ordered = [weights[f"@2023-05-{day:02}"] for day in (7, 8, 9, 10, 11)]
    assert ordered == sorted(set(ordered), reverse=True)
    assert "@2023-05-12" not in weights


@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)))
def test_an_iso_date_gives_its_day(day: date) -> None:
    assert date_terms(f"on {day:%Y-%m-%d}")[f"@{day:%Y-%m-%d}"] == 1.0


@given(st.text(max_size=200))
def test_every_text_gives_terms_with_valid_weights(text: str) -> None:
    assert all(0 < weight <= 1 for weight in date_terms(text).values())


@pytest.mark.parametrize(
    ("query", "positions"),
    [
        ("what did she paint on 9 July, 2023?", {5, 6, 7}), ("what happened in June?", {3}),
        ("the release of 2023-05-07", {3}), ("may I march on?", set()), ("was CVE-2025-66416 fixed?", set()),
        ("", set()),
    ],
)  # fmt: skip
def test_pieces_that_name_a_date_are_found(query: str, positions: set[int]) -> None:
    assert tokens_with_dates(query.split()) == positions
