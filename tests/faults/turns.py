"""Each write of a store in turn meets an error of the disk; afterwards the store has happened whole or not at all."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.faults.layer import WRITE_ERRORS, Number
from tests.faults.site import HERE, Site, ready

_NAMESPACE = "turns"
_MEMORIES = 40  # of a large store: enough to write more than the log
_MOST_WRITES = 60


@dataclass
class Turns:
    """Outcome: stores by their answer, and what was violated."""

    answers: Counter[str] = field(default_factory=Counter)
    failed_writes: int = 0
    violations: list[str] = field(default_factory=list)


async def turns(site: Site) -> Turns:
    """Store one memory and many, with each kind of error at the first write, at the second … until none is left."""
    outcome = Turns()
    for kind, fault in WRITE_ERRORS.items():
        for size in (1, _MEMORIES):
            for number in range(1, _MOST_WRITES):
                texts = [
                    f"Turn {number} of {kind} with {size}: part {part}."
                    for part in range(size)
                ]
                site.layer[Number.WRITE_FAULT] = fault
                failed = await _store(site, texts, number, outcome)
                outcome.failed_writes += failed
                if not failed:  # a store has fewer writes
                    break
    return outcome


async def _store(site: Site, texts: list[str], number: int, outcome: Turns) -> bool:
    """Store texts while the write of this number fails. Return false if there was no such write."""
    injected = site.layer[Number.INJECTED]
    site.layer[Number.COUNTDOWN] = number
    async with httpx.AsyncClient(base_url=site.urls()[HERE], timeout=60) as client:
        answer = await client.post("/api/store", json=_request(texts))
        site.layer.calm()
        await ready(site.urls()[HERE])
        outcome.answers[
            "stored" if answer.is_success else str(answer.json()["error"]["code"])
        ] += 1
        stored = await _found(client, texts)
        if len(stored) not in (0, len(texts)):
            outcome.violations.append(
                f"{len(stored)} of {len(texts)} were stored: {answer.text[:200]}"
            )
        if answer.is_success and len(stored) != len(texts):
            outcome.violations.append(f"{texts[0]!r} was acknowledged and is lost")
        again = (await client.post("/api/store", json=_request(texts))).json()[
            "result"
        ]["stored"]
        statuses = Counter(item["status"] for item in again)
        if statuses != Counter({"duplicate" if stored else "stored": len(texts)}):
            outcome.violations.append(
                f"{texts[0]!r}, repeated: {statuses}, {len(stored)} were there"
            )
    return site.layer[Number.INJECTED] > injected


def _request(texts: list[str]) -> dict[str, Any]:
    return {"memories": [{"content": text} for text in texts], "namespace": _NAMESPACE}


async def _found(client: httpx.AsyncClient, texts: list[str]) -> set[str]:
    listed = await client.post(
        "/api/list",
        json={"namespaces": [_NAMESPACE], "limit": 200, "sort": "time_desc"},
    )
    memories = listed.json()["result"]["memories"] if listed.is_success else []
    return {item["memory"]["content"] for item in memories} & set(texts)
