"""Names of namespaces."""

import pytest
from hypothesis import given, strategies as st

from folklore.errors import InvalidInput
from folklore.text import names

ANYTHING = st.text(st.characters()) | st.text(st.sampled_from("aZ9.-_:/@ \\~%éİ"))


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("payments-team", "payments-team"), (" Alice-Private\n", "Alice-Private"), ("repo:Acme/API", "repo:Acme/API"),
        ("repo:acme/.github", "repo:acme/.github"), ("user@host", "user@host"), ("München", "München"),
        ("हिन्दी", "हिन्दी"), ("команда:платежи", "команда:платежи"), ("repo:acme/платежи", "repo:acme/платежи"),
        ("ομάδα", "ομάδα"), ("支払いAPI", "支払いAPI"), ("x" * 100, "x" * 100),
    ],
)  # fmt: skip
def test_a_valid_name_is_trimmed_and_keeps_its_case(raw: str, name: str) -> None:
    assert names.normalise(raw) == name


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ("", "this one is empty"), ("   ", "this one is empty"), ("two words", "letters, digits"),
        ("nul\x00", "letters, digits"), ("emoji👍", "letters, digits"), ("-leading", "begins and ends"),
        ("trailing/", "begins and ends"), ("a//b", "a word between"), ("a/../b", "a word between"),
        ("x" * 101, "over the limit of 100"), ("pаyments", "mixes letters of Cyrillic and Latin"),
        ("repo:acme/pay-mеnts", "mixes letters of Cyrillic and Latin"), ("αlpha", "mixes letters of Greek and Latin"),
        ("сосо", "all look like Latin ones"), ("repo:асе/api", "all look like Latin ones"),
    ],
)  # fmt: skip
def test_an_invalid_name_is_rejected_with_the_broken_rule(
    raw: str, problem: str
) -> None:
    with pytest.raises(InvalidInput, match=f"namespace: .*{problem}"):
        names.normalise(raw)


def test_the_error_for_an_invalid_name_proposes_a_valid_one() -> None:
    with pytest.raises(InvalidInput) as refusal:
        names.normalise("Payments Team!")
    assert refusal.value.hint == "For example: payments-team"


@given(ANYTHING)
def test_a_normal_name_is_its_own_normal_form(raw: str) -> None:
    try:
        name = names.normalise(raw)
    except InvalidInput:
        return
    assert names.normalise(name) == name


KNOWN = (
    "payments-team",
    "platform-team",
    "alice-private",
    "repo:acme/api",
    "repo:acme/web",
)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("payment-team", "payments-team"),
        ("PAYMENTS", "payments-team"),
        ("api", "repo:acme/api"),
        ("alice", "alice-private"),
    ],
)
def test_a_misspelled_name_finds_the_similar_one(asked: str, meant: str) -> None:
    assert names.nearest(asked, KNOWN)[0] == meant


def test_nothing_is_suggested_for_a_name_unlike_all_others() -> None:
    assert names.nearest("zzz", KNOWN) == ()
    assert names.nearest("", KNOWN) == ()


def test_the_number_of_suggestions_is_limited() -> None:
    assert len(names.nearest("team", [f"team-{n}" for n in range(50)], limit=2)) == 2


@given(ANYTHING, st.lists(ANYTHING, max_size=5), st.integers(0, 3))
def test_suggestions_are_known_names(asked: str, known: list[str], limit: int) -> None:
    suggested = names.nearest(asked, known, limit)
    assert set(suggested) <= set(known)
    assert len(suggested) <= limit


REMOTES = (
    "git@github.com:acme/api.git", "[::1]:acme/api.git", "ssh://git@github.com/acme/api.git",
    "ssh://git@ssh.github.com:443/acme/api.git", "https://github.com/acme/api",
    "HTTPS://Sarah@GitHub.com:443/Acme/API.GIT/", "ssh://sarah@github.com:22/acme/api.git/",
    "sarah@example.com@git.example.com:acme/api.git", "ACME\\sarah@git.example.com:/acme/api/",
    "https://sarah:s3cret@git.example.com:8443/acme/api.git?x=1#y", "https://dev.azure.com/acme/_git/api",
    "https://bitbucket.example.com/scm/acme/api.git", "https://git.example.com/bitbucket/scm/acme/api.git",
    "/srv/git/acme/api.git", "file:///srv/git/acme/api.git", "C:\\git\\acme\\api.git", "/home/sarah/acme/api/.git",
)  # fmt: skip


@pytest.mark.parametrize("remote", REMOTES)
def test_every_form_of_a_remote_gives_the_same_name(remote: str) -> None:
    assert names.from_remote(remote) == "repo:acme/api"


