"""A short run of the long trial of isolation: `make isolation` makes 20,000 calls."""

from pathlib import Path

from tests.isolation import trial


async def test_random_calls_of_random_callers_reveal_nothing_that_was_not_granted(
    database_url: str, tmp_path: Path
) -> None:
    run = await trial(database_url, tmp_path, calls=250, seed=7)

    assert run.broken == []
    assert sum(run.calls.values()) >= 250
    assert run.compared.keys() == {"hidden or missing", "before and after", "cursors"}
    assert min(run.compared.values()) > 0
