"""Isolation trial: random calls with random tokens at one real server, whose answers may hold only what was granted.

Everything that belongs to a namespace carries its mark: its name, every text, tag, source, session and description in
it, and the ids of its memories. An answer (status, headers, body) may hold only marks of namespaces that the caller may
read, and those of the request. Two more rules: a hidden memory and a missing one get the same answer, and a change in a
hidden namespace changes no answer, no score and no statistic of other namespaces.

`make isolation CALLS=20000` makes many calls; a test makes some.
"""

import argparse
import asyncio
import base64
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx

from folklore.db.migrate import migrate
from folklore.embedding.bundled import BundledEmbedder
from folklore.server.console.pages.routes import PAGES
from tests.servers import on_http, watched
from tests.team import Team, bearer, library_at
from tests.temporary_engine import temporary_engine
from tests.visitor import Visitor, visiting

ROLES = ("reader", "writer", "admin")
# The first level of each name: similar ones, which patterns must not confuse.
LEVELS = (
    "acme/",
    "acmecorp/",
    "acme/in/",
    "ac_me/",
    "acme/",
    "acmecorp/",
    "quiet/",
    "quiet/",
)
WORDS = (
    "harbour",
    "crane",
    "lamp",
    "tide",
    "mole",
    "pilot",
    "rope",
    "signal",
    "chart",
    "buoy",
)
MARK = re.compile(r"(?:nb|mk)(\d+)x(?:[0-9a-f]{10}|[0-9a-f]{6})(?![0-9a-z])")
CURSOR = re.compile(r'cursor\\?": ?\\?"([\w-]+)')
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_PAGES = [page.path for page in PAGES if page.get]
HEADERS = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": "2025-06-18",
}


@dataclass(frozen=True, slots=True)
class Holder:
    """Caller with a token: the roles that it grants, by name or by a pattern, by the place of the namespace."""

    name: str
    secret: str
    roles: Mapping[int, str]


