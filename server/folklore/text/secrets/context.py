"""Secrets known by their context.

By name: `password = …`, `"api_key": "…"`, "the token is …". By position: user:password@host, a header, a cookie, the
argument of a command. Each search looks for a literal in the lower-cased text and continues there with a pattern of
bounded length, so that the time is linear for any text. Values are read from the text as written.
"""

# ruff: noqa: E501 - one row per command

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple
from urllib.parse import unquote

from folklore.text.secrets.values import (
    HEXADECIMAL,
    Secret,
    decoded,
    is_generated,
    is_mixed,
    is_password,
    is_placeholder,
    is_token,
    kinds_of_characters,
)

# Literals of the names of secrets, and the kinds of the secrets.
_NAMES = {
    "pass": "password", "pwd": "password", "key": "key", "token": "token", "secret": "secret",
    "credential": "secret", "kennwort": "password", "contraseña": "password", "mot de passe": "password",
    "pw": "password",
}  # fmt: skip
# What is a name of those literals that begin other words too. `pass` alone is a verb, unless it ends an identifier
# (DB_PASS) or is one. "Secret key" is found by its "key".
_WORDS = {
    "pass": re.compile(
        r"pass[_-]?(?:word|wd|wort|phrase|code)|passw(?:or)?d|(?<=[_.-])pass(?=[_-]?\d|\b)"
        r"|(?<![^\W_])pass(?=[\"'\]]*\s{0,3}[:=])"
    ),
    "pw": re.compile(r"(?<![^\W_])pw(?![^\W_])"),
    "secret": re.compile(r"secret(?![_ -]?key\b)"),
}
_QUALIFIER = re.compile(
    r"(?:api|access|auth|authentication|authorization|secret|private|signing|signature|encryption|decryption|account|master"
    r"|service|deploy|app|application|license|licence|storage|subscription|shared|webhook|jwt|session|admin|client"
    r"|consumer|refresh|bearer|bot|security|personal|id|oauth|registry|login|user|cookie|hmac|vault|root)[_ -]?$"
)
_EXPANSION = re.compile(r"[$%]\{?\w*\Z")
_ARGUMENT = re.compile(r"\([\"'][\w.-]*\Z")
_NOT_SECRET = re.compile(
    r"(?:public|publishable|page|next|prev|previous|continuation|cursor|csrf|xsrf|idempotency|sync|resume|cancellation"
    r"|lexer|parser?|end|start|stop|eos|bos|pad|mask|special|first|last|each|per|fencing|lock|correlation|anon|design|no"
    r"|hashed|encrypted|bypass)[_ -]?$"
)
# The end of a name, the separator, and words before the value. The only suffixes of a name are those listed:
# `max_tokens`, `password_length` and `secretName` are names of other things.
_SEPARATOR = re.compile(
    r"""(?x)
    (?>s?(?:[_-]?(?:\d{1,3}|base|value|prod|production|dev|staging|stage|live|test|default|primary|secondary|root|admin
      |old|new|str|string|raw|plain|text))?(?![a-z0-9_]))
    (?:\\?[\"'`]|\]|\)|\*|</\w+>)*+
    (?: (?P<typed>[ \t]*:[ \t]*[a-z_][\w\[\]., |<>?]{0,40}[ \t]*=[ \t]*(?!=))      # password: str = "…"
      | (?P<set>[ \t]*(?:=>|:=|\?=|={1,3}|%3d)[ \t]*)
      | (?P<call>\([ \t]*(?=[\"'])|(?<=[\"'])[ \t]+value[ \t]*=[ \t]*)
      | (?P<pair>(?<=[\"'])[ \t]*,[ \t]*(?=[\"']))
      | (?P<tag>>(?=[^<>\s]{4,200}</))
      | (?P<cell>[ \t]+\|[ \t]+(?=[^|\n]{4,200}\|))
      | (?P<colon>[ \t]*(?::(?!:)|%3a|->|→|–|—)\**[ \t]*\s?[ \t]*)
      | (?P<prose>
          (?:[ \t]+(?:for|of|on|in|to|at|from|by|with|as)[ \t]++[^\n.;:!?=]{1,60}?)?
          [ \t]+(?:is|was|are|be|became|equals|reads|to|set[ \t]+to|changed[ \t]+to|ist|lautet|es|est)
          (?:[ \t]+(?:now|currently|still|simply|just|(?:re)?set[ \t]+to|(?:changed|rotated|updated)[ \t]+to|called))?
          [ \t]*:?[ \t]+ )
      | (?P<purpose>[ \t]+(?:for|of|on)[ \t]+[\w .'-]{1,40}?:[ \t]*)
      | (?P<next>[ \t]+(?:of[ \t]+)?)
    )
    (?:(?:bearer|basic|token|apikey|literally|exactly|the[ ]string)[ \t]*:?[ \t]+)?
    """
)
_QUOTED = re.compile(
    r"(?:[fbrFBRu@]{1,2})?(\\?[\"'`]|&quot;|“|‘|„)(?P<value>[^\n]{1,400}?)(?:\1|&quot;|”|’|“)"
)
_SHELL = re.compile(r"(?<=[A-Z])=[^\s=>]")  # an assignment such as DB_PASSWORD=…
_LINE_END = re.compile(r"\s*$", re.MULTILINE)
_UNQUOTED = re.compile(r"[^\s\"'`<>]{1,400}")
_SYNTAX = re.compile(r"(?<=.)(?:[;&,|]|\\[nr]|[)\]}](?=$|[.,;:]))")
_TRAILING = ".,;:!?)]}>*_`'\"”’"

