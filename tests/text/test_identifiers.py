"""Identifiers in a text."""

import pytest
from hypothesis import given, strategies as st

from folklore.text.entities.identifiers import find_identifiers

ANYTHING = st.text(st.characters()) | st.text(
    st.sampled_from("aB9_./-:#=`()[]<>~$@+ \n"), max_size=60
)


def identifiers(text: str) -> list[str]:
    """Return the different identifiers of a text in order."""
    return list(dict.fromkeys(identifier.text for identifier in find_identifiers(text)))


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
def test_an_identifier_is_found_in_every_surrounding(word: str) -> None:
    for frame in ("{}", "why does {} fail?", "see ({}), please", "it is `{}`.", '"{}"'):
        assert identifiers(frame.format(word)) == [word], frame


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("getUser(id) and foo() fail", ["getUser", "foo"]), ("set FOO_BAR=1 and --level=3", ["FOO_BAR", "--level"]),
        ("store.py:42 breaks", ["store.py"]), ("the `connection pool` is `full`", ["connection pool", "full"]),
        ("[docs](https://a.example/b) here", ["https://a.example/b"]), ("E0308 and again E0308", ["E0308"]),
    ],
)  # fmt: skip
def test_an_identifier_is_found_without_its_surroundings(
    text: str, found: list[str]
) -> None:
    assert identifiers(text) == found


PROSE = (
    "why does the connection pool time out", "sister's and don't, e.g. this, i.e. that, in the U.S.", "",
    "and/or client/server TCP/IP I/O", "at 12:30 on the 3rd, 10am, 100ms, 50%, $5, in 2024, in Q3, 404",
    "well-known e-mail file(s) TODO: HTTP PDFs IDs **bold** _soft_", "if(x) a - b ----- ===== ( ) `` ` `",
)  # fmt: skip


@pytest.mark.parametrize("text", PROSE)
def test_prose_has_no_identifiers(text: str) -> None:
    assert identifiers(text) == []


@given(ANYTHING)
def test_every_identifier_is_part_of_the_text(text: str) -> None:
    for identifier in find_identifiers(text):
        assert identifier.text
        assert identifier.text in text
        assert 0 <= identifier.start <= len(text)
