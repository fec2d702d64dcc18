"""Validation before storing: every error names the field, the limit and the next step."""

import functools
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from hypothesis import given, strategies as st

from folklore.errors import InvalidInput
from folklore.memory.context.validation import MAX_CONTENT, check_batch
from folklore.model import Draft, Link
from tests.person import NOON, Person

GOOD = Draft("a fact")
DEEP = functools.reduce(lambda inner, _: [inner], range(3_000), list[Any]())

# Times that exist in their zone but not in UTC.
FIRST_YEAR, LAST_YEAR = (
    datetime.fromisoformat(t)
    for t in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:00:00-14:00")
)

REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "blank content": ("content", {"content": " \n\t "}, "is empty"),
    "invisible content": ("content", {"content": "\u200b\u2060\x00\ud800"}, "is empty"),
    "content over the limit": (
        "content",
        {"content": "x" * 32_001},
        "at most 32,000 characters, got 32,001",
    ),
    "summary over the limit": (
        "summary",
        {"summary": "x" * 2_001},
        "at most 2,000 characters",
    ),
    "priority below": ("priority", {"priority": 0}, "between 1 and 4"),
    "priority above": ("priority", {"priority": 5}, "between 1 and 4"),
    "importance above": ("importance", {"importance": 1.5}, "between 0 and 1"),
    "importance below": ("importance", {"importance": -0.1}, "between 0 and 1"),
    "importance not a number": (
        "importance",
        {"importance": math.nan},
        "between 0 and 1",
    ),
    "confidence endless": ("confidence", {"confidence": math.inf}, "between 0 and 1"),
    "metadata over the limit in bytes": (
        "metadata",
        {"metadata": {"a": "é" * 4_096}},
        "8 KB",
    ),
    "metadata with NaN": ("metadata", {"metadata": {"a": math.nan}}, "JSON"),
    "metadata that is no JSON": ("metadata", {"metadata": {"a": object()}}, "JSON"),
    "metadata nested without end": (
        "metadata",
        {"metadata": {"a": DEEP}},
        "nested too deeply",
    ),
    "language": ("language", {"language": "klingon"}, "'klingon' is not a language"),
    "kind too long": ("kind", {"kind": "k" * 41}, "is not a kind"),
    "no kind": ("kind", {"kind": ""}, "is not a kind"),
    "expires now": ("expires_at", {"expires_at": NOON}, "is in the past"),
    "too many tags": ("tags", {"tags": tuple(f"t{n}" for n in range(65))}, "64"),
    "a long tag": ("tags", {"tags": ("x" * 101,)}, "100"),
    "an empty tag": ("tags", {"tags": ("fine", " ")}, "tag 2 is empty"),
    "too many paths": ("paths", {"paths": tuple(f"p/{n}" for n in range(65))}, "64"),
    "a long path": ("paths[1]", {"paths": ("fine", "x" * 1_001)}, "1,000"),
    "a long source": ("source", {"source": "x" * 1_001}, "1,000"),
    "a source of many bytes": ("source", {"source": "界" * 667}, "2,000 bytes"),
    "before the first year": (
        "occurred_at",
        {"occurred_at": FIRST_YEAR},
        "from 0001-01-02 to 9999-12-30",
    ),
    "after the last year": (
        "expires_at",
        {"expires_at": LAST_YEAR},
        "from 0001-01-02 to 9999-12-30",
    ),
    "a long session": ("session", {"session": "x" * 201}, "200"),
    "a long commit": ("commit", {"commit": "x" * 101}, "100"),
    "a long key": ("idempotency_key", {"idempotency_key": "x" * 201}, "200"),
    "too many relations": (
        "related",
        {"related": (Link(UUID(int=1), "causes"),) * 65},
        "at most 64 relations, got 65",
    ),
    "a position before the first": (
        "position",
        {"position": -1},
        "between 0 and 2147483647",
    ),
    "a position beyond counting": (
        "position",
        {"position": 2**31},
        "between 0 and 2147483647",
    ),
}


def checked_drafts(drafts: Sequence[Draft], zone: tzinfo = UTC) -> list[Draft]:
    """The drafts as they will be stored."""
    valid = check_batch(drafts, now=NOON, zone=zone)
    for error in valid.errors.values():
        raise error
    return list(valid.drafts.values())


@pytest.mark.parametrize(
    ("field", "wrong", "said"), REFUSED.values(), ids=REFUSED.keys()
)
def test_an_invalid_value_is_rejected_by_the_name_of_its_field(
    field: str, wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said) as alone:
        check_batch([replace(GOOD, **wrong)], now=NOON, single=True)
    valid = check_batch([GOOD, GOOD, GOOD, replace(GOOD, **wrong)], now=NOON)

    assert alone.value.field == field
    assert list(valid.drafts) == [0, 1, 2]
    assert str(valid.errors[3]).startswith(f"memories[3].{field}: ")


