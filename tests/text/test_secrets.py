"""Secrets of a text: every kind of key is found in any surroundings, ordinary technical prose is not reported."""

import base64
import random
import time
from contextlib import suppress
from re import _parser as parser  # type: ignore[attr-defined]
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings, strategies as st

from folklore.text.secrets import key_formats
from folklore.text.secrets.finder import SearchEnded, find, redact
from tests import ROOT
from tests.fake_keys import MAKERS, keys_of
from tests.linear_time import assert_linear_time
from tests.plain_sentences import SENTENCES

seeds = st.integers(0, 2**32 - 1)
# Surroundings of a key that has a form of its own.
AROUND = (
    "{}", "We deploy with {} since March.", "Use `{}`, please.", '{{"note": "{}"}}', "- step one\n- {}\n- step three",
    "see https://wiki.acme.io/x?token={}", "key%3D{}%26x%3D1", "first line\\n{}\\nlast line", "日本語{}。",
)  # fmt: skip
OWN_FORM = [
    "aws",
    "gcp",
    "github",
    "gitlab",
    "stripe",
    "anthropic",
    "models",
    "jwt",
    "sendgrid",
    "npm",
    "pypi",
]


def _key_alone(kind: str, seed: int) -> str:
    return MAKERS[kind][0](random.Random(seed))


# The same seeds each time: one of 80,000 such passwords looks like a name with a number and is not found.
@settings(max_examples=8, derandomize=True)
@given(seeds)
def test_a_key_of_every_kind_is_found_in_prose_and_by_itself(seed: int) -> None:
    for kind, key in keys_of(seed):
        for text in (
            key,
            f"Remember that {key} is what CI uses.",
            f"Two lines:\n{key}\nand more.",
        ):
            assert find(text), f"{kind} in {text!r}"


@given(seeds, st.sampled_from(OWN_FORM), st.sampled_from(AROUND))
def test_a_key_with_a_form_of_its_own_is_found_in_any_surroundings(
    seed: int, kind: str, around: str
) -> None:
    key = _key_alone(kind, seed)

    text, kinds = redact(around.format(key))

    assert kinds
    assert key not in text


@given(
    seeds,
    st.sampled_from(OWN_FORM),
    st.sampled_from(["\n", "\n    ", " \\\n", '"\n  "', '" + "', "\\n", "\n> "]),
)
def test_a_key_that_is_broken_over_lines_is_found(
    seed: int, kind: str, between: str
) -> None:
    key = _key_alone(kind, seed)
    middle = len(key) // 2

    assert find(f"key: {key[:middle]}{between}{key[middle:]} and so on")


@settings(max_examples=8, derandomize=True)
@given(seeds)
def test_redacting_leaves_no_part_of_a_secret_and_is_idempotent(seed: int) -> None:
    for kind, key in keys_of(seed):
        text, kinds = redact(f"before {key} after")
        assert kinds
        assert redact(text) == (text, ()), kind
        assert text.endswith("after")
        longest = max(key.split(), key=len)
        assert longest[-12:] not in text or not find(longest[-12:])


@given(seeds, st.sampled_from(["p@ss", "a/b", "x:y", "&?#", "ü"]))
def test_a_percent_encoded_password_in_a_url_is_found(seed: int, odd: str) -> None:
    password = odd + _key_alone("password", seed)[-8:]

    text, _ = redact(
        f"postgresql://svc%40acme:{quote(password, safe='')}@db.acme.io/app is the DSN"
    )

    assert quote(password, safe="") not in text
    assert "db.acme.io/app is the DSN" in text


@pytest.mark.parametrize(
    "purpose", ["for the staging database", "on the old build host", "of Anna's laptop"]
)
@pytest.mark.parametrize("password", ["hunterlj80ybcx67z", "summer2024x", "wind!mill"])
def test_a_password_is_found_after_its_purpose(purpose: str, password: str) -> None:
    text, kinds = redact(f"The password {purpose}: {password}, changed in May.")

    assert (text, kinds) == (
        f"The password {purpose}: [redacted: password], changed in May.",
        ("password",),
    )


def _base64(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


BCRYPT = "$2b" + "$12$" + "Ab3xZ" * 10 + "q./"
WORDS = "vacant glimpse orchard velvet kangaroo mimic tornado rhythm bulb cereal donkey echo"
PASSWORD = "k3Xq9" + "pLm2z"
WORD = "blue" + "whale"
TOKEN = "k3Xq9" + "pLm2z" + "W7vR4tY8bN1"
LOGIN = _base64(f"bot:{PASSWORD}")
MANIFEST = "kind: Secret\n{}:\n  conn: {}\n"
# Kinds, and texts with the secret between ‹ and ›.
CONTEXTS = [
    ("password", "password: ‹hunter" + "2›"), ("password", "password: ‹correct-horse-" + "battery-staple›"),
    ("Kubernetes secret", "apiVersion: v1\n" + MANIFEST.format("data", f"‹{_base64('k3Xq9' * 4)}›")),
    ("Kubernetes secret", MANIFEST.format("data", f"‹{_base64(bytes(range(130, 160)))}›")),
    ("Kubernetes secret", MANIFEST.format("data", f"‹{_base64('-----BEGIN PRIVATE ' + 'KEY-----')}›")),
    ("registry login", '{"auths": {"ghcr.io": {"auth": "‹' + LOGIN + '›"}}}'),
    ("registry login", '{\\"ghcr.io\\":{\\"auth\\":\\"‹' + LOGIN + '›\\"}}'), ("password hash", f"deploy:‹{BCRYPT}›"),
    ("password hash", "root:‹$6" + "$fh9dtl5fQCMjhDf8$" + "ulXoJ82ru" * 9 + "›:19700:0:99999:7:::"),
    ("Sentry DSN", "SENTRY_DSN=‹https://" + "0a9c" * 8 + "@o2316.ingest.sentry.io/5175513›"),
    ("signed address", "https://b.s3.amazonaws.com/k?X-Amz-Date=1&‹X-Amz-Signature=" + "0a9c" * 16 + "›"),
    ("seed phrase", f"Recovery phrase of the treasury wallet is ‹{WORDS}›."),
    ("basic credential", f"Authorization: Basic ‹{LOGIN}›."),
    ("private key", '{"kty":"EC","x":"' + TOKEN * 2 + '","d":"‹' + TOKEN * 2 + '›"}'),
    ("private key", '{\\"kty\\":\\"EC\\",\\"d\\":\\"‹' + TOKEN + '›\\"}'),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "marked"), CONTEXTS)
