"""Access tokens of a team's own identity provider: a real issuer on this machine, with keys that change."""

from __future__ import annotations

import asyncio
import base64
import hmac
import io
import json
import re
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from folklore.config import OAuthSettings
from folklore.errors import ConfigInvalid, Unauthenticated, Unavailable
from folklore.http import oauth
from folklore.http.oauth import JwtIssuer
from folklore.memory.auth.tokens import ExternalIdentity
from folklore.memory.requests import ListTokensRequest, RevokeTokensRequest
from tests.conftest import Cluster
from tests.servers import free_port, on_http, watched
from tests.team import Team, bearer, library_at

AUDIENCE = "https://folklore.example.com/mcp"


@dataclass
class Provider:
    """An issuer that publishes its keys and signs what it is told to."""

    keys: dict[str, Any] = field(default_factory=dict)
    url: str = ""
    # Pages it has beside, or instead of, those of OpenID Connect; None where there is nothing.
    pages: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def add(self, kid: str, key: Any) -> None:
        self.keys[kid] = key

    def published(self) -> dict[str, Any]:
        held = []
        for kid, key in self.keys.items():
            algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
            held.append({**json.loads(algorithm.to_jwk(key.public_key())), "kid": kid, "use": "sig"})
        return {"keys": held}

    def token(self, kid: str = "one", key: Any = None, algorithm: str | None = None, **claims: Any) -> str:
        key = key or self.keys[kid]
        algorithm = algorithm or ("RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256")
        now = datetime.now(UTC)
        said = {"iss": self.url, "aud": AUDIENCE, "sub": "carla", "exp": now + timedelta(minutes=5), "iat": now}
        said |= claims
        return jwt.encode(
            {name: value for name, value in said.items() if value is not None},
            key,
            algorithm=algorithm,
            headers={"kid": kid},
        )


@contextmanager
def providing() -> Iterator[Provider]:
    made = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(self.path)
            known = {"issuer": made.url, "jwks_uri": f"{made.url}/keys"}
            pages = {"/.well-known/openid-configuration": known, "/keys": made.published()} | made.pages
            said = pages.get(self.path)
            self.send_response(200 if said else 404)
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield made
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with providing() as made:
        made.add("one", rsa.generate_private_key(65537, 2048))
        yield made


@pytest.fixture
def another() -> Iterator[Provider]:
    """A provider that nobody has asked anything yet."""
    with providing() as made:
        made.add("one", ec.generate_private_key(ec.SECP256R1()))
        yield made


async def said_by(issuer: JwtIssuer, token: str) -> ExternalIdentity:
    return await issuer.verify(token, now=datetime.now(UTC))


@pytest.fixture(scope="module")
async def team(
    cluster: Cluster, template: str, provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Team]:
    rules = [
        {"claim": "groups", "value": "money", "grant": "payments:writer"},
        {"claim": "groups", "value": "money-leads", "grant": "payments:admin"},
        {"claim": "roles", "value": "chief", "grant": "owner"},
    ]
    async with cluster.new_database(template) as name, library_at(cluster.address(name)) as library:
        settings = watched(
            tmp_path_factory.mktemp("oauth"),
            database_url=cluster.address(name),
            oauth__issuer=provider.url,
            oauth__audience=AUDIENCE,
            oauth__rules=json.dumps(rules),
        )
        async with on_http(settings) as server:
            made = Team(server, library)
            await made.keep("the crane is red", namespace="payments")
            await made.keep("the board meets", namespace="board")
            yield made


async def ask(team: Team, token: str, call: str = "namespaces", **body: Any) -> httpx.Response:
    async with httpx.AsyncClient(base_url=team.url, headers=bearer(token), timeout=20) as client:
        return await client.post(f"/api/{call}", json=body)


