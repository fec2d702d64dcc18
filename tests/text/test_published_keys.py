"""Key formats that are published: each is found in a sentence, and what a new list has besides is named."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from folklore.text.secrets.finder import find
from folklore.text.secrets.key_formats import RULES, Rule
from tests.published_keys import formats_of, missed, sample

# A rule as such lists have it: with a name before the key, and without.
PUBLISHED = r"""
[[rules]]
id = "known"
regex = '''\b(glpat-[\w-]{20})(?:[\s;]|$)'''
[[rules]]
id = "unknown"
regex = '''\b((?:qzz|vyy)_[a-z0-9]{30})\b'''
[[rules]]
id = "by its name"
regex = '''(?i)(?:quuz)[\s'"]{0,3}=([a-z0-9]{30})'''
[[rules]]
id = "a file"
path = '''\.p12$'''
"""


def _rules_with_a_body() -> list[Rule]:
    return [
        rule
        for rule in RULES
        if rule.body and not rule.within_word and "(?<=" not in rule.prefix.pattern
    ]


@pytest.mark.parametrize(
    "rule", _rules_with_a_body(), ids=lambda rule: rule.prefix.pattern
)
def test_a_key_of_every_format_is_found_in_plain_prose(rule: Rule) -> None:
    assert rule.body is not None
    chance = random.Random(rule.prefix.pattern)
    keys = [
        sample(rule.prefix.pattern, chance) + sample(rule.body.pattern, chance)
        for _ in range(20)
    ]

    found = [key for key in keys if find(f"Kim says that {key} opens the vault.")]

    # A short key is a word by chance; a lookahead is none that a sample is made by.
    assert len(found) >= 12 or "(?=" in rule.prefix.pattern + rule.body.pattern


def test_a_format_of_a_published_list_that_is_missed_is_named_by_its_prefix(
    tmp_path: Path,
) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(PUBLISHED)

    ran = subprocess.run(
        [sys.executable, "-m", "tests.published_keys", rules],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert ran.returncode == 1
    lines = ran.stdout.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ["qzz_", "vyy_"]
    assert lines[-1] == "1 of 3 formats with a prefix are found."


def test_a_key_after_a_name_is_no_format_of_its_own() -> None:
    rules = [{"id": "named", "regex": r"(?:quuz)\s*=\s*(quuz_[a-z0-9]{30})"}]

    assert list(formats_of(rules)) == []


def test_a_public_key_is_not_missed() -> None:
    rules = [{"id": "public", "regex": r"\b(FLWPUBK_TEST-[a-h0-9]{32}-X)\b"}]

    assert list(missed(formats_of(rules))) == []
