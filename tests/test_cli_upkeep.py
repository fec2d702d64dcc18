"""`folklore upkeep run` and `status`, as a person sees them."""

from __future__ import annotations

import pytest

from tests.commands import CommandLine, command_line

__all__ = ["command_line"]

SCHEDULED = ["embeddings", "expiry", "retention", "statistics", "indexes"]


async def test_run_does_what_a_server_would_do_and_status_tells(folklore: CommandLine) -> None:
    await folklore.done("store", "a text")
    waiting = (await folklore.json("upkeep", "status"))["chores"]
    assert [(row["chore"], row["state"]) for row in waiting] == [
        ("embeddings", "waiting"),
        ("expiry", "waiting"),
        ("retention", "waiting"),
        ("quality", "off"),
        ("consolidation", "off"),
        ("statistics", "waiting"),
        ("indexes", "waiting"),
    ]

    ran = (await folklore.json("upkeep", "run"))["chores"]

    assert [(row["chore"], row["outcome"]) for row in ran] == [(name, "done") for name in SCHEDULED]
    status = {row["chore"]: row for row in (await folklore.json("upkeep", "status"))["chores"]}
    assert {status[name]["state"] for name in SCHEDULED} == {"done"}
    assert status["embeddings"]["done"] == {"embedded": 0}
    assert status["embeddings"]["next_due"] > status["embeddings"]["last_run"]
    assert status["embeddings"]["seconds"] >= 0
    assert "holder" not in status["embeddings"]
    assert "embeddings" in await folklore.done("upkeep", "status")


async def test_a_chore_that_is_off_runs_by_name(folklore: CommandLine) -> None:
    for text in ("the same text here", "the same text here!", "the same text here?"):
        await folklore.done("store", text)
    await folklore.done("recall", "text")

    ran = (await folklore.json("upkeep", "run", "quality", "consolidation"))["chores"]

    assert [row["done"] for row in ran] == [
        {"seen": 3, "scored": 3},
        {"considered": 3, "kept": 0, "made": 1, "withdrawn": 0},
    ]
    assert "3 memories about" in await folklore.done("list", "--kind", "reflection")
    status = {row["chore"]: row for row in (await folklore.json("upkeep", "status"))["chores"]}
    assert status["quality"]["state"] == "done (off)"
    assert "next_due" not in status["quality"]


async def test_a_dry_run_leaves_no_trace(folklore: CommandLine) -> None:
    await folklore.done("store", "a text")

    ran = (await folklore.json("upkeep", "run", "--dry-run"))["chores"]

    assert {row["outcome"] for row in ran} == {"planned"}
    assert {row["state"] for row in (await folklore.json("upkeep", "status"))["chores"]} == {"waiting", "off"}


async def test_an_unknown_chore_is_named_with_those_there_are(folklore: CommandLine) -> None:
    ran = await folklore("upkeep", "run", "embedings")

    assert ran.code == 2
    assert "'embedings'" in ran.err
    assert "embeddings, expiry, retention, quality, consolidation, statistics, indexes" in ran.err


@pytest.mark.strain
async def test_a_chore_that_fails_ends_with_1_and_its_reason_after_the_others_ran(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLKLORE_EMBEDDING__PROVIDER", "openai")
    monkeypatch.setenv("FOLKLORE_EMBEDDING__URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("FOLKLORE_EMBEDDING__MODEL", "none")
    await folklore.done("store", "a text")

    ran = folklore.process("upkeep", "run", "embeddings", "expiry", "--json")

    assert ran.code == 1
    first, second = ran.json["chores"]
    assert (first["outcome"], second["outcome"]) == ("failed", "done")
    assert first["error"]
    status = {row["chore"]: row for row in folklore.process("upkeep", "status", "--json").json["chores"]}
    assert status["embeddings"]["error"] == first["error"]


async def test_a_read_only_installation_only_looks(folklore: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    await folklore.done("store", "a text")
    monkeypatch.setenv("FOLKLORE_READ_ONLY", "true")

    assert (await folklore("upkeep", "run")).code == 5
    assert (await folklore("upkeep", "run", "--dry-run")).code == 0
    assert (await folklore("upkeep", "status")).code == 0


async def test_the_retention_time_of_the_settings_counts(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLKLORE_RETENTION_DAYS", "0")
    await folklore.done("store", "a text", "--expires-at", "2030-01-01")

    ran = (await folklore.json("upkeep", "run", "retention"))["chores"]

    assert ran[0]["done"] == {"erased": 0, "namespaces_erased": 0, "usage_dropped": 0}
