"""Words that are meant letter for letter, and their parts."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.text.identifiers import find_identifiers, identifiers, split_identifier

ANYTHING = st.text(st.characters()) | st.text(st.sampled_from("aB9_./-:#=`()[]<>~$@+ \n"), max_size=60)


@pytest.mark.parametrize(
    "word",
    [
        "ERR_CONN_REFUSED", "E0308", "PROJ-1234", "CVE-2025-66416", "42P01", "#123", "5432",
        "v18.2.0", "18.2.0", "3.11", "1.0.0-rc.1", "3.x",
        "--no-verify", "-v", "-O2",
        "getUserById", "UserService", "HTTPServer", "max_size", "__init__", "_private", "sha256", "k8s",
        "asyncio.gather", "std::vector", "Foo#bar", "C++", "C#", ".NET", "node.js", "$HOME", "@types/node",
        "src/memory/store.py", "store.py", "README.md", "/etc/hosts", "~/.ssh/config", "./run", "src/", ".gitignore",
        "C:\\Users\\sarah", "Dockerfile",
        "https://example.com/a?b=c", "sarah@example.com", "localhost:5432", "api.example.com", "10.0.0.1:80",
        "deadbeef1", "123e4567-e89b-12d3-a456-426614174000", "0xFF",
    ],
)  # fmt: skip
@pytest.mark.parametrize("frame", ["{}", "why does {} fail?", "see ({}), please", "it is `{}`.", '"{}"'])
def test_an_identifier_is_found_in_every_surrounding(word: str, frame: str) -> None:
    assert identifiers(frame.format(word)) == (word,)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("getUser(id) and foo() fail", ("getUser", "foo")),
        ("set FOO_BAR=1 and --level=3", ("FOO_BAR", "--level")),
        ("store.py:42 breaks", ("store.py",)),
        ("the `connection pool` is `full`", ("connection pool", "full")),
        ("[docs](https://a.example/b) here", ("https://a.example/b",)),
        ("E0308 and again E0308", ("E0308",)),
    ],
)
def test_only_the_identifier_itself_is_given(text: str, found: tuple[str, ...]) -> None:
    assert identifiers(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "why does the connection pool time out",
        "sister's and don't, e.g. this, i.e. that, in the U.S.",
        "and/or client/server TCP/IP I/O",
        "at 12:30 on the 3rd, 10am, 100ms, 50%, $5, in 2024, in Q3, 404",
        "well-known e-mail file(s) TODO: HTTP PDFs IDs **bold** _soft_",
        "if(x) a - b ----- ===== ( ) `` ` `",
        "",
    ],
)
def test_prose_has_no_identifiers(text: str) -> None:
    assert identifiers(text) == ()


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("getUserByID2", ("get", "user", "by", "id", "2")),
        ("HTTPServer", ("http", "server")),
        ("getUserIDs", ("get", "user", "ids")),
        ("src/memory/store.py", ("src", "memory", "store", "py")),
        ("ERR_CONN_REFUSED", ("err", "conn", "refused")),
        ("CVE-2025-66416", ("cve", "2025", "66416")),
        ("--no-verify", ("no", "verify")),
        ("E0308", ("e", "0308")),
        ("überGroß", ("über", "groß")),
        ("plain", ("plain",)),
        ("", ()),
    ],
)
def test_an_identifier_falls_into_its_words(identifier: str, parts: tuple[str, ...]) -> None:
    assert split_identifier(identifier) == parts


@given(ANYTHING)
def test_the_parts_hold_every_letter_and_digit_in_order(text: str) -> None:
    kept = "".join(char for char in text if char.isalpha() or char.isdecimal())
    parts = split_identifier(kept)
    assert "".join(parts) == "".join(part.lower() for part in parts)
    assert len("".join(parts)) >= len(kept)


@given(ANYTHING, st.integers(0, 5))
def test_whatever_the_text_identifiers_are_few_distinct_and_in_it(text: str, limit: int) -> None:
    found = identifiers(text, limit)
    assert len(found) == len(set(found)) <= limit
    assert all(identifier and identifier in text for identifier in found)
    assert all(0 <= identifier.start <= len(text) for identifier in find_identifiers(text))


@pytest.mark.parametrize(
    "unit", ["a", "A", "a_", "`", "a.", "/a", "a(", "aB ", "0" * 199 + " ", "a." * 99 + "! ", "A-" * 99 + "! "]
)
def test_a_megabyte_of_anything_is_read_quickly(unit: str) -> None:
    paste = unit * (1_000_000 // len(unit))
    started = time.perf_counter()
    identifiers(paste, 1_000_000)
    split_identifier(paste)
    assert time.perf_counter() - started < 2
