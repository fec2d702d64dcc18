"""Tests of the verdicts of `make conformance`, and of the waived checks. The run itself needs Node."""

import json
import re
from pathlib import Path

import pytest
from mcp import Client

from tests import ROOT
from tests.conformance.suite import REVISIONS, read, waivers
from tests.conformance.verdicts import Verdict, Waiver, compare
from tests.mcp.test_tools_list import CORE, REST
from tests.servers import on_http, watched

NODES = [ROOT / "tests" / name / "node" for name in ("conformance", "assistants")]
FINE = {"a": "SUCCESS", "b": "SUCCESS", "wire-schema-valid": "SUCCESS"}


@pytest.mark.parametrize(
    ("ours", "theirs", "waived", "verdict"),
    [
        (FINE, FINE, set(), Verdict.PASSED),
        (FINE, FINE | {"a": "FAILURE"}, set(), Verdict.PASSED),
        (FINE | {"a": "FAILURE"}, FINE, set(), Verdict.FAILED),
        (FINE | {"a": "WARNING"}, FINE, set(), Verdict.FAILED),
        (FINE | {"a": "SKIPPED"}, FINE, set(), Verdict.FAILED),
        ({"b": "SUCCESS"}, FINE, {"wire-schema-valid"}, Verdict.FAILED),
        (FINE | {"only here": "FAILURE"}, FINE, set(), Verdict.FAILED),
        (FINE | {"a": "FAILURE"}, FINE, {"a"}, Verdict.NOT_OFFERED),
        (FINE | {"a": "FAILURE", "b": "FAILURE"}, FINE, {"a"}, Verdict.FAILED),
        (FINE, FINE, {"a"}, Verdict.FAILED),
        (FINE, FINE, {"unheard of"}, Verdict.FAILED),
        (FINE | {"a": "SKIPPED"}, FINE | {"a": "WARNING"}, {"a"}, Verdict.NOT_OFFERED),
        (FINE | {"a": "FAILURE"}, FINE | {"a": "FAILURE"}, set(), Verdict.BOTH_FAIL),
        (
            {"a": "SKIPPED", "wire-schema-valid": "SUCCESS"},
            {"a": "SKIPPED"},
            set(),
            Verdict.BOTH_SKIP,
        ),
        ({}, FINE, set(), Verdict.FAILED),
        (FINE, {}, set(), Verdict.FAILED),
        ({}, {}, {"a"}, Verdict.FAILED),
    ],
)
def test_a_check_the_reference_passes_and_folklore_does_not_fails_unless_it_is_waived(
    ours: dict[str, str], theirs: dict[str, str], waived: set[str], verdict: Verdict
) -> None:
    waivers = {"scenario": Waiver("not offered", waived)} if waived else {}

    lines = compare(
        {"scenario": ours} if ours else {},
        {"scenario": theirs} if theirs else {},
        waivers,
    )

    assert [line.verdict for line in lines] == [verdict]


def test_of_a_check_that_ran_several_times_the_worst_counts(tmp_path: Path) -> None:
    folder = tmp_path / "server-tools-list-2026-11-21T19-43-52-823Z"
    folder.mkdir()
    checks = [
        {"id": "a", "status": status} for status in ("SUCCESS", "FAILURE", "INFO")
    ]
    (folder / "checks.json").write_text(
        json.dumps([*checks, {"id": "b", "status": "SUCCESS"}])
    )

    assert read(tmp_path) == {"tools-list": {"a": "FAILURE", "b": "SUCCESS"}}


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_waiver_names_its_checks_and_its_reason(revision: str) -> None:
    assert all(
        waiver.checks and waiver.because for waiver in waivers(revision).values()
    )


@pytest.mark.parametrize("node", NODES, ids=lambda folder: folder.parent.name)
def test_programs_are_pinned_and_no_registry_is_named(node: Path) -> None:
    wanted = json.loads((node / "package.json").read_text(encoding="utf-8"))
    locked = json.loads((node / "package-lock.json").read_text(encoding="utf-8"))[
        "packages"
    ]

    for name, version in (
        wanted["dependencies"] | wanted["optionalDependencies"]
    ).items():
        assert re.fullmatch(r"\d+\.\d+\.\d+(-[\w.]+)?", version)
        assert locked[f"node_modules/{name}"]["version"] == version
    assert all(
        "integrity" in entry and "resolved" not in entry
        for name, entry in locked.items()
        if name
    )


async def test_over_http_progress_arrives_while_a_call_runs_and_what_is_not_offered_is_not_declared(
    database_url: str, tmp_path: Path
) -> None:
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    settings = watched(tmp_path, database_url=database_url)
    async with on_http(settings, module="tests.conformance.product") as server:
        for mode in ("legacy", "auto"):
            heard.clear()
            async with Client(
                f"{server.url}/mcp", mode=mode, read_timeout_seconds=30
            ) as client:
                declared = client.server_capabilities
                names = [tool.name for tool in (await client.list_tools()).tools]
                await client.call_tool(
                    "test_tool_with_progress", progress_callback=hear
                )

            assert heard == [0, 50, 100], mode
            assert tuple(names[:9]) == CORE + REST
            assert declared.logging is None
            assert declared.resources is not None
            assert not declared.resources.subscribe
            assert declared.tools is not None
            assert not declared.tools.list_changed
