"""Clients that others wrote, against Folklore: two TypeScript SDKs, the Inspector, Claude Code."""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance.node import Outcome, Programs, bare_environment, finished
from tests.conformance.verdicts import Line, Verdict

TOOLS = (
    "memory_store", "memory_recall", "search_keywords", "memory_get", "memory_list", "memory_update", "memory_forget",
    "memory_relate", "memory_status",
)  # fmt: skip
HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"
TRANSPORTS = ("stdio", "http", "sse")
_SERVE = ["-m", "folklore", "serve"]


@dataclass(frozen=True, slots=True)
class Clients:
    """The clients; a home for each run, a running server's URL, and the settings for one on stdio."""

    programs: Programs
    home: Path
    url: str
    settings: Mapping[str, str]

    async def lines(self) -> list[Line]:
        """Every client over every transport, in every protocol era it knows."""
        lines = [
            await self._typescript("sdk1.mjs", transport, HANDSHAKE)
            for transport in TRANSPORTS
        ]
        for era in (HANDSHAKE, STATELESS):
            lines += [
                await self._typescript("sdk2.mjs", transport, era)
                for transport in TRANSPORTS
            ]
        for era in (HANDSHAKE, STATELESS):
            lines += [await self._inspector(transport, era) for transport in TRANSPORTS]
        return lines + await self._claude_code()

    async def _typescript(self, script: str, transport: str, era: str) -> Line:
        way: dict[str, Any] = {
            "transport": transport,
            "pin": era if era == STATELESS else None,
        }
        if transport == "stdio":
            way |= {
                "command": sys.executable,
                "args": _SERVE,
                "env": dict(self.settings),
            }
        else:
            way |= {"url": self._address(transport)}
        ran = await self.programs.run(
            self.programs.folder / script,
            json.dumps(way),
            environment=bare_environment(self.home),
        )
        name = {"sdk1.mjs": "TypeScript SDK 1.x", "sdk2.mjs": "TypeScript SDK 2.x"}[
            script
        ]
        return _line(f"{name}, {transport}, {era}", _session_faults(ran, era))

    async def _inspector(self, transport: str, era: str) -> Line:
        """List the tools under --strict, store, recall, and be refused."""
        fact = f"The Inspector came by {transport} at {era}."
        store = (
            "--tool-name",
            "memory_store",
            "--tool-arg",
            f"content={fact}",
            "namespace=harbour",
        )
        recall = (
            "--tool-name",
            "memory_recall",
            "--tool-arg",
            f"query={fact}",
            "limit=1",
        )
        refused = ("--tool-name", "memory_recall", "--tool-arg", "query=x", "limit=0")
        faults = []

        listed = await self._inspect(transport, era, "tools/list", "--strict")
        answer = json.loads(listed.output) if listed.code == 0 else {}
        if listed.code != 0 or _names(answer.get("result", {})) != TOOLS:
            faults.append(
                f"tools/list ended with {listed.code}: {listed.errors.strip()[-200:]}"
            )
        faults += [
            f"--strict finds: {finding['toolName']}"
            for finding in answer.get("schemaFindings", [])
        ]
        for arguments, code in (
            (store, 0),
            (recall, 0),
            (refused, 5),
        ):  # 5: the tool answered with an error
            called = await self._inspect(transport, era, "tools/call", *arguments)
            if called.code != code:
                faults.append(
                    f"{arguments[1]} ended with {called.code}: {called.errors.strip()[-200:]}"
                )
            elif arguments is recall and fact not in called.output:
                faults.append("what was stored is not recalled")
        return _line(f"Inspector --strict, {transport}, {era}", faults)

    async def _inspect(
        self, transport: str, era: str, method: str, *arguments: str
    ) -> Outcome:
        server: dict[str, Any] = {
            "protocolEra": "modern" if era == STATELESS else "legacy"
        }
        if transport == "stdio":
            server |= {
                "type": "stdio",
                "command": sys.executable,
                "args": _SERVE,
                "env": dict(self.settings),
            }
        else:
            kind = "streamable-http" if transport == "http" else "sse"
            server |= {"type": kind, "url": self._address(transport)}
        config = self.home / "inspector.json"
        config.write_text(
            json.dumps({"mcpServers": {"folklore": server}}), encoding="utf-8"
        )
        return await self.programs.run(
            self.programs.module(".bin/mcp-inspector"),
            *(
                "--cli",
                "--config",
                str(config),
                "--server",
                "folklore",
                "--method",
                method,
                *arguments,
            ),
            *("--format", "json"),
            environment=bare_environment(
                self.home, MCP_INSPECTOR_SECRET_STORE="memory"
            ),
        )

    async def _claude_code(self) -> list[Line]:
        """Register the server three times as a user does, and list whether it connects; also one that cannot."""
        options = [
            part
            for name, value in self.settings.items()
            for part in ("-e", f"{name}={value}")
        ]
        await self._claude(
            "add", "-s", "user", "by-stdio", *options, "--", sys.executable, *_SERVE
        )
        for transport in ("http", "sse"):
            await self._claude(
                "add",
                "-s",
                "user",
                "-t",
                transport,
                f"by-{transport}",
                self._address(transport),
            )
        await self._claude(
            "add", "-s", "user", "-t", "http", "by-nobody", "http://127.0.0.1:9/mcp"
        )
        listed = await self._claude("list")
        lines = []
        for name in (*TRANSPORTS, "nobody"):
            said = re.search(rf"^by-{name}: .* - (.*)$", listed.output, re.MULTILINE)
            fine = said is not None and ("Connected" in said[1]) == (name != "nobody")
            what = (
                f"Claude Code, {name}"
                if name != "nobody"
                else "Claude Code tells where nobody listens"
            )
            lines.append(
                _line(
                    what,
                    []
                    if fine
                    else [f"mcp list says: {(said or [listed.errors[-200:]])[0]}"],
                )
            )
        return lines

    async def _claude(self, *arguments: str) -> Outcome:
        quiet = (
            "DISABLE_TELEMETRY",
            "DISABLE_AUTOUPDATER",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        )
        environment = bare_environment(self.home, **dict.fromkeys(quiet, "1"))
        return await finished(
            [str(self.programs.claude), "mcp", *arguments], self.home, environment
        )

    def _address(self, transport: str) -> str:
        return f"{self.url}/{'mcp' if transport == 'http' else 'sse'}"


def _session_faults(ran: Outcome, era: str) -> list[str]:
    """Return the errors of a session of node/session.mjs; empty if it passed."""
    if ran.code != 0:
        return [f"ended with {ran.code}: {ran.errors.strip()[-300:]}"]
    seen = json.loads(ran.output)
    expected = {
        "protocol": era,
        "server": "folklore",
        "instructed": True,
        "tools": list(TOOLS),
        "resources": ["memory://status", "memory://namespaces"],
        "prompts": ["recall", "remember", "review"],
        "status": "object",
        "recalled": [[seen["stored"], seen["fact"]]],
        "refused": True,
    }
    return [
        f"{name}: {seen[name]!r} and not {value!r}"
        for name, value in expected.items()
        if seen[name] != value
    ]


def _names(listed: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(tool["name"] for tool in listed.get("tools", []))


def _line(what: str, faults: list[str]) -> Line:
    return (
        Line(what, Verdict.FAILED, "; ".join(faults))
        if faults
        else Line(what, Verdict.PASSED)
    )
