"""Compare the key formats with a published set of rules, by its facts: prefix, alphabet and length.

python -m tests.published_keys RULES.toml   lists the formats that are missed, and fails if there is one

RULES.toml is a copy, on this machine, of the rules of betterleaks or gitleaks (config/*.toml). Nothing is downloaded,
and of the file nothing but prefixes and lengths is shown. For each format with a prefix of its own, keys are made at
random and put into a sentence.
"""

import argparse
import itertools
import random
import re
import string
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from folklore.text.secrets.finder import find

# The parser of `re`, whose tree has the literals and the lengths of an expression.
_regex_parser: Any = re._parser  # type: ignore[attr-defined]

# A prefix of fewer characters is none that a key could be known by.
_SHORTEST_PREFIX = 3
_SAMPLES = 20
# A format counts as found although so many of its samples are not: short ones are words by chance.
_MOST_MISSED = 8
# Of a repetition without an upper limit, so many more than its lower limit are made.
_OPEN_END = 8
_SENTENCE = "The colleague in Vienna uses {} for the nightly run."
_ALPHABET = string.ascii_letters + string.digits
_CATEGORIES = {
    "CATEGORY_DIGIT": string.digits,
    "CATEGORY_WORD": f"{_ALPHABET}_",
    "CATEGORY_SPACE": " ",
}
# Parts of an expression that match text.
_CONSUMING = (
    "LITERAL",
    "IN",
    "MAX_REPEAT",
    "MIN_REPEAT",
    "POSSESSIVE_REPEAT",
    "SUBPATTERN",
    "BRANCH",
)
# Formats that are left out, by their prefix, and why.
LEFT_OUT = {
    "pk_": "a public key",
    "pubkey-": "a public key",
    "pk.": "a public key",
    "sb_publishable_": "a public key",
    "phc_": "a public key",
    "NRJS-": "a key for browsers, which is public",
    "FLWPUBK": "a public key",
    "dvc_client_": "a key for browsers, which is public",
    "dvc_mobile_": "a key for apps, which is public",
    "configcat-sdk-1/": "a key for browsers, which is public",
    "mdb_sa_id_": "a name, whose secret is another text",
    "ramp_id_": "a name, whose secret is another text",
    "cli_": "a name, whose secret is another text",
    "kind:": "found by its values",
    "data:": "found by its values",
    "curl": "found by its password",
    "ZXlK": "a beginning alone",
    "https://": "an address without a secret",
    "Endpoint=sb://": "found by its key",
    "mongodb": "found by its password",
    "-----BEGIN": "found by its lines, which a sample lacks",
    "eyJ": "a JSON Web Token, whose parts a sample lacks",
    "SG.": "two parts, which the expression does not have",
    "bedrock-api-key-": "a beginning alone",
    "EAAA": "base64 begins so too; found from 60 characters on",
}


class Format(NamedTuple):
    """A key format: the name of its rule, its literal beginning, and samples of keys."""

    name: str
    prefix: str
    samples: tuple[str, ...]


def formats_of(rules: Sequence[dict[str, Any]]) -> Iterator[Format]:
    """Yield the formats of rules whose keys begin with a prefix of their own."""
    for rule in rules:
        if not rule.get("regex"):  # a rule on names of files
            continue
        expression = _python_expression(rule["regex"])
        try:
            tree = _regex_parser.parse(expression)
        except re.error:  # an expression of Go that Python does not have
            continue
        parts = list(tree)
        is_branch = len(parts) == 1 and str(parts[0][0]) == "BRANCH"
        alternatives = parts[0][1][1] if is_branch else [tree]
        keys = [_key_of(alternative) for alternative in alternatives]
        for branch in itertools.chain.from_iterable(map(_branches, keys)):
            prefix = _literal_beginning(branch)
            if len(prefix) < _SHORTEST_PREFIX or not re.search("[A-Za-z]", prefix):
                continue
            chance = random.Random(prefix)
            samples = tuple(_sample(branch, chance) for _ in range(_SAMPLES))
            yield Format(rule["id"], prefix, samples)


def missed(formats: Iterator[Format]) -> Iterator[tuple[Format, int]]:
    """Yield the formats whose samples are not found, each with the number that is."""
    for form in formats:
        if form.prefix.startswith(tuple(LEFT_OUT)):
            continue
        found = sum(_is_found(sample) for sample in form.samples)
        if found < len(form.samples) - _MOST_MISSED:
            yield form, found


def _is_found(key: str) -> bool:
    text = _SENTENCE.format(key)
    begin = text.index(key)
    return any(
        secret.start <= begin + len(key) // 2 < secret.end for secret in find(text)
    )


