"""Is this what a secret looks like? Judges a value that stands where a password, a key or a token would stand.

A name such as `password` says that a secret may follow; most often a placeholder does, a variable, a call, a word of
the sentence. What is left when those are taken away is refused.
"""

from __future__ import annotations

import re

# Nobody's secret: what documentation writes where a secret belongs.
_PLACEHOLDER = re.compile(
    r"""(?xi)
    ^[<{\[(]{1,2}[^>}\])]*[>}\])]*$ | ^\$[a-z_]\w*$ | ^\$[({] | \$\{[a-z_] | ^%\w+%$ | ^%[(] | ^%[sdrfvq]$ | ^@\w+@$
    | ^![a-z]+$ | ^\#\{ | \.\.\. | … | \*{3} | •{2}
    | ^[x*.\-_#?0]+$ | x{6} | \{\{ | ^\\[nrt"']?$ | ^<
    | ^(?:a|an|the|my|our|your|some|any)[-_ ] | (?:^|[^a-z0-9])your[-_ ]?
    | (?:^|[^a-z0-9])(?:example|placeholder|redacted|replace[-_ ]|change[-_ ]?(?:me|it|this)|dummy|lorem)
    | (?:^|[^a-z0-9])(?:insert|masked|removed|hidden|omitted|todo|tbd|fixme|sample|foobar)(?![a-z0-9]) | example$
    """
)
# What sample code has for a password: such words alone, joined, with a number that nobody had to think of.
_SAMPLE = re.compile(
    r"""(?xi)
    (?:(?:my|your|the|a|some|new|old|test(?:ing)?|secure|hashed|valid|invalid|wrong|correct|strong|plain|raw|user|admin
    |root|db|database|redis|mongo|mysql|postgres(?:ql)?|mock|fake|sample|example|dummy|default)[-_]?)*
    (?:password|passwd|pass|pwd)[-_]?\d{0,3}
    """
)
_KEY_PLACEHOLDER = re.compile(
    r"(?i)^[x*.\-_#?0]{6,}$|[x*.]{8}|\*{3}|\.\.\.|…|<[^>]*>?|\{|\$\{"
    r"|(?:^|[^a-z0-9])(?:your|example|placeholder|redacted|replace|changeme|dummy)(?:$|[^a-z0-9])|EXAMPLE$|EXAMPLEKEY$"
)
# Words that follow "password" or "token" without being one.
_WORDS = frozenset(
    """
    true false null none nil undefined void string str text bytes int integer number bool boolean object any array list
    required optional mandatory missing empty blank unset set unknown invalid valid expired wrong correct incorrect weak
    strong default defaults disabled enabled disable enable prompt input output plain plaintext cleartext encrypted
    hashed hash salted secret secrets password passwords passwd passphrase pwd pass token tokens key keys credential
    credentials user username admin root login guest postgres mysql mariadb redis mongo rabbitmq oracle sqlserver sa
    test tests testing demo local localhost dev development prod production staging changeme change_me hunter
    bearer basic digest oauth oauth2 oidc saml jwt ldap kerberos negotiate ntlm apikey api_key
    bcrypt scrypt argon2 argon2i argon2id argon2d pbkdf2 md5 sha1 sha256 sha512 sha-256 sha-512 hmac aes aes256 aes-256
    rs256 hs256 es256 eddsa ed25519 rsa base64 base64url base32 hex utf8 utf-8 uuid uuid4 uuidv4 uuidv7 ulid nanoid
    env environment vault keychain keyring file stdin stdout path url uri header cookie query body form field
    yes no on off auto manual rotate rotated rotation revoked public private shared internal external readonly
    hidden masked redacted placeholder example sample dummy here there below above
    """.split()  # noqa: SIM905 - a list of words reads better as words
)
_EXPRESSION = re.compile(
    r"""(?x)
    ^[A-Za-z_][\w-]*(?:(?:\.|::|->|\?\.)[A-Za-z_][\w-]*)+\(?\)?;?$     # settings.password, config.api_key
    | ^[A-Za-z_][\w.]*\(                                      # getpass(), os.getenv("X")
    | ^[A-Za-z_][\w.]*\[                                      # os.environ["X"]
    | ^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$                         # OPENAI_API_KEY
    | ^/?(?:[a-z][a-z0-9._-]*/)+[\w.*-]{0,24}$ | ^(?:\.\.?|~)/ | ^[A-Za-z]:\\   # a path
    | ^[\w-]+\.(?:ya?ml|json|txt|pem|key|crt|env|toml|ini|conf|cfg|py|js|ts|go|rs|java|md|sh|sql|gpg|enc|asc|pub)$
    | ://                                                     # an address; what it holds is looked at by itself
    | ^(?:arn|op|vault|secret|secrets|env|file|ref|ssm|sm|awssm|gcpsm|akv|projects)[:/]
    | ^(?:sha(?:1|224|256|384|512)|md5|blake2b?|blake3)[:\-=]                # a digest says so
    | ^\$(?:2[abxy]|argon2\w*|5|6|1|y|7|apr1|pbkdf2[\w-]*|scrypt)\$             # so does a password's hash
    """
)
_NUMBERS = re.compile(
    r"(?i)^[\d.,:/–-]+\+?$|^\d+(?:\.\d+)?(?:%|ms|s|m|h|d|w|k|kb|mb|gb|min|sec|secs|mins|hours?|days?|bits?|bytes?|chars?|x)?$"
    r"|^v?\d+(?:\.\d+)+(?:[-+.]?[a-z]+[\d.]*)?$|^\d{4}-\d{2}-\d{2}(?:[T ].*)?$"
)
_UUID = re.compile(r"(?i)^\{?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\}?$")
_HEX = re.compile(r"^(?:0x)?[0-9a-fA-F]+$")
_RUN = re.compile(r"[A-Za-z0-9+/=]{12,}")
_LETTERS = re.compile(r"^[^\W\d_]+$")
_WORDY = re.compile(r"^[A-Za-z]+(?:[-_./:][A-Za-z]+)*$")
_NAME = re.compile(r"^[A-Za-z]{2,}(?:[-_./:][A-Za-z]*\d{0,4}[a-z]?)+$|^[A-Za-z]{3,}\d{1,2}$")
_TURNS = re.compile(r"(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])")
_CASES = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[a-z])")