_USER = r"[^\s/?#:@\"'`<>%]{0,200}(?:%(?!3a)[0-9a-f]{2}[^\s/?#:@\"'`<>%]{0,200}){0,20}"
_USERINFO = re.compile(rf"(?P<user>{_USER})(?::|%3a)(?P<value>[^\s\"'`<>]{{1,300}})")
_AT_HOST = re.compile(r"(?:@|%40)(?=[\w\[])")
# A name with a dot, but none of RFC 2606, and no number of an address.
_REAL_HOST = re.compile(
    r"(?:@|%40)(?![\w.-]*\b(?:example|test|invalid|localhost)\b)(?:[\w-]+\.)+[a-z]{2,}\b",
    re.IGNORECASE,
)
_PORT = re.compile(r"\d{1,5}(?:[/?#]|$)")
_PATH = re.compile(r"[/?#]")
_URL_SIGNS = ("://", "%3a%2f%2f", ":\\/\\/")
_SCHEMES = ("bearer", "basic")
_AFTER_SCHEME = re.compile(
    r"(?:[ \t]+|%20|\+|:[ \t]*)[\"'`]?(?P<value>[a-z0-9._~+/=%:-]{8,2000})"
)
_HEADERS = tuple(
    re.compile(
        name
        + r"\\?[\"'`]?[ \t]*[:=,][ \t]*\\?[\"'`]?(?:[a-z]{3,10}[ \t]+)?(?P<value>[a-z0-9._~+/=-]{8,2000})"
    )
    for name in (
        "authorization",
        r"x-[a-z-]{0,30}(?:key|token|secret|auth)",
        "-token",
        "subscription-key",
    )
)
_COOKIE = re.compile(
    r"cookie\\?[\"'`]?[ \t]*[:=][ \t]*\\?[\"'`]?[\w.-]{1,60}=(?P<value>[a-z0-9%._~+/=-]{20,2000})"
)
_JWK = re.compile(r"\\?\"d\\?\"\s{0,9}:\s{0,9}\\?\"(?P<value>[A-Za-z0-9_-]{20,})")
_DOCKER_LOGIN = re.compile(
    r"\\?[\"']_?auth\\?[\"']\s{0,9}:\s{0,9}\\?[\"'](?P<value>[A-Za-z0-9+/]{8,500}={0,2})"
)
_MANIFEST_SECTION = re.compile(
    r"^(?P<name>data|stringdata):[ \t]*\r?\n(?P<entries>(?:[ \t]+\S[^\n]*(?:\n|\Z)){1,200})",
    re.MULTILINE,
)
_MANIFEST_ENTRY = re.compile(
    r"^[ \t]+[\w.\"'-]{1,100}:[ \t]*[\"']?(?P<value>[^\s\"']{6,10000})", re.MULTILINE
)
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_SEED_PHRASE = re.compile(
    r"(?:(?:seed|recovery|backup|wallet|secret)[ _-]?phrase|mnemonic)s?\b[^\n.;:=]{0,60}?(?:[:=]|[ ](?:is|was))[ \t]*[\"'`]?"
    r"(?P<words>[a-z]{3,8}(?:[ ][a-z]{3,8}){11,23})(?![ ]?[a-z])"
)
# Words of sentences; none is in the list of words of BIP 39.
_FUNCTION_WORDS = frozenset(
    {
        "the",
        "and",
        "for",
        "from",
        "with",
        "was",
        "are",
        "not",
        "has",
        "have",
        "which",
        "must",
        "you",
    }
)
# Commands and statements: literals, a pattern, and whether any password is accepted there as a stated one.
_COMMANDS = (
    ("curl ", r"curl [^\n]{0,200}?(?<= )(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,80}:(?P<value>[^\s\"'@]{4,200})", False),
    ("http ,https ,xh ", r"(?:https?|xh) [^\n]{0,80}?(?<= )(?:-a|--auth)[ =][\"']?[^\s:\"']{1,80}:(?P<value>[^\s\"'@]{4,200})", False),
    ("mysql,mariadb", r"(?:mysql(?:dump|admin)?|mariadb)\b[^\n]{0,200}? -p(?P<value>[^\s\"'-][^\s\"']{3,200})", False),
    ("sshpass", r"sshpass -p ?[\"']?(?P<value>[^\s\"']{4,200})", True),
    (" -p, -a, -w", r"(?:docker|podman|helm|oc|redis-cli|smbclient|mongo\w*|ldapsearch|sqlcmd|unzip|7z)\b[^\n]{0,200}? -[paw][ ]?[\"']?(?P<value>[^\s\"']{6,200})", False),
    ("--", r"--[a-z-]{0,20}(?:pass(?:word|wd|phrase)?|pwd|token|secret|(?:api|access|secret)-?key)[ ]+[\"']?(?P<value>[^\s\"'-][^\s\"']{5,200})", False),
    ("machine ,login ", r"login[ ]+\S{1,100}\s+password[ ]+(?P<value>\S{4,200})", False),
    ("identified", r"identified[ ]+(?:with[ ]+\S{1,40}[ ]+)?by[ ]+(?:password[ ]+)?['\"](?P<value>[^'\"\n]{4,200})['\"]", False),
    ("password '", r"(?:user|role)[ ][^\n]{1,100}? password '(?P<value>[^'\n]{4,200})'", True),
    ("requirepass,masterauth", r"(?:requirepass|masterauth)[ ]+[\"']?(?P<value>[^\s\"']{4,200})", True),
    (":5432:,:*:,:6432:,:5433:", r"^[\w.*-]{1,100}:(?:\d{2,5}|\*):[\w*-]{1,60}:[\w*-]{1,60}:(?P<value>[^\s:]{4,100})$", True),
    ("login,credential,creds,log in", r"(?:log ?in|credentials?|creds)(?: with| are| is| as)?(?:[ ]*[:=])?[ ]++[\"'`]?[\w.@-]{2,60}[\"'`]?(?:[ ]?/[ ]|:|[ ][|][ ]|[ ]and[ ])[\"'`]?(?P<value>[^\s\"'`]{6,100})", False),
)  # fmt: skip
_IS_THE_PASSWORD = re.compile(
    r"[\"'`)*]{0,3}[ ](?:is|was)[ ](?:(?:the|our|my|your|their|its|a)[ ])?(?:[\w-]{1,20}[ ]){0,3}?"
    r"(?:password|passphrase|api key|access token|auth token|client secret|secret key)\b"
)
_LAST_WORD = re.compile(r"[^\s\"'`(*]{7,200}$")


