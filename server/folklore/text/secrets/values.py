"""Classification of values at the position of a password, a key or a token.

After a name such as `password` most texts have a placeholder, a variable, a call or a word of the sentence. Any other
value counts as a secret.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Secret(NamedTuple):
    """A secret in a text: its kind in words, and its half-open range."""

    kind: str
    start: int
    end: int


# Placeholders of documentation.
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
# Passwords of sample code: such words joined, with a short number.
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
# Words that often follow "password" or "token".
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
    | ://                                                     # a URL; a password in it is found by its position
    | ^(?:arn|op|vault|secret|secrets|env|file|ref|ssm|sm|awssm|gcpsm|akv|projects)[:/]
    | ^(?:sha(?:1|224|256|384|512)|md5|blake2b?|blake3)[:\-=]                # a digest
    | ^\$(?:2[abxy]|argon2\w*|5|6|1|y|7|apr1|pbkdf2[\w-]*|scrypt)\$             # the hash of a password
    """
)
_NUMBERS = re.compile(
    r"(?i)^[\d.,:/–-]+\+?$|^\d+(?:\.\d+)?(?:%|ms|s|m|h|d|w|k|kb|mb|gb|min|sec|secs|mins|hours?|days?|bits?|bytes?|chars?|x)?$"
    r"|^v?\d+(?:\.\d+)+(?:[-+.]?[a-z]+[\d.]*)?$|^\d{4}-\d{2}-\d{2}(?:[T ].*)?$"
)
_UUID = re.compile(r"(?i)^\{?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\}?$")
_HEX = re.compile(r"^(?:0x)?[0-9a-fA-F]+$")
_RUN = re.compile(r"[A-Za-z0-9+/=]{12,}")
_NOT_A_PASSWORD = re.compile(r"[ \t]|\A[|(\[{]|=\Z")
_LETTERS = re.compile(r"^[^\W\d_]+$")
_WORDY = re.compile(r"^[A-Za-z]+(?:[-_./:][A-Za-z]+)*$")
_NAME = re.compile(r"^[A-Za-z]{2,}(?:[-_./:][A-Za-z]*\d{0,4}[a-z]?)+$|^[A-Za-z]{3,}\d{1,2}$")
_TURNS = re.compile(r"(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])")
_CASES = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[a-z])")


def is_placeholder_key(body: str) -> bool:
    """Return whether the body of a key is a placeholder: `xxxxxxxx`, `…EXAMPLE`, `<your-key>`.

    A key of one repeated letter counts as a key, for it cannot be distinguished with certainty.
    """
    return bool(_KEY_PLACEHOLDER.search(body))


def is_mixed(body: str) -> bool:
    """Return whether a text alternates between letters and digits, or between cases, as keys do and words do not."""
    for run in re.findall("[A-Za-z0-9]{8,}", body):
        if _TURNS.search(run) and not re.fullmatch(r"[a-z]+\d{1,4}", run):
            return True
    whole = re.sub("[^A-Za-z0-9]", "", body)
    return len(_TURNS.findall(whole)) >= 4 or (len(whole) >= 16 and len(_CASES.findall(whole)) >= 5)


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder of documentation, or an expression that the program evaluates."""
    bare = value.strip("'\"`")
    evaluated = _PLACEHOLDER.search(value) or _EXPRESSION.search(value) or _SAMPLE.fullmatch(bare)
    return bool(evaluated) or bare.lower() in _WORDS


def is_password(value: str, *, stated: bool, quoted: bool) -> bool:
    """Return whether a value could be a password that a person chose.

    A `stated` value follows an equals sign or is in quotes, so that a plain word can be one. Any other value counts as
    a word of the sentence unless it has a digit or a sign among its letters.
    """
    if len(value) < 4 or is_placeholder(value) or _NOT_A_PASSWORD.search(value):
        return False
    if stated:
        return _is_stated_password(value, quoted=quoted)
    if _NUMBERS.search(value) or _WORDY.match(value) or _NAME.match(value):
        return False
    return len(value) >= 6 and _has_digit_or_sign(value)


def is_token(value: str, *, stated: bool, qualified: bool) -> bool:
    """Return whether a value could be a generated key or token: long enough, and neither a name nor a number.

    Plain hexadecimal and UUIDs are tokens only after a `qualified` name ("API key", "client secret").
    """
    if len(value) < 12 or is_placeholder(value) or _NUMBERS.search(value) or " " in value:
        return False
    if _UUID.match(value):
        return qualified
    if _HEX.match(value):
        return (qualified and len(value) >= 16) or (stated and len(value) in (32, 40, 48, 64))
    return _is_random(value)


def kinds_of_characters(value: str) -> int:
    """Count which of lower case, upper case, digits and signs a value has (0 – 4)."""
    return sum(bool(re.search(kind, value)) for kind in ("[a-z]", "[A-Z]", r"\d", r"[!@#$%^&*+=?~]"))


def _is_stated_password(value: str, *, quoted: bool) -> bool:
    if _LETTERS.match(value):
        return len(value) >= 6 and (value.islower() or (quoted and len(_CASES.findall(value)) >= 2))
    if _WORDY.match(value):  # joined words are a name, unless there are as many as in a passphrase
        return len(re.split(r"[-_./:]", value)) >= 4 and "/" not in value and "." not in value
    return value.isdigit() or not _NUMBERS.search(value)


def _is_random(value: str) -> bool:
    if _NAME.match(value) or _WORDY.match(value):
        return len(value) >= 20 and len(_CASES.findall(value)) >= 5
    if any(len(_TURNS.findall(run)) >= 2 for run in _RUN.findall(value)):
        return True
    signs = len(set(re.findall(r"[^\w\s.,:/-]", value)))
    return (signs >= 2 and bool(re.search(r"\d", value))) or len(_CASES.findall(value)) >= 5


def _has_digit_or_sign(value: str) -> bool:
    """Return whether a value has letters and a digit, or a sign that no word has inside."""
    inner = value.strip(".,;:!?)(*_`'\"")
    letters, digits = bool(re.search(r"[A-Za-z]", inner)), bool(re.search(r"\d", inner))
    signs = bool(re.search(r"[!@#$%^&*+=?~|\\]", inner[1:]))
    return letters and (digits or signs) and not re.fullmatch(r"\d+[A-Za-z]{1,10}|[A-Z]{1,5}-?\d+", inner)
