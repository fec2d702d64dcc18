"""Access tokens of a team's own identity provider: a real issuer on this machine, with keys that change."""

from __future__ import annotations

import asyncio
import base64
import hmac
import io
import json
import threading
from collections.abc import AsyncIterator, Iterator
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
from folklore.errors import ConfigInvalid
from folklore.http import oauth
from folklore.http.oauth import JwtIssuer
from folklore.memory.tokens import list_tokens
from tests.conftest import Cluster
from tests.servers import on_http, watched
from tests.team import OWNER, Team, bearer, library_at

AUDIENCE = "https://folklore.example.com/mcp"


@dataclass
class Provider:
    """An issuer that publishes its keys and signs what it is told to."""

    keys: dict[str, Any] = field(default_factory=dict)
    url: str = ""

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


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    made = Provider()
    made.add("one", rsa.generate_private_key(65537, 2048))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said: dict[str, Any] | None = None
            if self.path == "/.well-known/openid-configuration":
                said = {"issuer": made.url, "jwks_uri": f"{made.url}/keys"}
            elif self.path == "/keys":
                said = made.published()
            self.send_response(200 if said else 404)
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield made
    server.shutdown()
    server.server_close()


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
    assert "resource_metadata=" in answer.headers["www-authenticate"]


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
    [listed] = await list_tokens(team.library, caller=OWNER, now=datetime.now(UTC), principal="dora")
    assert listed.issuer == provider.url

    from folklore.memory.tokens import revoke_tokens

    await revoke_tokens(team.library, [listed.id], caller=OWNER, now=datetime.now(UTC))

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