def find_by_context(text: str, lower: str) -> Iterator[Secret]:
    """Yield every secret that its context announces; `lower` is the text in lower case."""
    for literal in _NAMES:
        start = lower.find(literal)
        while start >= 0:
            yield from _named(text, lower, literal, start)
            start = lower.find(literal, start + len(literal))
    for literals, search in _SEARCHES:
        for literal in literals:
            if literal in lower:
                yield from search(text, lower)
                break


# By name


class _Name(NamedTuple):
    """The name of a secret. `qualified`: with a word such as "API" or "client" before it."""

    kind: str
    end: int
    qualified: bool


class _Value(NamedTuple):
    """The value after a name. `form` is the separator, a group of _SEPARATOR; `stated`: a literal by its form."""

    text: str
    start: int
    end: int
    form: str | None
    stated: bool


def _named(text: str, lower: str, literal: str, start: int) -> Iterator[Secret]:
    before = lower[max(0, start - 40) : start]
    name = _name(lower, literal, start, before)
    value = _value(text, lower, name.end) if name else None
    if name is None or value is None:
        return
    if value.form == "pair" and not _ARGUMENT.search(before):
        return
    is_variable = value.form not in ("set", "prose") and _EXPANSION.search(before)
    is_result_of_test = text.startswith("PASS:", start)
    if is_variable or is_result_of_test:
        return
    if _is_secret(name, value):
        yield Secret(name.kind, value.start, value.end)


