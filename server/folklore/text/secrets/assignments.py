"""Secrets known by what stands before them: `password = …`, `"api_key": "…"`, "the token is …", user:password@host.

Each finder looks for a literal word in the lower-cased text and then reads on from there with a pattern of bounded
reach, so that the time taken is linear in the text, whatever the text. Values are read from the text as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from folklore.text.secrets.places import find_in_places
from folklore.text.secrets.values import is_password, is_token, kinds_of_characters

Found = tuple[str, int, int]

_CORES = (
    "pass",
    "pwd",
    "pword",
    "key",
    "token",
    "secret",
    "credential",
    "kennwort",
    "contraseña",
    "mot de passe",
    "pw",
)
_PASSWORDS = frozenset({"pass", "pwd", "pword", "kennwort", "contraseña", "mot de passe", "pw"})
# How a word for a password goes on; `pass` and `pw` alone are words only if nothing touches them.
_PASS_WORD = re.compile(r"pass[_-]?(?:word|wd|wort|phrase|code)|passw(?:or)?d|pass(?=[_-]?\d|s?\b)")
_QUALIFIER = re.compile(
    r"(?:api|access|auth|authentication|authorization|secret|private|signing|signature|encryption|decryption|account|master"
    r"|service|deploy|app|application|license|licence|storage|subscription|shared|webhook|jwt|session|admin|client"
    r"|consumer|refresh|bearer|bot|security|personal|id|oauth|registry|login|user|cookie|hmac|vault|root)[_ -]?$"
)
_QUALIFYING = re.compile(r"[_ -]?key\b")  # "secret key": the key is what is secret
# `max_tokens`, `password_length`, `secretName` are names of something else: after the word only these may stand.
_TAIL = re.compile(
    r"s?(?:[_-]?(?:\d{1,3}|base|value|prod|production|dev|staging|stage|live|test|default|primary|secondary|root|admin"
    r"|old|new|str|string|raw|plain|text))?(?![a-z0-9_])"
)
_NOT_SECRET = re.compile(
    r"(?:public|publishable|page|next|prev|previous|continuation|cursor|csrf|xsrf|idempotency|sync|resume|cancellation"
    r"|lexer|parser?|end|start|stop|eos|bos|pad|mask|special|first|last|each|per|fencing|lock|correlation|anon|design|no"
    r"|hashed|encrypted|bypass)[_ -]?$"
)
_SEPARATOR = re.compile(
    r"""(?x)
    (?:\\?[\"'`]|\]|\)|\*{1,2}|</\w+>)*
    (?: (?P<typed>[ \t]*:[ \t]*[a-z_][\w\[\]., |<>?]{0,40}[ \t]*=[ \t]*(?!=))      # password: str = "…"
      | (?P<set>[ \t]*(?:=>|:=|\?=|={1,3}|%3d)[ \t]*)
      | (?P<call>\([ \t]*(?=[\"'`])|(?<=[\"'`])[ \t]*,[ \t]*(?=[\"'`])|(?<=[\"'])[ \t]+value[ \t]*=[ \t]*)
      | (?P<tag>>(?=[^<>\s]{4,200}</)|[ \t]+\|[ \t]+)
      | (?P<colon>[ \t]*(?::|%3a|->|→|–|—)\**[ \t]*\s?[ \t]*)
      | (?P<prose>
          (?:[ \t]+(?:for|of|on|in|to|at|from|by|with|as)[ \t]+[^\n.;:!?]{1,60}?)?
          [ \t]+(?:is|was|are|be|became|equals|reads|set[ \t]+to|changed[ \t]+to|ist|lautet|es|est)
          (?:[ \t]+(?:now|currently|still|simply|just|(?:re)?set[ \t]+to|(?:changed|rotated|updated)[ \t]+to|called))?
          [ \t]*:?[ \t]+ )
      | (?P<purpose>[ \t]+(?:for|of|on)[ \t]+[\w .'-]{1,40}?:[ \t]*)
      | (?P<next>[ \t]+(?:of[ \t]+)?)
    )
    """
)
_QUOTED = re.compile(r"(?:[fbrFBRu@]{1,2})?(\\?[\"'`]|&quot;|“|‘|„)(?P<value>[^\n]{1,400}?)(?:\1|&quot;|”|’|“)")
_PLAIN = re.compile(r"[^\s\"'`<>]{1,400}")
_LEAD = re.compile(r"(?i)(?:(?:bearer|basic|token|apikey|literally|exactly|the string)[ \t]*:?[ \t]+)?")
_TRAILING = ".,;:!?)]}>*_`'\"”’"


def find_by_words(text: str, lower: str) -> Iterator[Found]:
    """Kind, begin and end of every secret that a word or a place gives away; `lower` is the text in lower case."""
    for core in _CORES:
        start = lower.find(core)
        while start >= 0:
            yield from _named(text, lower, core, start)
            start = lower.find(core, start + len(core))
    yield from find_in_places(text, lower)


def _named(text: str, lower: str, core: str, start: int) -> Iterator[Found]:
    """The secret that a name announces, if this is such a name and something secret follows it."""
    end = start + len(core)
    before = lower[max(0, start - 20) : start]
    password = core in _PASSWORDS
    if core == "pass":
        word = _PASS_WORD.match(lower, start)
        if word is None or (len(word.group()) == 4 and before[-1:].isalnum()):
            return
        end = word.end()
    elif core == "pw" and (before[-1:].isalnum() or lower[end : end + 1].isalnum()):
        return
    qualified = bool(_QUALIFIER.search(before))
    if (core == "key" and not qualified) or (core == "secret" and _QUALIFYING.match(lower, end)):
        return  # a key of a table, or a secret key, which is met at its "key"
    if not password and _NOT_SECRET.search(before):
        return
    tail = _TAIL.match(lower, end)
    separator = None if tail is None else _SEPARATOR.match(lower, tail.end())
    if separator is None:
        return
    lead = _LEAD.match(text, separator.end())
    at = separator.end() if lead is None else lead.end()
    quoted = _QUOTED.match(text, at)
    if quoted is not None:
        first, last = quoted.span("value")
    elif (plain := _PLAIN.match(text, at)) is not None:
        first, last = at, at + len(_cut(plain.group(), separator.lastgroup))
    else:
        return
    value, form = text[first:last], separator.lastgroup
    stated = form in ("set", "typed", "tag") or (quoted is not None and form == "colon")
    if password:
        # "password hunter2!" in passing: only what no sentence would say there
        passing = form == "next" and kinds_of_characters(value) < 3
        if not passing and is_password(value, stated=stated, quoted=quoted is not None):
            yield "password", first, last
    elif (form not in ("purpose", "next") or (qualified and len(value) >= 16)) and is_token(
        value, stated=stated, qualified=qualified
    ):
        yield core if core != "credential" else "secret", first, last


def _cut(value: str, form: str | None) -> str:
    """A value without quotes ends where its surroundings go on: `;` of a connection string, `&` of a query."""
    if form in ("set", "typed"):
        value = re.split(r"[;&,|]|\\[nr]|(?<=.)[)\]}](?=$|[.,;:])", value, maxsplit=1)[0] or value
        return value.rstrip(",.:`'\"")
    if form in ("colon", "tag"):
        value = re.split(r"(?<=.)(?:[;&,|]|\\[nr])", value, maxsplit=1)[0]
    return value.rstrip(_TRAILING)
