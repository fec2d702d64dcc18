"""The official conformance suite against Folklore and against the SDK's own server, check by check."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.conformance.node import Programs, bare_environment
from tests.conformance.verdicts import Line, Scenarios, Waiver, compare

REVISIONS = ("2025-11-25", "2026-07-28")
_SCRIPT = "@modelcontextprotocol/conformance/dist/index.js"
_WORST_FIRST = ("FAILURE", "WARNING", "SKIPPED", "INFO", "SUCCESS")


@dataclass(frozen=True, slots=True)
class Suite:
    """The suite and the folder of its results."""

    programs: Programs
    folder: Path

    async def lines(self, revision: str, product: str, reference: str) -> list[Line]:
        """Compare Folklore with the reference at a revision; `product` and `reference` are URLs of /mcp."""
        extensions = await self._extensions() if revision == REVISIONS[-1] else []
        ours = await self._scenarios(revision, product, extensions)
        theirs = await self._scenarios(revision, reference, extensions)
        return compare(ours, theirs, waivers(revision))

    async def _extensions(self) -> list[str]:
        """Server scenarios that belong to no revision."""
        listed = await self._run("list")
        servers = listed.partition("Server scenarios")[2].partition("Client scenarios")[
            0
        ]
        return re.findall(r"- (\S+) \[extension]", servers)

    async def _scenarios(
        self, revision: str, url: str, extensions: list[str]
    ) -> Scenarios:
        """Run the scenarios that the revision requires or lists, then all others."""
        results = self.folder / f"{revision}-{url.rpartition(':')[2].partition('/')[0]}"
        to = ("server", "--url", url, "--output-dir", str(results))
        await self._run(*to, "--requirements", revision)
        ran = read(results)
        for scenario in extensions:
            if scenario not in ran:
                await self._run(
                    *to, "--scenario", scenario, "--spec-version", revision, "--force"
                )
        return read(results)

    async def _run(self, *arguments: str) -> str:
        # Its exit code does not tell which checks failed; its files do.
        script = self.programs.module(_SCRIPT)
        return (
            await self.programs.run(
                script,
                *arguments,
                environment=bare_environment(self.folder),
                seconds=300,
            )
        ).output


def read(results: Path) -> Scenarios:
    """Scenario → check → its worst status, from the suite's result folders (server-SCENARIO-TIME/checks.json)."""
    scenarios: dict[str, dict[str, str]] = {}
    for file in sorted(results.glob("server-*/checks.json")):
        named = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z", file.parent.name)
        assert named is not None, file
        checks = scenarios.setdefault(named[1], {})
        for check in json.loads(file.read_text(encoding="utf-8")):
            known = checks.get(check["id"], check["status"])
            checks[check["id"]] = min(known, check["status"], key=_WORST_FIRST.index)
    return scenarios


def waivers(revision: str) -> Mapping[str, Waiver]:
    """Return the features that Folklore does not offer at a revision, by scenario."""
    text = Path(__file__).with_name("not_offered.yml").read_text(encoding="utf-8")
    return {
        scenario: Waiver(entry["because"], frozenset(entry["checks"]))
        for scenario, entry in yaml.safe_load(text)[revision].items()
    }