def _name(lower: str, literal: str, start: int, before: str) -> _Name | None:
    """Return the name of a secret at the position of its literal, None for other names and words."""
    word = _WORDS.get(literal, re.compile(literal)).match(lower, start)
    kind = _NAMES[literal]
    qualified = bool(_QUALIFIER.search(before))
    if word is None or (kind == "key" and not qualified):  # the key of a table
        return None
    if kind != "password" and _NOT_SECRET.search(before):
        return None
    return _Name(kind, word.end(), qualified)


def _value(text: str, lower: str, start: int) -> _Value | None:
    separator = _SEPARATOR.match(lower, start)
    if separator is None:
        return None
    form = separator.lastgroup
    begin = separator.end()
    assigned = form in ("set", "typed", "colon", "call")
    if quoted := _QUOTED.match(text, begin):
        return _Value(quoted["value"], *quoted.span("value"), form, assigned)
    unquoted = _UNQUOTED.match(text, begin)
    if unquoted is None or "..." in unquoted.group():
        return None
    value = _cut(unquoted.group(), form)
    end = begin + len(value)
    is_shell = _SHELL.match(text, start) and _LINE_END.match(text, end)
    return _Value(value, begin, end, form, form == "tag" or bool(is_shell))


def _cut(value: str, form: str | None) -> str:
    """Cut an unquoted value at the syntax around it: `;` of a connection string, `&` of a URL's query."""
    if form in ("set", "typed", "colon", "tag"):
        value = _SYNTAX.split(value)[0]
    return value.rstrip(".:" if form in ("set", "typed") else _TRAILING)


def _is_secret(name: _Name, value: _Value) -> bool:
    if name.kind == "password":
        if value.form == "next" and kinds_of_characters(value.text) < 3:
            return False  # a word of the sentence, not "password qW9!x"
        return is_password(value.text, stated=value.stated)
    is_announced = name.qualified and len(value.text) >= 16
    if value.form in ("purpose", "next") and not is_announced:
        return False
    if value.form == "next" and HEXADECIMAL.match(value.text):
        return False  # the fingerprint of a signing key
    is_stated = value.form == "set" or value.stated
    return is_token(value.text, stated=is_stated, qualified=name.qualified)


# By position


def _urls(text: str, lower: str) -> Iterator[Secret]:
    for sign in _URL_SIGNS:
        start = lower.find(sign)
        while start >= 0:
            start += len(sign)
            userinfo = _USERINFO.match(lower, start)
            if userinfo and not _PORT.match(userinfo["value"]):
                yield from _password_of(text, userinfo)
            start = lower.find(sign, start)


def _password_of(text: str, userinfo: re.Match[str]) -> Iterator[Secret]:
    length = _password_length(userinfo["value"])
    if length is None:
        return
    start = userinfo.start("value")
    end = start + length
    password = unquote(text[start:end])
    user = unquote(userinfo["user"])
    if password.lower() == user or is_placeholder(text[start:end]):
        return
    # For a host that could be real, a plain word is a password too.
    could_be_real = _REAL_HOST.match(text, end) is not None
    if is_generated(password) or (could_be_real and is_password(password, stated=True)):
        yield Secret("password in a URL", start, end)


def _password_length(value: str) -> int | None:
    """Return the length of the password with which a text begins, before an @ and a host; None without them."""
    lengths = [at.start() for at in _AT_HOST.finditer(value)]
    if not lengths:
        return None
    # The host follows the last @ before the path; a password may contain an unescaped / or @, a path an @.
    path = _PATH.search(value)
    end = path.start() if path else len(value)
    before_path = [length for length in lengths if length < end]
    return before_path[-1] if before_path else lengths[0]


