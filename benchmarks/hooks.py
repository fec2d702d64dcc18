"""Hooks: the memories that typed prompts and edits get, the assertions asked for, and the time that a client waits.

Each line of a set of moments comes in its own project, in a session and with a ledger of its own. Each project has
memories of another set too.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import click
from mcp import Client
from mcp.types import TextContent

from benchmarks.command_line import SETS, main, print_json, print_table, track
from benchmarks.latency import command, sentences, store
from benchmarks.metrics import mean, percentile
from benchmarks.moments import Moment, others, read_cues, read_moments, with_cues
from benchmarks.sets import read_set
from benchmarks.store import Store, open_store
from folklore.contract.hooks import HookRequest
from folklore.contract.ids import short
from folklore.contract.memories import ListRequest
from folklore.engine import Engine
from folklore.memory import Facts, Memory, Service
from folklore.text.tokens import estimate
from tests.doors import own_service

_NOTE = re.compile(r"^- \[?([0-9a-f]{8})[ ,]", re.MULTILINE)
_WHOLE_NOTE = re.compile(r"^- \[([0-9a-f]{8})[ ,]", re.MULTILINE)
_BESIDE = 200
_COUNT = 10_000
_ROUNDS = 500


@dataclass(frozen=True, slots=True)
class Injected:
    """Text injected at a moment: its tokens, and the sources of its notes and headlines, and of whole notes."""

    moment: Moment
    tokens: int
    sources: Sequence[str]
    whole: Sequence[str] = ()
    asked: bool = False

    @property
    def hit(self) -> bool:
        """True if a memory that helps is among them."""
        return not self.moment.evidence.isdisjoint(self.sources)

    @property
    def hit_whole(self) -> bool:
        """True if a memory that helps is among the whole notes."""
        return not self.moment.evidence.isdisjoint(self.whole)


def notes_of(text: str) -> list[str]:
    """Return the ends of the ids of the notes in an injected text."""
    return _NOTE.findall(text)


async def at_moment(store_: Store, moment: Moment, sources: dict[str, str]) -> Injected:
    """Return what a moment gets in a new session of its project, with an empty ledger."""
    app = store_.app
    project = moment.namespace
    session_name = str(uuid4())
    service = Service(
        Memory(app.open, lambda: app.usage),
        lambda: Facts(
            app.caller, app.now(), app.zone, lambda: project, lambda: project
        ),
        lambda: app.caller,
        lambda: project,
    )
    text = (await service.call(moment.request(session_name))).text
    asked = False
    if moment.type == "statement":
        asked = (
            await service.call(HookRequest(event="Stop", session=session_name))
        ).asks
    async with (await app.ready()).database.session() as session:
        await session.execute("delete from injections")
    return Injected(
        moment,
        estimate(text),
        [sources[id_] for id_ in notes_of(text)],
        [sources[id_] for id_ in _WHOLE_NOTE.findall(text)],
        asked,
    )


async def measure_set(
    path: Path,
    beside: Sequence[dict[str, Any]],
    cues: Mapping[tuple[str, str], list[str]],
    memories_path: Path | None = None,
) -> list[dict[str, Any]]:
    """Return the rows of typed prompts, by category, of assertions, and of each other kind of moment.

    `memories_path` is another set that has the memories.
    """
    memories, moments = read_moments(path)
    if memories_path is not None:
        memories, _ = read_moments(memories_path)
    memories = with_cues(memories, cues)
    found = []
    async with open_store() as store_:
        for namespace, held in memories.items():
            await store_.add(namespace, held)
            await store_.add(namespace, beside)
        sources = {name: await sources_of(store_, name) for name in memories}
        found = [
            await at_moment(store_, moment, sources[moment.namespace])
            for moment in track(moments, "Asking")
        ]
    helped = [one for one in found if one.moment.evidence]
    others = [one for one in found if not one.moment.evidence]
    categories = dict.fromkeys(
        one.moment.category for one in helped if one.moment.type == "prompt"
    )
    types = dict.fromkeys(moment.type for moment in moments)
    kinds: list[tuple[str, str | None]] = [
        (type_, None) for type_ in types if type_ != "statement"
    ]
    kinds[1:1] = [("prompt", name) for name in categories]
    rows = [_row(path.stem, kind, category, helped, others) for kind, category in kinds]
    assertions = [("statement", True), ("other sentence", False)]
    for kind, worth in assertions if "statement" in types else []:
        asked = [
            float(one.asked)
            for one in found
            if one.moment.type == "statement" and one.moment.store is worth
        ]
        blank = dict.fromkeys(rows[0]) | {
            "set": path.stem,
            "moment": kind,
            "number": len(asked),
        }
        rows.append(blank | {"asked for": mean(asked)})
    return rows


def _row(
    name: str,
    kind: str,
    category: str | None,
    helped: Sequence[Injected],
    others: Sequence[Injected],
) -> dict[str, Any]:
    with_, without = (
        [
            one
            for one in all_
            if one.moment.type == kind and category in (None, one.moment.category)
        ]
        for all_ in (helped, others)
    )
    shown = [one for one in with_ if one.sources]
    outdated = [one for one in with_ if one.moment.outdated]
    return {
        "set": name,
        "moment": category or kind,
        "number": len(with_),
        "injected": mean([float(bool(one.sources)) for one in with_]),
        "right memory": mean([float(one.hit) for one in with_]),
        "right memory whole": mean([float(one.hit_whole) for one in with_]),
        "notes that help": sum(
            len(one.moment.evidence.intersection(one.sources)) for one in shown
        )
        / max(sum(len(one.sources) for one in shown), 1),
        "tokens": mean([one.tokens for one in with_]),
        "outdated first": mean([float(_outdated_first(one)) for one in outdated]),
        "without an answer": len(without),
        "injected then": mean([float(bool(one.sources)) for one in without]),
        "tokens then": mean([one.tokens for one in without]),
        "asked for": None,
    }


def _outdated_first(found: Injected) -> bool:
    """Return True if an outdated memory comes before the one that replaces it, or without it."""
    both = found.moment.outdated | found.moment.evidence
    return next(
        (one in found.moment.outdated for one in found.sources if one in both), False
    )


async def sources_of(store_: Store, namespace: str) -> dict[str, str]:
    """Return the sources of the memories of a namespace by the ends of their ids."""
    found: dict[str, str] = {}
    cursor = None
    while True:
        answer = await own_service(store_.app).call(
            ListRequest(namespaces=(namespace,), limit=1000, cursor=cursor)
        )
        found |= {
            short(item.memory.id): item.memory.source or "" for item in answer.memories
        }
        if (cursor := answer.cursor) is None:
            return found


async def measure_latency(home: str) -> dict[str, float]:
    """Compare the hook with a trivial tool in alternation; then ask two processes the same prompts at the same time."""
    texts = sentences(_COUNT)
    rng = random.Random(11)
    parameters = command(home, "-m", "benchmarks.servers", "stdio")
    async with Client(parameters) as client, Client(parameters) as other:
        await store(client, texts)
        await call_hook(client, "warm", "warm")
        trivial = []
        hooks = []
        injected = 0
        tokens = []
        repeated = 0
        unasked: dict[str, list[float]] = {}
        seen: dict[str, set[str]] = {}
        for round_ in range(_ROUNDS):
            prompt = " ".join(rng.sample(rng.choice(texts).split(), 6))
            start = time.perf_counter()
            await client.call_tool("trivial", {"text": prompt})
            trivial.append((time.perf_counter() - start) * 1e3)
            session = f"s{round_ // 10}"
            start = time.perf_counter()
            text = await call_hook(client, prompt, session)
            hooks.append((time.perf_counter() - start) * 1e3)
            for type_, request in _at_work(prompt, session).items():
                start = time.perf_counter()
                await client.call_tool("client_hook", request)
                milliseconds = (time.perf_counter() - start) * 1e3
                unasked.setdefault(type_, []).append(milliseconds)
            tokens.append(estimate(text))
            ids = notes_of(text)
            injected += bool(ids)
            repeated += len(seen.setdefault(session, set()).intersection(ids))
            seen[session].update(ids)
        at_once = 0
        for round_ in range(50):
            prompt = " ".join(rng.sample(rng.choice(texts).split(), 8))
            calls = [
                call_hook(one, prompt, f"t{round_}")
                for one in (client, other)
                for _ in range(4)
            ]
            ids = [
                id_ for text in await asyncio.gather(*calls) for id_ in notes_of(text)
            ]
            at_once += len(ids) - len(set(ids))
        # For the start of a session: more and longer decisions than it shows.
        decisions = [
            {"content": text * 5, "kind": "decision"} for text in sentences(8, seed=9)
        ]
        await client.call_tool("memory_store", {"memories": decisions})
    return {
        "trivial_p50_ms": percentile(trivial, 0.5),
        "trivial_p99_ms": percentile(trivial, 0.99),
        "hook_p50_ms": percentile(hooks, 0.5),
        "hook_p99_ms": percentile(hooks, 0.99),
        **{f"{type_}_p50_ms": percentile(ms, 0.5) for type_, ms in unasked.items()},
        **{f"{type_}_p99_ms": percentile(ms, 0.99) for type_, ms in unasked.items()},
        "p99_over_trivial_ms": percentile(hooks, 0.99) - percentile(trivial, 0.99),
        "injected_share": injected / _ROUNDS,
        "repeated_in_a_session": float(repeated),
        "repeated_by_two_processes": float(at_once),
    }


def _at_work(words: str, session: str) -> dict[str, dict[str, Any]]:
    """Return what hooks pass on at moments at which nobody asks, of these words."""
    path = "web/src/cart.ts"
    moments = [
        Moment("edit", "", f"const {words};", path=path),
        Moment("read", "", f"const {words};\n" * 10, path=path),
        Moment("failure", "", f"error: {words}\n" * 5, command="npm test"),
        Moment("ask", "", f"Shall I {words}?"),
        Moment("subagent", "", f"Find {words}."),
    ]
    return {
        moment.type: moment.request(session).model_dump(exclude_defaults=True)
        for moment in moments
    }


async def call_hook(client: Client, prompt: str, session: str) -> str:
    """Call the hidden tool as a client does, and return the injected text."""
    answer = await client.call_tool(
        "client_hook", {"prompt": prompt, "session": session}
    )
    assert not answer.is_error, answer
    [part] = answer.content
    assert isinstance(part, TextContent)
    return str(
        json.loads(part.text).get("hookSpecificOutput", {}).get("additionalContext", "")
    )


def measure_start(home: str) -> dict[str, float | bool]:
    """Return the processor seconds and tokens of `folklore hook session-start`, and if its bytes stay the same."""
    arguments = [sys.executable, "-m", "folklore", "hook", "session-start"]
    outputs = []
    seconds = []
    for number in range(9):
        given = json.dumps(
            {"session_id": f"start-{number}", "cwd": home, "source": "startup"}
        ).encode()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            arguments,
            input=given,
            env=command(home).env,
            capture_output=True,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        )
        outputs.append(done.stdout.decode())
    return {
        "start_processor_s": percentile(seconds, 0.5),
        "start_worst_processor_s": max(seconds),
        "start_tokens": float(estimate(outputs[0])),
        "start_identical_bytes": len(set(outputs)) == 1,
    }


@click.command()
@SETS
@click.option(
    "--beside",
    "--changelog",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A set; 200 of its memories lie beside.",
)
@click.option(
    "--cues",
    "cues_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="JSON Lines with the cues of memories, by namespace and source.",
)
@click.option(
    "--memories",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A set of which the memories are those of SETS.",
)
@click.option(
    "--latency/--no-latency", default=True, help="Measure times at 10,000 memories too."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def hooks(
    sets: tuple[Path, ...],
    beside: Path | None,
    cues_path: Path | None,
    memories: Path | None,
    latency: bool,
    as_json: bool,
) -> None:
    """Measure what hooks inject at the moments of SETS, and how long a client waits for them."""
    # the SDK warns that the tool is not listed
    logging.getLogger("client").setLevel(logging.ERROR)
    lines = [] if beside is None else others(read_set(beside), _BESIDE)
    cues = {} if cues_path is None else read_cues(cues_path)
    rows = []
    for path in sets:
        rows += asyncio.run(measure_set(path, lines, cues, memories))
    figures: dict[str, Any] = {}
    if latency:
        os.environ["FOLKLORE_JOBS__ENABLED"] = "false"
        with tempfile.TemporaryDirectory(
            prefix="folklore bench ", ignore_cleanup_errors=True
        ) as home:
            try:
                figures = asyncio.run(measure_latency(home)) | measure_start(home)
            finally:
                Engine(Path(home)).stop()
    if as_json:
        print_json({"sets": rows, "latency": figures})
        return
    print_table(rows)
    print_table([{"figure": name, "value": value} for name, value in figures.items()])


if __name__ == "__main__":
    main(hooks)
