"""Prompts: what is asked in a long one, what is private in it, and remarks that ask nothing."""

import pytest

from folklore.text.hooks.prompts import is_remark, question_in, without_private

WORDS = [f"w{number:04}" for number in range(400)]
LOG = "worker finished\n" * 90


def test_a_long_prompt_is_asked_by_its_beginning_and_its_end_without_what_was_pasted() -> (
    None
):
    short = f"Why?\n```\n{'x' * 1_187}\n```"
    assert (len(short), question_in(short)) == (1_200, short)
    assert question_in(f"{short} ") == "Why?"
    assert (
        question_in(f"Why?\n~~~\n{LOG}~~~\nSay it.\n```py\n{LOG}```\nNow.")
        == "Why?\n\n\nSay it.\n\n\nNow."
    )
    assert question_in(f"Why?\n```\n{LOG}") == "Why?"
    # Of 1,200 characters after the code, nothing is left out; of more, the words at the cut are.
    assert question_in(f"{'y' * 1_200}\n```\n{LOG}```") == "y" * 1_200
    assert (
        question_in(" ".join(WORDS))
        == f"{' '.join(WORDS[:99])}\n{' '.join(WORDS[301:])}"
    )
    assert question_in("y" * 1_201) == f"{'y' * 600}\n{'y' * 600}"
    assert question_in(f"```\n{LOG}") == f"```\n{LOG[: 74 * 16]}"  # nothing but code


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a <private>b</private> c <PRIVATE>d</Private> e", "a  c  e"), ("a <private>b\nc", "a "), ("a", "a"),
        ("b</private> a", " a"), ("b</private> c</private> a <private>d", " a "),
    ],
)  # fmt: skip
def test_what_is_private_is_removed_to_the_end_or_from_the_beginning_if_a_mark_is_missing(
    text: str, left: str
) -> None:
    assert without_private(text) == left


@pytest.mark.parametrize(
    "prompt",
    [
        "2", "no, the second one", "yes, both", "option b", "1 and 3", "ship it", "stop, that is wrong", " continue ",
        "Thanks, that looks really good.", "Yes, do that.", "what\u2019s next?", "What did you do just now?",
        "ok, what have you changed in the file a.py?", "停，不要改那个文件", "等等", "ok ship", "danke, weiter",
        "wait, it reads every file of it twice", "ok add retries", "stop, " + "x" * 74, "please continue", "yes " * 10,
    ],
)  # fmt: skip
def test_a_remark_goes_on_stops_thanks_chooses_or_asks_about_the_session(
    prompt: str,
) -> None:
    assert is_remark(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "ok, add a retry to the purchase", "great, which port is free?", "wait, do we deploy?", "error 137",
        "stop in 5 minutes", "ok use a.py", "ok fixThis", "ok a/bc", "add retries", "okra", "yes " * 11,
        "stop, " + "x" * 75, "ok one two three", "好的，给购买流程添加重试机制",
        "it looks wrong in Safari", "停，为什么要改这个流程？", "はい、購入処理に再試行を追加してください",
    ],
)  # fmt: skip
def test_what_may_be_a_task_or_a_question_is_no_remark(prompt: str) -> None:
    assert not is_remark(prompt)