def named(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [item["name"] for item in answer.json()["result"]]


async def test_claims_open_what_the_rules_say(team: Team, provider: Provider) -> None:
    assert named(await ask(team, provider.token(groups=["money"]))) == ["payments"]
    assert named(await ask(team, provider.token(groups=["money", "money-leads", "others"]))) == ["payments"]
    assert named(await ask(team, provider.token(folklore_grants=["board:reader"], groups="money"))) == [
        "board", "payments",
    ]  # fmt: skip
    assert "board" in named(await ask(team, provider.token(roles="chief")))


async def test_a_principal_of_the_issuer_writes_under_its_name_over_mcp(team: Team, provider: Provider) -> None:
    token = provider.token(sub="carla@example.com", groups=["money"])
    async with team.assistant(token) as client:
        stored = await client.call_tool("memory_store", {"content": "The crane was mended."})
        assert not stored.is_error
        [kept] = (
            await client.call_tool("memory_get", {"ids": [stored.structured_content["stored"][0]["id"]]})
        ).structured_content["memories"]

    assert (kept["author"], kept["namespace"]) == ("carla@example.com", "payments")


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"aud": "https://other.example.com"}, "not good"),
        ({"aud": None}, "not good"),
        ({"iss": "https://evil.example.com"}, "not good"),
        ({"exp": datetime(2020, 1, 1, tzinfo=UTC)}, "expired"),
        ({"exp": None}, "not good"),
        ({"nbf": datetime(2099, 1, 1, tzinfo=UTC)}, "not good"),
        ({"sub": None}, "no claim sub"),
        ({"groups": ["others"]}, "opens nothing"),
        ({"folklore_grants": ["nonsense"]}, "opens nothing"),
        ({"folklore_grants": ["owner"]}, "opens nothing"),
    ],
)
async def test_what_is_not_meant_for_us_or_worth_nothing_lets_nobody_in(
    team: Team, provider: Provider, claims: dict[str, Any], said: str
) -> None:
    answer = await ask(team, provider.token(**({"groups": []} | claims)))

    assert answer.status_code == 401
    assert said in answer.json()["error"]["message"]
    described = answer.headers["www-authenticate"]
    assert re.fullmatch(
        r'Bearer realm="folklore", error="invalid_token", error_description="[^"\\]+", resource_metadata="[^"]+"',
        described,
    )


def signed_by_hand(header: dict[str, str], body: str, secret: bytes) -> str:
    """A token as no library would make it."""

    def text(given: bytes) -> str:
        return base64.urlsafe_b64encode(given).rstrip(b"=").decode()

    said = f"{text(json.dumps(header).encode())}.{body}"
    return f"{said}.{text(hmac.new(secret, said.encode(), 'sha256').digest()) if secret else ''}"


async def test_forged_signatures_let_nobody_in(team: Team, provider: Provider) -> None:
    other = rsa.generate_private_key(65537, 2048)
    good = provider.token(groups=["money"])
    public = json.dumps(provider.published())
    head, body, signature = good.split(".")
    forged = [
        provider.token(key=other, groups=["money"]),
        provider.token(kid="two", key=other, groups=["money"]),
        signed_by_hand({"alg": "none", "kid": "one"}, body, b""),
        # The public key as a shared secret: whoever can read it could sign.
        signed_by_hand({"alg": "HS256", "kid": "one"}, body, public.encode()),
        # The key's id with an algorithm that is for keys of another kind.
        signed_by_hand({"alg": "ES256", "kid": "one"}, body, b"x"),
        f"{head}.{body}.{signature[:-4]}AAAA",
        f"{head}.{body}.",
        "a.b.c",
    ]

    for token in forged:
        assert (await ask(team, token)).status_code == 401, token


async def test_an_end_in_no_year_there_is_lets_nobody_in(team: Team, provider: Provider) -> None:
    milliseconds = int(datetime.now(UTC).timestamp() * 1000) + 300_000

    for end in (milliseconds, 10**20):
        assert (await ask(team, provider.token(groups=["money"], exp=end))).status_code == 401


