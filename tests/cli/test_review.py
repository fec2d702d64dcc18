"""`folklore review`: what wants a decision, the decisions by one key, and how each is taken back."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from folklore.app import App
from folklore.contract.hooks import HookRequest
from folklore.contract.review import ReviewRequest
from folklore.db.database import Database
from folklore.errors import NotFound
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.doors import own_service
from tests.memory.auth.test_isolation import holder
from tests.person import NOON, Person
from tests.terminal import Screen, on_terminal

OLD = "The staging database password rotates every 30 days on Monday."
NEW = "The staging database password rotates every 90 days on Monday."
PROMPT = "[q]uit"


async def pressed(folklore: CommandLine, keys: str, *options: str) -> Screen:
    shown = await asyncio.to_thread(
        on_terminal,
        folklore.environment,
        "review",
        *options,
        keys=keys,
        prompt=PROMPT,
        columns=80,
    )
    assert shown.code == 0, shown.text
    return shown


async def listed(folklore: CommandLine, *options: str) -> list[tuple[str, ...]]:
    items: list[dict[str, Any]] = (await folklore.json("review", *options))["review"]
    return [
        (item["reason"], *(memory["content"] for memory in item["memories"]))
        for item in items
    ]


async def texts(folklore: CommandLine) -> list[str]:
    return sorted(
        memory["content"] for memory in (await folklore.json("list"))["memories"]
    )


@pytest.fixture(name="alike")
async def _alike(folklore: CommandLine) -> CommandLine:
    await folklore.done("store", OLD)
    await folklore.done("store", NEW)
    await folklore.done("store", "Ada paints the harbour gate.")
    return folklore


async def imported(folklore: CommandLine, path: Path, *texts: str) -> None:
    """Import memories of 2024 and of each year before."""
    lines = [
        {"content": text, "created_at": f"{2024 - ago}-03-01T12:00:00Z"}
        for ago, text in enumerate(texts)
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    await folklore.done("import", path, "-n", "notes")


async def test_age_is_the_time_of_a_memory_not_the_order_of_its_arrival(
    folklore: CommandLine, tmp_path: Path
) -> None:
    await imported(folklore, tmp_path / "old.jsonl", NEW, OLD)
    assert await listed(folklore) == [("similar", OLD, NEW)]

    await pressed(folklore, "s")

    assert await texts(folklore) == [NEW]


async def test_an_imported_memory_is_unused_from_its_import_on(
    folklore: CommandLine, tmp_path: Path
) -> None:
    await imported(folklore, tmp_path / "old.jsonl", OLD)

    assert await listed(folklore, "--only", "unused") == []


async def test_both_texts_are_shown_as_a_diff(alike: CommandLine) -> None:
    shown = await pressed(alike, "q")

    assert f"- {OLD}" in shown.text
    assert f"+ {NEW}" in shown.text
    assert "never recalled" in shown.text


@pytest.mark.parametrize(
    ("key", "left"),
    [
        ("m", [NEW]),
        ("s", [NEW]),
        ("1", [NEW]),
        ("2", [OLD]),
        ("k", [OLD, NEW]),
        ("c", [OLD, NEW]),
    ],
)
async def test_one_key_decides_and_the_shown_command_takes_it_back(
    alike: CommandLine, key: str, left: list[str]
) -> None:
    before = await texts(alike)

    shown = await pressed(alike, key)

    assert set(await texts(alike)) == {*left, "Ada paints the harbour gate."}
    assert await listed(alike, "--only", "similar") == []
    command = " ".join(shown.text.split("`")[1].split()).split()
    assert command[0] == "folklore"
    await alike.done(*command[1:], *(["--yes"] if command[1] == "undo" else []))
    assert await texts(alike) == before
    assert await listed(alike) == [("similar", OLD, NEW)]


async def test_a_contradiction_is_asked_until_it_is_decided(alike: CommandLine) -> None:
    await pressed(alike, "c")
    assert await listed(alike) == [("contradiction", OLD, NEW)]

    await pressed(alike, "k")

    assert await listed(alike) == []


async def test_a_skipped_pair_is_asked_again_and_an_unknown_key_asks_again(
    alike: CommandLine,
) -> None:
    shown = await pressed(alike, "xn")

    assert shown.text.count(PROMPT) == 2
    assert "0 decided" in shown.text
    assert await listed(alike) == [("similar", OLD, NEW)]


async def test_the_last_decision_is_taken_back_by_a_key(alike: CommandLine) -> None:
    await alike.done("store", "The gate of the harbour opens at six in the morning.")
    await alike.done("store", "The gate of the harbour opens at seven in the morning.")
    before = await texts(alike)

    shown = await pressed(alike, "sunq")

    assert "taken back" in shown.text
    assert await texts(alike) == before


async def test_memories_that_one_decision_removed_are_not_asked_about_again(
    folklore: CommandLine,
) -> None:
    for days in (30, 60, 90):
        await folklore.done("store", OLD.replace("30", str(days)))
    assert len(await listed(folklore)) == 3

    shown = await pressed(folklore, "11")

    assert shown.text.count(PROMPT) == 2
    assert len(await texts(folklore)) == 1


async def test_what_was_said_and_not_stored_comes_first(
    folklore: CommandLine, app: App
) -> None:
    for number, prompt in enumerate(
        ("Never push to main.", "From now on we use httpx.", "Note: the port is 8443.")
    ):
        await own_service(app).call(HookRequest(prompt=prompt, session=f"s{number}"))

    shown = await pressed(folklore, "sdq", "--only", "stated")

    assert "3 things were said, store them?" in shown.text
    assert await texts(folklore) == ["Never push to main."]
    left = (await folklore.json("review", "--only", "stated"))["review"]
    assert [(row["reason"], row["sentence"], row["session"]) for row in left] == [
        ("stated", "Note: the port is 8443.", "s2")
    ]


async def test_without_a_terminal_what_wants_a_decision_is_listed(
    alike: CommandLine, app: App
) -> None:
    nothing = await alike("review", "--only", "stated")
    await own_service(app).call(HookRequest(prompt="Never push to main.", session="s1"))
    await alike.done("store", "The gateway times out after 30 seconds.")
    await alike.done("store", "The gateway times out after 40 seconds.")
    listed = await alike("review")
    left = (await alike.json("review"))["review"]

    assert (nothing.code, nothing.out) == (0, "\nNothing wants a decision.\n")
    assert listed.code == 0
    assert "Never push to main." in listed.out
    assert "times out after" in listed.out
    assert f"{len(left)} want a decision" in listed.out


async def test_unused_memories_are_kept_pinned_or_forgotten(
    folklore: CommandLine, database: Database
) -> None:
    for name in ("one", "two", "three"):
        await folklore.done(
            "store", f"Fact number {name} of the harbour.", "--kind", "fact"
        )
    async with database.transaction() as session:
        # Citus computes no time from a column in an update.
        await session.execute(
            "update memories set created_at = now() - interval '400 days',"
            " updated_at = now() - interval '400 days'"
        )
    unused = await listed(folklore, "--only", "unused")
    assert len(unused) == 3
    assert await listed(folklore, "--only", "unused", "--unused-days", "500") == []

    await pressed(folklore, "kpf", "--only", "unused")

    assert await listed(folklore, "--only", "unused") == []
    memories = (await folklore.json("list", "--format", "detailed"))["memories"]
    assert len(memories) == 2
    assert sorted(
        (bool(memory.get("pinned")), "reviewed" in memory.get("metadata", {}))
        for memory in memories
    ) == [
        (False, True),
        (True, False),
    ]


async def test_a_recalled_memory_is_in_use(person: Person, database: Database) -> None:
    [old] = await person.keep("The gateway listens on port 8443.")
    await person.keep("Ada paints the harbour gate.")
    async with database.transaction() as session:
        await session.execute(
            "update memories set created_at = timestamptz '2020-01-01', updated_at = '2020-01-01'"
        )
        await session.execute(
            f"update memories set last_recalled_at = '{NOON - timedelta(days=3)}' where id = '{old}'"
        )

    found = await person.call(ReviewRequest(reason="unused", namespace="notes"))

    assert [item.memories[0].content for item in found.items] == [
        "Ada paints the harbour gate."
    ]


async def test_a_token_reviews_what_it_may_read(person: Person) -> None:
    await person.keep(OLD, namespace="notes")
    await person.keep(NEW, namespace="notes")
    await person.keep(OLD, NEW, namespace="payroll")
    [pair] = (
        await person.call(ReviewRequest(reason="similar", namespace="payroll"))
    ).items
    alice = await holder(person, "alice", "notes:reader")

    found = await alice.call(ReviewRequest(reason="similar", namespace="notes"))

    assert [[memory.content for memory in item.memories] for item in found.items] == [
        [OLD, NEW]
    ]
    assert pair.memories[0].content == OLD
    with pytest.raises(NotFound):
        await alice.call(ReviewRequest(reason="similar", namespace="payroll"))
