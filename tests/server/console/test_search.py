"""The search page: the same answers as the tools, chips with counts, the whole state in the address."""

import asyncio
import html
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from urllib.parse import urljoin

import httpx
import pytest

from folklore.contract.recall import RecallRequest, SearchRequest
from folklore.model import Draft
from tests.team import Team, bearer
from tests.visitor import Visitor, texts

HOSTILE = [
    "<script>alert(1)</script> breaks the ferry page",
    "<img src=x onerror=alert(1)> \"'>ferry</a></li></ol>",
    "{{ 7*7 }} {% raw %} ${ferry} javascript:alert(1)",
    "ferry \u202e evil \u2066 \x1b[31m red \x07",
    "ferry " + "\U0001f6a2" * 200,
    ("ferry wheels & <b>bold</b> " * 1_300)[:32_000],
]
PIERS = 130
ENTRY = re.compile(
    r'<li class="result" data-entry>.*?</li>\s*(?=<li class="result"|</ol>)', re.DOTALL
)
CHIP = re.compile(
    r'<a class="chip" href="([^"]*)"([^>]*)><bdi>(.*?)</bdi> <span class="soft">(\d+)</span>',
    re.DOTALL,
)


@pytest.fixture(scope="module")
async def team(team: Team) -> Team:
    """A server with two projects, of which one is hostile and large, and a person for each."""
    month = datetime.now(UTC) - timedelta(days=20)
    await team.keep(
        Draft(
            "The ferry leaves pier four at noon.",
            kind="decision",
            tags=("ferry", "time/noon"),
        ),
        Draft(
            "The ferry to the island needs tickets from the harbour office.",
            tags=("ferry",),
        ),
        Draft(
            "Ferries do not run in a storm.",
            kind="bug",
            occurred_at=month,
            source="log/april",
        ),
        Draft(
            "The lighthouse keeper is called Ottoline.", tags=("people",), pinned=True
        ),
        namespace="harbour",
    )
    await team.keep(*HOSTILE, namespace="yard")
    await team.keep(
        *(f"Pier {number} has a crane." for number in range(PIERS)), namespace="yard"
    )
    return team


@pytest.fixture
async def ann(team: Team) -> AsyncIterator[Visitor]:
    """A reader of one project."""
    async with team.visitor("ann", "harbour:reader") as ann:
        yield ann


@pytest.fixture
async def root(team: Team) -> AsyncIterator[Visitor]:
    async with team.visitor("root", owner=True) as root:
        yield root


def entries(page: httpx.Response | str) -> list[str]:
    """The results of a page as a reader sees them."""
    source = page if isinstance(page, str) else page.text
    return [
        " ".join(html.unescape(re.sub("<[^>]*>", " ", entry)).split())
        for entry in ENTRY.findall(source)
    ]


def links(page: httpx.Response) -> list[str]:
    return re.findall(r'href="\./memories/([0-9a-f-]{36})" data-open', page.text)


def chips(page: httpx.Response) -> dict[str, tuple[str, bool, int]]:
    """The chips by label: address, True if it is on, count."""
    return {
        html.unescape(label): (
            html.unescape(address),
            "aria-current" in attributes,
            int(count),
        )
        for address, attributes, label, count in CHIP.findall(page.text)
    }


async def follow(
    visitor: Visitor, page: httpx.Response, address: str
) -> httpx.Response:
    return await visitor.http.get(urljoin(str(page.url), address))


async def script(visitor: Visitor, address: str) -> httpx.Response:
    return await visitor.http.get(address, headers={"Accept": "application/json"})


async def test_a_question_has_the_answer_of_the_tools(
    team: Team, root: Visitor
) -> None:
    page = await root.get("/search", q="when does the ferry leave?")
    recalled = await team.owner.call(
        RecallRequest(query="when does the ferry leave?", namespaces=("*",), limit=100)
    )

    assert links(page) == [str(result.memory.id) for result in recalled.memories[:20]]
    for entry, result in zip(entries(page), recalled.memories[:20], strict=True):
        assert f"{result.match} match, {result.score}" in entry


@pytest.mark.parametrize(
    "path", ["/search?q=%22pier+four%22", "/search?q=pier+four&exact=1"]
)
async def test_quotation_marks_and_the_switch_find_exact_words(
    team: Team, root: Visitor, path: str
) -> None:
    page = await root.http.get(path)
    query = page.url.params["q"]
    found = await team.owner.call(
        SearchRequest(query=query, namespaces=("*",), limit=100)
    )

    assert links(page) == [str(result.memory.id) for result in found.memories[:20]]
    assert entries(page)[0].startswith("The ferry leaves pier four")
    assert "match" not in entries(page)[0]


