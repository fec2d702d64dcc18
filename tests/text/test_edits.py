"""Edits: the first file of a patch, the words that are looked up, and what a memory writes as code."""

import pytest

from folklore.text.hooks.edits import Edit, edit_of

PATCH = "*** Begin Patch\n*** Add File: a.py \n+one\n-old\n+ two\n*** Update File: b.py\n+three\n*** End Patch"


@pytest.mark.parametrize(
    ("path", "text", "patch", "edit"),
    [
        ("x.py", "new", PATCH, Edit("x.py", "new")),
        (" x.py ", " new ", "", Edit("x.py", " new ")),
        ("", "new", PATCH, Edit("a.py", "one\n two")),
        ("", "", PATCH[PATCH.index("*** Update") :], Edit("b.py", "three")),
        ("", "", "ls -l", None),
        ("", "", "+" * 20_000 + "\n" + PATCH, None),
        ("", "", f"*** Add File: a.py\n+{'x' * 20_000}", Edit("a.py", "x" * 19_980)),
    ],
)  # fmt: skip
def test_an_edit_is_its_path_and_text_or_the_first_file_of_a_patch(
    path: str, text: str, patch: str, edit: Edit | None
) -> None:
    assert edit_of(path, text, patch) == edit


def test_the_words_are_distinct_names_that_not_any_code_has() -> None:
    edit = Edit("web/src/cart.ts", "export const total = http.Get(url) + Total + ab")
    assert edit.question == "total http.Get url Total web cart"
    assert Edit("a.py", " ".join(f"w{n}a" for n in range(300))).question == " ".join(
        f"w{n}a" for n in range(200)
    )
    assert Edit("late.py", "x" * 19_999 + "! unread").question == f"{'x' * 19_999} late"


@pytest.mark.parametrize(
    ("memory", "worth"),
    [
        ("Never `zap`, nor desugar.", 2), ("Never `zap` nor `Desugar it`", 3), ("zap desugar", 0), ("zap.Desugar()", 3),
        ("callZap_desugar", 3), ("`zapping`", 2), ("`wrap_zap:ab keys`", 2), ("`unzap`", 0), ("", 0),
    ],
)  # fmt: skip
def test_words_of_the_text_that_a_memory_has_within_code_count(
    memory: str, worth: float
) -> None:
    lexemes = {"zap": 2.0, "desugar": 1.0, "ab": 8.0, "keys": 16.0, "missing": 32.0}

    assert (
        Edit("svc/keys.go", "ab ZAP Desugar keys").weight_in_code(lexemes, memory)
        == worth
    )
    assert Edit("svc/Zap.go", "zap").weight_in_code(lexemes, memory) == 0
