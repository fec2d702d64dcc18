"""Words of a question: forms of a word agree, dates count once, scripts without spaces are read by pairs of letters."""

from datetime import UTC, datetime, timedelta
from itertools import compress

import pytest
from hypothesis import given, strategies as st

from folklore.text.query.question import (
    QuestionWords,
    joined_names,
    plain,
    with_parts,
    without_contractions,
)
from folklore.text.query.snippet import line, snippet, whole_sentences

DAY = datetime(2025, 7, 8, tzinfo=UTC)
texts = st.text("abc .\n,öé漢字", max_size=300)


def coverage(question: str, text: str) -> float:
    """Return the share of the weight of a question that a text holds."""
    words = QuestionWords.of(question.split())
    return (
        sum(
            word.weight
            for word in words.distinct
            if word.start in plain(with_parts(text))
        )
        / words.weight
    )


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("deployed", "Our deployments are on Tuesday."), ("organize", "The organization is small."),
        ("painted", "painting"), ("café", "The cafe opens."), ("PAY_1042", "error pay-1042"),
        ("scheduler start", "`vTaskStartScheduler` never returns"), ("HTTP client2 load", "HTTPClient2Load"),
        ("データベース", "本番データベースは毎晩復元される"), ("데이터베이스는", "데이터베이스 복구"),
    ],
)  # fmt: skip
def test_forms_and_spellings_of_a_word_agree(question: str, text: str) -> None:
    assert coverage(question, text) >= 0.5


@pytest.mark.parametrize(
    ("question", "text"), [("cat", "category"), ("12", "123"), ("harbour", "hardware")]
)
def test_other_words_do_not(question: str, text: str) -> None:
    assert coverage(question, text) == 0


def test_long_words_weigh_more_than_short_ones() -> None:
    assert coverage("who is the administrator", "administrator") > 0.7
    assert coverage("who is the administrator", "who is the") < 0.3


def test_a_date_is_no_word_and_is_near_to_its_day() -> None:
    words = QuestionWords.of("harbour on 8 July 2025".split())

    assert {word.start.strip() for word in words.distinct} == {"harbo", "on"}
    assert (
        words.nearness(DAY)
        == 1
        > words.nearness(DAY + timedelta(days=1))
        > words.nearness(DAY.replace(year=2020))
    )


def test_parts_of_contractions_are_no_words_and_german_nouns_no_names() -> None:
    assert without_contractions("It isn’t ours, we'll say 'd' DON'T").split() == [
        "It",
        "ours,",
        "we",
        "say",
        "'d'",
    ]
    german = QuestionWords.of(
        "Warum zeigt das Display nach dem Neustart die falsche Uhrzeit an".split()
    )
    assert not any(word.name for word in german.distinct)


@given(texts)
def test_a_question_holds_its_own_words(text: str) -> None:
    words = QuestionWords.of(text.split())

    [held] = words.held_by([plain(text)])

    assert all(held.words)
    assert held.sequence <= words.pair_weight + 1e-9


@given(texts, st.lists(texts, max_size=4))
def test_a_text_has_the_pairs_that_are_in_it_whatever_else_is_asked_about(
    question: str, asked: list[str]
) -> None:
    words = QuestionWords.of(question.split())
    plain_texts = [plain(f"{text} {question[:40]} {text}") for text in asked]

    assert words.held_by([]) == []
    for text, held in zip(plain_texts, words.held_by(plain_texts), strict=True):
        assert [held] == words.held_by([text])
        if not words.spellings:
            assert list(held.words) == [word.start in text for word in words.distinct]
            in_text = [pair.weight for pair in words.pairs if pair.text in text]
            assert held.sequence == sum(in_text)


@given(texts, st.integers(3, 80), texts)
def test_a_snippet_is_a_part_of_the_text_and_fits(
    text: str, room: int, question: str
) -> None:
    shown = snippet(text, QuestionWords.of(question.split()), room)

    assert len(shown) <= room
    assert shown.removeprefix("…").removesuffix("…") in text
    assert shown == text or "…" in shown


@given(texts, st.integers(20, 80), texts)
def test_a_fact_is_in_one_line_and_fits(text: str, room: int, question: str) -> None:
    shown = whole_sentences(text, QuestionWords.of(question.split()), room)

    assert len(shown) <= room
    assert shown == " ".join(shown.split())


def test_a_fact_is_the_whole_sentences_that_hold_the_words() -> None:
    before = "The harbour is old. " * 30
    sentences = "The crane was repaired, e.g. its motor, by Okonkwo. It is painted red."
    after = " Boats come in at night." * 30
    words = QuestionWords.of("who repaired crane".split())

    assert whole_sentences(sentences, words, 80) == sentences
    assert whole_sentences(before + sentences + after, words, 90) == f"… {sentences} …"
    assert whole_sentences(before + sentences + after, words, 60) == (
        "… The crane was repaired, e.g. its motor, by Okonkwo. …"
    )
    assert "repaired" in whole_sentences(before + sentences, words, 30)
    assert whole_sentences(before, QuestionWords.of([]), 60).startswith(
        "The harbour is old."
    )


def test_a_fact_is_looked_for_in_the_passage_that_is_shown() -> None:
    first = "The crane is red. " * 9
    second = "The crane is blue. " * 9
    words = QuestionWords.of(["crane"])

    shown = whole_sentences(
        first + second, words, 60, (len(first), len(first + second))
    )

    assert "blue" in shown
    assert "red" not in shown


def test_a_snippet_shows_the_place_with_most_of_the_question() -> None:
    text = (
        "The harbour is old. " * 50
        + "The harbour crane was repaired by Okonkwo in May. "
        + "It rains. " * 80
    )
    words = QuestionWords.of(
        ["who", "repaired", "the", "crane", "in", "the", "harbour"]
    )

    assert "crane was repaired by Okonkwo" in snippet(text, words, 80)
    assert snippet(text, QuestionWords.of([]), 80).startswith("The harbour is old.")
    assert "\n" not in line(text.replace(" ", "\n"), words, 80)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("sha256", "Checksums are SHA-256."), ("sha-256", "SHA256 sums"), ("python3", "It runs on Python 3."),
        ("python 3", "a Python3 script"), ("oncall", "the on-call rota"), ("on-call", "the oncall phone"),
        ("cicd", "CI/CD runs"), ("Redis", "服务用Redis7做缓存"), ("Redis做缓存吗", "用Redis做缓存"),
        ("🚀", "🚀 marks a release"), ("✔️", "✔ is done"), ("🇩🇪", "shops in 🇩🇪🇫🇷"), ("front-end", "frontend builds"),
    ],
)  # fmt: skip
def test_a_name_agrees_in_either_spelling_and_a_symbol_as_it_is(
    question: str, text: str
) -> None:
    words = QuestionWords.of(question.split())
    [held] = words.held_by([plain(f"{with_parts(text)} {joined_names(text)}")])

    assert any(held.words)
    weights = [word.weight for word in compress(words.distinct, held.words)]
    assert sum(weights) >= 0.5 * words.weight