@dataclass(slots=True)
class Trial:
    """Run of the trial. `broken` describes the answers that hold something forbidden."""

    team: Team
    client: httpx.AsyncClient
    random: random.Random
    sessions: AsyncExitStack
    visitors: dict[str, Visitor] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    holders: list[Holder] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    compared: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    # names that are being replaced, or were
    leaving: set[str] = field(default_factory=set)

    async def prepare(self, namespaces: int = len(LEVELS), people: int = 10) -> None:
        """Create namespaces with memories, and callers who may read some of them."""
        for place in range(namespaces):
            self.names.append(_named(place))
            for _ in range(4):
                await self._seed(place)
        for number in range(people):
            held = self.random.sample(
                range(namespaces), self.random.randint(0, namespaces - 3)
            ) or [0]
            # The last two namespaces have no writers but this trial.
            roles = {
                place: self.random.choice(ROLES) if place < namespaces - 2 else "reader"
                for place in held
            }
            if number % 3 == 0:  # by a pattern, which renamed namespaces keep matching
                level = self.random.choice(LEVELS[: namespaces - 2])
                role = self.random.choice(ROLES)
                roles = {
                    place: role
                    for place in range(namespaces)
                    if LEVELS[place].startswith(level)
                }
                roles[namespaces - 1] = "reader"
                grants = [f"{level}*:{role}", f"{self.names[-1]}:reader"]
            else:
                grants = [
                    f"{self.names[place]}:{role}" for place, role in roles.items()
                ]
            made = await self.team.token(f"person{number}", *grants)
            self.holders.append(Holder(f"person{number}", made.secret, roles))
            visit = visiting(self.team.server.url, made.secret)
            self.visitors[f"person{number}"] = await self.sessions.enter_async_context(
                visit
            )

    async def _seed(self, place: int, text: str | None = None) -> None:
        [id_] = await self.team.keep(
            text or self._text(place), namespace=self.names[place]
        )
        self.ids[str(id_)] = place

    def _mark(self, place: int) -> str:
        return f"mk{place}x{self.random.getrandbits(40):010x}"

    def _text(self, place: int) -> str:
        return f"{self._mark(place)} {' '.join(self.random.choices(WORDS, k=6))}"

    async def run(self, calls: int, at_once: int = 8) -> None:
        """Make so many calls, each by a random caller."""

        async def person() -> None:
            while sum(self.calls.values()) < calls and not self.broken:
                holder = self.random.choice(self.holders)
                dice = self.random.random()
                if dice < 0.03:
                    await self._same_answer(holder)
                elif dice < 0.06:
                    await self._hidden_or_missing(holder)
                else:
                    await self._anything(holder)

        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(person())

    # -- one call and the check of its answer

    async def _post(
        self, holder: Holder, path: str, body: Mapping[str, Any], what: str
    ) -> httpx.Response:
        answer = await self.client.post(
            path, json=body, headers=HEADERS | bearer(holder.secret)
        )
        # A call that does not exist, or with other arguments, would test nothing.
        if re.search("There is no operation |unknown field|is missing", answer.text):
            self.broken.append(
                f"{what} {json.dumps(body)} tests nothing: {answer.text[:500]}"
            )
        return self._checked(holder, answer, json.dumps(body), what)

    def _checked(
        self, holder: Holder, answer: httpx.Response, said: str, what: str
    ) -> httpx.Response:
        """Note what an answer holds that the caller may not see and did not say, and whether the call crashed."""
        self.calls[what] += 1
        refused = " refused" if '"isError":true' in answer.text else ""
        self.statuses[f"{answer.status_code}{refused}"] += 1
        opened = (
            base64.urlsafe_b64decode(f"{cursor}===")
            for cursor in CURSOR.findall(answer.text)
        )
        cursors = b" ".join(opened).decode("utf-8", "replace")
        self.compared["cursors"] += bool(cursors)
        told = f"{answer.status_code} {dict(answer.headers)} {answer.text} {cursors}"
        for match in MARK.finditer(told):
            place = int(match[1])
            if place not in holder.roles and match[0] not in said:
                self.broken.append(
                    f"{holder} saw {match[0]} in the answer to {what} {said}: {answer.text[:1_000]}"
                )
        for id_ in set(ID.findall(told)):
            place = self.ids.get(id_, -1)
            if place >= 0 and place not in holder.roles and id_ not in said:
                self.broken.append(
                    f"{holder} saw the id {id_} in the answer to {what} {said}"
                )
        # `late`: the database refused a call that the code had permitted, which may happen only if the namespace was
        # renamed meanwhile.
        late = re.search("may not do this here", answer.text) and not any(
            name in said for name in self.leaving
        )
        if answer.status_code >= 500 or "Error executing tool" in answer.text or late:
            self.broken.append(
                f"{what} {said} failed: {answer.status_code} {answer.text[:500]}"
            )
        return answer

    async def _tool(
        self, holder: Holder, tool: str, **arguments: Any
    ) -> httpx.Response:
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        }
        return await self._post(holder, "/mcp", body, tool)

    async def _read(self, holder: Holder, uri: str) -> httpx.Response:
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "resources/read",
            "params": {"uri": uri},
        }
        return await self._post(
            holder, "/mcp", body, f"resource {uri.split('/')[-1][:9]}"
        )

    async def _api(self, holder: Holder, call: str, **arguments: Any) -> httpx.Response:
        return await self._post(holder, f"/api/{call}", arguments, f"api {call}")

    async def _page(self, holder: Holder, name: str, query: str, id_: str) -> None:
        """Look at a page of the console, by the session of a person."""
        path = self.random.choice(_PAGES).replace("{id}", id_)
        asked = {
            "q": query,
            "name": name,
            "namespace": name,
            "id": id_,
            "other": id_,
            "ids": id_,
        }
        given = {
            key: asked[key]
            for key in self.random.sample(list(asked), self.random.randint(0, 3))
        }
        answer = await self.visitors[holder.name].get(path, **given)
        self._checked(
            holder, answer, f"{path} {given}", f"page {path.replace(id_, '{id}')}"
        )

    # -- random calls

    async def _anything(self, holder: Holder) -> None:
        place = self.random.randrange(len(self.names))
        name = self.names[place]
        ids = self.random.sample([*self.ids], min(3, len(self.ids)))
        query = " ".join(self.random.choices(WORDS, k=self.random.randint(1, 4)))
        some = self.random.choice(
            [
                {},
                {"namespaces": [name]},
                {"namespaces": [name, self.random.choice(self.names)]},
            ]
        )
        match self.random.randrange(25):
            case 0 | 1 | 2:
                more: dict[str, Any] = (
                    {"explain": True} if self.random.random() < 0.3 else {}
                )
                asked: dict[str, Any] = (
                    {"queries": [query, *WORDS[:2]]}
                    if self.random.random() < 0.2
                    else {"query": query}
                )
                await self._tool(holder, "memory_recall", **asked, **some, **more)
            case 3:
                ranking = {
                    "expand": ["relations", "entities"],
                    "min_score": self.random.choice([0, 0.5]),
                }
                await self._tool(
                    holder,
                    "memory_recall",
                    query=query,
                    ranking=ranking,
                    format="detailed",
                    **some,
                )
            case 4 | 5:
                forms = [
                    query,
                    f'"{query}"',
                    f"{query[:3]}*",
                    f"NOT {query}",
                    f"mk{place}*",
                ]
                await self._tool(
                    holder, "search_keywords", query=self.random.choice(forms), **some
                )
            case 6:
                filters: Any = self.random.choice(
                    [{}, {"metadata": {"mark": {"exists": True}}}]
                )
                await self._tool(
                    holder,
                    "memory_list",
                    limit=self.random.randint(1, 50),
                    filters=filters,
                    **some,
                )
            case 7:
                await self._tool(holder, "memory_get", ids=ids)
            case 8 | 9:
                await self._store(holder, place, ids)
            case 10:
                more = (
                    {"merge": ids[1:]}
                    if self.random.random() < 0.3
                    else {"tags": [self.random.choice(WORDS)]}
                )
                await self._tool(holder, "memory_update", id=ids[0], **more)
            case 11:
                how = {
                    "erase": self.random.random() < 0.3,
                    "dry_run": self.random.random() < 0.3,
                }
                await self._tool(holder, "memory_forget", ids=ids[:1], **how)
            case 12:
                filters = {"tags": [self.random.choice(WORDS)]}
                await self._tool(
                    holder,
                    "memory_forget",
                    filters=filters,
                    namespaces=[name],
                    dry_run=True,
                )
            case 13:
                relation = {"from": ids[0], "to": ids[-1], "type": "relates_to"}
                await self._tool(holder, "memory_relate", relations=[relation])
            case 14:
                await self._tool(holder, "memory_status")
            case 15:
                uris = [
                    "memory://status",
                    "memory://namespaces",
                    f"memory://{name}/recent",
                    f"memory://item/{ids[0]}",
                ]
                await self._read(holder, self.random.choice(uris))
            case 16:
                await self._api(
                    holder, "get", ids=ids, forgotten=self.random.random() < 0.5
                )
                await self._api(holder, "history", id=ids[0])
                await self._api(holder, "resolve", endings=[ids[0][-4:]])
            case 17:
                call = self.random.choice(
                    [
                        "stats",
                        "list_namespaces",
                        "list_tokens",
                        "audit",
                        "status",
                        "log",
                    ]
                )
                await self._api(
                    holder,
                    call,
                    **({"namespaces": [name]} if call in ("audit", "log") else {}),
                )
                await self._api(
                    holder, self.random.choice(["overview", "activity"]), **some
                )
                await self._api(holder, "uses", id=ids[0])
            case 18:
                await self._api(holder, "undo", id=ids[0])
            case 23:
                memory = {
                    "content": self._text(place),
                    "namespace": name,
                    "author": "sarah",
                }
                sent = f'{{"on_conflict": "overwrite"}}\n[1, "", 0, null]\t{json.dumps(memory)}\n'
                answer = await self.client.post(
                    "/api/import", content=sent, headers=HEADERS | bearer(holder.secret)
                )
                self._checked(holder, answer, sent, "api import")
                if (
                    answer.json().get("result", {}).get("stored")
                    and holder.roles.get(place, "reader") == "reader"
                ):
                    self.broken.append(f"{holder} imported into {name}")
            case 19 | 20 | 21 | 22:
                await self._page(holder, name, query, ids[0])
            case _:
                rename = {"name": name, "to": _named(place)}
                operations: list[tuple[str, dict[str, Any]]] = [
                    ("create_namespace", {"name": f"new{uuid4().hex[:6]}"}),
                    (
                        "describe_namespace",
                        {"name": name, "description": self._text(place)},
                    ),
                    ("rename_namespace", rename),
                    (
                        "rename_tag",
                        {
                            "tag": query.split()[0],
                            "to": self.random.choice(WORDS),
                            "namespace": name,
                        },
                    ),
                    (
                        "merge_namespaces",
                        {
                            "name": name,
                            "into": self.random.choice(self.names),
                            "dry_run": True,
                        },
                    ),
                ]
                call, given = self.random.choice(operations)
                if call == "rename_namespace":
                    self.leaving.add(name)
                answer = await self._api(holder, call, **given)
                if call == "rename_namespace" and answer.status_code == 200:
                    self.names[place] = rename["to"]
                else:
                    self.leaving.discard(name)

    async def _store(self, holder: Holder, place: int, ids: Sequence[str]) -> None:
        memory: dict[str, Any] = {
            "content": self._text(place),
            "tags": [self._mark(place), self.random.choice(WORDS)],
            "source": self._mark(place),
            "session": self._mark(place),
            "metadata": {"mark": self._mark(place)},
        }
        if self.random.random() < 0.2:
            memory["supersedes"] = ids[0]
        if self.random.random() < 0.2:
            memory["related"] = [{"id": ids[0], "type": "relates_to"}]
        answer = await self._tool(
            holder, "memory_store", memories=[memory], namespace=self.names[place]
        )
        stored = (
            _message(answer)
            .get("result", {})
            .get("structuredContent", {})
            .get("stored", [])
        )
        for item in stored:
            self.ids.setdefault(item["id"], place)
            if holder.roles.get(place, "reader") == "reader":
                self.broken.append(f"{holder} wrote to {self.names[place]}")

    async def _hidden_or_missing(self, holder: Holder) -> None:
        """Compare the answer for something hidden with the answer for something that does not exist."""
        hidden = [
            place for place in range(len(self.names)) if place not in holder.roles
        ]
        if not hidden:
            return
        place = self.random.choice(hidden)
        name = self.names[place]
        never = _named(place)
        theirs = [id_ for id_, where in self.ids.items() if where == place]
        pairs: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
            (
                "memory_recall",
                {"query": "x", "namespaces": [name]},
                {"query": "x", "namespaces": [never]},
            ),
            ("memory_list", {"namespaces": [name]}, {"namespaces": [never]}),
            (
                "memory_store",
                {"content": "x", "namespace": name},
                {"content": "x", "namespace": never},
            ),
            ("memory_get", {"ids": theirs[:1]}, {"ids": [str(uuid4())]}),
            (
                "memory_forget",
                {"ids": theirs[:1], "dry_run": True},
                {"ids": [str(uuid4())], "dry_run": True},
            ),
        ]
        tool, there, nowhere = self.random.choice(pairs)
        one = await self._tool(holder, tool, **there)
        other = await self._tool(holder, tool, **nowhere)
        said = [one.text.replace(name, "_"), other.text.replace(never, "_")]
        # Suggestions of the caller's own namespaces differ with the requested name and reveal nothing.
        hints = " Did you mean| You may| `folklore namespaces list`"
        said = [re.split(hints, ID.sub("_", text))[0] for text in said]
        self.compared["hidden or missing"] += 1
        if said[0] != said[1]:
            self.broken.append(
                f"{holder} can distinguish the hidden {there} from a missing one: {said}"
            )

    async def _same_answer(self, holder: Holder) -> None:
        """Compare two answers of an unchanged namespace before and after changes in a hidden one."""
        quiet = {len(self.names) - 2, len(self.names) - 1}
        mine = [place for place in holder.roles if place in quiet]
        hidden = [
            place
            for place in range(len(self.names))
            if place not in holder.roles and place not in quiet
        ]
        if not mine or not hidden:
            return
        query = " ".join(self.random.choices(WORDS, k=3))
        asked = {
            "query": query,
            "namespaces": [self.names[place] for place in mine],
            "explain": True,
            "limit": 20,
        }
        before = await self._tool(holder, "memory_recall", **asked)
        for _ in range(2):
            place = self.random.choice(hidden)
            await self._seed(place, f"{self._mark(place)} {query} {query}")
        after = await self._tool(holder, "memory_recall", **asked)
        said = [_timeless(_message(answer)) for answer in (before, after)]
        self.compared["before and after"] += 1
        if said[0] != said[1]:
            self.broken.append(
                f"{holder} can see a change in a hidden namespace: {said}"
            )


