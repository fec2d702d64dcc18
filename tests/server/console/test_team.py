"""The pages Team and Operate: for the owner everything, for others only what is theirs."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import unescape

import httpx
import pytest

from tests.team import Team, bearer
from tests.visitor import Visitor, texts, visiting


@pytest.fixture(scope="module")
async def team(team: Team) -> Team:
    await team.keep("The mole is closed in November.", namespace="harbour")
    await team.keep("The vault opens at nine.", namespace="vault")
    await team.token("keeper", owner=True)
    return team


@asynccontextmanager
async def owner_of(team: Team) -> AsyncIterator[Visitor]:
    created = await team.token("root", owner=True)
    async with visiting(team.url, created.secret) as owner:
        yield owner
    await team.revoke(created)


def secret_of(page: httpx.Response) -> str:
    [found] = re.findall(r'<pre class="secret">(.*?)</pre>', page.text)
    return unescape(found)


# Tokens


async def test_the_owner_creates_a_token_that_is_shown_once(team: Team) -> None:
    async with owner_of(team) as owner:
        fields = {
            "name": "nina",
            "grants": "harbour:writer\r\n\r\n pier/*:reader ",
            "agent": "bot",
            "expires": "90d",
        }
        made = await owner.post("/team/tokens", fields)
        secret = secret_of(made)
        page = texts(await owner.get("/team"))
        again = await owner.get("/team/tokens")
        answer = await owner.http.post("/api/caller", json={}, headers=bearer(secret))

    assert (made.status_code, made.headers["cache-control"]) == (200, "no-store")
    assert secret not in str(made.url)
    assert str(again.url) == f"{team.url}/team"
    assert (answer.json()["result"]["principal"], answer.json()["result"]["agent"]) == (
        "nina",
        "bot",
    )
    assert set(answer.json()["result"]["grants"]) == {"harbour:writer", "pier/*:reader"}
    assert {"nina", "harbour:writer"} <= set(page.split())
    assert secret not in page
    assert secret not in team.server.log_text()


async def test_the_owner_revokes_a_token_after_a_confirmation(team: Team) -> None:
    created = await team.token("olaf", "harbour:reader")
    other = await team.token("olaf", "vault:reader")
    async with owner_of(team) as owner, visiting(team.url, created.secret) as olaf:
        asked = await owner.get("/team/revoke", id=created.id)
        before = await olaf.get("/team")
        done = await owner.post("/team/revoke", {"id": created.id})
        after = await olaf.get("/team")
        rest = await owner.get("/team/revoke", person="olaf")
        all_of = await owner.get("/team/revoke", person="Olaf", id="")
        every = texts(await owner.get("/team", all=1))

    assert "Revoke 1 token?" in texts(asked)
    assert "olaf" in texts(before)
    assert "Revoked." in texts(done)
    assert "Your token" in after.text
    assert str(other.id) in rest.text
    assert str(created.id) not in rest.text
    assert rest.text.count('name="id"') == all_of.text.count('name="id"') == 1
    assert "revoked" in every


async def test_what_cannot_be_created_or_revoked_is_an_error_page(team: Team) -> None:
    async with owner_of(team) as owner:
        answers = [
            await owner.post(
                "/team/tokens", {"name": "nina", "grants": "harbour:king"}
            ),
            await owner.post("/team/tokens", {"name": "", "grants": "harbour:reader"}),
            await owner.post(
                "/team/tokens",
                {"name": "<b>x</b>", "grants": "harbour:reader", "owner": "1"},
            ),
            await owner.post("/team/tokens"),
            await owner.post(
                "/team/invitations",
                {"name": "x", "grants": "harbour:reader", "within": "1y"},
            ),
            await owner.post("/team/revoke"),
            await owner.post("/team/revoke", {"id": "nonsense"}),
            await owner.get("/team/revoke"),
            await owner.get("/team/revoke", id="nonsense"),
            await owner.get("/team/revoke", id="nonsense", person="ann"),
        ]
        unknown = await owner.post(
            "/team/revoke", {"id": "00000000-0000-4000-8000-000000000000"}
        )

    assert {answer.status_code for answer in answers} == {400}
    assert unknown.status_code == 404
    assert not any("<b>" in answer.text for answer in answers)


async def test_an_invitation_names_the_address_that_the_browser_has(team: Team) -> None:
    async with owner_of(team) as owner:
        fields = {
            "name": "ines",
            "grants": "harbour:reader",
            "within": "2d",
            "form_token": owner.form_token,
        }
        made = await owner.http.post(
            "/team/invitations",
            data=fields,
            headers={"Origin": team.url, "Referer": f"{team.url}/memory/team"},
        )
        plain = await owner.post(
            "/team/invitations", {"name": "ines", "grants": "harbour:reader"}
        )
        code = secret_of(plain).split()[0].partition("=")[2]
        body = {"code": code, "digest": "ab" * 32}
        joined = await owner.http.post("/api/join", json=body)
        page = texts(await owner.get("/team"))

    for secret, address in ((made, f"{team.url}/memory"), (plain, team.url)):
        line = secret_of(secret)
        assert line.startswith("FOLKLORE_INVITATION=fi_")
        assert line.endswith(f" folklore join {address}")
    assert joined.json()["result"]["principal"] == "ines"
    assert "invited" in page
    assert code not in page
    assert code not in team.server.log_text()


# Roles


async def test_a_reader_sees_his_own_token_and_nothing_of_others(team: Team) -> None:
    await team.token("zelda", "vault:admin")
    async with team.visitor("rita", "harbour:reader") as rita:
        pages = [await rita.get(path) for path in ("/team", "/operate")]
        log = await rita.get("/team/audit")
        named = await rita.get("/team/audit", project="vault")
        own = await rita.get("/team/audit", project="harbour")

    for page in pages:
        assert page.status_code == 200
        for hidden in ("zelda", "vault", "root", "keeper"):
            assert hidden not in page.text
    assert "harbour:reader" in texts(pages[0])
    assert "harbour" in texts(pages[1])
    assert "Audit log" not in pages[0].text
    assert (log.status_code, own.status_code) == (403, 403)
    assert named.status_code == 404
    for answer in (log, named, own):
        assert "zelda" not in answer.text


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/team/tokens", {"name": "rita", "owner": "1"}),
        ("/team/tokens", {"name": "rita", "grants": "vault:admin"}),
        ("/team/invitations", {"name": "rita", "grants": "vault:admin"}),
        ("/team/revoke", {"id": "00000000-0000-4000-8000-000000000000"}),
    ],
)
async def test_only_the_owner_changes_tokens(
    team: Team, path: str, fields: dict[str, str]
) -> None:
    async with team.visitor("rita", "harbour:admin") as rita:
        refused = await rita.post(path, fields)
        confirm = await rita.get("/team/revoke", person="rita")

    assert (refused.status_code, confirm.status_code) == (403, 403)
    assert "secret" not in refused.text


async def test_an_administrator_reads_the_audit_log_of_his_projects_alone(
    team: Team,
) -> None:
    async with team.visitor("adam", "harbour:admin", "vault:reader") as adam:
        page = await adam.get("/team")
        log = await adam.get("/team/audit")
        denied = await adam.get("/team/audit", project="vault")

    assert "Audit log" in page.text
    rows = re.findall(r"<tr>.*?</tr>", log.text, re.DOTALL)[1:]
    assert rows
    assert all("harbour" in row for row in rows)
    assert "token_create" not in "".join(rows)
    assert denied.status_code == 403


# Audit log


async def test_the_audit_log_is_filtered_and_paged(team: Team) -> None:
    for number in range(60):
        await team.keep(f"Crane {number} is oiled.", namespace="yard")
    async with owner_of(team) as owner:
        first = await owner.get("/team/audit", project="yard")
        older = re.findall(r'href="([^"]*after=[^"]*)"', first.text)
        second = await owner.http.get(str(first.url.join(unescape(older[0]))))
        stores = await owner.get(
            "/team/audit", action="store", person="ROOT", since="7d"
        )
        wrong = await owner.get("/team/audit", action="dance")
        old = await owner.get(
            "/team/audit", project="yard", after="00000000-0000-4000-8000-000000000000"
        )
        every = await owner.get("/team/audit")

    def times(page: httpx.Response) -> list[str]:
        return re.findall(r'class="mono" href="[^"]*memories/([^"]+)"', page.text)

    assert (len(times(first)), len(times(second))) == (50, 10)
    assert not set(times(first)) & set(times(second))
    assert "project=yard" in unescape(older[0])
    assert "Older" not in second.text
    assert "Newest" in second.text
    assert stores.status_code == 200
    assert len(times(stores)) == 50
    assert (wrong.status_code, old.status_code) == (400, 404)
    assert "sign_in" in every.text


async def test_hostile_names_are_text(team: Team) -> None:
    name = '<script>alert("1")</script>'
    await team.token(name, "harbour:reader")
    await team.keep("A box.", namespace="boxes")
    async with owner_of(team) as owner:
        pages = [
            await owner.get("/team"),
            await owner.get("/team/revoke", person=name),
            await owner.get("/team/audit", person=name, project='"><img src=x>'),
            await owner.get("/team/audit", since='"><img src=x>', action="<img src=x>"),
            await owner.get("/team/audit", person=name),
        ]

    for page in pages:
        assert "<script>alert" not in page.text
        assert "<img" not in page.text
    assert name in unescape(pages[0].text)


# Operate


async def test_the_owner_sees_checks_models_jobs_sizes_and_backups(team: Team) -> None:
    async with owner_of(team) as owner:
        page = texts(await owner.get("/operate"))

    for shown in (
        *("token : ok", "grants : ok", "memory : ok", "bundled/", "harbour", "exact"),
        *(
            "retention",
            "erase what was forgotten",
            "memories",
            "The database has",
            "no backup files",
        ),
    ):
        assert shown in page


async def test_the_checks_are_those_of_doctor(team: Team) -> None:
    created = await team.token("rita", "harbour:reader", expires="2d")
    async with (
        httpx.AsyncClient(base_url=team.url) as http,
        visiting(team.url, created.secret) as rita,
    ):
        answer = await http.post("/api/checks", json={}, headers=bearer(created.secret))
        page = texts(await rita.get("/operate"))

    checks = answer.json()["result"]
    assert [check["name"] for check in checks] == [
        "token",
        "grants",
        "memory",
        "embeddings",
    ]
    assert checks[0]["status"] == "warning"
    assert checks[0]["hint"] in page
    assert checks[2]["detail"].startswith("1 memory in 1 namespace")


@pytest.mark.parametrize("operation", ["sizes", "backups", "jobs", "run_jobs"])
async def test_what_the_owner_alone_sees_is_refused_to_others(
    team: Team, operation: str
) -> None:
    created = await team.token("rita", "harbour:admin")
    async with httpx.AsyncClient(base_url=team.url) as http:
        answer = await http.post(
            f"/api/{operation}", json={}, headers=bearer(created.secret)
        )

    assert answer.status_code == 403
