"""Run of clients that call two servers while faults strike; afterwards all must be explained without a repair."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any

import httpx

from tests.faults.history import (
    DONE,
    Call,
    History,
    Key,
    Refused,
    Register,
    Seen,
    key,
    register,
)
from tests.faults.layer import WRITE_ERRORS, Number
from tests.faults.site import HERE, THERE, Site, ready

SECONDS = 2.0  # of calls under faults
_CLIENTS = 5
_MEMORIES = 3
_KEYS = 3
_PATIENCE = 3.0  # seconds a client waits for an answer
_PAUSE = 0.05
_REFUSALS = ("conflict", "not_found")
_HOURS = 3_600 * 10**9


@dataclass
class Report:
    """Outcome of a run."""

    seed: int
    faults: list[str] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    injected: int = 0
    lost_writes: int = 0
    recovery: float = 0.0
    violations: list[str] = field(default_factory=list)


class _WithoutEffect(Exception):
    """A call that changed nothing, and whose answer says nothing about the memory."""


class _Client:
    """Calls both servers at random about the memories of a run, and records what it saw."""

    def __init__(self, run: _Run, number: int) -> None:
        self._run = run
        self._random = random.Random(run.report.seed * 100 + number)
        self._http = httpx.AsyncClient(timeout=_PATIENCE, verify=False)

    async def work(self, until: float) -> None:
        acts: dict[Callable[[], Awaitable[None]], int] = {
            self.read: 5, self.search: 2, self.list_: 2, self.update: 5, self.update_blindly: 2, self.forget: 2,
            self.undo: 4, self.supersede: 1, self.store_under_key: 2,
        }  # fmt: skip
        async with self._http:
            while monotonic() < until:
                [act] = self._random.choices(list(acts), list(acts.values()))
                with suppress(_WithoutEffect):
                    await act()

    async def read(self) -> None:
        await self._read(self._some())

    async def _read(self, name: str) -> Seen | None:
        answer, begin = await self._ask("get", ids=[self._run.ids[name]])
        if answer is None:
            return None
        seen = (
            Seen(None)
            if isinstance(answer, Refused)
            else _seen(answer["found"][0]["memory"])
        )
        self._run.history.add(name, Call("read", (), begin, monotonic(), seen))
        return seen

    async def search(self) -> None:
        """Search by the word that only one memory has: what is found is read, what is not may be hidden."""
        name = self._some()
        answer, begin = await self._ask(
            "search", query=name, namespaces=[self._run.namespace]
        )
        if answer is not None and not isinstance(answer, Refused):
            self._reads(answer["memories"], begin)

    async def list_(self) -> None:
        answer, begin = await self._ask(
            "list", namespaces=[self._run.namespace], limit=50
        )
        if answer is not None and not isinstance(answer, Refused):
            self._reads(answer["memories"], begin)

    def _reads(self, found: list[Any], begin: float) -> None:
        names = {id_: name for name, id_ in self._run.ids.items()}
        for item in found:
            memory = item.get("memory", item)
            if (name := names.get(memory["id"])) is not None:
                self._run.history.add(
                    name, Call("read", (), begin, monotonic(), _seen(memory))
                )

    async def update(self) -> None:
        """Change a text under the optimistic lock."""
        name = self._some()
        if (seen := await self._read(name)) is not None:
            text = self._run.text(name)
            revision = seen.revision or 1
            await self._write(
                name,
                "update",
                (text, revision),
                "update",
                changes={"content": text},
                if_revision=revision,
            )

    async def update_blindly(self) -> None:
        name = self._some()
        text = self._run.text(name)
        await self._write(
            name, "update", (text, None), "update", changes={"content": text}
        )

    async def undo(self) -> None:
        name = self._some()
        revision = None
        if self._random.random() < 0.5 and (seen := await self._read(name)) is not None:
            revision = seen.revision or 1
        await self._write(name, "undo", (revision,), "undo", revision=revision)

    async def forget(self) -> None:
        name = self._some()
        answer, begin = await self._ask("forget", ids=[self._run.ids[name]])
        if isinstance(answer, dict) and answer["already"]:
            answer = Refused("already")
        self._record(name, "forget", (), begin, answer)

    async def supersede(self) -> None:
        name = self._some()
        draft = {"content": self._run.text("newer"), "supersedes": self._run.ids[name]}
        answer, begin = await self._ask(
            "store", memories=[draft], namespace=self._run.namespace
        )
        self._record(name, "supersede", (), begin, answer)

    async def store_under_key(self) -> None:
        name = f"key-{self._random.randrange(_KEYS)}"
        draft = {
            "content": f"What {self._run.namespace} holds under {name}.",
            "idempotency_key": name,
        }
        answer, begin = await self._ask(
            "store", memories=[draft], namespace=self._run.namespace
        )
        if isinstance(answer, dict):
            [stored] = answer["stored"]
            self._run.history.add(
                name,
                Call("store", (), begin, monotonic(), (stored["id"], stored["status"])),
            )
        elif answer is None:
            self._run.history.add(name, Call("store", (), begin))

    async def _write(
        self,
        name: str,
        kind: str,
        arguments: tuple[Any, ...],
        operation: str,
        **request: Any,
    ) -> None:
        answer, begin = await self._ask(operation, id=self._run.ids[name], **request)
        self._record(name, kind, arguments, begin, answer)

    def _record(
        self,
        name: str,
        kind: str,
        arguments: tuple[Any, ...],
        begin: float,
        answer: Any,
    ) -> None:
        if answer is None:
            self._run.history.add(name, Call(kind, arguments, begin))
        else:
            known = answer if isinstance(answer, Refused) else DONE
            self._run.history.add(
                name, Call(kind, arguments, begin, monotonic(), known)
            )

    async def _ask(self, operation: str, **request: Any) -> tuple[Any, float]:
        """Return the result, a refusal, or None where the effect is unknown; and when the call began."""
        begin = monotonic()
        url = self._random.choice(self._run.site.urls())
        try:
            response = await self._http.post(f"{url}/api/{operation}", json=request)
        except httpx.ConnectError:  # it was not sent
            self._run.report.calls["not connected"] += 1
            await asyncio.sleep(_PAUSE)
            raise _WithoutEffect from None
        except httpx.TransportError as lost:
            self._run.report.calls[type(lost).__name__] += 1
            return None, begin
        self._run.report.calls[str(response.status_code)] += 1
        if response.is_success:
            return response.json()["result"], begin
        error = response.json()["error"]
        if error["code"] in _REFUSALS:
            # ConcurrentChange: tell nothing about the state
            if "another caller" in error["message"]:
                raise _WithoutEffect
            return Refused(error["code"]), begin
        if response.status_code < 500:
            self._run.report.violations.append(
                f"{operation}: an unexpected refusal: {error}"
            )
        return None, begin

    def _some(self) -> str:
        return self._random.choice(list(self._run.ids))


def _seen(memory: Mapping[str, Any]) -> Seen:
    return Seen(
        memory["content"], memory["revision"], memory["superseded_at"] is not None
    )


class _Run:
    """A namespace with a few memories, and the history of the calls on them."""

    def __init__(self, site: Site, seed: int) -> None:
        self.site = site
        self.report = Report(seed)
        self.history = History()
        self.namespace = f"run-{seed}"
        self.ids: dict[str, str] = {}
        self._texts = 0

    def text(self, name: str) -> str:
        """A text that no other call writes."""
        self._texts += 1
        return f"The {name} of {self.namespace} has the value {self._texts}."

    async def prepare(self) -> None:
        names = [f"memory{number}" for number in range(_MEMORIES)]
        texts = [self.text(name) for name in names]
        begin = monotonic()
        async with httpx.AsyncClient(
            base_url=self.site.urls()[HERE], timeout=60
        ) as client:
            request = {
                "memories": [{"content": text} for text in texts],
                "namespace": self.namespace,
            }
            response = await client.post("/api/store", json=request)
        response.raise_for_status()
        for name, text, stored in zip(
            names, texts, response.json()["result"]["stored"], strict=True
        ):
            self.ids[name] = stored["id"]
            self.history.add(name, Call("store", (text,), begin, monotonic(), DONE))

    async def look(self) -> None:
        """Read each memory from each server: what was acknowledged is there, once."""
        for url in self.site.urls():
            async with httpx.AsyncClient(base_url=url, timeout=60) as client:
                for name, id_ in self.ids.items():
                    begin = monotonic()
                    response = await client.post("/api/get", json={"ids": [id_]})
                    seen = (
                        _seen(response.json()["result"]["found"][0]["memory"])
                        if response.is_success
                        else Seen(None)
                    )
                    self.history.add(name, Call("read", (), begin, monotonic(), seen))
                request = {"namespaces": [self.namespace], "limit": 200}
                listed = (await client.post("/api/list", json=request)).json()[
                    "result"
                ]["memories"]
                texts = Counter(item.get("memory", item)["content"] for item in listed)
                self.report.violations += [
                    f"{text!r} is stored {count} times"
                    for text, count in texts.items()
                    if count > 1
                ]
                self._look_at_keys({item.get("memory", item)["id"] for item in listed})

    def _look_at_keys(self, listed: set[str]) -> None:
        for name, calls in self.history.calls.items():
            stored = {
                call.answer[0]
                for call in calls
                if name.startswith("key-") and isinstance(call.answer, tuple)
            }
            self.report.violations += [
                f"{name}: the memory {id_} is lost" for id_ in stored - listed
            ]

    def check(self) -> None:
        self.report.violations += self.history.violations(
            register, Register(), "memory"
        )
        self.report.violations += self.history.violations(key, Key(), "key-")
        for server in self.site.servers:
            crashes = server.crashes + (
                server.running.crashes() if server.running else []
            )
            self.report.violations += [f"a call crashed: {line}" for line in crashes]


async def trial(site: Site, seed: int) -> Report:
    """Run the clients and the faults that a seed gives."""
    run = _Run(site, seed)
    chance = random.Random(seed)
    plan = _plan(site, chance, run.report)
    site.layer[Number.SALT] = seed
    await run.prepare()
    injected = site.layer[Number.INJECTED]
    clients = [_Client(run, number) for number in range(_CLIENTS)]
    until = monotonic() + SECONDS
    await asyncio.gather(
        *(client.work(until) for client in clients),
        *(_strike(at, fault) for at, fault in plan),
    )
    await site.calm()
    try:
        run.report.recovery = max(
            await asyncio.gather(*(ready(url) for url in site.urls()))
        )
        await run.look()
    except (TimeoutError, httpx.HTTPError, KeyError) as error:
        run.report.violations.append(
            f"the servers did not come back by themselves: {error!r}"
        )
    run.report.injected = site.layer[Number.INJECTED] - injected
    run.check()
    return run.report


async def _strike(at: float, fault: Callable[[], Awaitable[object]]) -> None:
    await asyncio.sleep(at)
    await fault()


Fault = Callable[[Site, random.Random, Report], Awaitable[object]]


def _plan(
    site: Site, chance: random.Random, report: Report
) -> list[tuple[float, Callable[[], Awaitable[object]]]]:
    """Draw one to three faults and their times. At most one of them ends processes of the engine's machine."""
    names = [
        *chance.sample(list(_LASTING), chance.randint(0, 2)),
        *chance.sample(list(_ENDING), 1),
    ]
    faults = {**_LASTING, **_ENDING}
    plan: list[tuple[float, Callable[[], Awaitable[object]]]] = []
    for name in names:
        at = chance.uniform(0.1, 0.7 * SECONDS)
        own = random.Random(chance.random())
        report.faults.append(f"{name} at {at:.2f} s")
        plan.append((at, partial(faults[name], site, own, report)))
    site.layer.journal(on="power" in names)
    return plan