def _message(answer: httpx.Response) -> Any:
    """Return the message of an answer, which is JSON or an event."""
    for line in answer.text.splitlines():
        if line.startswith("data:"):
            return json.loads(line.removeprefix("data:"))
    return answer.json()


def _named(place: int) -> str:
    """Return a new name for a namespace, below the level of its place."""
    return f"{LEVELS[place]}nb{place}x{uuid4().hex[:6]}"


def _timeless(value: Any) -> Any:
    """Return an answer without times and usage counts."""
    if isinstance(value, dict):
        return {
            name: _timeless(entry)
            for name, entry in value.items()
            if name not in ("milliseconds", "text", "last_recalled_at", "recall_count")
            and not name.endswith("_ms")
        }
    return [_timeless(entry) for entry in value] if isinstance(value, list) else value


async def trial(dsn: str, folder: Path, calls: int, seed: int) -> Trial:
    """Start a server over a fresh database and make so many calls."""
    settings = watched(folder, database_url=dsn)
    async with (
        library_at(
            dsn, BundledEmbedder()
        ) as library,  # an embedding that is written later would change an answer by itself
        on_http(settings, alone=True) as server,
        httpx.AsyncClient(base_url=server.url, timeout=60) as client,
        AsyncExitStack() as sessions,
    ):
        run = Trial(Team(server, library), client, random.Random(seed), sessions)
        await run.prepare()
        await run.run(calls)
        return run


async def _main(calls: int, seed: int) -> int:
    with temporary_engine() as dsn, tempfile.TemporaryDirectory() as folder:
        await migrate(dsn)
        start = time.monotonic()
        run = await trial(dsn, Path(folder), calls, seed)
    made = sum(run.calls.values())
    print(
        f"{made:,} calls in {time.monotonic() - start:.0f} s (seed {seed}): {dict(run.calls.most_common())}"
    )
    print(f"answers: {dict(run.statuses)}; pairs compared: {dict(run.compared)}")
    for line in run.broken[:5]:
        print("BROKEN:", line)
    print(
        "no answer held anything that was not granted"
        if not run.broken
        else f"{len(run.broken)} broken"
    )
    return 1 if run.broken else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument(
        "--seed", type=int, default=int(UUID(int=random.getrandbits(128)).int % 100_000)
    )
    given = parser.parse_args()
    sys.exit(asyncio.run(_main(given.calls, given.seed)))