async def test_words_of_the_question_and_their_forms_are_marked(root: Visitor) -> None:
    page = await root.get("/search", q="ferry storm", project="harbour")

    assert "do not run in a <mark>storm</mark>." in page.text
    assert "The <mark>ferry</mark> leaves" in page.text


async def test_without_a_question_the_newest_come_first(root: Visitor) -> None:
    page = await root.get("/search", project="harbour")

    assert [entry[:11] for entry in entries(page)] == [
        "The lightho",
        "The ferry t",
        "The ferry l",
        "Ferries do ",
    ]
    assert "4 memories, newest first." in texts(page)


async def test_chips_count_the_results_and_add_a_condition(root: Visitor) -> None:
    page = await root.get("/search", project="harbour")
    found = chips(page)

    assert {label: count for label, (_, _, count) in found.items()} == {
        "harbour": 4, "decision": 1, "bug": 1, "note": 2, "ferry": 2, "time/noon": 1, "people": 1, "root": 4,
        "last 24 hours": 3, "last 7 days": 3, "last 30 days": 4, "last 365 days": 4,
    }  # fmt: skip
    assert [label for label, (_, on, _) in found.items() if on] == ["harbour"]

    tagged = await follow(root, page, found["ferry"][0])
    both = await follow(root, tagged, chips(tagged)["decision"][0])

    assert both.url.params.multi_items() == [
        ("project", "harbour"),
        ("kind", "decision"),
        ("tag", "ferry"),
    ]
    assert len(entries(tagged)) == 2
    assert [entry[:24] for entry in entries(both)] == ["The ferry leaves pier fo"]
    assert [label for label, (_, on, _) in chips(both).items() if on] == [
        "harbour",
        "decision",
        "ferry",
    ]


async def test_a_chip_that_is_on_removes_its_condition(root: Visitor) -> None:
    page = await root.http.get(
        "/search?q=ferry&project=harbour&tag=ferry&tag=time/noon"
    )

    one = await follow(root, page, chips(page)["time/noon"][0])

    assert len(entries(page)) == 1
    assert one.url.params.multi_items() == [
        ("q", "ferry"),
        ("project", "harbour"),
        ("tag", "ferry"),
    ]
    assert len(entries(one)) == 2


CONDITIONS: list[tuple[str, list[str]]] = [
    ("kind=bug", ["Ferries"]),
    ("time=last+7+days&kind=bug", []),
    ("author=root&tag=people", ["The lig"]),
    ("author=stranger", []),
    ("source=log/", ["Ferries"]),
    ("pinned=1", ["The lig"]),
]


async def test_conditions_limit_what_is_shown(root: Visitor) -> None:
    for path, beginnings in CONDITIONS:
        page = await root.http.get(f"/search?project=harbour&{path}")

        assert [entry[:7] for entry in entries(page)] == beginnings, path


async def test_conditions_of_an_address_are_in_the_form_again(root: Visitor) -> None:
    page = await root.http.get(
        "/search?q=a+%22b%22&exact=1&source=log&pinned=1&kind=bug&time=last+week&project=harbour"
    )

    assert 'value="a &#34;b&#34;"' in page.text
    assert 'name="exact" value="1" checked' in page.text
    assert 'name="source" value="log"' in page.text
    assert 'name="pinned" value="1" checked' in page.text
    assert 'name="time" value="last week"' in page.text
    assert '<input type="hidden" name="kind" value="bug" form="search">' in page.text
    assert (
        '<input type="hidden" name="project" value="harbour" form="search">'
        in page.text
    )


async def test_a_reader_sees_only_what_was_granted(ann: Visitor) -> None:
    for address in ("/search", "/search?q=crane+pier", "/search?q=crane&exact=1"):
        page = await ann.http.get(address)
        assert "yard" not in page.text
        assert "crane." not in page.text


async def test_a_project_of_others_is_like_one_that_never_was(ann: Visitor) -> None:
    other = await ann.http.get("/search?q=pier&project=yard")
    none = await ann.http.get("/search?q=pier&project=void")

    assert other.status_code == none.status_code == 404
    assert texts(other).replace("yard", "?") == texts(none).replace("void", "?")


@pytest.mark.parametrize(
    "path",
    [
        "/search",
        "/search?q=ferry",
        "/search?q=ferry&exact=1",
        "/search?q=alert+javascript",
    ],
)
async def test_hostile_texts_stay_texts(root: Visitor, path: str) -> None:
    page = await root.http.get(
        f"{path}{'&' if '?' in path else '?'}project=yard&limit=100"
    )

    assert entries(page)
    assert (
        page.text.count("<script")
        == page.text.count('<script type="module" src="./static/')
        == 2
    )
    assert "<img" not in page.text
    assert "<b>" not in page.text
    assert "49" not in entries(page)[0]
    assert not re.search("[\u202e\u2066\x1b\x07]", page.text)
    assert len(page.content) < 400_000


