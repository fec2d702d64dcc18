"""Access tokens of an identity provider: a real issuer on this machine, with keys that change."""

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

from folklore.config import OAuthSettings, Settings
from folklore.contract.people import ListTokensRequest, RevokeTokensRequest
from folklore.errors import ConfigInvalid, InvalidInput, Unauthenticated, Unavailable
from folklore.memory.auth.tokens import ExternalIdentity
from folklore.server import issuer_keys, oauth
from folklore.server.oauth import JwtIssuer
from tests.servers import free_port, on_http, watched
from tests.team import Team, bearer, called, library_at
from tests.waiting import STUCK

AUDIENCE = "https://folklore.example.com/mcp"


@dataclass
class Provider:
    """An issuer that publishes its keys and signs any claims."""

    keys: dict[str, Any] = field(default_factory=dict)
    url: str = ""
    # Pages in addition to those of OpenID Connect, or in their place; None for a page that is missing.
    pages: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    # Cleared, it holds its answers back.
    answering: threading.Event = field(default_factory=threading.Event)

    def add(self, kid: str, key: Any) -> None:
        self.keys[kid] = key

    def published(self) -> dict[str, Any]:
        held = []
        for kid, key in self.keys.items():
            algorithm = (
                RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
            )
            held.append(
                {
                    **json.loads(algorithm.to_jwk(key.public_key())),
                    "kid": kid,
                    "use": "sig",
                }
            )
        return {"keys": held}

    def token(
        self,
        kid: str = "one",
        key: Any = None,
        algorithm: str | None = None,
        **claims: Any,
    ) -> str:
        key = key or self.keys[kid]
        algorithm = algorithm or (
            "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
        )
        now = datetime.now(UTC)
        said = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "carla",
            "exp": now + timedelta(minutes=5),
            "iat": now,
        }
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
    made.answering.set()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(self.path)
            made.answering.wait(STUCK)
            known = {"issuer": made.url, "jwks_uri": f"{made.url}/keys"}
            pages = {
                "/.well-known/openid-configuration": known,
                "/keys": made.published(),
            } | made.pages
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
    """A provider that was not asked anything yet."""
    with providing() as made:
        made.add("one", ec.generate_private_key(ec.SECP256R1()))
        yield made


@dataclass
class Clock:
    """A clock that stands until it is moved."""

    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now


async def identity(issuer: JwtIssuer, token: str) -> ExternalIdentity:
    return await issuer.verify(token, now=datetime.now(UTC))


def settings_of(provider: Provider, **more: Any) -> OAuthSettings:
    return OAuthSettings(issuer=provider.url, audience=AUDIENCE, **more)


@pytest.fixture(scope="module")
async def team(
    address: str, provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Team]:
    rules = [
        {"claim": "groups", "value": "money", "grant": "payments:writer"},
        {"claim": "groups", "value": "money-leads", "grant": "payments:admin"},
        {"claim": "roles", "value": "chief", "grant": "owner"},
        {"claim": "folklore_grants"},
    ]
    issuer = {
        "oauth__issuer": provider.url,
        "oauth__audience": AUDIENCE,
        "oauth__rules": json.dumps(rules),
    }
    settings = watched(tmp_path_factory.mktemp("oauth"), database_url=address, **issuer)
    async with library_at(address) as library, on_http(settings) as server:
        made = Team(server, library)
        await made.keep("the crane is red", namespace="payments")
        await made.keep("the board meets", namespace="board")
        yield made


async def ask(
    team: Team, token: str, operation: str = "list_namespaces", **body: Any
) -> httpx.Response:
    async with httpx.AsyncClient(
        base_url=team.url, headers=bearer(token), timeout=20
    ) as client:
        return await client.post(f"/api/{operation}", json=body)


