"""The reference pages match the code."""

import re

import pytest

from tests.reference import FOLDER, pages

PAGES = pages()


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_reference_page_matches_the_code(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name], (
        "run `make reference`"
    )


def test_the_folder_holds_no_page_that_the_code_does_not_make() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(PAGES)


def test_every_argument_of_a_tool_has_a_meaning() -> None:
    rows = re.findall(
        r"^\| `([\w.\[\]]+)` \|.*\| (.*) \|$", PAGES["tools.md"], re.MULTILINE
    )

    assert [name for name, meaning in rows if not meaning.strip()] == []