def _python_expression(expression: str) -> str:
    """Return an expression of Go in the syntax of Python."""
    without_end = expression.replace(r"\z", r"\Z")
    without_classes = without_end.replace("[[:alnum:]]", "[A-Za-z0-9]")
    # A flag in the middle: Python has it at the beginning alone.
    ignores_case = without_classes.startswith("(?i)")
    plain = without_classes.replace("(?i)", "")
    return f"(?i){plain}" if ignores_case else plain


def _key_of(tree: Any) -> list[Any]:
    """Return the part of an expression that is the key: its first group, else the whole.

    Empty if the key follows other text, such as the name of its issuer: it has no form of its own.
    """
    before = 0
    for operation, argument in tree:
        name = str(operation)
        if name == "SUBPATTERN" and argument[0] is not None:
            return list(argument[-1]) if not before else []
        if name == "SUBPATTERN" and _has_group(argument[-1]):
            return _key_of(argument[-1]) if not before else []
        before += name in _CONSUMING
    return list(tree)


def _has_group(tree: Any) -> bool:
    return any(
        str(operation) == "SUBPATTERN"
        and (argument[0] is not None or _has_group(argument[-1]))
        for operation, argument in tree
    )


def _branches(items: list[Any]) -> Iterator[list[Any]]:
    """Yield an expression once for each of the alternatives with which it begins."""
    items = [item for item in items if str(item[0]) not in ("AT", "ASSERT_NOT")]
    if not items:
        return
    operation, argument = items[0]
    rest = items[1:]
    if str(operation) == "SUBPATTERN":
        yield from _branches([*argument[-1], *rest])
    elif str(operation) == "BRANCH":
        for branch in argument[1]:
            yield from _branches([*branch, *rest])
    else:
        yield items


def _literal_beginning(items: list[Any]) -> str:
    prefix = ""
    for operation, argument in items:
        if str(operation) != "LITERAL":
            break
        prefix += chr(argument)
    return prefix


def sample(expression: str, chance: random.Random) -> str:
    """Return a random text that an expression describes, without its lookaheads."""
    return _sample(_regex_parser.parse(expression), chance)


def _sample(items: Any, chance: random.Random) -> str:
    """Return a random text that an expression describes."""
    return "".join(_piece(str(name), argument, chance) for name, argument in items)


def _piece(operation: str, argument: Any, chance: random.Random) -> str:
    if operation == "LITERAL":
        return chr(argument)
    if operation == "IN":
        return chance.choice(_characters(argument))
    if operation == "ANY":  # often a point that was meant
        return "."
    if operation == "NOT_LITERAL":
        return chance.choice(_ALPHABET)
    if operation in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least, most, body = argument
        if least == 1 and most > _OPEN_END:  # no key is so short
            least = _OPEN_END
        count = chance.randint(least, min(most, least + _OPEN_END))
        return "".join(_sample(body, chance) for _ in range(count))
    if operation == "SUBPATTERN":
        return _sample(argument[-1], chance)
    if operation == "BRANCH":
        return _sample(chance.choice(argument[1]), chance)
    return ""  # a position


def _characters(members: Any) -> str:
    """Return the characters of a class; of a negated one, letters and digits."""
    allowed = ""
    negated = False
    for operation, argument in members:
        name = str(operation)
        if name == "LITERAL":
            allowed += chr(argument)
        elif name == "RANGE":
            allowed += "".join(map(chr, range(argument[0], argument[1] + 1)))
        elif name == "CATEGORY":
            allowed += _CATEGORIES.get(str(argument), "")
        elif name == "NEGATE":
            negated = True
    if negated:
        allowed = "".join(char for char in _ALPHABET if char not in allowed)
    return allowed or " "


def main() -> None:
    """Print the formats that are missed; exit with 1 if there is one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "rules", type=Path, help="a copy of betterleaks.toml or gitleaks.toml"
    )
    path = parser.parse_args().rules
    if not path.is_file():
        parser.error("RULES must name your copy of betterleaks.toml or gitleaks.toml.")
    rules = tomllib.loads(path.read_text(encoding="utf-8"))["rules"]
    formats = list(formats_of(rules))
    not_found = list(missed(iter(formats)))
    for form, found in not_found:
        lengths = sorted(map(len, form.samples))
        length = f"{lengths[0]} to {lengths[-1]} characters"
        print(f"{form.prefix:<24} {length:<24} {found:>2} of {_SAMPLES}  {form.name}")
    print(
        f"{len(formats) - len(not_found)} of {len(formats)} formats with a prefix are found."
    )
    if not formats:
        sys.exit("The file has no rule with a prefix.")
    if not_found:
        sys.exit(1)


if __name__ == "__main__":
    main()
