"""The home page and the timeline of the console, and its live feed, over HTTP with two people of different grants."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urljoin
from uuid import uuid4

import asyncpg
import httpx
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from folklore.config import Settings
from folklore.db.stores.events.usage import UsageEntry, UsageStore
from folklore.memory.context import MemoryContext
from folklore.memory.context.usage import query_digest
from folklore.model import Draft, Relation
from folklore.new_ids import new_id
from tests.servers import serving
from tests.team import Team, root
from tests.visitor import Visitor, texts, visiting
from tests.waiting import STUCK

OPEN = "The mole is closed in November."
SECRET = "Salaries are paid on the fifth."
HOSTILE = "<script>alert(1)</script><b style='x'>\u202ebold\u0007</b> & \"quoted\" 💥"


@pytest.fixture
async def harbour(team: Team) -> str:
    """A namespace that both people may read."""
    name = f"harbour{uuid4().hex[:8]}"
    await team.keep(OPEN, namespace=name)
    return name


@pytest.fixture
async def payroll(team: Team) -> str:
    """A namespace that few may read."""
    name = f"payroll{uuid4().hex[:8]}"
    await team.keep(SECRET, namespace=name)
    return name


@pytest.fixture
async def ann(team: Team, harbour: str) -> AsyncIterator[Visitor]:
    """A reader of the harbour alone."""
    async with team.visitor("ann", f"{harbour}:reader") as visitor:
        yield visitor


@pytest.fixture
async def bea(team: Team, harbour: str, payroll: str) -> AsyncIterator[Visitor]:
    """A person who may read both."""
    async with team.visitor("bea", f"{harbour}:writer", f"{payroll}:admin") as visitor:
        yield visitor


async def recall(team: Team, id_: Any, namespace: str, by: str = "root") -> None:
    """Record an answer with a memory."""
    entry = UsageEntry(
        namespace,
        id_,
        team.owner.now,
        by,
        answer=new_id(),
        rank=1,
        score=0.5,
        query=query_digest("?"),
        session="s",
    )
    assert await UsageStore(team.library.database).record([entry]) == []


def links(page: httpx.Response, pattern: str) -> list[str]:
    """Return the addresses of links that match, absolute."""
    found = re.findall(rf'href="([^"]*{pattern}[^"]*)"', page.text)
    return [urljoin(str(page.url), address.replace("&amp;", "&")) for address in found]


# Home


async def test_home_shows_to_each_person_what_that_person_may_read(
    ann: Visitor, bea: Visitor, payroll: str
) -> None:
    hers = await ann.get("/")
    both = await bea.get("/")

    assert (hers.status_code, both.status_code) == (200, 200)
    assert OPEN in texts(hers)
    assert "1 project, 1 memory" in texts(hers)
    assert SECRET not in hers.text
    assert payroll not in hers.text
    assert {
        OPEN in texts(both),
        SECRET in texts(both),
        "2 projects, 2 memories" in texts(both),
    } == {True}


async def test_home_shows_changes_and_what_wants_attention_with_links(
    team: Team, ann: Visitor, harbour: str
) -> None:
    one, other = await team.keep(
        "the gate opens at six", "a ferry leaves at noon", namespace=harbour
    )
    await team.owner.relate(Relation(one, "contradicts", other))
    await team.keep(
        Draft("The Makefile has a target for it.", paths=("Makefile",), pinned=True),
        namespace=harbour,
    )
    await recall(team, one, harbour)

    page = await ann.get("/")
    shown = texts(page)

    assert "1 contradiction" in shown
    assert "1 memory tied to files" in shown
    assert "root stored 4" in shown
    assert f"{team.url}/review?project={harbour}&reason=contradiction" in links(
        page, "review"
    )
    assert links(page, "timeline")[-2:] == [
        f"{team.url}/timeline?author=root",
        f"{team.url}/timeline",
    ]
    assert shown.index("Pinned") < shown.rindex("The Makefile has a target for it.")
    assert "4 memories stored" in shown
    assert "1 memory recalled" in shown


async def test_the_chart_has_a_bar_for_each_day_with_numbers_and_a_table_of_them(
    team: Team, ann: Visitor, harbour: str
) -> None:
    earlier = team.owner.at(team.owner.now - timedelta(days=3))
    await earlier.keep("a", "b", "c", namespace=harbour)

    page = await ann.get("/")

    assert page.text.count('class="fill-one"') == 2
    assert page.text.count('class="fill-two"') == 0
    day = (team.owner.now - timedelta(days=3)).date().isoformat()
    assert f"{day} 3 0" in texts(page)
    assert "4 memories stored, 3 a day at most" in texts(page)
    assert page.text.count('<tr><th scope="row">20') == 30


async def test_failed_jobs_are_on_the_home_page_of_the_owner_alone(
    team: Team, ann: Visitor
) -> None:
    async with team.library.database.transaction() as session:
        await session.execute("insert into jobs (name, outcome) values ('expiry', 'failed') "
                              "on conflict (name) do update set outcome = 'failed'")  # fmt: skip
    async with team.visitor("root", owner=True) as root:
        assert "Background jobs that failed: expiry" in texts(await root.get("/"))
    assert "failed" not in texts(await ann.get("/"))


async def test_home_is_small_with_at_most_three_requests(
    team: Team, ann: Visitor, harbour: str
) -> None:
    for place in range(30):
        await team.keep(
            *(f"Memory {place}/{number}: {'long text ' * 40}" for number in range(2)),
            namespace=harbour,
        )

    page = await ann.get("/")
    files = [
        urljoin(str(page.url), found)
        for found in re.findall(r'(?:src|href)="([^"]*static/[^"]*)"', page.text)
    ]
    size = len(page.content) + sum(
        [len((await ann.http.get(file)).content) for file in files]
    )

    assert len(files) <= 2
    assert size < 60_000


async def test_many_projects_come_in_pages(team: Team) -> None:
    for place in range(25):
        await team.keep(f"text {place}", namespace=f"place/{place:02}")
    async with team.visitor("emma", "place/*:reader") as emma:
        first = await emma.get("/")
        second = await emma.get("/", projects=2)
        wrong = await emma.get("/", projects="x")

    shown = [
        set(re.findall(r">(place/\d\d)</a></th>", page.text))
        for page in (first, second)
    ]
    assert (len(shown[0]), len(shown[1])) == (20, 5)
    assert not shown[0] & shown[1]
    assert f"{team.url}/?projects=2" in links(first, "projects")
    assert "Page 1 of 2" in texts(wrong)


async def test_hostile_texts_change_no_page(
    team: Team, ann: Visitor, harbour: str
) -> None:
    long = "<img src=x onerror=alert(1)>" + "x" * 30_000
    await team.keep(
        Draft(HOSTILE, pinned=True), Draft(long, summary=None), namespace=harbour
    )

    for page in (await ann.get("/"), await ann.get("/timeline")):
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert "<img" not in page.text
        assert "&lt;script&gt;alert(1)" in page.text
        assert "<b " not in page.text
        assert len(page.content) < 60_000


# Timeline


async def test_the_timeline_shows_to_each_person_what_that_person_may_read(
    team: Team, ann: Visitor, bea: Visitor, harbour: str, payroll: str
) -> None:
    [id_] = await team.keep("The crane is red.", namespace=harbour)
    await recall(team, id_, harbour, by="cleo")

    hers = texts(await ann.get("/timeline"))
    both = texts(await bea.get("/timeline"))

    assert f"cleo recalled 1 memory in {harbour}" in hers
    assert f"root stored 1 memory in {harbour}" in hers
    assert SECRET not in hers
    assert payroll not in hers
    assert f"root stored 1 memory in {payroll}" in both
    hidden = await ann.get("/timeline", project=payroll)
    missing = await ann.get("/timeline", project="nowhere")
    assert (hidden.status_code, missing.status_code) == (404, 404)
    assert texts(hidden).replace(payroll, "") == texts(missing).replace("nowhere", "")


async def test_the_timeline_is_filtered_by_project_person_and_kind(
    team: Team, bea: Visitor, harbour: str, payroll: str
) -> None:
    [id_] = await team.keep("The crane is red.", namespace=harbour)
    await recall(team, id_, harbour, by="cleo")

    async def shown(**asked: str) -> list[str]:
        return re.findall(
            r"(\w+ (?:stored|recalled) \d+ \w+ in \w+)",
            texts(await bea.get("/timeline", **asked)),
        )

    assert await shown(author="cleo") == [f"cleo recalled 1 memory in {harbour}"]
    assert await shown(project=payroll) == [f"root stored 1 memory in {payroll}"]
    assert await shown(kind="recalled", project=harbour) == [
        f"cleo recalled 1 memory in {harbour}"
    ]
    assert await shown(kind="forgotten") == []
    assert (await bea.get("/timeline", kind="x")).status_code == 400
    assert (await bea.get("/timeline", before="x")).status_code == 400


async def test_links_of_the_timeline_keep_its_filters(
    team: Team, ann: Visitor, harbour: str
) -> None:
    page = await ann.get("/timeline", project=harbour)

    assert f"{team.url}/timeline?project={harbour}&author=root" in links(page, "author")
    assert f"{team.url}/timeline?project={harbour}&kind=stored" in links(page, "kind")


async def test_older_events_come_in_pages_without_javascript(
    team: Team, ann: Visitor, harbour: str
) -> None:
    for place in range(60):
        await team.keep(f"text number {place}.", namespace=harbour)

    page = await ann.get("/timeline")
    seen = []
    while True:
        seen += re.findall(r"text number (\d+)\.", texts(page))
        older = links(page, "before=")
        if not older:
            break
        page = await ann.http.get(older[0])

    assert [int(number) for number in seen] == list(reversed(range(60)))
    assert "Back to the latest" in page.text


# The live feed


@dataclass
class Stream:
    """A live feed as a browser reads it."""

    status: int = 0
    events: asyncio.Queue[tuple[str, str, Any]] = field(default_factory=asyncio.Queue)
    signs_of_life: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    last_id: str = ""

    async def next(self) -> list[str]:
        """Return the events of the next message, as HTML."""
        async with asyncio.timeout(STUCK):
            name, id_, rows = await self.events.get()
        assert name == "activity"
        self.last_id = id_
        return list(rows)

    async def texts(self) -> list[str]:
        return [
            text
            for row in await self.next()
            for text in re.findall(r"data-open>([^<]*)<", row)
        ]


@asynccontextmanager
async def live(
    visitor: Visitor, last_id: str = "", **asked: str
) -> AsyncIterator[Stream]:
    """Open the live feed."""
    stream = Stream()
    opened = asyncio.Event()
    headers = {"Accept": "text/event-stream"} | (
        {"Last-Event-ID": last_id} if last_id else {}
    )

    async def read() -> None:
        name = "message"
        id_ = ""
        async with visitor.http.stream(
            "GET", "/live", params=asked, headers=headers, timeout=60
        ) as answer:
            stream.status = answer.status_code
            opened.set()
            async for line in answer.aiter_lines():
                kind, _, value = line.partition(": ")
                if line.startswith(":"):
                    stream.signs_of_life += 1
                elif kind == "event":
                    name = value
                elif kind == "id":
                    id_ = value
                elif kind == "data":
                    stream.events.put_nowait((name, id_, json.loads(value)))
        stream.ended.set()

    reading = asyncio.create_task(read())
    try:
        async with asyncio.timeout(STUCK):
            await opened.wait()
        yield stream
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


def cursor_of(page: httpx.Response) -> str:
    found = re.search(r'data-stream="[^"]*after=([^"&]+)', page.text)
    assert found is not None
    return found[1].replace("%3D", "=")


async def test_new_events_are_sent_to_those_who_may_read_them(
    team: Team, ann: Visitor, bea: Visitor, harbour: str, payroll: str
) -> None:
    async with (
        live(ann, after=cursor_of(await ann.get("/timeline"))) as hers,
        live(bea) as both,
    ):
        await team.keep("The ferry is late.", namespace=payroll)
        [id_] = await team.keep("The crane is red.", namespace=harbour)
        await recall(team, id_, harbour, by="cleo")
        seen = await both.next()
        while len(seen) < 3:
            seen += await both.next()
        own = await hers.next()
        while len(own) < 2:
            own += await hers.next()

    for row, *words in (
        (own[0], "root", "stored 1 memory", str(id_)),
        (own[1], "cleo", "recalled 1 memory", harbour),
    ):
        assert all(word in row for word in (*words, "The crane is red.")), row
    assert [
        project
        for project in (harbour, payroll)
        if any(f">{project}<" in row for row in seen)
    ] == [
        harbour,
        payroll,
    ]
    assert hers.events.empty()


async def test_a_stream_begins_after_its_page_and_continues_after_its_last_event(
    team: Team, ann: Visitor, harbour: str
) -> None:
    cursor = cursor_of(await ann.get("/timeline"))
    await team.keep("Between page and stream.", namespace=harbour)

    async with live(ann, after=cursor) as stream:
        assert await stream.texts() == ["Between page and stream."]
        await team.keep("While it is open.", namespace=harbour)
        assert await stream.texts() == ["While it is open."]
    await team.keep("While it is away.", namespace=harbour)
    async with live(ann, last_id=stream.last_id, after=cursor) as again:
        assert await again.texts() == ["While it is away."]


async def test_the_filters_of_the_page_hold_for_its_stream(
    team: Team, bea: Visitor, harbour: str, payroll: str
) -> None:
    async with live(bea, project=harbour, kind="stored") as stream:
        [id_] = await team.keep("The ferry is late.", namespace=payroll)
        [other] = await team.keep("The crane is red.", namespace=harbour)
        await recall(team, other, harbour)
        await team.keep("The crane is blue.", namespace=harbour)
        seen: list[str] = []
        while len(seen) < 2:
            seen += await stream.texts()

    assert seen == ["The crane is red.", "The crane is blue."]
    assert id_ != other


@dataclass
class HeldStreams:
    """Live feeds that have read their first events and begin when they may; `ended` is set when one has ended."""

    holding: bool = False
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    may_begin: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def within(self, app: ASGIApp) -> ASGIApp:
        """Put an application into one that holds the streams which open while `holding`."""

        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            async def sent(message: Message) -> None:
                if held and message["type"] == "http.response.start":
                    self.begun.set()
                    await self.may_begin.wait()
                await send(message)

            is_stream = scope.get("path", "").endswith("/live")
            held = is_stream and self.holding
            await app(scope, receive, sent)
            if is_stream:
                self.ended.set()

        return watched


@pytest.fixture
def streams() -> HeldStreams:
    return HeldStreams()


@pytest.fixture
async def owner_here(
    settings: Settings, streams: HeldStreams
) -> AsyncIterator[Visitor]:
    """The owner at a server in this process."""
    async with serving(settings, streams.within) as url, visiting(url) as visitor:
        yield visitor


async def first_texts(visitor: Visitor) -> list[str]:
    async with live(visitor) as stream:
        return await stream.texts()


async def test_a_stream_gives_what_happens_between_its_first_look_and_its_beginning(
    owner_here: Visitor, streams: HeldStreams, library: MemoryContext
) -> None:
    person = root(library)
    await person.keep("Before.")
    async with live(owner_here) as earlier:
        await person.keep("While one is open.")
        assert await earlier.texts() == ["While one is open."]
        streams.holding = True
        later = asyncio.create_task(first_texts(owner_here))
        await streams.begun.wait()
        await person.keep("While the other begins.")
        assert await earlier.texts() == ["While the other begins."]
        streams.may_begin.set()
        assert await later == ["While the other begins."]


async def test_a_stream_that_begins_as_the_last_one_ends_gives_what_happens(
    owner_here: Visitor,
    streams: HeldStreams,
    library: MemoryContext,
    connection: asyncpg.Connection,
) -> None:
    person = root(library)
    await person.keep("Before.")
    async with live(owner_here):
        streams.holding = True
        later = asyncio.create_task(first_texts(owner_here))
        await streams.begun.wait()
        # The look for new events of the first stream takes longer than that stream.
        looking = connection.transaction()
        await looking.start()
        await connection.execute("lock table usage in access exclusive mode")
        while not await connection.fetchval(
            "select count(*) from pg_locks where not granted"
        ):
            await asyncio.sleep(0.01)
    await streams.ended.wait()
    streams.may_begin.set()
    await looking.rollback()
    await person.keep("After the first one.")
    assert await later == ["After the first one."]


@pytest.mark.parametrize("signed_out", [False, True])
async def test_a_stream_ends_with_its_token_and_with_its_session(
    team: Team, harbour: str, payroll: str, signed_out: bool
) -> None:
    created = await team.token("dora", f"{harbour}:reader", f"{payroll}:reader")
    async with visiting(team.url, created.secret) as dora, live(dora) as stream:
        await (dora.post("/sign-out") if signed_out else team.revoke(created))
        await team.keep("Too late for dora.", namespace=harbour)
        async with asyncio.timeout(STUCK):
            name, _, rows = await stream.events.get()
            await stream.ended.wait()
        after = await dora.http.get("/live", headers={"Accept": "text/event-stream"})

    assert (name, rows) == ("end", {})
    assert after.status_code == 401


async def test_a_silent_stream_shows_signs_of_life_until_its_token_is_revoked(
    team: Team, harbour: str
) -> None:
    created = await team.token("dora", f"{harbour}:reader")
    async with (
        visiting(team.url, created.secret) as dora,
        live(dora) as stream,
        asyncio.timeout(STUCK),
    ):
        while stream.signs_of_life < 2:
            await asyncio.sleep(0.1)
        await team.revoke(created)
        name, _, _ = await stream.events.get()

    assert name == "end"


async def test_a_wrong_cursor_or_a_project_that_may_not_be_read_opens_no_stream(
    ann: Visitor, payroll: str
) -> None:
    for asked, status in (
        ({"after": "x"}, 400),
        ({"project": payroll}, 404),
        ({"kind": "x"}, 400),
    ):
        answer = await ann.http.get(
            "/live", params=asked, headers={"Accept": "text/event-stream"}
        )
        assert answer.status_code == status


async def test_the_streams_of_a_session_are_bounded(ann: Visitor) -> None:
    async with asyncio.TaskGroup() as group:
        done = asyncio.Event()

        async def hold(opened: asyncio.Event) -> None:
            async with live(ann) as stream:
                assert stream.status == 200
                while not stream.signs_of_life:
                    await asyncio.sleep(0.01)
                opened.set()
                await done.wait()

        for _ in range(8):
            opened = asyncio.Event()
            group.create_task(hold(opened))
            await opened.wait()
        answer = await ann.http.get("/live", headers={"Accept": "text/event-stream"})
        done.set()

    assert answer.status_code == 503
    async with live(ann) as stream:
        assert stream.status == 200


async def test_the_page_of_a_memory_shows_where_it_was_recalled(
    team: Team, ann: Visitor, harbour: str
) -> None:
    [id_] = await team.keep("The crane is red.", namespace=harbour)
    before = texts(await ann.get(f"/memories/{id_}"))
    await recall(team, id_, harbour, by="cleo")

    page = await ann.get(f"/memories/{id_}")

    assert "Never, as far as the logs go back." in before
    assert "recalled by cleo , rank 1, score 0.500" in texts(page)
    assert f"{team.url}/timeline?author=cleo&kind=recalled" in links(page, "timeline")