@pytest.mark.parametrize(
    ("https", "ssh", "name"),
    [
        ("https://acme@dev.azure.com/acme/Shop/_git/api", "git@ssh.dev.azure.com:v3/acme/Shop/api", "acme/shop/api"),
        ("https://dev.azure.com/acme/_git/api", "git@ssh.dev.azure.com:v3/acme/api/api", "acme/api"),
        ("https://dev.azure.com/acme/api/_git/api", "git@ssh.dev.azure.com:v3/acme/api/api", "acme/api"),
        ("https://acme.visualstudio.com/Shop/_git/api", "acme@vs-ssh.visualstudio.com:v3/acme/Shop/api",
         "acme/shop/api"),
        ("https://Acme.VisualStudio.com/DefaultCollection/_git/api", "git@ssh.dev.azure.com:v3/acme/api/api",
         "acme/api"),
        ("https://dev.azure.com/acme/_git/acme", "git@ssh.dev.azure.com:v3/acme/acme/acme", "acme/acme"),
        ("https://dev.azure.com/acme/My%20Shop/_git/Web%20API", "git@ssh.dev.azure.com:v3/acme/My%20Shop/Web%20API",
         "acme/my-shop/web-api"),
        ("https://host/scm/~sarah/api.git", "ssh://git@host:7999/~sarah/api.git", "sarah/api"),
        ("https://github.com/acme/v3", "git@github.com:acme/v3.git", "acme/v3"),
        ("https://github.com/acme/scm", "git@github.com:acme/scm.git", "acme/scm"),
        ("https://gitlab.com/v3/api.git", "git@gitlab.com:v3/api.git", "v3/api"),
    ],
)  # fmt: skip
def test_https_and_ssh_give_the_same_name(https: str, ssh: str, name: str) -> None:
    assert names.from_remote(https) == names.from_remote(ssh) == f"repo:{name}"


@pytest.mark.parametrize(
    ("remote", "name"),
    [
        ("git@gitlab.com:acme/backend/api.git", "repo:acme/backend/api"),
        ("git@github.com:acme/.github.git", "repo:acme/.github"), ("../api", "repo:api"),
        ("https://host/acme/my%20api.git", "repo:acme/my-api"), ("https://github.com", None), ("", None), ("///", None),
    ],
)  # fmt: skip
def test_unusual_remotes_give_a_name_or_none(remote: str, name: str | None) -> None:
    assert names.from_remote(remote) == name


@pytest.mark.parametrize(
    ("remotes", "project"),
    [
        (("git@github.com:acme/api.git", "ssh://git@ssh.github.com:443/acme/api", "HTTPS://Sarah@GitHub.com/Acme/API.GIT/",
          "git@github.com-work:acme/api", "work:acme/api"), "repo:acme/api"),
        (("git@gitlab.com:acme/api.git", "https://gitlab.com:443/acme/api", "ssh://git@altssh.gitlab.com:443/acme/api"),
         "repo:gitlab.com/acme/api"),
        (("https://acme@dev.azure.com/acme/Shop/_git/api", "git@ssh.dev.azure.com:v3/acme/Shop/api",
          "https://acme.visualstudio.com/Shop/_git/api"), "repo:dev.azure.com/acme/shop/api"),
        (("http://git/acme/api", "ssh://git@git:22/acme/api"), "repo:git./acme/api"),
        (("https://sarah:s3cret@git.example.com:8443/acme/back/api?x=1",), "repo:git.example.com/acme/back/api"),
    ],
)  # fmt: skip
def test_a_project_has_the_host_of_its_remote_but_of_github(
    remotes: tuple[str, ...], project: str
) -> None:
    assert {names.of_project(remote) for remote in remotes} == {project}
    assert {names.former(project) or project} == {
        names.from_remote(remote) for remote in remotes
    }


def test_a_project_of_a_path_has_a_digest_of_it() -> None:
    found = [names.of_project("/srv/acme/api.git"), names.of_folder("/home/ann/api")]

    assert [names.former(str(name)) for name in found] == ["repo:acme/api", "repo:api"]
    assert [names.is_of_folder(str(name)) for name in found] == [True, True]
    assert names.of_project("/mnt/acme/api.git") != found[0]
    assert not names.is_of_folder("repo:acme/api")
    assert [names.former(name) for name in ("default", "repo:acme/api")] == [None] * 2


def test_a_folder_without_a_remote_gives_its_own_name() -> None:
    assert names.from_directory("/home/sarah/My API/") == "repo:my-api"
    assert names.from_directory("/") is None


@given(ANYTHING)
def test_every_remote_and_folder_gives_a_valid_name_or_none(remote: str) -> None:
    for name in (
        *(names.from_remote(remote), names.from_directory(remote)),
        *(names.of_project(remote), names.of_folder(remote)),
    ):
        assert name is None or names.normalise(name) == name


def test_credentials_never_reach_a_name() -> None:
    assert "s3cret" not in str(names.from_remote("https://sarah:s3cret@host/acme/api"))