def test_a_secret_is_known_by_its_context(kind: str, marked: str) -> None:
    text = marked.replace("‹", "").replace("›", "")

    begin = marked.index("‹")
    end = marked.index("›") - 1
    assert (kind, begin, end) in [
        (secret.kind, secret.start, secret.end) for secret in find(text)
    ]


# A row has a kind and a text: the edges of each rule, and flags, variables, prices, types, results of tests, hashes of
# documentation and public keys with the kind "none". ¦ divides what scanners look for.
ROWS = (
    (ROOT / "tests" / "secrets_at_edges.txt")
    .read_text(encoding="utf-8")
    .replace("¦", "")
    .splitlines()
)


@pytest.mark.parametrize(("kind", "marked"), [row.split("\t") for row in ROWS])
def test_a_secret_is_told_from_other_values_at_the_edges_of_each_rule(
    kind: str, marked: str
) -> None:
    for name, value in {
        "⏎": "\n",
        "⇥": "\t",
        "{PASSWORD}": PASSWORD,
        "{WORD}": WORD,
        "{TOKEN}": TOKEN,
    }.items():
        marked = marked.replace(name, value)
    text = marked.replace("‹", "").replace("›", "")

    expected = (
        [] if kind == "none" else [(kind, marked.index("‹"), marked.index("›") - 1)]
    )
    assert [tuple(secret) for secret in find(text)] == expected


def test_a_password_of_ten_random_letters_and_digits_is_found_in_prose() -> None:
    chance = random.Random(5)
    passwords = [
        "".join(chance.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=10))
        for _ in range(500)
    ]

    assert (
        sum(bool(find(f"The password is {password}.")) for password in passwords) > 480
    )


def test_ordinary_technical_prose_has_no_secret() -> None:
    for sentence in SENTENCES:
        assert find(sentence) == (), sentence


@given(st.lists(st.sampled_from(SENTENCES), min_size=2, max_size=6))
def test_several_sentences_together_have_no_secret(lines: list[str]) -> None:
    assert find("\n\n".join(lines)) == ()


@given(
    st.lists(st.sampled_from("0123456789abcdef"), min_size=32, max_size=64).map("".join)
)
def test_plain_hexadecimal_is_no_secret(digits: str) -> None:
    for text in (
        f"commit {digits}",
        f"sha256:{digits}",
        f"the digest is {digits}",
        f'"id": "{digits}"',
    ):
        assert find(text) == ()


@given(st.text(max_size=300))
@example("İ password = hunter2x9 İ")
def test_secrets_are_ordered_and_within_the_text(text: str) -> None:
    ends = [0]
    for secret in find(text):
        assert ends[-1] <= secret.start < secret.end <= len(text)
        ends.append(secret.end)


def test_beginnings_of_keys_cost_a_few_times_an_ordinary_text_at_most() -> None:
    ordinary = " ".join(SENTENCES)[:31_900]
    hostile = ("ghp_\n npm_\n eyJ\n" * 3_000)[: len(ordinary)]

    def work(text: str) -> float:
        began = time.thread_time()
        with suppress(SearchEnded):
            find(text)
        return time.thread_time() - began

    ratios = (work(hostile) / work(ordinary) for _ in range(20))
    assert any(ratio < 5 for ratio in ratios)


@pytest.mark.parametrize(
    "unit", ["eyJ-", "sqa_", "ghp_ \n", "sk-a\n", "ghp_aaaa\n npm_aaaa\n", "pa-\n"]
)
def test_beginnings_of_keys_take_linear_time(unit: str) -> None:
    def search(text: str) -> None:
        with suppress(SearchEnded):
            find(text)

    assert_linear_time(search, unit, 32_000)


@pytest.mark.parametrize("sign", ["*", '"', "')", "</b>"])
def test_signs_after_a_name_take_linear_time(sign: str) -> None:
    assert_linear_time(lambda text: find(f"password{text}"), sign, 32_000, end="x")


def test_a_value_of_many_parts_takes_no_more_time_for_its_last_sign() -> None:
    assert find(f'api_key = "{"oh_" * 40}!"') == find(f'api_key = "{"oh_" * 12}!"')


def test_a_text_with_too_many_beginnings_of_keys_is_given_up() -> None:
    beginnings = "ghp_aaaa\n npm_aaaa\n"
    key = _key_alone("github", 7)

    assert find(beginnings * 20 + key)
    with pytest.raises(SearchEnded):
        find(beginnings * 800 + key)


def test_no_rule_expects_more_characters_than_its_keys_have() -> None:
    for rule in key_formats.RULES:
        if rule.body is not None:
            least, _ = parser.parse(rule.body.pattern).getwidth()
            assert rule.shortest <= least, rule
