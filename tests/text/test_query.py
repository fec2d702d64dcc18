"""The keyword query language and its translation to a tsquery.

FOLKLORE_FUZZ=100000 tries more random inputs.
"""

import os
import random
import re

import pytest
from hypothesis import given, settings, strategies as st

from folklore.text.query.parser import MAX_BAG, KeywordQuery, Term, parse
from folklore.text.query.tsquery import quoted, to_tsquery_text

FUZZ = int(os.environ.get("FOLKLORE_FUZZ", "3000"))
# fmt: off
PIECES = [
    "AND", "OR", "NOT", " ", " ", " ", "(", ")", '"', "-", "--", "*", "tag:", "summary:", "content:", "source:", "a",
    "be", "word", "pre*", "Über", "日本", "\ud83d", "\x00", "\u200b", "🔥", "👩‍💻", "'", "\\", ":", "&", "|", "!",
    "<->",
    "NULL", "foo(bar)", "https://x.y/z?q=(1)", "12:30", "C++", "\n", "\t", "“", "”", "%", "$1", "{}", ":*", "-word",
    "must", "e-mail",
]
# fmt: on
TRICKY = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
ANYTHING = st.text(st.characters()) | TRICKY


def tsquery(text: str) -> str:
    """Return the tsquery of a query whose lexemes are its words in lower case."""
    query = parse(text)
    return to_tsquery_text(query, [[term.text.lower().split()] for term in query.terms])


def without_labels(tsquery: str) -> str:
    """Return a tsquery without the labels of terms for any column, which all have them."""
    return tsquery.replace(":ABD", "").replace(":*ABD", ":*")


BAGS: list[str] = [
    "why does the connection pool time out",
    "sister's don't O’Brien",
    "https://example.com/a?b=c&d=(e) at 12:30",
    "C++ and C# and .NET",
    "git commit --no-verify -m message",
    "rm -rf / and tar -xzf it",
    "gcc -O2 -Wall",
    "java -Dfoo=bar -fast",
    "between -1 and +1, a - b, utf-8, e-mail",
    "foo(bar) (an aside) f(x, y)",
    "std::vector<int> note: remember",
    "NOT NULL",
    "column email NOT NULL violated",
    "CREATE TABLE IF NOT EXISTS users",
    "you must NOT restart the proxy",
    "THIS IS A SHOUTED SENTENCE WITH AND OR NOT IN IT",
    "**bold** and *two words* and 2 * 3 and SELECT count(*)",
    'a 5" screen and a 3" one',
    'foo "" bar " "',
    "lower case and or not",
    "source: unknown, Tag:x",
    "v* is too short a prefix",
    "- first\n- second AND third\n-removed line",
    "🔥🔥🔥",
    "",
    "   ",
    "()",
    "a & b | !c <-> d:*",
    # malformed expressions
    "redis AND",
    "OR",
    "NOT",
    "redis OR",
    "AND redis",
    "redis AND OR cluster",
    "(redis AND cluster",
    "redis AND cluster)",
    "redis AND ()",
    'redis "connection pool',
    'tag:"open',
    "(" * 100 + "a OR b" + ")" * 100,
    " AND ".join(["word"] * 100),
]


def test_what_is_no_expression_is_a_bag_of_words() -> None:
    for text in BAGS:
        assert parse(text) == KeywordQuery(" ".join(text.split())), text


TRANSLATED: list[tuple[str, str]] = [
    ('"connection pool"', "('connection' <-> 'pool')"),
    ('"connection pool" timeout', "(('connection' <-> 'pool') | 'timeout')"),
    ("“smart quotes”", "('smart' <-> 'quotes')"), ("redis AND cluster", "('redis' & 'cluster')"),
    ("redis OR cluster", "('redis' | 'cluster')"),
    ("redis AND (cluster OR sentinel)", "('redis' & ('cluster' | 'sentinel'))"),
    ("redis AND cluster sentinel", "(('redis' & 'cluster') | 'sentinel')"),
    ("redis cluster -sentinel", "(('redis' | 'cluster') & !'sentinel')"),
    ("-sentinel redis cluster", "(('redis' | 'cluster') & !'sentinel')"),
    ("redis NOT cluster", "('redis' & !'cluster')"), ("redis AND NOT cluster", "('redis' & !'cluster')"),
    ("redis (cache -cluster) sentinel", "(('redis' | ('cache' & !'cluster')) | 'sentinel')"),
    ('redis -"rate limit"', "('redis' & !('rate' <-> 'limit'))"),
    ("redis -(cluster sentinel)", "('redis' & !('cluster' | 'sentinel'))"),
    ("redis -tag:billing", "('redis' & !'billing':A)"), ("redis NOT NOT cluster", "('redis' | 'cluster')"),
    ("authent*", "'authent':*"), ("authent*, redis", "('authent':* | 'redis')"),
    ("tag:billing summary:late content:x1 source:docs", "((('billing':A | 'late':B) | 'x1':D) | 'docs':C)"),
    ("tag:entity:person:sarah", "'entity:person:sarah':A"), ("summary:auth*", "'auth':*B"),
    ("source:(docs OR wiki)", "('docs':C | 'wiki':C)"), ('summary:"rate limit"', "('rate':B <-> 'limit':B)"),
    ("GPU OR CPU", "('gpu' | 'cpu')"), ("foo(bar) AND baz", "('foo(bar)' & 'baz')"),
    ("数据库 AND 缓存", "('数据库' & '缓存')"), ("sister's AND c:\\path", "('sister''s' & 'c:\\\\path')"),
]  # fmt: skip