def is_placeholder_key(body: str) -> bool:
    """True for what stands in for a key of a known form: `xxxxxxxx`, `…EXAMPLE`, `<your-key>`.

    Only what nobody could take for a key: a key of one repeated letter counts as one.
    """
    return bool(_KEY_PLACEHOLDER.search(body))


def is_mixed(body: str) -> bool:
    """True if a text changes between letters and digits, or between cases, as made-up keys do and words do not."""
    if any(
        _TURNS.search(run) and not re.fullmatch(r"[a-z]+\d{1,4}", run) for run in re.findall("[A-Za-z0-9]{8,}", body)
    ):
        return True
    whole = re.sub("[^A-Za-z0-9]", "", body)
    return len(_TURNS.findall(whole)) >= 4 or (len(whole) >= 16 and len(_CASES.findall(whole)) >= 5)


def is_placeholder(value: str) -> bool:
    """True for what documentation writes where a secret belongs, and for what the program puts there when it runs."""
    bare = value.strip("'\"`")
    return (
        bool(_PLACEHOLDER.search(value) or _EXPRESSION.search(value) or _SAMPLE.fullmatch(bare))
        or bare.lower() in _WORDS
    )


def is_password(value: str, *, stated: bool, quoted: bool) -> bool:
    """True for what somebody could have chosen as a password.

    `stated` values follow an equals sign or stand in quotes, so that a plain word may be one; others are words of a
    sentence until a digit or a sign among their letters says otherwise.
    """
    if len(value) < 4 or is_placeholder(value) or (_NUMBERS.search(value) and not (stated and _long_number(value))):
        return False
    if " " in value or "\t" in value or value[0] in "|([{" or value[-1] == "=":
        return False
    if _LETTERS.match(value):
        return stated and len(value) >= 6 and (value.islower() or (quoted and len(_CASES.findall(value)) >= 2))
    if _WORDY.match(value):  # words joined: a name of something, unless there are as many as in a passphrase
        return stated and len(re.split(r"[-_./:]", value)) >= 4 and "/" not in value and "." not in value
    if not stated:
        return len(value) >= 6 and not _NAME.match(value) and _strong(value)
    return True


def is_token(value: str, *, stated: bool, qualified: bool) -> bool:
    """True for what a machine could have made as a key or a token: long enough, and no name and no number.

    `qualified` names ("API key", "client secret") make secrets of plain hexadecimal and of UUIDs, which are nobody's
    secret under a bare "token".
    """
    if len(value) < 12 or is_placeholder(value) or _NUMBERS.search(value) or " " in value:
        return False
    if _UUID.match(value):
        return qualified
    if _HEX.match(value):
        return (qualified and len(value) >= 16) or (len(value) in (32, 40, 48, 64) and stated)
    if _NAME.match(value) or _WORDY.match(value):
        return len(value) >= 20 and len(_CASES.findall(value)) >= 5
    turns = max((len(_TURNS.findall(run)) for run in _RUN.findall(value)), default=0)
    if turns >= 2:
        return True
    signs = len(set(re.findall(r"[^\w\s.,:/-]", value)))
    return (signs >= 2 and bool(re.search(r"\d", value))) or len(_CASES.findall(value)) >= 5


def kinds_of_characters(value: str) -> int:
    """How many of lower case, upper case, digits and signs a value has."""
    return sum(bool(re.search(kind, value)) for kind in ("[a-z]", "[A-Z]", r"\d", r"[!@#$%^&*+=?~]"))


def _long_number(value: str) -> bool:
    return value.isdigit() and len(value) >= 4


def _strong(value: str) -> bool:
    """A digit among letters, or a sign within a word that no word has there."""
    inner = value.strip(".,;:!?)(*_`'\"")
    letters, digits = bool(re.search(r"[A-Za-z]", inner)), bool(re.search(r"\d", inner))
    signs = bool(re.search(r"[!@#$%^&*+=?~|\\]", inner[1:]))
    return letters and (digits or signs) and not re.fullmatch(r"\d+[A-Za-z]{1,10}|[A-Z]{1,5}-?\d+", inner)
