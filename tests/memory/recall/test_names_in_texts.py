"""Names with digits, hyphens, slashes and signs are found in either spelling, and symbols as they are written."""

from datetime import timedelta

import pytest

from folklore.contract.filters import FiltersRequest
from folklore.db.database import Database
from folklore.memory.context import MemoryContext
from folklore.model import Draft
from tests.person import NOON, Person, contents

# A text, and questions that find it.
NAMES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Use Python3 for the scripts.", ("python", "python3", "Python 3", "PYTHON")),
    ("The parser is written in Python.", ("python3",)),
    ("The database runs on Postgres17.", ("postgres", "postgres 17", '"postgres 17"')),
    ("We moved to Redis 7 in May.", ("redis7", "Redis7 AND May")),
    ("OAuth2 is mandatory for partners.", ("oauth", "oauth2", "OAuth", "oauth 2")),
    ("The app needs iOS17.", ("ios", "ios17", "iOS")),
    ("Checksums are SHA-256.", ("sha256", "SHA256", "sha-256", "sha 256")),
    ("Signatures use ed25519 keys.", ("ed25519", "ed-25519")),
    ("Pages are utf8mb4 encoded.", ("utf8", "utf8mb4", "utf-8")),
    ("Builds run on 64bit runners.", ("64bit", "64-bit", "bit")),
    ("The on-call rota changes on Monday.", ("oncall", "on-call", '"on-call rota"')),
    ("The oncall phone is red.", ("on-call", "oncall")),
    ("Always re-deploy after a rename.", ("redeploy", "redeploys", "re-deploy")),
    ("He redeploys by hand.", ("re-deploy", "re-deploying", "redeploy AND hand")),
    ("The front‑end is built by Vite.", ("frontend", "frontends", "front-end")),
    ("Keys are in the multitenant vault.", ("multi-tenant",)),
    ("CI/CD runs on Jenkins.", ("cicd", "ci/cd", "CICD AND jenkins")),
    ("We speak TCP/IP only.", ("tcpip", "tcp")),
    ("服务用Redis7做缓存", ("Redis", "redis7", "缓存")),
    ("第3章Kafka2做消息", ("kafka", "消息")),
    ("使用C++编写渲染器", ("C++", "渲染", "c++ AND 渲染")),
    ("後端以C#撰寫", ("C#", "c#")),
    ("백엔드는 Django4를 사용한다", ("django", "Django4")),
    ("ログはSHA-256で署名する", ("sha256", "sha-256")),
    ("当番はon-callの表にある", ("oncall", "on-call")),
    ("The tool is built with g++ here.", ("g++",)),
)
SYMBOLS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("🚀 marks a release channel message", ("🚀", "tag:x OR 🚀")),
    ("Approve with 👍🏽 in the thread", ("👍🏽", "👍")),
    ("👩‍💻 is the team of the platform", ("👩‍💻", "💻")),
    ("Shops in 🇩🇪🇫🇷 close at eight", ("🇩🇪", "🇫🇷")),
    ("✅ means reviewed", ("✅", "✅ reviewed")),
    ("Done is ✔ here", ("✔️",)),
    ("发布后加⚠️标记", ("⚠️", "⚠")),
    ("The fee is 5€ a month", ("€",)),
    ("Requests go web → api → db", ("→",)),
)


@pytest.fixture
async def reader(database: Database) -> Person:
    """A user without a model, so that words alone count."""
    return Person(MemoryContext.of(database, None))


@pytest.mark.parametrize("cases", [NAMES, SYMBOLS], ids=["names", "symbols"])
async def test_a_name_or_symbol_is_found_in_either_spelling(
    reader: Person, cases: tuple[tuple[str, tuple[str, ...]], ...]
) -> None:
    await reader.keep(*(text for text, _ in cases))

    missing = [
        f"{question} in {text!r}"
        for text, questions in cases
        for question in questions
        if text not in contents(await reader.search(question))
    ]
    assert not missing


async def test_the_text_that_has_the_name_comes_first(reader: Person) -> None:
    await reader.keep(*(text for text, _ in NAMES + SYMBOLS))

    for question, first in (
        ("sha256", "Checksums are SHA-256."),
        ("python3", "Use Python3 for the scripts."),
        ("postgres17", "The database runs on Postgres17."),
        ("👍🏽", "Approve with 👍🏽 in the thread"),
    ):
        assert contents(await reader.search(question))[0] == first


async def test_a_part_of_a_name_finds_no_other_word(reader: Person) -> None:
    await reader.keep(
        "The gopher is a mascot of google",
        "Three replicas: 3 of them in Bern, 17 in Zug",
        "The sharp bit of go1.22 is a loop",
        "We call on Monday, and the team is on call then",
        "Retry the deploy",
        "The hash is a3f9c1b2",
        "✨ is a sparkle",
        "Ann's vote is 👎🏽",
        "中文のpythonista",
    )

    for question, found in (
        ("go", ["The sharp bit of go1.22 is a loop"]),
        ("python3", []), ("postgres17", []), ("redeploy", []), ("oncall", []), ("python", []),
        ("b2", []), ("a3f9", []), ("🚀", []), ("👍🏽", []), ("getGo*", []), ('"go on-call"', []),
    ):  # fmt: skip
        assert contents(await reader.search(question)) == found, question


async def test_a_joined_name_is_found_in_tags_and_in_former_texts(
    reader: Person,
) -> None:
    tagged = Draft("The pager is red", tags=("on-call",), summary="Kafka3 events")
    [stored] = await reader.keep(tagged)
    for question in ("oncall", "tag:oncall", "summary:kafka", "tag:on-call"):
        assert contents(await reader.search(question)), question

    later = reader.at(NOON + timedelta(days=2))
    await later.update(stored, tags=("duty",))
    then = FiltersRequest(as_of=NOON + timedelta(days=1))

    assert not contents(await later.search("oncall"))
    assert contents(await later.search("oncall", then))
    assert contents(await later.search("on-call AND pager", then))
