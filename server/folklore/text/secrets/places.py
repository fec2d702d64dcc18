"""Secrets known by the place they stand in: the address of a server, a header, a cookie, the arguments of a command."""

# ruff: noqa: E501 - a table reads better with a row a line

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from urllib.parse import unquote

from folklore.text.secrets.values import is_mixed, is_password, is_placeholder, is_token, kinds_of_characters

Found = tuple[str, int, int]

_USER = r"[^\s/?#:@\"'`<>%]{0,200}(?:%(?!3a)[0-9a-f]{2}[^\s/?#:@\"'`<>%]{0,200}){0,20}"
_USERINFO = re.compile(rf"(?P<user>{_USER})(?::|%3a)(?P<value>[^\s\"'`<>]{{1,300}})")
_AT_HOST = re.compile(r"(?:@|%40)(?=[\w\[])")
_PORT = re.compile(r"\d{1,5}(?:[/?#]|$)")
_PATH = re.compile(r"[/?#]")
_URL_MARKS = ("://", "%3a%2f%2f", ":\\/\\/")

_AFTER_SCHEME = re.compile(r"(?:[ \t]+|%20|\+|:[ \t]*)[\"'`]?(?P<value>[a-z0-9._~+/=%:-]{8,2000})")
_HEADERS = tuple(
    re.compile(name + r"\\?[\"'`]?[ \t]*[:=,][ \t]*\\?[\"'`]?(?:[a-z]{3,10}[ \t]+)?(?P<value>[a-z0-9._~+/=-]{8,2000})")
    for name in ("authorization", r"x-[a-z-]{0,30}(?:key|token|secret|auth)", "-token", "subscription-key")
)
_COOKIE = re.compile(r"cookie\\?[\"'`]?[ \t]*[:=][ \t]*\\?[\"'`]?[\w.-]{1,60}=(?P<value>[a-z0-9%._~+/=-]{20,2000})")

# A word, and what a command or a statement that begins with it may hold; `sure` ones take any password.
_COMMANDS: tuple[tuple[tuple[str, ...], re.Pattern[str], bool], ...] = tuple(
    (tuple(hints.split(",")), re.compile(pattern, re.MULTILINE), sure)
    for hints, pattern, sure in (
        ("curl ", r"curl [^\n]{0,200}?(?<= )(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,80}:(?P<value>[^\s\"'@]{4,200})", True),
        ("http ,https ,xh ", r"(?:https?|xh) [^\n]{0,80}?(?<= )(?:-a|--auth)[ =][\"']?[^\s:\"']{1,80}:(?P<value>[^\s\"'@]{4,200})", True),
        ("mysql,mariadb", r"(?:mysql(?:dump|admin)?|mariadb)\b[^\n]{0,200}? -p(?P<value>[^\s\"'-][^\s\"']{3,200})", True),
        ("sshpass", r"sshpass -p ?[\"']?(?P<value>[^\s\"']{4,200})", True),
        (" -p, -a, -w", r"(?:docker|podman|helm|oc|redis-cli|smbclient|mongo\w*|ldapsearch|sqlcmd|unzip|7z)\b[^\n]{0,200}? -[paw][ ]?[\"']?(?P<value>[^\s\"']{6,200})", False),
        ("--", r"--[a-z-]{0,20}(?:pass(?:word|wd|phrase)?|pwd|token|secret|(?:api|access|secret)-?key)[ ]+[\"']?(?P<value>[^\s\"'-][^\s\"']{5,200})", False),
        ("machine ,login ", r"login[ ]+\S{1,100}\s+password[ ]+(?P<value>\S{4,200})", True),
        ("identified", r"identified[ ]+(?:with[ ]+\S{1,40}[ ]+)?by[ ]+(?:password[ ]+)?['\"](?P<value>[^'\"\n]{4,200})['\"]", True),
        ("password '", r"password '(?P<value>[^'\n]{4,200})'", True),
        ("requirepass,masterauth", r"(?:requirepass|masterauth)[ ]+[\"']?(?P<value>[^\s\"']{4,200})", True),
        (":5432:,:*:,:6432:,:5433:", r"^[\w.*-]{1,100}:(?:\d{2,5}|\*):[\w*-]{1,60}:[\w*-]{1,60}:(?P<value>[^\s:]{4,100})$", True),
        (
            "login,credential,creds,log in",
            r"(?:log ?in|credentials?|creds)(?: with| are| is| as)?[ ]*[:=]?[ ]+[\"'`]?[\w.@-]{2,60}[\"'`]?(?:[ ]?/[ ]|:|[ ][|][ ]|[ ]and[ ])[\"'`]?(?P<value>[^\s\"'`]{6,100})",
            False,
        ),
    )
)  # fmt: skip
_REVERSED = re.compile(
    r"[\"'`)*]{0,3}[ ](?:is|was)[ ](?:(?:the|our|my|your|their|its|a)[ ])?(?:[\w-]{1,20}[ ]){0,3}?"
    r"(?:password|passphrase|api key|access token|auth token|client secret|secret key)\b"
)
_LAST_WORD = re.compile(r"[^\s\"'`(*]{7,200}$")
_JWK = re.compile(r"\\?\"d\\?\"\s{0,9}:\s{0,9}\\?\"(?P<value>[A-Za-z0-9_-]{20,})")