async def _disk(site: Site, chance: random.Random, report: Report) -> None:
    """Fail a share of the writes, or one write, by one kind of error."""
    site.layer[Number.WRITE_FAULT] = chance.choice(list(WRITE_ERRORS.values()))
    if chance.random() < 0.5:
        site.layer[Number.COUNTDOWN] = chance.randint(1, 30)
    else:
        site.layer[Number.WRITE_RATE] = chance.choice((200, 1_000, 10_000))
    await asyncio.sleep(chance.uniform(0.1, 0.8))
    for number in (Number.WRITE_FAULT, Number.COUNTDOWN, Number.WRITE_RATE):
        site.layer[number] = 0


async def _sync(site: Site, chance: random.Random, report: Report) -> None:
    site.layer[Number.SYNC_RATE] = chance.choice((500, 3_000, 10_000))
    await asyncio.sleep(chance.uniform(0.1, 0.5))
    site.layer[Number.SYNC_RATE] = 0


async def _split(site: Site, chance: random.Random, report: Report) -> None:
    site.network.split()
    await asyncio.sleep(chance.uniform(0.1, 1.5))
    site.network.heal()


async def _delay(site: Site, chance: random.Random, report: Report) -> None:
    site.network.delay = chance.uniform(0.01, 0.3)
    await asyncio.sleep(chance.uniform(0.2, 1.0))
    site.network.heal()