def _authentication_schemes(text: str, lower: str) -> Iterator[Secret]:
    for scheme in _SCHEMES:
        start = lower.find(scheme)
        while start >= 0:
            start += len(scheme)
            if match := _AFTER_SCHEME.match(lower, start):
                begin, end = match.span("value")
                value = text[begin:end].rstrip(".:")
                is_credential = _is_basic if scheme == "basic" else is_token
                if is_credential(value):
                    yield Secret(f"{scheme} credential", begin, begin + len(value))
            start = lower.find(scheme, start)


def _is_basic(value: str) -> bool:
    user, _, password = (decoded(value) or "").partition(":")
    return user != password and is_password(password, stated=True)


def _headers(text: str, lower: str) -> Iterator[Secret]:
    for pattern in _HEADERS:
        for header in pattern.finditer(lower):
            start, end = header.span("value")
            value = text[start:end].rstrip(".")
            if is_token(value):
                yield Secret("key in a header", start, start + len(value))


def _cookies(text: str, lower: str) -> Iterator[Secret]:
    for cookie in _COOKIE.finditer(lower):
        start, end = cookie.span("value")
        if is_mixed(text[start:end]) and not is_placeholder(text[start:end]):
            yield Secret("session cookie", start, end)


def _commands(
    text: str, lower: str, *, pattern: re.Pattern[str], stated: bool
) -> Iterator[Secret]:
    for command in pattern.finditer(lower):
        start, end = command.span("value")
        value = text[start:end].rstrip("`'\",;).")
        if is_password(value, stated=stated):
            yield Secret("password", start, start + len(value))


def _before_the_name(text: str, lower: str) -> Iterator[Secret]:
    """Yield the values of sentences such as "… is the root password"."""
    for name in _IS_THE_PASSWORD.finditer(lower):
        word = _LAST_WORD.search(text, max(0, name.start() - 200), name.start())
        if word is None:
            continue
        value = word.group()
        start, end = word.span()
        if not name.group().endswith(("word", "phrase")):
            if is_token(value):
                yield Secret("key", start, end)
        elif kinds_of_characters(value) >= 3 and is_password(value, stated=False):
            yield Secret("password", start, end)


def _docker_logins(text: str, _lower: str) -> Iterator[Secret]:
    for login in _DOCKER_LOGIN.finditer(text):
        if _is_basic(login["value"]):
            yield Secret("registry login", *login.span("value"))


def _kubernetes_secrets(text: str, lower: str) -> Iterator[Secret]:
    """Yield the values of manifests of the kind Secret: base64 under `data`, plain text under `stringData`."""
    for section in _MANIFEST_SECTION.finditer(lower):
        for entry in _MANIFEST_ENTRY.finditer(
            text, section.start("entries"), section.end("entries")
        ):
            value = entry["value"]
            plain = value if section["name"] == "stringdata" else decoded(value)
            if plain is None:
                secret = len(value) >= 24 and bool(_BASE64.fullmatch(value))
            else:
                secret = is_password(plain, stated=True)
            if secret or (plain is not None and "PRIVATE KEY" in plain):
                yield Secret("Kubernetes secret", *entry.span("value"))


def _seed_phrases(text: str, lower: str) -> Iterator[Secret]:
    for phrase in _SEED_PHRASE.finditer(lower):
        words = phrase["words"].split()
        if not _FUNCTION_WORDS.intersection(words):
            yield Secret("seed phrase", *phrase.span("words"))


def _json_web_keys(text: str, _lower: str) -> Iterator[Secret]:
    for key in _JWK.finditer(text):
        yield Secret("private key", *key.span("value"))


# Literals, one of which a text must contain, and the search that is made then.
_SEARCHES: tuple[
    tuple[tuple[str, ...], Callable[[str, str], Iterator[Secret]]], ...
] = (
    (_URL_SIGNS, _urls),
    (_SCHEMES, _authentication_schemes),
    (("authorization", "x-", "-token", "subscription-key"), _headers),
    (("cookie",), _cookies),
    *(
        (
            tuple(literals.split(",")),
            partial(
                _commands, pattern=re.compile(pattern, re.MULTILINE), stated=stated
            ),
        )
        for literals, pattern, stated in _COMMANDS
    ),
    ((" is ", " was "), _before_the_name),
    (('"kty', '\\"kty'), _json_web_keys),
    (('auth"', 'auth\\"'), _docker_logins),
    (("kind: secret", "kind: 'secret", 'kind: "secret'), _kubernetes_secrets),
    (("phrase", "mnemonic"), _seed_phrases),
)
