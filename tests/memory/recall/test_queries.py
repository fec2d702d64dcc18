"""Whatever somebody asks, in whatever spelling, it is answered or refused with a reason: it never fails."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from folklore.embedding.protocol import Embedder
from folklore.errors import InvalidInput
from folklore.memory.context import MemoryContext
from folklore.model import FIELDS, Filters
from tests.conftest import Cluster
from tests.person import Person, contents

FACTS = (
    "O'Brien's sister's house is at 12:30 on the map",
    "see https://example.org/a?b=c&d=%20#e for the café ☕ and the naïve 🚀 launch",
    "C++ and C# and F# and .NET, a|b, x := y, path\\to\\file, ${HOME}, 100%, --no-verify",
    "not by the who, it is what it is",
    "数据库连接池的大小是二十",
)


@pytest.fixture(scope="module")
async def reader(
    cluster: Cluster, template: str, embedder: Embedder
) -> AsyncIterator[Person]:
    async with cluster.opened(template) as database:
        person = Person(MemoryContext.of(database, embedder))
        await person.keep(*FACTS)
        yield person


HOSTILE = {
    "a quote": "'", "quotes": "''\"\"`´", "an open phrase": '"sister', "operators": "& | ! <-> <2> :* ( )",
    "an unbalanced expression": "((house AND (map OR", "only operators": "AND OR NOT", "a negation alone": "-house",
    "only punctuation": "?!.,;:-_/\\()[]{}<>", "only stop words": "is it not by the who",
    "an injection": "'; drop table memories; --", "months of other alphabets": "5 aprıl 2024, APRİL 2024, in Auguſt",
    "format marks": "%s %d {} {0} %(x)s $1 :namespaces ?", "NUL": "house\x00map",
    "lone surrogates": "house \ud800 map \udfff", "an emoji": "🚀", "joined emoji": "👩‍👩‍👧‍👦🏳️‍🌈",
    "hidden orders": "house\U000e0041\U000e0042\u202e map", "piled accents": "house" + "\u0301" * 5_000,
    "one long word": "x" * 100_000, "many words": " ".join(f"word{n}" for n in range(20_000)),
    "the same word often": "house " * 50_000, "camel case without end": "aB" * 50_000,
    "a paste of one megabyte": "2026-05-04 12:30:01 ERROR house is not on the map [a.b.c:12]\n" * 16_000,
    "a backslash": "\\", "a URL": "https://example.org/a?b=c&d=%20#e", "a time": "12:30",
    "a regular expression": r"^(a+)+$|\m\M\y(?i)", "another script": "连接池", "right to left": "שלום עולם مرحبا",
    "numbers": "1e400 -0 0x1F 1_000 .5.", "weights": "house:ABCD*", "columns": "content: summary: tag: source:",
}  # fmt: skip


@pytest.mark.parametrize("query", HOSTILE.values(), ids=HOSTILE.keys())
async def test_a_query_of_any_shape_is_answered(reader: Person, query: str) -> None:
    async with asyncio.timeout(120):
        recalled = await reader.recall(query[:1_000_000])
        searched = await reader.search(query[:1_000_000])

    assert recalled.degraded == searched.degraded == ()


@pytest.mark.parametrize(
    ("query", "fact"),
    [
        ("sister's", 0), ("O'Brien", 0), ("12:30", 0), ("https://example.org/a?b=c&d=%20#e", 1), ("☕ café", 1),
        ("C++", 2), ("c#", 2), ("--no-verify", 2), ("path\\to\\file", 2), ("((house AND (map OR", 0), ('"sister', 0),
        ("house \ud800 map", 0), ("house " * 50_000, 0),
    ],
)  # fmt: skip
async def test_punctuation_does_not_hide_what_is_asked_for(
    reader: Person, query: str, fact: int
) -> None:
    assert contents(await reader.search(query))[:1] == [FACTS[fact]]


async def test_a_query_over_the_limit_is_refused_by_name(reader: Person) -> None:
    with pytest.raises(
        InvalidInput, match="query: must be at most 1,000,000 characters, got 1,000,001"
    ):
        await reader.recall("x" * 1_000_001)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(query=st.text(st.characters(exclude_categories=[]), max_size=60))
async def test_any_text_may_be_asked(reader: Person, query: str) -> None:
    answer = await reader.recall(query)
    await reader.search(query)

    assert answer.degraded == ()


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    words=st.lists(
        st.sampled_from(
            [
                '"',
                "house",
                "AND",
                "OR",
                "NOT",
                "(",
                ")",
                "-",
                "ma*",
                "content:",
                "tag:",
                " ",
                "*",
            ]
        )
    )
)
async def test_any_expression_may_be_asked(reader: Person, words: list[str]) -> None:
    for expression in (" ".join(words), "".join(words)):
        answer = await reader.search(expression)

        assert answer.degraded == ()
        assert answer.memories or answer.note


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    text=st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30
    )
)
async def test_any_text_is_allowed_in_a_filter(reader: Person, text: str) -> None:
    equal = {
        name: text
        for name, field in FIELDS.items()
        if field.filter and field.type == "text"
    }
    asked = Filters(
        equal=equal,
        tags=(text,),
        exclude_tags=(text,),
        source_prefix=text,
        author=text,
        paths=(text,),
    )

    assert (await reader.recall("house", filters=asked)).memories == ()
