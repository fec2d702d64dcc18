"""`folklore jobs run` and `folklore jobs status`."""

import pytest

from tests.commands import CommandLine, command_line

__all__ = ["command_line"]

SCHEDULED = ["embeddings", "expiry", "retention", "postings", "statistics", "indexes"]


async def test_run_runs_the_jobs_of_a_server_and_status_shows_them(
    folklore: CommandLine,
) -> None:
    await folklore.done("store", "a text")
    waiting = (await folklore.json("jobs", "status"))["jobs"]
    assert [(row["job"], row["state"]) for row in waiting] == [
        ("embeddings", "waiting"), ("expiry", "waiting"), ("retention", "waiting"), ("postings", "waiting"),
        ("quality", "off"), ("consolidation", "off"), ("statistics", "waiting"), ("indexes", "waiting"),
        ("backup", "off"),
    ]  # fmt: skip

    ran = (await folklore.json("jobs", "run"))["jobs"]

    assert [(row["job"], row["outcome"]) for row in ran] == [
        (name, "done") for name in SCHEDULED
    ]
    status = {
        row["job"]: row for row in (await folklore.json("jobs", "status"))["jobs"]
    }
    assert {status[name]["state"] for name in SCHEDULED} == {"done"}
    assert status["embeddings"]["done"] == {"embedded": 0}
    assert status["embeddings"]["next_due"] > status["embeddings"]["last_run"]
    assert status["embeddings"]["seconds"] >= 0
    assert "holder" not in status["embeddings"]
    assert "embeddings" in await folklore.done("jobs", "status")


async def test_an_optional_job_runs_by_its_name_and_an_unknown_one_is_refused(
    folklore: CommandLine,
) -> None:
    for text in ("the same text here", "the same text here!", "the same text here?"):
        await folklore.done("store", text)
    await folklore.done("recall", "text")

    ran = (await folklore.json("jobs", "run", "quality", "consolidation"))["jobs"]

    assert [row["done"] for row in ran] == [
        {"seen": 1, "scored": 1},  # the others are its variants
        {"considered": 3, "kept": 0, "made": 1, "withdrawn": 0},
    ]
    assert "3 memories about" in await folklore.done("list", "--kind", "reflection")
    status = {
        row["job"]: row for row in (await folklore.json("jobs", "status"))["jobs"]
    }
    assert status["quality"]["state"] == "done (off)"
    assert "next_due" not in status["quality"]
    unknown = await folklore("jobs", "run", "embedings")
    assert unknown.code == 2
    assert (
        "'embedings' does not exist. Use embeddings, expiry, retention, postings, quality, cons"
        in unknown.err
    )


async def test_a_read_only_installation_runs_no_job_and_a_dry_run_takes_no_lease(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await folklore.done("store", "a text")
    monkeypatch.setenv("FOLKLORE_READ_ONLY", "true")

    assert (await folklore("jobs", "run")).code == 5
    ran = (await folklore.json("jobs", "run", "--dry-run"))["jobs"]

    assert {row["outcome"] for row in ran} == {"planned"}
    assert {
        row["state"] for row in (await folklore.json("jobs", "status"))["jobs"]
    } == {"waiting", "off"}


@pytest.mark.strain
async def test_a_failed_job_does_not_stop_the_others_and_sets_the_exit_code(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLKLORE_EMBEDDING__PROVIDER", "openai")
    monkeypatch.setenv("FOLKLORE_EMBEDDING__URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("FOLKLORE_EMBEDDING__MODEL", "none")
    await folklore.done("store", "a text")

    ran = folklore.process("jobs", "run", "embeddings", "expiry", "--json")

    assert ran.code == 1
    first, second = ran.json["jobs"]
    assert (first["outcome"], second["outcome"]) == ("failed", "done")
    assert first["error"]
    status = {
        row["job"]: row
        for row in folklore.process("jobs", "status", "--json").json["jobs"]
    }
    assert status["embeddings"]["error"] == first["error"]


async def test_the_job_retention_uses_the_configured_time(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLKLORE_RETENTION_DAYS", "0")
    await folklore.done("forget", await folklore.keep("a text"), "--yes")

    ran = (await folklore.json("jobs", "run", "retention"))["jobs"]

    assert ran[0]["done"]["erased"] == 1
