"""Classification of values at the position of a password, a key or a token.

Documentation and code have placeholders, variables, calls, flags, prices and samples there. Only another literal counts
as a secret: in prose one that looks generated, after an assignment to a quoted literal a plain word too.
"""

import base64
import binascii
import re
from typing import NamedTuple


class SearchEnded(Exception):
    """A text holds more beginnings of keys over line breaks than a search follows; it may hold a key behind them."""


class Secret(NamedTuple):
    """A secret in a text: its kind in words, and its half-open range."""

    kind: str
    start: int
    end: int


# Characters of a password, and those that distinguish a longer key from a placeholder.
_LONGEST = 100
# Characters by which a longer value is judged.
_LONGEST_TOKEN = 1_000
# Placeholders of documentation, variables, and regular expressions.
_PLACEHOLDER = re.compile(
    r"""(?xi)
    ^[<{\[(]{1,2}[^>}\])]*[>}\])]*$ | ^\$[a-z_]\w*(?:$|->|::|[.\[({]) | ^\$[({] | \$\{[a-z_]
    | ^%\w+%$ | ^%[(] | ^%[sdrfvq]$ | ^@\w+@$ | ^![a-z]+$ | ^\#\{
    | \.\.\. | … | \*{3} | •{2} | ^[x*.\-_#?0]+$ | x{6} | \{\{ | ^\\ | ^<
    | \[\^ | \][+*{] | \\[xudw&] | ^[$€£]\s?\d[\d.,]*(?:/\w+)?$
    | ^(?:a|an|the|my|our|your|some|any)[-_ ] | (?:^|[^a-z0-9])your[-_ ]?
    | (?:^|[^a-z0-9])(?:example|placeholder|redacted|replace[-_ ]|change[-_ ]?(?:me|it|this)|dummy|lorem)
    | (?:^|[^a-z0-9])(?:insert|masked|removed|hidden|omitted|todo|tbd|fixme|sample|foobar)(?![a-z0-9]) | example$
    """
)
_KEY_PLACEHOLDER = re.compile(
    r"(?i)^[x*.\-_#?0]{6,}$|[x*.]{8}|\*{3}|\.\.\.|…|<[^>]*>?|\{|\$\{"
    r"|(?:^|[^a-z0-9])(?:your|example|placeholder|redacted|replace|changeme|dummy)(?:$|[^a-z0-9])|EXAMPLE$|EXAMPLEKEY$"
)
_SAMPLE_CLAIMS = re.compile(r"1234567890\"|John Doe|\"payload\"|\"bar\"")
# Samples: such a word, also spelt with digits and signs, and little around it.
_LEET = str.maketrans("430$@1!57", "aeosaiist")
_SAMPLE = re.compile(
    r"passw(?:or)?[dt]|passphrase|secret|changeme|letmein|qwerty|asdf|foo|bar|baz|abcd?(?=\d)|admin|test"
)
# Names of secrets within a value that consists of words: `user_password`, `Ed25519PrivateKey`.
_NAMES_A_SECRET = re.compile(r"(?i)pass|pwd|secret|token|key|credential|auth")
# Words, types and algorithms that often follow "password" or "token", also with a number behind them.
_WORDS = frozenset(
    """
    true false null none nil undefined void string str text char varchar bytes byte int uint integer float double number
    bool boolean object any array list self this value values param arg args field column
    required optional mandatory missing empty blank unset set unknown invalid valid expired wrong correct incorrect weak
    strong default defaults disabled enabled disable enable prompt input output plain plaintext cleartext encrypted
    hashed hash salted secret secrets password passwords passwd passphrase pwd pass token tokens key keys credential
    credentials user username admin root login guest postgres mysql mariadb redis mongo rabbitmq oracle sqlserver sa
    test tests testing demo local localhost dev development prod production staging changeme change_me tiger scott
    bearer basic digest oauth oidc saml jwt ldap kerberos negotiate ntlm apikey api_key anonymous
    bcrypt scrypt argon argon2i argon2id argon2d pbkdf md sha hmac aes rs hs es
    eddsa ed rsa base base64url hex utf utf-8 uuid uuidv ulid nanoid python node version
    env environment vault keychain keyring file stdin stdout path url uri header cookie query body form
    yes no on off auto manual rotate rotated rotation revoked public private shared internal external readonly
    hidden masked redacted placeholder example sample dummy here there below above
    """.split()
)
_EXPRESSION = re.compile(
    r"""(?x)
    ^[A-Za-z_$][\w-]*(?:(?:\.|::|->|\?\.)[A-Za-z_][\w-]*)+\(?\)?;?$    # settings.password, config.api_key
    | ^[*&]?[A-Za-z_$](?:[\w.:]|->)*[(\[]                        # getpass(), os.environ["X"]
    | ^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$                         # OPENAI_API_KEY
    | ^-{1,2}[A-Za-z][A-Za-z.-]*(?:$|[=,:]) | ^[A-Za-z_]\w*=(?!=*$)              # --flag, strict=True
    | ^(?![A-Za-z0-9+/]{40}$)/(?:[\w.-]{1,20}/)*[\w.*-]{0,20}$ | ^(?:[a-z][a-z0-9._-]*/)+[\w.*-]{0,24}$   # a path
    | ^(?:\.\.?|~)/ | ^[A-Za-z]:\\
    | ^[\w-]+\.(?:ya?ml|json|txt|pem|key|crt|env|toml|ini|conf|cfg|py|js|ts|go|rs|java|md|sh|sql|gpg|enc|asc|pub)$
    | ^[\w.+-]+@(?:[\w-]+\.)+[A-Za-z]{2,}$                    # an address
    | ://                                                     # a URL; a password in it is found by its position
    | ^(?:arn|op|vault|secret|secrets|env|file|ref|ssm|sm|awssm|gcpsm|akv|projects)[:/]
    | ^(?:sha(?:1|224|256|384|512)|md5|blake2b?|blake3|pbkdf2|scrypt)[:_\-=]   # a digest
    | ^\$(?:2[abxy]|argon2\w*|5|6|1|y|7|apr1|pbkdf2[\w-]*|scrypt)\$             # a hash has a format of its own
    """
)
_NUMBERS = re.compile(
    r"(?i)^[\d.,:/–-]+\+?$|^0x[0-9a-f]+$|^v?\d+(?:\.\d+)+(?:[-+.]?[a-z]+[\d.]*)?$|^\d{4}-\d{2}-\d{2}(?:[T ].*)?$"
    r"|^\d[-–\d]*(?:%|ms|s|m|h|d|w|k|kb|mb|gb|x|st|nd|rd|th|-?(?:min|sec|hour|day|week|month|year|bit|byte|char|character"
    r"|letter|digit|word|minute|second|time)s?)?$"
)
_UUID = re.compile(
    r"(?i)^\{?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\}?$"
)
HEXADECIMAL = re.compile(r"^(?:0x)?[0-9a-fA-F]+$")
_RUN = re.compile(r"[A-Za-z0-9+/=]{12,}")
_NOT_A_PASSWORD = re.compile(r"[ \t]|\A[|(\[{]|=\Z|:\Z")
_WORDY = re.compile(r"^[A-Za-z]+(?:[-_./:][A-Za-z]+)*$")
_NAME = re.compile(
    r"^[A-Za-z]{2,}(?:[-_./:][A-Za-z]*+\d{0,4}[a-z]?)+$|^[A-Za-z]{3,}\d{1,2}$"
)
# A word with a number, which people use as a password, and a part of a name such as AES-256-GCM.
_WORD_AND_NUMBER = re.compile(r"([A-Z]?[a-z]{3,})\d{1,4}")
_PART_OF_A_NAME = re.compile(r"(?:[A-Za-z]{1,30}\d{0,4}|\d+[A-Za-z]{0,3})?")
_PASSPHRASE = re.compile(r"[a-z]{3,}(?:-[a-z]{3,}){3,}")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_CONSONANTS = re.compile(r"[A-Z]?[b-df-hj-np-tv-xz]{5}")
_TURNS = re.compile(r"(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])")
_CASES = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[a-z])")