def find_in_places(text: str, lower: str) -> Iterator[Found]:
    """Kind, begin and end of every secret that its place gives away; `lower` is the text in lower case."""
    for mark in _URL_MARKS:
        if mark in lower:
            yield from _urls(text, lower, mark)
    for scheme in ("bearer", "basic", "digest"):
        if scheme in lower:
            yield from _schemes(text, lower, scheme)
    if "authorization" in lower or "x-" in lower or "-token" in lower or "subscription-key" in lower:
        yield from _headers(text, lower)
    if "cookie" in lower:
        for cookie in _COOKIE.finditer(lower):
            value = text[slice(*cookie.span("value"))]
            if is_mixed(value) and not is_placeholder(value):
                yield "session cookie", *cookie.span("value")
    for hints, pattern, sure in _COMMANDS:
        if any(hint in lower for hint in hints):
            yield from _command(text, lower, pattern, sure=sure)
    if " is " in lower or " was " in lower:
        yield from _reversed(text, lower)
    if '"kty' in lower or '\\"kty' in lower:
        for key in _JWK.finditer(text):
            yield "private key", *key.span("value")


def _urls(text: str, lower: str, mark: str) -> Iterator[Found]:
    start = lower.find(mark)
    while start >= 0:
        start += len(mark)
        info = _USERINFO.match(lower, start)
        if info is not None and not _PORT.match(info["value"]):
            yield from _password_of(text, info)
        start = lower.find(mark, start)


def _password_of(text: str, info: re.Match[str]) -> Iterator[Found]:
    ats = [at.start() for at in _AT_HOST.finditer(info["value"])]
    if not ats:
        return
    path = _PATH.search(info["value"])
    # The host follows the last @ before the path; a password may hold a bare / or @, a path an @.
    inside = [at for at in ats if path is None or at < path.start()]
    begin = info.start("value")
    end = begin + (inside[-1] if inside else ats[0])
    value, user = unquote(text[begin:end]), unquote(info["user"])
    if len(value) >= 3 and value.lower() != user and not is_placeholder(text[begin:end]):
        yield "password in a URL", begin, end


def _schemes(text: str, lower: str, scheme: str) -> Iterator[Found]:
    start = lower.find(scheme)
    while start >= 0:
        start += len(scheme)
        after = _AFTER_SCHEME.match(lower, start)
        if after is not None:
            begin, end = after.span("value")
            value = text[begin:end].rstrip(".,:")
            if _holds_a_pair(value) if scheme == "basic" else is_token(value, stated=True, qualified=True):
                yield f"{scheme} credential", begin, begin + len(value)
        start = lower.find(scheme, start)


def _holds_a_pair(value: str) -> bool:
    try:
        pair = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return False
    user, colon, password = pair.partition(":")
    return bool(colon) and pair.isprintable() and bool(password) and not is_placeholder(password) and user != password


def _headers(text: str, lower: str) -> Iterator[Found]:
    for pattern in _HEADERS:
        for header in pattern.finditer(lower):
            begin, end = header.span("value")
            value = text[begin:end].rstrip(".,")
            if is_token(value, stated=True, qualified=True) or _holds_a_pair(value):
                yield "key in a header", begin, begin + len(value)


def _command(text: str, lower: str, pattern: re.Pattern[str], *, sure: bool) -> Iterator[Found]:
    for command in pattern.finditer(lower):
        begin, end = command.span("value")
        value = text[begin:end].rstrip("`'\",;).")
        if is_password(value, stated=sure, quoted=False) and (sure or kinds_of_characters(value) >= 2):
            yield "password", begin, begin + len(value)


def _reversed(text: str, lower: str) -> Iterator[Found]:
    """ "… is the password": what stands before it."""
    for said in _REVERSED.finditer(lower):
        word = _LAST_WORD.search(text, max(0, said.start() - 200), said.start())
        if word is None:
            continue
        value = word.group()
        password = said.group().endswith(("word", "phrase"))
        strong = kinds_of_characters(value) >= 3 and is_password(value, stated=False, quoted=False)
        if strong if password else is_token(value, stated=False, qualified=True):
            yield "password" if password else "key", *word.span()