async def test_an_invalid_namespace_is_rejected_by_name(
    person: Person, connection: asyncpg.Connection
) -> None:
    for name in (
        "two words",
        "-dash",
        "a//b",
        "x" * 101,
        "nul\x00",
        "em\u2014dash",
        "🚀",
    ):
        with pytest.raises(InvalidInput) as refusal:
            await person.store("fine", namespace=name)
        assert refusal.value.field == "namespace"
    assert await connection.fetchval("select count(*) from namespaces") == 0


@pytest.mark.parametrize(("size", "field"), [(0, "memories"), (501, "memories")])
def test_a_batch_holds_1_to_500_memories(size: int, field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        check_batch([GOOD] * size, now=NOON)

    assert refusal.value.field == field
    assert refusal.value.hint


def test_the_limits_themselves_are_allowed() -> None:
    most = Draft(
        content="x" * MAX_CONTENT,
        summary="s" * 2_000,
        tags=tuple(f"{n:0100}" for n in range(64)),
        importance=1,
        confidence=0,
        priority=4,
        metadata={"a": "x" * (8_192 - len('{"a": ""}'))},
        expires_at=NOON + timedelta(microseconds=1),
        related=(Link(UUID(int=1), "causes", 0.0),) * 64,
    )

    assert checked_drafts([most, *[GOOD] * 499])[0] == most


def test_invisible_characters_are_removed_and_blank_fields_are_unset() -> None:
    [checked] = checked_drafts(
        [
            Draft(
                "\ufeffa\u202eb\x00c\udfff\U000e0041 ",
                summary=" \u200b",
                source=" x ",
                session="",
                commit="\t",
            )
        ]
    )

    assert checked == Draft("abc", source="x")


def test_kinds_tags_paths_and_languages_have_one_spelling() -> None:
    [checked] = checked_drafts(
        [
            Draft(
                "x",
                kind=" Decision ",
                tags=("Área : Pagos", "área:pagos"),
                paths=("src/", "src", "a"),
                language="de-AT",
            )
        ]
    )

    assert (checked.kind, checked.tags, checked.paths, checked.language) == (
        "decision", ("área:pagos",), ("src", "a"), "german",
    )  # fmt: skip


@given(st.text(st.characters(exclude_categories=[]), max_size=200))
def test_any_text_is_either_cleaned_or_refused_and_never_breaks(text: str) -> None:
    try:
        [checked] = checked_drafts(
            [Draft(text, summary=text, source=text, metadata={text: [text]})]
        )
    except InvalidInput as refusal:
        assert "memories[0].content: " in str(refusal)  # noqa: PT017 - most texts are not refused
        return

    assert checked.content == checked.content.strip() != ""
    for cleaned in (
        checked.content,
        checked.summary or "",
        checked.source or "",
        *(checked.metadata or {}),
    ):
        cleaned.encode("utf-8")  # no lone surrogate
        assert "\x00" not in cleaned


async def test_the_longest_texts_fit_into_every_index(person: Person) -> None:
    chance = random.Random(1)

    def noise(length: int, first: int = 0x20000, last: int = 0x2A000) -> str:
        """Text that cannot be compressed, of four bytes a character."""
        return "".join(chr(chance.randint(first, last)) for _ in range(length))

    drafts = [
        Draft(noise(32_000)),
        Draft(" ".join(noise(2) for _ in range(10_000))),
        Draft(" ".join(noise(500) for _ in range(20)), summary=noise(2_000)),
        Draft("".join(chance.choice("aBc9") for _ in range(32_000))),
        Draft(
            "s",
            source=noise(500),
            session=noise(200),
            commit=noise(100),
            idempotency_key=noise(200),
        ),
        Draft(
            "t", tags=tuple(":".join(noise(1) for _ in range(50)) for _ in range(64))
        ),
        Draft("p", paths=tuple(noise(1_000) for _ in range(64))),
    ]

    assert len(set(await person.keep(*drafts))) == len(drafts)
    assert len((await person.recall("*")).memories) == len(drafts)


HOSTILE = (
    "a\x00b", "a\udfffb", "\ufeff", "\x1b[31mred", "line\u2028break", "\\u0000", "next\x85line",
    "a" * 5 + "\u0301" * 1_900, "\uffff\U0010ffff",
)  # fmt: skip


async def test_no_text_ever_fails_in_the_database(person: Person) -> None:
    for place, hostile in enumerate(HOSTILE):
        draft = Draft(
            f"about x {hostile}",
            summary=hostile,
            tags=(f"t{hostile[:20]}",),
            source=hostile[:50],
            session=hostile[:50],
            paths=(f"p{hostile[:50]}",),
            commit=hostile[:50],
            metadata={"k": [hostile[:100], {hostile[:10]: 1}]},
            idempotency_key=hostile[:50],
        )
        await person.keep(draft, namespace=f"place-{place}")

        assert (
            await person.recall(f"about {hostile}", namespaces=(f"place-{place}",))
        ).memories, place
