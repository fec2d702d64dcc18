"""Fake keys with the forms of real ones, generated at run time, so that scanners find none in this repository."""

# ruff: noqa: E501 - a table reads better with a row a line

import base64
import json
import random
import string
from collections.abc import Callable

ALNUM = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"
URLSAFE = ALNUM + "-_"
BASE64 = ALNUM + "+/"

Maker = Callable[[random.Random], str]


def _of(chance: random.Random, alphabet: str, length: int) -> str:
    """Return random text with a letter and a digit among its first characters, like nearly every real key."""
    text = [chance.choice(alphabet) for _ in range(length)]
    letters = [char for char in alphabet if char.isalpha()]
    digits = [char for char in alphabet if char.isdigit()]
    if letters and digits and length >= 8:
        text[1], text[3], text[5] = (
            chance.choice(letters),
            chance.choice(digits),
            chance.choice(letters),
        )
    return "".join(text)


def _prefixed(prefix: str, alphabet: str, length: int, after: str = "") -> Maker:
    # Joined here, so that this file does not have the whole prefix, which scanners look for.
    return lambda chance: (
        prefix.replace("|", "") + _of(chance, alphabet, length) + after
    )


def _jwt(chance: random.Random) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    claims = {"sub": _of(chance, HEX, 12), "exp": chance.randrange(2**31)}
    return ".".join(
        [part({"alg": "HS256", "typ": "JWT"}), part(claims), _of(chance, URLSAFE, 43)]
    )


def _pem(kind: str) -> Maker:
    def make(chance: random.Random) -> str:
        lines = "\n".join(
            _of(chance, BASE64, 64) for _ in range(chance.randrange(3, 26))
        )
        dashes = "-" * 5
        return f"{dashes}BEGIN {kind}{dashes}\n{lines}\n{_of(chance, BASE64, 40)}==\n{dashes}END {kind}{dashes}"

    return make


def _password(chance: random.Random) -> str:
    # No "*": three of them in a row mask a password.
    return (
        chance.choice(["Tr0ub", "hunter", "S3cr3t", "Winter", "qW9"])
        + _of(chance, ALNUM + "!$", 9)
        + "7z"
    )


def _url(scheme: str, user: str) -> Maker:
    return lambda chance: (
        f"{scheme}://{user}:{_password(chance)}@db{chance.randrange(9)}.internal.acme.io:5432/app"
    )


def _encoded_url(chance: random.Random) -> str:
    return f"postgresql://svc%40acme:p%40ss%2F{_of(chance, ALNUM, 8)}%21@10.0.0.7/app"


def _basic(chance: random.Random) -> str:
    return (
        "Authorization: Basic "
        + base64.b64encode(f"svc:{_password(chance)}".encode()).decode()
    )


def _assigned(form: str) -> Maker:
    return lambda chance: form.replace("?", _password(chance))


def _keyed(form: str, alphabet: str, length: int) -> Maker:
    return lambda chance: form.replace("?", _of(chance, alphabet, length))


