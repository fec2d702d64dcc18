"""Two memories are on one subject by their cosine and by the words of their texts and cues."""

from folklore.ranking.subjects import (
    SAME,
    is_replaced,
    likeness_of,
    names_subject,
    subject_words,
)

JEST = "All packages are tested with Jest, one config in the root."
JEST_CUES = ("which test runner", "is jest set up?")
VITEST = "Packages are tested with Vitest; Jest remains in apps/mobile."
VITEST_CUES = ("which test runner for a new package", "vitest or jest")


def test_a_decision_and_its_reversal_are_on_one_subject_by_their_words() -> None:
    older = subject_words(JEST, JEST_CUES)

    assert likeness_of(0.4, older, subject_words(VITEST, VITEST_CUES)) >= SAME
    assert likeness_of(0.4, older, subject_words("Tokens rest in the keychain.")) < SAME
    assert likeness_of(0.4, frozenset(), frozenset()) == 0.4


def test_the_words_that_text_and_cues_share_name_the_subject() -> None:
    port = "The billing service listens on port 8443."
    cues = ("billing port", "which port has billing?")

    assert names_subject(JEST, JEST_CUES, subject_words(VITEST, VITEST_CUES))
    assert names_subject(port, cues, subject_words("Billing listens on port 9000 now."))
    assert not names_subject(
        port, cues, subject_words("The orders service listens on port 9000.")
    )
    assert not names_subject(port, (), subject_words(port))


def test_what_names_the_subject_or_is_needed_in_the_same_situation_replaces() -> None:
    flags = "Flags are read from LaunchPad."
    newer = "Flags are rows of the table settings; LaunchPad is cancelled."
    need = ("hide unfinished work", "roll out step by step", "for some users only")
    other = ("password of the admin pages", "who pays the invoice", "new account")

    assert is_replaced(JEST, JEST_CUES, VITEST, VITEST_CUES, 0.9)
    assert not is_replaced(JEST, JEST_CUES, VITEST, VITEST_CUES, 0.8)
    assert not names_subject(flags, need, subject_words(newer, need))
    assert is_replaced(flags, need, newer, need, 1.1)
    assert not is_replaced(flags, need, newer, need, 0.9)
    assert not is_replaced(flags, need, newer, other, 1.1)
    assert not is_replaced(flags, (), newer, (), 1.1)