async def test_a_hostile_question_stays_a_text(root: Visitor) -> None:
    hostile = '"><script>alert(1)</script><img src=x onerror=alert(1)> {{7*7}} \u202e'
    page = await root.get(
        "/search", q=hostile, kind="<i>x</i>", tag='"><i>', author="<i>"
    )

    assert page.status_code in (200, 400)
    assert "<script>alert" not in page.text
    assert "<i>" not in page.text


async def more(visitor: Visitor, page: httpx.Response) -> httpx.Response:
    [address] = re.findall(r'<p id="more"><a [^>]*href="([^"]*)"', page.text)
    return await follow(visitor, page, html.unescape(address))


async def test_newest_ones_go_on_without_a_gap_in_bounded_pages(root: Visitor) -> None:
    page = await root.get("/search", project="yard")
    longer = await more(root, page)
    older = await more(root, longer)

    assert [len(entries(shown)) for shown in (page, longer, older)] == [
        20,
        100,
        PIERS + len(HOSTILE) - 100,
    ]
    assert entries(page) == entries(longer)[:20]
    assert len({*links(longer), *links(older)}) == PIERS + len(HOSTILE)
    assert "The newest 20 memories; there are more." in texts(page)
    assert 'id="more"' not in older.text


async def test_the_results_of_a_question_and_the_counts_beside_them_are_of_one_ranking(
    root: Visitor,
) -> None:
    page = await root.get("/search", q="crane", exact="1", project="yard")
    longer = await more(root, page)

    assert (len(entries(page)), len(entries(longer))) == (20, 100)
    assert entries(page) == entries(longer)[:20]
    assert chips(page)["yard"][2] == chips(longer)["yard"][2] == 100
    assert "The best 100 memories; a narrower question finds others." in texts(longer)
    assert 'id="more"' not in longer.text


async def test_the_script_gets_the_same_answer_as_the_page(root: Visitor) -> None:
    address = "/search?q=ferry&project=harbour&tag=ferry"
    page = await root.http.get(address)
    answer = await script(root, address)

    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["html"].strip() in page.text
    assert answer.json()["summary"] in page.text


async def test_the_script_is_told_of_errors_and_of_the_end_of_the_session(
    team: Team, root: Visitor
) -> None:
    wrong = await script(root, "/search?q=ferry&limit=0")
    async with httpx.AsyncClient(base_url=team.url) as stranger:
        ended = await stranger.get(
            "/search?q=ferry", headers={"Accept": "application/json"}
        )

    assert wrong.status_code == 400
    assert wrong.json()["error"]["message"] == "limit: must be a number from 1 to 100."
    assert ended.status_code == 401
    assert "ferry" not in ended.text


WRONG: list[str] = [
    "limit=101",
    "limit=x",
    "limit=%C2%B2",
    "cursor=AAAA&q=*",
    "as_of=soon",
    "time=blue",
]


async def test_a_wrong_address_is_a_page_that_says_so(root: Visitor) -> None:
    for given in WRONG:
        page = await root.http.get(f"/search?q=ferry&{given}")

        assert page.status_code == 400, given
        assert given.split("=")[0] in texts(page), given


async def test_nothing_found_is_said(ann: Visitor) -> None:
    assert "No memory matches." in texts(
        await ann.get("/search", q="zzzqqq", exact="1")
    )


async def test_looking_counts_as_no_use_of_a_memory(team: Team, root: Visitor) -> None:
    token = (await team.token("counted", "harbour:reader")).secret

    async def uses() -> dict[str, int]:
        found = await team.owner.list_memories(namespaces=("harbour",))
        return {
            item.memory.content[:14]: item.memory.recall_count
            for item in found.memories
        }

    await root.get("/search", q="lighthouse keeper Ottoline", project="harbour")
    await root.get("/search", q="lighthouse", exact="1", project="harbour")
    other = (
        (await team.owner.list_memories(namespaces=("harbour",))).memories[-1].memory.id
    )
    for page in ("relate", "merge"):
        assert "The lighthouse" in texts(
            await root.get(f"/memories/{other}/{page}", q="lighthouse keeper")
        )
    async with httpx.AsyncClient(base_url=team.url, headers=bearer(token)) as client:
        await client.post(
            "/api/search", json={"query": "storm", "namespaces": ["harbour"]}
        )
    async with asyncio.timeout(20):
        while (await uses())[
            "Ferries do not"
        ] == 0:  # uses are written in their order, some seconds later
            await asyncio.sleep(0.1)

    assert (await uses())["The lighthouse"] == 0