def test_an_expression_is_translated() -> None:
    for text, written in TRANSLATED:
        query = parse(text)
        assert query.is_expression, text
        assert without_labels(tsquery(text)) == written, text


def test_the_bag_of_an_expression_has_the_words_that_are_not_negated() -> None:
    query = parse('redis AND NOT cluster "rate limit" -(sentinel OR NOT valkey)')
    assert query.bag == "redis rate limit valkey"
    assert query.phrases == ("rate limit",)


def test_terms_have_their_column_and_form() -> None:
    assert parse('auth* -tag:"old stuff"').terms == (
        Term("auth", prefix=True),
        Term("old stuff", phrase=True, column="tag", negated=True),
    )
    assert parse("auth* -tag:old").program == (0, 1, "!", "&")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('said "yes" to all', True), ("a OR bee", True), ("redis AND x", False), ("auth* x", False), ("tag:a x", False),
        ("bare", False),
    ],
)  # fmt: skip
def test_an_or_of_words_and_phrases_has_only_alternatives(
    text: str, expected: bool
) -> None:
    assert parse(text).only_alternatives is expected


def test_an_over_long_bag_is_cut_at_a_blank() -> None:
    assert len(parse("word " * 200_000).bag) <= MAX_BAG
    assert parse("word " * 200_000).bag.endswith(" word")
    assert len(parse("x" * 1_000_000).bag) == MAX_BAG


def test_a_term_may_have_several_forms() -> None:
    forms = [["getuserbyid"], ["get", "user", "", "id"], [], ["getuserbyid"]]
    assert (
        to_tsquery_text(parse("tag:getUserById*"), [forms])
        == "('getuserbyid':*A | ('get':A <-> 'user':A <2> 'id':*A))"
    )


@pytest.mark.parametrize(
    ("text", "lexemes", "written"),
    [
        ("the AND redis", [[], [["redis"]]], "'redis'"), ("redis AND the", [[["redis"]], [[""]]], "'redis'"),
        ("redis -the", [[["redis"]], []], "'redis'"), ("NOT the", [[]], ""), ("the OR an", [[], []], ""),
        ("bare", [], ""),
    ],
)  # fmt: skip
def test_a_word_without_lexemes_is_removed(
    text: str, lexemes: list[list[list[str]]], written: str
) -> None:
    assert without_labels(to_tsquery_text(parse(text), lexemes)) == written


def test_lexemes_that_postgres_rejects_are_left_out() -> None:
    assert (
        to_tsquery_text(
            parse("redis OR cluster"), [[["x" * 3000], ["nul\x00"]], [["ok"]]]
        )
        == "'ok':ABD"
    )


LEXEME = r"'(?:[^'\\]|''|\\\\)+'(?::\*?[ABCD]*)?"


def is_tsquery(text: str) -> bool:
    """Return whether a text follows the grammar of tsquery, by reducing it."""
    reduced = re.sub(LEXEME, "x", text)
    before = ""
    while reduced != before:
        before = reduced
        reduced = re.sub(r"\(x(?: (?:[&|]|<->|<\d+>) x)*\)|!x", "x", reduced)
    return reduced in ("", "x")


@settings(max_examples=max(FUZZ // 10, 100), deadline=None)
@given(ANYTHING, st.integers(0, 2**32))
def test_every_query_with_any_lexemes_gives_a_well_formed_tsquery(
    text: str, seed: int
) -> None:
    chance = random.Random(seed)
    query = parse(text)

    def some(things: list[str]) -> list[str]:
        return chance.choices(things, k=chance.randrange(4))

    lexemes = [
        [
            some(["", "a", "'", "\\", "b\\'", ":*A", " & ", "!(", "日本"])
            for _ in some([""])
        ]
        for _ in query.terms
    ]
    assert is_tsquery(to_tsquery_text(query, lexemes))


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_quoted_lexeme_reads_back_as_itself(lexeme: str) -> None:
    inside = quoted(lexeme)[1:-1]
    assert inside.replace("''", "'").replace("\\\\", "\\") == lexeme
    assert re.fullmatch(r"(?:[^'\\]|''|\\\\)+", inside)


@settings(max_examples=max(FUZZ // 5, 100), deadline=None)
@given(ANYTHING)
def test_every_text_is_parsed(text: str) -> None:
    query = parse(text)
    (query.bag + "".join(term.text for term in query.terms)).encode()
    assert "\x00" not in query.bag
    assert bool(query.terms) == query.is_expression
    assert sorted(step for step in query.program if isinstance(step, int)) == list(
        range(len(query.terms))
    )
    assert is_tsquery(tsquery(text))