async def _drop(site: Site, chance: random.Random, report: Report) -> None:
    for _ in range(chance.randint(1, 8)):
        site.network.drop()
        await asyncio.sleep(chance.uniform(0.0, 0.2))


async def _cut(site: Site, chance: random.Random, report: Report) -> None:
    for _ in range(chance.randint(1, 8)):
        site.network.cut_after(chance.randint(0, 3_000))
        await asyncio.sleep(chance.uniform(0.0, 0.2))


async def _clock(site: Site, chance: random.Random, report: Report) -> None:
    for _ in range(chance.randint(1, 3)):
        site.layer[Number.CLOCK] = int(
            chance.choice((-24, -1, -0.01, 0.01, 1, 24)) * _HOURS
        )
        await asyncio.sleep(chance.uniform(0.1, 0.6))


async def _nothing(site: Site, chance: random.Random, report: Report) -> None:
    """End nothing: what lasts strikes alone."""


async def _power(site: Site, chance: random.Random, report: Report) -> None:
    report.lost_writes += await site.lose_power(chance)


_LASTING: Mapping[str, Fault] = {
    "disk": _disk,
    "sync": _sync,
    "split": _split,
    "delay": _delay,
    "drop": _drop,
    "cut": _cut,
    "clock": _clock,
    "frozen server": lambda site, chance, _: site.freeze_server(
        chance.choice((HERE, THERE)), chance.uniform(0.1, 1.5)
    ),
    "frozen Postgres": lambda site, chance, _: site.freeze_postgres(
        chance.uniform(0.1, 1.5)
    ),
}
_ENDING: Mapping[str, Fault] = {
    "nothing": _nothing,
    "power": _power,
    "killed server": lambda site, chance, _: site.kill_server(
        chance.choice((HERE, THERE))
    ),
    "killed Postgres": lambda site, chance, _: site.kill_postgres(chance, all_=True),
    "killed process of Postgres": lambda site, chance, _: site.kill_postgres(
        chance, all_=False
    ),
}