def named(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [item["name"] for item in answer.json()["result"]]


async def test_claims_give_the_grants_of_the_rules(
    team: Team, provider: Provider
) -> None:
    assert named(await ask(team, provider.token(groups=["money"]))) == ["payments"]
    assert named(
        await ask(team, provider.token(groups=["money", "money-leads", "others"]))
    ) == ["payments"]
    assert named(await ask(team, provider.token(folklore_grants=["board:reader"], groups="money"))) == [
        "board", "payments",
    ]  # fmt: skip
    assert "board" in named(await ask(team, provider.token(roles="chief")))


async def test_a_principal_of_the_issuer_writes_under_its_name_over_mcp(
    team: Team, provider: Provider
) -> None:
    token = provider.token(sub="carla@example.com", groups=["money"])
    async with team.assistant(token) as client:
        stored = await called(client, "memory_store", content="The crane was mended.")
        [kept] = (await called(client, "memory_get", ids=[stored["stored"][0]["id"]]))[
            "memories"
        ]

    assert (kept["author"], kept["namespace"]) == (
        f"carla@example.com <{provider.url}>",
        "payments",
    )


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"aud": "https://other.example.com"}, "not valid"),
        ({"aud": None}, "not valid"),
        ({"iss": "https://evil.example.com"}, "not valid"),
        ({"exp": datetime(2020, 1, 1, tzinfo=UTC)}, "expired"),
        ({"exp": None}, "not valid"),
        ({"nbf": datetime(2099, 1, 1, tzinfo=UTC)}, "not valid"),
        ({"sub": None}, "not valid"),
        ({"sub": 5}, "not valid"),
        ({"sub": "car\u200bla"}, "invisible"),
        ({"groups": ["others"]}, "no grant here"),
        ({"folklore_grants": ["nonsense"]}, "no grant here"),
        ({"folklore_grants": ["owner"]}, "no grant here"),
    ],
)
async def test_a_token_that_is_not_for_this_server_or_grants_nothing_is_refused(
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
    """Make a token that no library would make."""

    def text(given: bytes) -> str:
        return base64.urlsafe_b64encode(given).rstrip(b"=").decode()

    said = f"{text(json.dumps(header).encode())}.{body}"
    return f"{said}.{text(hmac.new(secret, said.encode(), 'sha256').digest()) if secret else ''}"


async def test_forged_signatures_are_refused(team: Team, provider: Provider) -> None:
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


async def test_an_expiry_in_no_possible_year_is_refused(
    team: Team, provider: Provider
) -> None:
    milliseconds = int(datetime.now(UTC).timestamp() * 1000) + 300_000

    for end in (milliseconds, 10**20):
        assert (
            await ask(team, provider.token(groups=["money"], exp=end))
        ).status_code == 401


async def test_a_new_key_of_the_issuer_is_fetched_once_the_last_fetch_is_old_enough(
    another: Provider,
) -> None:
    clock = Clock()
    issuer = JwtIssuer(settings_of(another), clock)
    await identity(issuer, another.token())
    another.add("new", ec.generate_private_key(ec.SECP256R1()))
    with pytest.raises(Unauthenticated, match="does not publish"):
        await identity(issuer, another.token("new"))
    clock.now += 31

    assert (
        await identity(issuer, another.token("new"))
    ).principal == f"carla <{another.url}>"


async def fetched() -> None:
    """Wait until no keys are fetched in the background."""
    await asyncio.gather(
        *(
            task
            for task in asyncio.all_tasks()
            if task.get_name() == "folklore-issuer-keys"
        )
    )


async def test_a_slow_issuer_and_unknown_keys_delay_no_token_whose_key_is_known(
    another: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer_keys, "_DEADLINE", STUCK)
    clock = Clock()
    issuer = JwtIssuer(settings_of(another), clock)
    await identity(issuer, another.token())
    unknown = another.token("unknown", key=another.keys["one"])
    another.answering.clear()
    clock.now += 31
    waiting = [asyncio.create_task(identity(issuer, unknown)) for _ in range(50)]
    await asyncio.sleep(0)
    for _ in range(20):
        assert (
            await identity(issuer, another.token())
        ).principal == f"carla <{another.url}>"
    assert not any(task.done() for task in waiting)
    another.answering.set()
    refused = await asyncio.gather(*waiting, return_exceptions=True)
    another.answering.clear()
    clock.now += 301  # the keys are to be fetched again
    for _ in range(20):
        assert (
            await identity(issuer, another.token())
        ).principal == f"carla <{another.url}>"
    another.answering.set()
    await fetched()

    assert {type(error) for error in refused} == {Unauthenticated}
    assert another.asked.count("/keys") == 3, "fifty tokens asked once"


async def test_a_token_with_an_unknown_key_waits_no_longer_than_the_deadline(
    another: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer_keys, "_DEADLINE", 0.1)
    another.answering.clear()
    issuer = JwtIssuer(settings_of(another))
    for _ in range(3):
        with pytest.raises(Unavailable):
            await identity(issuer, another.token())

    another.answering.set()
    await fetched()
    assert await identity(issuer, another.token()), "the fetch went on meanwhile"
    assert another.asked == ["/.well-known/openid-configuration", "/keys"]


async def test_a_withdrawn_key_is_refused_within_minutes_and_known_ones_survive_an_outage_of_an_hour(
    another: Provider,
) -> None:
    clock = Clock()
    issuer = JwtIssuer(settings_of(another), clock)
    another.add("two", ec.generate_private_key(ec.SECP256R1()))
    one = another.token()
    two = another.token("two")
    await identity(issuer, one)
    del another.keys["one"]
    clock.now += 301
    await identity(issuer, two)
    await fetched()
    with pytest.raises(Unauthenticated, match="does not publish"):
        await identity(issuer, one)

    another.pages = {"/keys": None}
    clock.now += 3500
    assert await identity(issuer, two)
    await fetched()
    clock.now += 200
    with pytest.raises(Unavailable):
        await identity(issuer, two)
    another.pages = {}
    with pytest.raises(Unavailable):
        await identity(issuer, two)
    clock.now += 6
    assert await identity(issuer, two)


async def test_tokens_that_come_at_once_for_the_first_time_are_accepted(
    team: Team, provider: Provider
) -> None:
    tokens = [
        provider.token(sub=f"new {number}", folklore_grants=["fresh:writer"])
        for number in range(4)
    ]

    answers = await asyncio.gather(*(ask(team, token) for token in tokens * 4))

    assert [named(answer) for answer in answers] == [["fresh"]] * 16


async def test_an_access_token_can_be_revoked_here(
    team: Team, provider: Provider
) -> None:
    token = provider.token(sub="dora", groups=["money"])
    assert named(await ask(team, token)) == ["payments"]
    [listed] = await team.owner.call(
        ListTokensRequest(principal=f"dora <{provider.url}>")
    )
    assert listed.issuer == provider.url

    await team.owner.call(RevokeTokensRequest(ids=(listed.id,)))

    assert (await ask(team, token)).status_code == 401


async def test_clients_find_the_issuer(team: Team, provider: Provider) -> None:
    async with httpx.AsyncClient(base_url=team.url) as client:
        refused = await client.post("/mcp", json={})
        found = await client.get("/.well-known/oauth-protected-resource/mcp")

    assert refused.status_code == 401
    assert (
        'resource_metadata="https://folklore.example.com/.well-known/oauth-protected-resource/mcp"'
        in (refused.headers["www-authenticate"])
    )
    assert found.json()["resource"] == AUDIENCE
    assert [server.rstrip("/") for server in found.json()["authorization_servers"]] == [
        provider.url
    ]


def test_an_issuer_without_tls_or_without_an_audience_is_refused() -> None:
    with pytest.raises(ConfigInvalid, match="https"):
        JwtIssuer(OAuthSettings(issuer="http://login.example.com", audience=AUDIENCE))
    for keys in ("http://login.example.com/keys", "ftp://localhost/keys"):
        with pytest.raises(ConfigInvalid, match="jwks_url"):
            JwtIssuer(
                OAuthSettings(
                    issuer="https://login.example.com", jwks_url=keys, audience=AUDIENCE
                )
            )
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
def test_keys_are_fetched_only_from_the_address_that_the_issuer_publishes_and_over_tls(
    said: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "urllib.request.urlopen", lambda *_, **__: io.BytesIO(json.dumps(said).encode())
    )

    with pytest.raises(ValueError, match="not of this issuer, or names no keys"):
        oauth._discover("https://one.test")


async def test_the_keys_are_fetched_once_and_not_for_each_unknown_key(
    another: Provider,
) -> None:
    issuer = JwtIssuer(settings_of(another))
    for _ in range(3):
        await identity(issuer, another.token())
    assert another.asked == ["/.well-known/openid-configuration", "/keys"]

    for number in range(3):
        with pytest.raises(Unauthenticated, match="does not publish"):
            await identity(
                issuer, another.token(f"unknown {number}", key=another.keys["one"])
            )
    assert another.asked.count("/keys") == 1


async def test_a_token_need_not_name_the_only_key(another: Provider) -> None:
    issuer = JwtIssuer(settings_of(another))
    claims = {
        "iss": another.url,
        "aud": AUDIENCE,
        "sub": "carla",
        "exp": datetime.now(UTC) + timedelta(minutes=5),
    }
    token = jwt.encode(claims, another.keys["one"], algorithm="ES256")
    assert (await identity(issuer, token)).principal == f"carla <{another.url}>"

    another.add("two", ec.generate_private_key(ec.SECP256R1()))
    with pytest.raises(Unauthenticated, match="does not publish"):
        await identity(JwtIssuer(settings_of(another)), token)


@pytest.mark.parametrize("ending", ["", "/"])
async def test_an_issuer_with_a_path_is_found_by_both_standards_or_by_jwks_url(
    another: Provider, ending: str
) -> None:
    issuer = f"{another.url}/tenant{ending}"
    known = {"issuer": issuer, "jwks_uri": f"{another.url}/keys"}
    for page in (
        "/tenant/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server/tenant",
    ):
        another.pages = {"/.well-known/openid-configuration": None, page: known}
        found = JwtIssuer(OAuthSettings(issuer=issuer, audience=AUDIENCE))
        assert (await identity(found, another.token(iss=issuer))).issuer == issuer

    another.pages = {}
    another.asked = []
    told = JwtIssuer(
        OAuthSettings(issuer=issuer, audience=AUDIENCE, jwks_url=f"{another.url}/keys")
    )
    assert (await identity(told, another.token(iss=issuer))).issuer == issuer
    assert another.asked == ["/keys"]


async def test_while_the_keys_cannot_be_fetched_no_token_is_called_bad(
    another: Provider,
) -> None:
    unreachable = f"http://127.0.0.1:{free_port()}"
    clock = Clock()
    issuer = JwtIssuer(settings_of(another), clock)
    elsewhere = JwtIssuer(OAuthSettings(issuer=unreachable, audience=AUDIENCE))
    broken: tuple[dict[str, Any], ...] = (
        {"/keys": None},
        {"/keys": ["nonsense"]},
        {"/.well-known/openid-configuration": {"issuer": "https://two.test"}},
    )
    for pages in broken:
        another.pages = pages
        with pytest.raises(Unavailable):
            await identity(JwtIssuer(settings_of(another)), another.token())
    with pytest.raises(Unavailable):
        await identity(elsewhere, another.token(iss=unreachable))
    with pytest.raises(Unavailable):
        await identity(issuer, another.token())

    another.pages = {}
    clock.now += 6
    assert (
        await identity(issuer, another.token())
    ).principal == f"carla <{another.url}>"


async def test_without_a_rule_no_claim_grants_anything(another: Provider) -> None:
    issuer = JwtIssuer(settings_of(another))

    found = await identity(
        issuer,
        another.token(folklore_grants=["a:reader"], groups=["owner"], scope="owner"),
    )

    assert (found.grants, found.owner) == ([], False)


async def test_a_rule_without_a_value_takes_the_grants_that_the_claim_lists_but_no_owner(
    another: Provider,
) -> None:
    settings = settings_of(another, rules=({"claim": "scope"},))
    issuer = JwtIssuer(settings)
    end = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=1)

    found = await identity(
        issuer, another.token(scope="a:reader b:writer owner", exp=end)
    )
    listed = await identity(issuer, another.token(scope=["a:reader", 5, None]))

    assert found == ExternalIdentity(
        f"carla <{another.url}>", ["a:reader", "b:writer"], False, end, another.url
    )
    assert listed.grants == ["a:reader"]
    assert issuer.rules != JwtIssuer(settings.model_copy(update={"rules": ()})).rules