# Generators by kind. Lengths and alphabets are those of the issuers.
MAKERS: dict[str, list[Maker]] = {
    "private key": [
        *map(_pem, ["RSA PRIVATE KEY", "PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY"]),
        _pem("ENCRYPTED PRIVATE KEY"),
        _pem("PGP PRIVATE KEY BLOCK"),
        lambda chance: json.dumps({"type": "service_account", "private_key": _pem("PRIVATE KEY")(chance)}),
    ],
    "aws": [
        _prefixed("AK|IA", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16),
        _prefixed("AS|IA", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16),
        _keyed("aws_secret_access_key = ?", BASE64, 40),
        _keyed('"SecretAccessKey": "?"', BASE64, 40),
        _keyed("export AWS_SESSION_TOKEN=?", BASE64, 300),
    ],
    "gcp": [
        _prefixed("AI|za", URLSAFE, 35),
        _prefixed("GOC|SPX-", URLSAFE, 28),
        _prefixed("ya|29.", URLSAFE, 120),
        _prefixed("1/|/0", URLSAFE, 60),
    ],
    "azure": [
        _keyed("DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=?==;EndpointSuffix=core.windows.net", BASE64, 86),
        lambda chance: _of(chance, ALNUM, 3) + "8Q~" + _of(chance, URLSAFE, 34),
        _keyed("Endpoint=sb://acme.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=?=", BASE64, 43),
        _keyed("https://acme.blob.core.windows.net/c?sv=2022-11-02&se=2030-01-01&sig=?%3D".replace("c?", "c!"), ALNUM, 43),
    ],
    "github": [
        *[_prefixed(f"gh{letter}|_", ALNUM, 36) for letter in "pousr"],
        lambda chance: "github" + "_pat_" + _of(chance, ALNUM, 22) + "_" + _of(chance, ALNUM, 59),
    ],
    "gitlab": [_prefixed("gl|pat-", URLSAFE, 20), _prefixed("gl|dt-", URLSAFE, 20), _prefixed("gl|rt-", URLSAFE, 20)],
    "slack": [
        lambda chance: f"xo{'x'}b-{_of(chance, '123456789', 12)}-{_of(chance, '123456789', 12)}-{_of(chance, ALNUM, 24)}",
        lambda chance: f"xo{'x'}p-{_of(chance, '123456789', 12)}-{_of(chance, '123456789', 12)}-{_of(chance, HEX, 32)}",
        lambda chance: f"xa{'p'}p-1-A{_of(chance, UPPER, 10)}-{_of(chance, '123456789', 13)}-{_of(chance, HEX, 64)}",
        lambda chance: f"https://hooks.sl{'a'}ck.com/services/T{_of(chance, UPPER, 8)}/B{_of(chance, UPPER, 10)}/{_of(chance, ALNUM, 24)}",
    ],
    "stripe": [
        _prefixed("sk_|live_", ALNUM, 24),
        _prefixed("rk_|live_", ALNUM, 99),
        _prefixed("sk_|test_", ALNUM, 24),
        _prefixed("whs|ec_", ALNUM, 32),
    ],
    "npm": [_prefixed("npm|_", ALNUM, 36), _keyed("//registry.npmjs.org/:_auth" + "Token=?", HEX, 36)],
    "pypi": [_prefixed("py|pi-AgEIcHlwaS5vcmc", URLSAFE, 150)],
    "openai": [
        lambda chance: "s" + "k-" + _of(chance, ALNUM, 20) + "T3Blbk" + "FJ" + _of(chance, ALNUM, 20),
        lambda chance: "s" + "k-proj-" + _of(chance, URLSAFE, 74) + "T3Blbk" + "FJ" + _of(chance, URLSAFE, 74),
        _prefixed("s|k-svcacct-", URLSAFE, 60),
    ],
    "anthropic": [_prefixed("sk-|ant-api03-", URLSAFE, 93, "AA"), _prefixed("sk-|ant-admin01-", URLSAFE, 93, "AA")],
    "models": [
        _prefixed("hf|_", string.ascii_letters, 34),
        _prefixed("r8|_", ALNUM, 37),
        _prefixed("gs|k_", ALNUM, 52),
        _prefixed("sk-|or-v1-", HEX, 64),
    ],
    "twilio": [_prefixed("S|K", HEX, 32), _keyed("The Twilio auth token is ?", HEX, 32)],
    "sendgrid": [lambda chance: "S" + "G." + _of(chance, URLSAFE, 22) + "." + _of(chance, URLSAFE, 43)],
    "mail": [_prefixed("ke|y-", HEX, 32), _prefixed("xkey|sib-", HEX, 64, "-a1B2c3D4e5F6g7H8"), _prefixed("", HEX, 32, "-us14")],
    "jwt": [_jwt],
    "url": [
        *[_url(scheme, "svc") for scheme in ("postgres", "mysql", "mongodb+srv", "amqp", "https", "ftp")],
        _url("redis", ""),
        _encoded_url,
        lambda chance: f"jdbc:postgresql://db/app?user=svc&password={_password(chance)}",
    ],
    "header": [
        _keyed("Authorization: Bearer ?", URLSAFE, 40),
        _keyed("curl -H 'Authorization: Bearer ?' https://api.acme.io", HEX, 40),
        _basic,
        _keyed("X-Api-Key: ?", ALNUM, 32),
        lambda chance: f"curl -u admin:{_password(chance)} https://ci.acme.io",
    ],
    "password": [
        *map(
            _assigned,
            [
                "password = ?", "DB_PASSWORD=?", 'password="?"', "password: ?", '{"password": "?"}', "Pwd=?;Server=db",
                "the root password is ?", "password for the staging database: ?", "passwd => '?'", "dbPassword := \"?\"",
                "PGPASSWORD=? psql -h db", "mysql -u root -p?", "<password>?</password>", "--password ?",
                "machine ci.acme.io login bot password ?", "ALTER USER app IDENTIFIED BY '?'", "password: str = '?'",
                "host=db user=app password=? dbname=x", "sshpass -p '?' ssh root@box", "The password was changed to ?.",
                "spring.datasource.password=?", "| password | ? |", "**Password:** `?`",
            ],
        ),
    ],
    "named key": [
        _keyed("api_key = '?'", ALNUM, 32),
        _keyed("DATADOG_API_KEY=?", HEX, 32),
        _keyed("client_secret: ?", URLSAFE, 40),
        _keyed('"accessToken": "?"', ALNUM, 48),
        _keyed("SECRET_KEY = 'django-insecure-?'", ALNUM + "!@#$%^&(-_=+)", 50),
        _keyed("our API key for the weather service is ?", HEX, 40),
    ],
    "operations": [
        _prefixed("hv|s.", ALNUM, 24), _prefixed("dop|_v1_", HEX, 64), _prefixed("gl|sa_", ALNUM, 32, "_a1b2c3d4"),
        _prefixed("sh|pat_", HEX, 32), _prefixed("NR|AK-", UPPER, 27), _prefixed("lin|_api_", ALNUM, 40),
        _prefixed("AGE-SEC|RET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58), _prefixed("dckr|_pat_", URLSAFE, 27),
        _prefixed("tskey|-auth-", ALNUM, 17, "-" + "k3X9" * 8), _prefixed("dapi|", HEX, 32), _prefixed("fk|_", URLSAFE, 43),
        lambda chance: f"{_of(chance, '123456789', 10)}:A" + "A" + _of(chance, URLSAFE, 33),
    ],
}  # fmt: skip


def keys_of(seed: int) -> list[tuple[str, str]]:
    """Return one key of every generator with its kind."""
    chance = random.Random(seed)
    return [(kind, make(chance)) for kind, makers in MAKERS.items() for make in makers]