def is_placeholder_key(body: str) -> bool:
    """Return whether the body of a key is a placeholder: `xxxxxxxx`, `…EXAMPLE`, `<your-key>`.

    A key of one repeated letter counts as a key, for it cannot be distinguished with certainty.
    """
    return bool(_KEY_PLACEHOLDER.search(body))


def is_sample_token(body: str) -> bool:
    """Return whether the claims of a JSON Web Token are those of a documented sample, such as that of jwt.io."""
    claims = decoded(body.partition(".")[2].partition(".")[0])
    return claims is not None and bool(_SAMPLE_CLAIMS.search(claims))


def decoded(value: str) -> str | None:
    """Return the text of which a value is the base64, without the line break of `echo`; None for other values."""
    padding = "=" * (-len(value) % 4)
    try:
        text = base64.b64decode(value + padding, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
    text = text.removesuffix("\n")
    if not text.replace("\n", "").replace("\t", "").isprintable():
        return None
    return text


def is_mixed(body: str) -> bool:
    """Return whether a text alternates between letters and digits, or between cases, as keys do and words do not."""
    for run in re.findall("[A-Za-z0-9]{8,}", body):
        is_word_and_number = re.fullmatch(r"[a-z]+\d{1,4}", run)
        if _TURNS.search(run) and not is_word_and_number:
            return True
    whole = re.sub("[^A-Za-z0-9]", "", body)
    turns = len(_TURNS.findall(whole))
    changes_of_case = len(_CASES.findall(whole))
    return turns >= 4 or changes_of_case >= 5


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder, a sample of documentation, or an expression that a program evaluates."""
    value = value[:_LONGEST]
    if _PLACEHOLDER.search(value) or _EXPRESSION.search(value):
        return True
    word = value.lower().rstrip("0123456789").strip("-@")
    return word in _WORDS or _is_sample(value)


def is_password(value: str, *, stated: bool) -> bool:
    """Return whether a value could be a password.

    A `stated` value is a literal by its form, such as a text in quotes after an equals sign, so that a plain word can
    be one. Any other value counts as a word or an identifier unless it looks generated.
    """
    if not 6 <= len(value) <= _LONGEST:
        return False
    if _NOT_A_PASSWORD.search(value) or is_placeholder(value):
        return False
    return is_generated(value) or (stated and _is_plain_password(value))


def is_generated(value: str) -> bool:
    """Return whether a value is neither a word, a name, a number nor a version: `k3x9q`, `hunter2`, `wind!mill`."""
    inner = value.strip(".,;:!?)(*_`'\"")[:_LONGEST_TOKEN]
    if len(inner) < 6 or _NUMBERS.search(inner) or "\\" in inner:
        return False
    if _PASSPHRASE.fullmatch(inner):
        return not _NAMES_A_SECRET.search(inner)
    if not re.search("[A-Za-z]", inner):
        return False
    if _WORD_AND_NUMBER.fullmatch(inner) or _is_gibberish(inner):
        return True
    if not re.search(r"\d", inner):
        return bool(re.search(r"\w[!$^~]+\w", inner))
    parts = re.split(r"[-_./:+,@#&=<>|]", inner)
    return not all(map(_PART_OF_A_NAME.fullmatch, parts))


def is_token(value: str, *, stated: bool = False, qualified: bool = True) -> bool:
    """Return whether a value could be a generated key or token: long enough, and neither a name nor a number.

    UUIDs are tokens only after a `qualified` name ("API key", "client secret"), plain hexadecimal also if it is long
    and `stated`.
    """
    value = value[:_LONGEST_TOKEN]
    if len(value) < 12 or " " in value:
        return False
    if _NUMBERS.search(value) or is_placeholder(value):
        return False
    if _UUID.match(value):
        return qualified
    if HEXADECIMAL.match(value):
        return (qualified and len(value) >= 16) or (stated and len(value) >= 32)
    return _is_random(value)


def kinds_of_characters(value: str) -> int:
    """Count which of lower case, upper case, digits and signs a value has (0 – 4)."""
    kinds = ("[a-z]", "[A-Z]", r"\d", r"[!@#$%^&*+=?~]")
    return sum(re.search(kind, value) is not None for kind in kinds)


def _is_sample(value: str) -> bool:
    """Return whether a value is a sample, or the name of a secret: `P4$$word1`, `my-db-password`, `PrivateKey`."""
    word = _SAMPLE.search(value.lower().translate(_LEET))
    if word:
        rest = value[: word.start()] + value[word.end() :]
        letters = sum(map(str.isalpha, rest))
        if len(rest) <= 7 and letters <= 3:
            return True
    turns = len(_TURNS.findall(value))
    is_like_name = len(value) <= 40 and turns <= 2
    return is_like_name and _NAMES_A_SECRET.search(value) is not None


def _is_plain_password(value: str) -> bool:
    """Return whether a text could be a password that people make up: a word, a number, or a mixture that is no name."""
    if value.isalpha():
        return value.isascii() and value.islower()
    if value.isdigit():
        return True
    is_known = _NUMBERS.search(value) or _WORDY.match(value) or _NAME.match(value)
    return not is_known


def _is_gibberish(value: str) -> bool:
    """Return whether letters have consonants or cases in an order that no word and no name has."""
    parts = _PART.findall(value)
    if any(map(_CONSONANTS.search, parts)):
        return True
    letters = sum(map(len, parts))
    has_short_parts = len(parts) >= 4 and letters < 3.2 * len(parts)
    odd_parts = [part for part in parts if len(part) < 3 or part.isupper()]
    return has_short_parts and len(odd_parts) > 1 and value.isalnum()


def _is_random(value: str) -> bool:
    """Return whether letters, digits and signs alternate as in no name."""
    changes_case_often = len(_CASES.findall(value)) >= 5
    if _NAME.match(value) or _WORDY.match(value):
        return len(value) >= 20 and changes_case_often

    if any(len(_TURNS.findall(run)) >= 2 for run in _RUN.findall(value)):
        return True
    signs = set(re.findall(r"[^\w\s.,:/-]", value))
    has_digit = re.search(r"\d", value) is not None
    return changes_case_often or (len(signs) >= 2 and has_digit)
