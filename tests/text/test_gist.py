"""The gist of a group of texts: shared words, keywords and leading sentences."""

from hypothesis import given, strategies as st

from folklore.text.gist import gist, keywords, leading_sentence, shared_words

texts = st.lists(st.text(max_size=400), min_size=1, max_size=6)


@given(texts)
def test_shared_words_do_not_depend_on_the_order_of_texts(
    given_texts: list[str],
) -> None:
    assert shared_words(given_texts) == shared_words(given_texts[::-1])


@given(texts)
def test_shared_words_occur_in_at_least_two_texts(given_texts: list[str]) -> None:
    for word, share in shared_words(given_texts).items():
        assert 2 / len(given_texts) <= share <= 1
        assert sum(word.casefold() in text.casefold() for text in given_texts) >= 2


@given(st.text(max_size=2_000))
def test_a_leading_sentence_is_one_short_line(text: str) -> None:
    line = leading_sentence(text)

    assert "\n" not in line
    assert len(line) <= 202


def test_shared_words_have_their_most_frequent_spelling() -> None:
    shared = shared_words(
        ["PgBouncer drops SET", "pgbouncer and PgBouncer", "what PgBouncer does"]
    )

    assert shared == {"PgBouncer": 1.0}


def test_keywords_are_rare_in_the_corpus() -> None:
    shared = {"the": 1.0, "pgbouncer": 0.6, "deploy": 0.6}

    assert keywords(shared, {"the": 0.0, "pgbouncer": 5.0, "deploy": 2.0}) == [
        "pgbouncer",
        "deploy",
    ]


def test_a_gist_has_the_keywords_and_each_beginning_once() -> None:
    summary = gist(
        [
            "Never deploy on Friday. It broke twice.",
            "Never deploy on Friday.",
            "No deploys\non Friday",
        ],
        ["deploy"],
    )

    assert (
        summary == "3 memories about deploy:\n- Never deploy on Friday.\n- No deploys"
    )
