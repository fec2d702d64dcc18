"""Entities of a text."""

import pytest
from hypothesis import given, strategies as st

from folklore.text import tags
from folklore.text.entities.finder import Entity, find_entities

ANYTHING = (
    st.text(st.characters())
    | st.text(st.sampled_from("aBÉ9_./-:#'’`()@ \n"), max_size=60)
    | st.lists(
        st.sampled_from(
            [
                "Sarah",
                "Redis",
                "the",
                "The",
                "van",
                "Connor",
                "said",
                ".",
                ":",
                "\n",
                "Inc",
                "```",
                "src/a.py",
            ]
        )
    ).map(" ".join)
)


def named(text: str) -> list[str]:
    """Return the tags of a text's entities without their common prefix."""
    return [entity.tag.removeprefix("entity:") for entity in find_entities(text)]


@pytest.mark.parametrize(
    ("text", "tags_found"),
    [
        # people, by capitals in prose
        ("We asked Sarah about it", ["person:sarah"]),
        ("ask Sarah Connor, she knows", ["person:sarah-connor"]),
        ("Sarah prefers tabs", ["person:sarah"]),
        ("Sarah Connor joined today", ["person:sarah-connor"]),
        ("Sarah's laptop is slow", ["person:sarah"]),
        ("Sarah: hello there", ["person:sarah"]),
        ("Ask Bob. Bob knows.", ["person:bob"]),
        ("it was Jean-Luc van der Berg or O’Brien", ["person:jean-luc-van-der-berg", "person:o'brien"]),
        ("meet Übel and Émile", ["person:übel", "person:émile"]),
        # tools and organisations have one name
        ("we run postgres and k8s", ["tool:postgres", "tool:kubernetes"]),
        ("PostgreSQL, not Postgres", ["tool:postgres"]),
        ("Use Visual Studio Code with GitHub Actions", ["tool:vscode", "tool:github-actions"]),
        ("C++ and node.js and docker-compose.", ["tool:c++", "tool:node.js", "tool:docker-compose"]),
        ("React is used; we go on with Go", ["tool:react", "tool:go"]),
        ("bought by Google from Acme Inc and the Payments Team",
         ["organisation:google", "organisation:acme-inc", "organisation:payments-team"]),
        # files, symbols, codes, projects and hosts, by their shape
        ("see https://sarah:secret@www.example.com:8443/x", ["host:example.com"]),
        ("at https://github.com/Acme/api.git", ["host:github.com", "project:acme/api"]),
        ("the repo acme/api and acme/web#12", ["project:acme/api", "project:acme/web"]),
        ("in src/memory/store.py:42 and Dockerfile", ["file:src/memory/store.py", "file:dockerfile"]),
        ("call getUserById, pool.acquire and std::vector",
         ["symbol:getuserbyid", "symbol:pool.acquire", "symbol:std:vector"]),
        ("E0308, PROJ-1234, CVE-2025-66416, ERR_CONN_REFUSED",
         ["code:e0308", "code:proj-1234", "code:cve-2025-66416", "code:err_conn_refused"]),
    ],
)  # fmt: skip
def test_entities_are_found(text: str, tags_found: list[str]) -> None:
    assert named(text) == tags_found


NOBODY = (
    "Sometimes it breaks. Deploying fails. Never retry.", "The Gateway is down on Monday in March",
    "Environment Variables\nKey Points:\n## Additional Considerations", "Message handling: the message is sent",
    "We fly to London for Christmas, on Tuesdays", "Pull Request reviewed, see README and TODO",
    "x = Foo(Bar) and value=Baz", "```\nclass Sarah Connor\nreturn Bob\n```", "", "and/or TCP/IP UTF-8 SHA-256 next()",
)  # fmt: skip


@pytest.mark.parametrize("text", NOBODY)
def test_a_capital_alone_makes_no_entity(text: str) -> None:
    assert named(text) == []


def test_an_entity_keeps_its_name_as_written() -> None:
    assert find_entities("ask Sarah Connor") == (
        Entity("person", "Sarah Connor", "sarah-connor"),
    )


def test_entities_are_bounded_and_in_order_of_appearance() -> None:
    text = " ".join(f"PROJ-{number}" for number in range(100, 200))
    assert named(text) == [f"code:proj-{number}" for number in range(100, 132)]


def test_credentials_in_a_url_are_no_entities() -> None:
    assert "secret" not in str(find_entities("https://sarah:secret@example.com/a/b"))


@given(ANYTHING)
def test_every_entity_has_a_tag_in_normal_form(text: str) -> None:
    found = named(text)
    assert len(found) == len(set(found)) <= 32
    assert tags.normalise(f"entity:{tag}" for tag in found) == tuple(
        f"entity:{tag}" for tag in found
    )
    assert find_entities(text) == find_entities(text)
