"""Hooks give few memories, whole or as a headline; an edit gets those that concern it."""

from collections.abc import Sequence

import pytest

from folklore.ranking.injection import edit_worth, forms


@pytest.mark.parametrize(
    ("confidences", "ignored", "given"),
    [
        ([], [], []),
        ([0.9] * 9, [False] * 9, ["full"] * 3 + ["headline"] * 5 + [None]),
        (
            [0.9] * 9,
            [True] * 7 + [False] * 2,
            ["headline"] * 5 + [None] * 2 + ["full"] * 2,
        ),
        (
            [0.3, 0.19, 0.189, 0.019, 0.0189],
            [False] * 5,
            ["full", "full", "headline", "headline", None],
        ),
        ([0.05, 0.3, 0.4, 0.5], [False] * 4, ["headline", "full", "full", "full"]),
        ([0.9, 0.9, 0.9], [True, False, False], ["headline", "full", "full"]),
        ([0.1899, 0.06], [False] * 2, [None, None]),
    ],
)
def test_three_notes_are_given_whole_and_five_as_headlines_if_one_is_likely(
    confidences: Sequence[float], ignored: Sequence[bool], given: list[str | None]
) -> None:
    assert forms(confidences, ignored, [True] * len(confidences), 1.0) == given


def test_without_cues_less_is_needed_since_texts_share_few_words_with_tasks() -> None:
    confidences = [0.045, 0.044, 0.008, 0.007]
    given = ["full", "headline", "headline", None]

    assert forms(confidences, [False] * 4, [False] * 4, 0.0) == given


@pytest.mark.parametrize(
    ("share", "form"), [(0.0, "full"), (0.1, "headline"), (0.8, "headline")]
)
def test_beside_memories_with_cues_one_without_needs_more(
    share: float, form: str
) -> None:
    assert forms([0.2, 0.05], [False] * 2, [True, False], share) == ["full", form]


def test_each_memory_says_whether_it_was_ignored() -> None:
    with pytest.raises(ValueError, match="argument"):
        forms([0.9, 0.9], [False], [True, True], 1.0)


@pytest.mark.parametrize(
    ("path", "paths", "text", "tie"),
    [
        ("web/de.json", ["web/de.json"], "", 3.9),
        ("web/de.json", [], "Fixed in web/de.json.", 3.9),
        ("web/de.json", [], "Never edit `web/*.json`, nor lib/*.css", 3.9),
        (
            "web/de.json",
            [],
            "Fixed in src/web/de.json, web/de.jsonl and web/*",
            2.5,
        ),  # the name alone
        ("web/de.json", ["web/fr.json"], "", 2.5),
        ("web/de.json", ["lib/fr.json", "web"], "", 2.5),
        ("web/de.json", ["we"], "", 0),
        ("web/sub/de.json", ["web/fr.json"], "", 0),
        ("web/sub/de.json", ["web", "lib"], "", 2.5),
        ("web/sub/de.json", ["web/sub/fr.json"], "", 2.5),
        ("de.json", ["fr.json"], "", 0),
        ("de.json", [], "The file de.json is generated.", 2.5),
        ("web/de.json", [], "de_json, ade.json, de.jsonl and x-de.json", 0),
        ("web/Makefile", [], "The Makefile has a target.", 0),  # a word, not a name
        ("web/a+b.py", [], "See a+b.py, not aab.py", 2.5),
        ("web/a+b.py", [], "See aab.py", 0),
    ],
)
def test_a_tie_to_the_file_is_enough_and_one_to_its_folder_counts_as_some(
    path: str, paths: list[str], text: str, tie: float
) -> None:
    assert edit_worth(1.5, path, paths, text) == pytest.approx(1.5 + tie)
