"""Hooks: what is injected for prompts with and without an answer, and how long the client waits.

A question is a prompt in its own project, in a session and with a ledger of its own. A prompt without an answer is a
question of one namespace asked in the next one.
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
from collections.abc import Sequence
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
from benchmarks.sets import Question, RetrievalSet, evenly, read_set
from benchmarks.store import Store, open_store
from folklore.engine import Engine
from folklore.memory.requests import HookRequest, ListRequest
from folklore.memory.service import Service
from folklore.text.tokens import estimate

_NOTE = re.compile(r"^- \[([0-9a-f-]{36}),", re.MULTILINE)
_COUNT, _ROUNDS = 10_000, 500


@dataclass(frozen=True, slots=True)
class Injected:
    """Text injected for a prompt: its tokens, its notes, and those that are evidence."""

    tokens: int
    notes: int
    hits: int


def notes_of(text: str) -> list[str]:
    """Return the ids of the notes in an injected text."""
    return _NOTE.findall(text)


async def ask(store_: Store, project: str, prompt: str, evidence: frozenset[str], sources: dict[str, str]) -> Injected:
    """Return what a prompt gets in a new session of a project, with an empty ledger."""
    app = store_.app
    service = Service(
        open=lambda: app.context(app.caller, lambda: project, lambda: project),
        caller=lambda: app.caller,
        namespace=lambda: project,
        usage=lambda: app.usage,
    )
    text = (await service.call(HookRequest(prompt=prompt, session=str(uuid4())))).text
    ids = notes_of(text)
    async with (await app.ready()).database.session() as session:
        await session.execute("delete from injections")
    return Injected(estimate(text), len(ids), sum(sources.get(id_) in evidence for id_ in ids))


async def sources_of(store_: Store, namespace: str) -> dict[str, str]:
    """Return the sources of the memories of a namespace by their ids."""
    found: dict[str, str] = {}
    cursor = None
    while True:
        answer = await store_.app.service.call(ListRequest(namespaces=(namespace,), limit=1000, cursor=cursor))
        found |= {str(item.memory.id): item.memory.source or "" for item in answer.memories}
        if (cursor := answer.cursor) is None:
            return found


async def measure_set(given: RetrievalSet, count: int | None) -> list[dict[str, Any]]:
    """Return one row for the prompts with an answer, and one for those without."""
    questions = [question for question in given.sample(None) if len(given.asked(question)) == 1]
    questions = evenly(questions, count)
    names = list(given.memories)
    following = dict(zip(names, [*names[1:], names[0]], strict=True))
    async with open_store() as store_:
        await store_.fill(given)
        sources = {name: await sources_of(store_, name) for name in names}

        async def asked(items: Sequence[Question], where: dict[str, str]) -> list[Injected]:
            return [
                await ask(store_, place := where[given.asked(item)[0]], item.query, item.evidence, sources[place])
                for item in track(items, "Asking")
            ]

        rows = [_row(given.name, "answerable", await asked(questions, {name: name for name in names}))]
        if len(names) > 1:
            rows.append(_row(given.name, "of the next namespace", await asked(questions, following)))
        return rows


def _row(name: str, kind: str, found: Sequence[Injected]) -> dict[str, Any]:
    injected = [one for one in found if one.notes]
    return {
        "set": name,
        "prompts": kind,
        "number": len(found),
        "mean tokens": mean([one.tokens for one in found]),
        "injected": mean([float(one.notes > 0) for one in found]),
        "notes": mean([one.notes for one in injected]),
        "with evidence": mean([float(one.hits > 0) for one in injected]),
        "notes that are evidence": sum(one.hits for one in injected) / max(sum(one.notes for one in injected), 1),
        "most tokens": max((one.tokens for one in found), default=0),
    }


async def measure_latency(home: str) -> dict[str, float]:
    """Compare the hook with a trivial tool in alternation; then ask two processes the same prompts at the same time."""
    texts = sentences(_COUNT)
    rng = random.Random(11)
    parameters = command(home, "-m", "benchmarks.servers", "stdio")
    async with Client(parameters) as client, Client(parameters) as other:
        await store(client, texts)
        await call_hook(client, "warm", "warm")
        trivial, hooks, injected, tokens, repeated = [], [], 0, [], 0
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
            tokens.append(estimate(text))
            ids = notes_of(text)
            injected += bool(ids)
            repeated += len(seen.setdefault(session, set()).intersection(ids))
            seen[session].update(ids)
        at_once = 0
        for round_ in range(50):
            prompt = " ".join(rng.sample(rng.choice(texts).split(), 8))
            calls = [call_hook(one, prompt, f"t{round_}") for one in (client, other) for _ in range(4)]
            ids = [id_ for text in await asyncio.gather(*calls) for id_ in notes_of(text)]
            at_once += len(ids) - len(set(ids))
        # For the start of a session: more and longer decisions than it shows.
        decisions = [{"content": text * 5, "kind": "decision"} for text in sentences(8, seed=9)]
        await client.call_tool("memory_store", {"memories": decisions})
    return {
        "trivial_p50_ms": percentile(trivial, 0.5),
        "trivial_p99_ms": percentile(trivial, 0.99),
        "hook_p50_ms": percentile(hooks, 0.5),
        "hook_p99_ms": percentile(hooks, 0.99),
        "p99_over_trivial_ms": percentile(hooks, 0.99) - percentile(trivial, 0.99),
        "injected_share": injected / _ROUNDS,
        "repeated_in_a_session": float(repeated),
        "repeated_by_two_processes": float(at_once),
    }


async def call_hook(client: Client, prompt: str, session: str) -> str:
    """Call the hidden tool as a client does, and return the injected text."""
    answer = await client.call_tool("client_hook", {"prompt": prompt, "session": session})
    assert not answer.is_error, answer
    [part] = answer.content
    assert isinstance(part, TextContent)
    return str(json.loads(part.text).get("hookSpecificOutput", {}).get("additionalContext", ""))


def measure_start(home: str) -> dict[str, float | bool]:
    """Return the processor seconds and tokens of `folklore hook session-start`, and if its bytes stay the same."""
    arguments = [sys.executable, "-m", "folklore", "hook", "session-start"]
    outputs, seconds = [], []
    for number in range(9):
        given = json.dumps({"session_id": f"start-{number}", "cwd": home, "source": "startup"}).encode()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(arguments, input=given, env=command(home).env, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        outputs.append(done.stdout.decode())
    return {
        "start_processor_s": percentile(seconds, 0.5),
        "start_worst_processor_s": max(seconds),
        "start_tokens": float(estimate(outputs[0])),
        "start_identical_bytes": len(set(outputs)) == 1,
    }


@click.command()
@SETS
@click.option("--questions", type=click.IntRange(min=1), help="Ask this many questions of each set, evenly spread.")
@click.option("--latency/--no-latency", default=True, help="Measure times at 10,000 memories too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def hooks(sets: tuple[Path, ...], questions: int | None, latency: bool, as_json: bool) -> None:
    """Measure what hooks inject for the questions of SETS, and how long a client waits for them."""
    logging.getLogger("client").setLevel(logging.ERROR)  # the SDK warns that the tool is not listed
    rows = [row for path in sets for row in asyncio.run(measure_set(read_set(path), questions))]
    figures: dict[str, Any] = {}
    if latency:
        os.environ["FOLKLORE_JOBS__ENABLED"] = "false"
        with tempfile.TemporaryDirectory(prefix="folklore bench ", ignore_cleanup_errors=True) as home:
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