@pytest.mark.parametrize(
    "rule",
    [{"claim": "groups", "value": "x"}, {"claim": "groups", "grant": "x:reader"}],
)
def test_a_rule_has_a_value_and_a_grant_or_neither(rule: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="go together"):
        OAuthSettings(rules=(rule,))


@pytest.mark.parametrize(
    "subject",
    [
        "",
        " ",
        " carla",
        "car\u200bla",
        "carla\u202e",
        "carla\n",
        "car\u3164la",
        "carla\ufe0f\ufe0f",
        "car\x00la",
    ],
)
async def test_a_subject_that_looks_like_another_is_refused(
    another: Provider, subject: str
) -> None:
    with pytest.raises(Unauthenticated, match="invisible"):
        await identity(JwtIssuer(settings_of(another)), another.token(sub=subject))


async def test_no_local_principal_can_be_called_as_one_of_the_issuer(
    team: Team,
) -> None:
    with pytest.raises(InvalidInput, match="://"):
        await team.token("carla <https://login.example.com>", "payments:writer")
    with pytest.raises(InvalidInput, match="can be seen"):
        await team.token("car\u202ela", "payments:writer")
    with pytest.raises(ValueError, match="://"):
        Settings(author="carla <https://login.example.com>")


async def test_clocks_may_differ_by_half_a_minute_and_no_more(
    another: Provider,
) -> None:
    issuer = JwtIssuer(settings_of(another))
    now = datetime.now(UTC)

    assert await identity(issuer, another.token(exp=now - timedelta(seconds=5)))
    assert await identity(issuer, another.token(nbf=now + timedelta(seconds=25)))
    with pytest.raises(Unauthenticated, match="expired"):
        await identity(issuer, another.token(exp=now - timedelta(seconds=31)))
    with pytest.raises(Unauthenticated, match="not valid"):
        await identity(issuer, another.token(nbf=now + timedelta(minutes=5)))