async def test_a_key_that_is_new_at_the_issuer_is_asked_for(team: Team, provider: Provider) -> None:
    # Unknown keys were named a moment ago, and an issuer is asked again only so often: a fresh one, with this key.
    provider.add("new", ec.generate_private_key(ec.SECP256R1()))
    issuer = JwtIssuer(OAuthSettings(issuer=provider.url, audience=AUDIENCE))
    await issuer.verify(provider.token(folklore_grants=["a:reader"]), now=datetime.now(UTC))
    provider.add("newer", ec.generate_private_key(ec.SECP256R1()))

    said = await issuer.verify(provider.token("newer", folklore_grants=["a:reader"]), now=datetime.now(UTC))

    assert (said.principal, said.grants, said.owner) == ("carla", ["a:reader"], False)


async def test_tokens_that_come_for_the_first_time_at_once_are_let_in(team: Team, provider: Provider) -> None:
    tokens = [provider.token(sub=f"new {number}", folklore_grants=["fresh:writer"]) for number in range(4)]

    answers = await asyncio.gather(*(ask(team, token) for token in tokens * 4))

    assert [named(answer) for answer in answers] == [["fresh"]] * 16


async def test_an_access_token_can_be_revoked_here(team: Team, provider: Provider) -> None:
    token = provider.token(sub="dora", groups=["money"])
    assert named(await ask(team, token)) == ["payments"]
    [listed] = await team.owner.call(ListTokensRequest(principal="dora"))
    assert listed.issuer == provider.url

    await team.owner.call(RevokeTokensRequest(ids=(listed.id,)))

    assert (await ask(team, token)).status_code == 401


async def test_clients_find_out_who_vouches(team: Team, provider: Provider) -> None:
    async with httpx.AsyncClient(base_url=team.url) as client:
        refused = await client.post("/mcp", json={})
        found = await client.get("/.well-known/oauth-protected-resource/mcp")

    assert refused.status_code == 401
    assert (
        'resource_metadata="https://folklore.example.com/.well-known/oauth-protected-resource/mcp"'
        in (refused.headers["www-authenticate"])
    )
    assert found.json()["resource"] == AUDIENCE
    assert [server.rstrip("/") for server in found.json()["authorization_servers"]] == [provider.url]


def test_an_issuer_in_the_clear_or_without_an_audience_is_refused() -> None:
    with pytest.raises(ConfigInvalid, match="https"):
        JwtIssuer(OAuthSettings(issuer="http://login.example.com", audience=AUDIENCE))
    for keys in ("http://login.example.com/keys", "ftp://localhost/keys"):
        with pytest.raises(ConfigInvalid, match="jwks_url"):
            JwtIssuer(OAuthSettings(issuer="https://login.example.com", jwks_url=keys, audience=AUDIENCE))
    with pytest.raises(ConfigInvalid, match="audience"):
        JwtIssuer(OAuthSettings(issuer="https://login.example.com"))


@pytest.mark.parametrize(
    "said",
    [
        {"issuer": "https://two.test", "jwks_uri": "https://one.test/keys"},
        {"issuer": "https://one.test", "jwks_uri": "http://one.test/keys"},
        {"issuer": "https://one.test"},
        ["https://one.test"],
    ],
)
def test_keys_are_taken_from_the_issuers_own_word_and_a_safe_address_alone(
    said: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: io.BytesIO(json.dumps(said).encode()))

    with pytest.raises(ValueError, match="not of this issuer, or names no keys"):
        oauth._discovered("https://one.test")


async def test_the_issuer_is_asked_once_for_its_keys_and_seldom_for_one_that_is_unknown(another: Provider) -> None:
    issuer = JwtIssuer(OAuthSettings(issuer=another.url, audience=AUDIENCE))
    for _ in range(3):
        await said_by(issuer, another.token())
    assert another.asked == ["/.well-known/openid-configuration", "/keys"]

    for number in range(3):
        with pytest.raises(Unauthenticated, match="does not have"):
            await said_by(issuer, another.token(f"unknown {number}", key=another.keys["one"]))
    assert another.asked.count("/keys") == 2, "whoever names keys at random makes us ask no more often"


async def test_a_token_need_not_name_the_only_key(another: Provider) -> None:
    issuer = JwtIssuer(OAuthSettings(issuer=another.url, audience=AUDIENCE))
    claims = {"iss": another.url, "aud": AUDIENCE, "sub": "carla", "exp": datetime.now(UTC) + timedelta(minutes=5)}
    token = jwt.encode(claims, another.keys["one"], algorithm="ES256")
    assert (await said_by(issuer, token)).principal == "carla"

    another.add("two", ec.generate_private_key(ec.SECP256R1()))
    with pytest.raises(Unauthenticated, match="does not have"):
        await said_by(JwtIssuer(OAuthSettings(issuer=another.url, audience=AUDIENCE)), token)


@pytest.mark.parametrize("ending", ["", "/"])
async def test_an_issuer_that_is_a_tenant_is_found_by_either_standard_or_by_its_keys(
    another: Provider, ending: str
) -> None:
    issuer = f"{another.url}/tenant{ending}"
    known = {"issuer": issuer, "jwks_uri": f"{another.url}/keys"}
    for page in ("/tenant/.well-known/openid-configuration", "/.well-known/oauth-authorization-server/tenant"):
        another.pages = {"/.well-known/openid-configuration": None, page: known}
        found = JwtIssuer(OAuthSettings(issuer=issuer, audience=AUDIENCE))
        assert (await said_by(found, another.token(iss=issuer))).issuer == issuer

    another.pages, another.asked = {}, []
    told = JwtIssuer(OAuthSettings(issuer=issuer, audience=AUDIENCE, jwks_url=f"{another.url}/keys"))
    assert (await said_by(told, another.token(iss=issuer))).issuer == issuer
    assert another.asked == ["/keys"]


async def test_while_the_keys_cannot_be_had_nobody_is_told_that_a_token_is_bad(another: Provider) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    issuer = JwtIssuer(OAuthSettings(issuer=another.url, audience=AUDIENCE))
    elsewhere = JwtIssuer(OAuthSettings(issuer=nobody, audience=AUDIENCE))
    broken: tuple[dict[str, Any], ...] = (
        {"/keys": None},
        {"/keys": ["nonsense"]},
        {"/.well-known/openid-configuration": {"issuer": "https://two.test"}},
    )
    for pages in broken:
        another.pages = pages
        with pytest.raises(Unavailable):
            await said_by(JwtIssuer(OAuthSettings(issuer=another.url, audience=AUDIENCE)), another.token())
    with pytest.raises(Unavailable):
        await said_by(elsewhere, another.token(iss=nobody))
    with pytest.raises(Unavailable):
        await said_by(issuer, another.token())

    another.pages = {}
    assert (await said_by(issuer, another.token())).principal == "carla"


async def test_the_settings_say_which_claims_name_and_open(another: Provider) -> None:
    settings = OAuthSettings(issuer=another.url, audience=AUDIENCE, principal_claim="email", grants_claim="scope")
    issuer = JwtIssuer(settings)
    end = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=1)

    said = await said_by(issuer, another.token(email="c@example.com", scope="a:reader b:writer", exp=end))
    one = await said_by(issuer, another.token(email="c@example.com", scope=["a:reader", 5, None], exp=end))

    assert said == ExternalIdentity("c@example.com", ["a:reader", "b:writer"], False, end, another.url)
    assert one.grants == ["a:reader"]
    for name in (None, " ", 5):
        with pytest.raises(Unauthenticated, match="no claim email"):
            await said_by(issuer, another.token(email=name))
    assert issuer.rules != JwtIssuer(settings.model_copy(update={"grants_claim": "grants"})).rules


async def test_clocks_may_differ_by_half_a_minute_and_no_more(another: Provider) -> None:
    issuer = JwtIssuer(OAuthSettings(issuer=another.url, audience=AUDIENCE))
    now = datetime.now(UTC)

    assert await said_by(issuer, another.token(exp=now - timedelta(seconds=5)))
    assert await said_by(issuer, another.token(nbf=now + timedelta(seconds=25)))
    with pytest.raises(Unauthenticated, match="expired"):
        await said_by(issuer, another.token(exp=now - timedelta(seconds=31)))
    with pytest.raises(Unauthenticated, match="not good"):
        await said_by(issuer, another.token(nbf=now + timedelta(minutes=5)))
