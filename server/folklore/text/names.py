"""Names of namespaces: what may be one, which known one was meant, and which one belongs to a repository."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher
from urllib.parse import unquote

from folklore.errors import InvalidInput
from folklore.text.clean import nfc

MAX_LENGTH = 100
_PUNCTUATION = "._-:/@"
_LEVELS = re.compile(r"[:/]")
_WORDS = re.compile(r"[._\-:/@]")
_SIMILAR_ENOUGH = 0.6
_COMPARED = 2_000  # names looked at for a suggestion; nobody sees more
_SMALL_LETTERS = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)

_URL = re.compile(r"[a-z][a-z0-9+.-]*://([^/?#]*)([^?#]*)", re.IGNORECASE)
# A user's name may hold "@" and "\" (mail addresses, Windows domains).
_SSH_SHORT = re.compile(r"(?:[^:/\s]+@)?(\[[^\]\s]*\]|[^@:/\\\s]{2,}):(?!//)(.*)", re.DOTALL)


def normalise(name: str, *, field: str = "namespace") -> str:
    """Bring a namespace's name to one spelling: trimmed and composed. Its case is kept; `key` ignores that of A – Z.

    Allowed are 1 – 100 letters, digits and `. _ - : / @`, beginning and ending with a letter or digit, with something
    between every two `:` or `/`. Raises InvalidInput naming `field` and the rule, with a name that would do.
    """
    text = name.strip()
    if len(text) > MAX_LENGTH:
        raise InvalidInput(field, f"a name of {len(text)} characters is over the limit of {MAX_LENGTH}.")
    spelled = nfc(text)
    if len(spelled) > MAX_LENGTH:
        raise InvalidInput(field, f"a name of {len(spelled)} characters is over the limit of {MAX_LENGTH}.")
    problem = _problem(spelled)
    if problem:
        raise InvalidInput(field, problem, hint=_proposal(spelled))
    return spelled


def key(name: str) -> str:
    """What a namespace is told apart by: its name with A – Z in lower case, every other letter as it stands.

    The database's `lower(name collate "C")`. Wider rules differ between Python, Postgres and its locales, and where
    they differ, one notebook would be taken for another.
    """
    return name.translate(_SMALL_LETTERS)


def nearest(name: str, known: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Say which known names may have been meant, the most alike first: by spelling, by their last level or a word."""
    wanted = name.strip().lower()[:MAX_LENGTH]
    scored = [(_likeness(wanted, other), other) for other, _ in zip(known, range(_COMPARED), strict=False)]
    alike = sorted((-score, other) for score, other in scored if score >= _SIMILAR_ENOUGH)
    return tuple(other for _, other in alike[:limit])


def from_remote(remote: str) -> str | None:
    """Name the namespace of a git remote: `git@github.com:acme/api.git` gives `repo:acme/api`; no repository, None.

    Understands URLs of any scheme, the short form of ssh and local paths, of which the last two folders count. Host,
    port, user and password never become part of the name, so a colleague's other transport gives the same one.
    """
    text = remote.strip()
    if url := _URL.match(text):
        local, path = url[1] == "" or text.lower().startswith("file:"), unquote(url[2])
    elif short := _SSH_SHORT.fullmatch(text):
        local, path = False, unquote(short[2])
    else:
        local, path = True, text
    segments = _segments(path, local=local)
    return _fitting(segments[-2:] if local else _repository(segments))


def from_directory(path: str) -> str | None:
    """Name the namespace of a folder without a remote by the folder alone: `/home/sarah/api` gives `repo:api`."""
    return _fitting(_segments(path, local=True)[-1:])


def _problem(name: str) -> str | None:
    if not name:
        return "a name is 1 – 100 characters long; this one is empty."
    if not all(_may_stand(char) for char in name):
        return "a name is made of letters, digits and . _ - : / @ only."
    if name[0] in _PUNCTUATION or name[-1] in _PUNCTUATION or not name[0].isalnum():
        return "a name begins and ends with a letter or digit."
    if any(not level.strip(".") for level in _LEVELS.split(name)):
        return "there must be a word between every two : or / of a name."
    return None


def _may_stand(char: str) -> bool:
    return char.isalnum() or char in _PUNCTUATION or unicodedata.category(char) in ("Mn", "Mc")


def _proposal(name: str) -> str:
    slug = _slug(name)
    return f"For example: {slug}" if slug and not _problem(slug) else "For example: payments-team or repo:acme/api"


def _slug(text: str) -> str:
    """Replace what may not stand in a name by `-`, level by level."""
    replaced = "".join(char if _may_stand(char) else "-" for char in nfc(text).lower())
    levels = re.sub(r"-{2,}", "-", re.sub(r"[:/]*([:/])", r"\1", replaced))
    levels = re.sub(r"-*([:/])-*", r"\1", levels)
    return levels.strip(_PUNCTUATION)


def _likeness(wanted: str, other: str) -> float:
    lower = other.lower()
    last = _LEVELS.split(lower)[-1]
    if wanted and (wanted == last or _LEVELS.split(wanted)[-1] == last):
        return 0.95 if wanted != lower else 1.0
    matcher = SequenceMatcher(b=wanted, autojunk=False)
    best = 0.8 if wanted and wanted in _WORDS.split(lower) else 0.0
    for candidate in (lower, last):
        matcher.set_seq1(candidate)
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best:
            best = max(best, matcher.ratio())
    return best


def _segments(path: str, *, local: bool) -> list[str]:
    parts = [part for part in re.split(r"[/\\]+", path.strip()) if part not in ("", ".", "..")]
    if parts and len(parts[0]) == 2 and parts[0][1] == ":":
        parts = parts[1:]
    if parts:
        parts[-1] = re.sub(r"\.git$", "", parts[-1], flags=re.IGNORECASE)
        if local and parts[-1] == "":
            parts = parts[:-1]  # the .git folder of a clone: the folder around it counts
    return [slug for part in parts if (slug := _segment(part))]


def _repository(segments: list[str]) -> list[str]:
    """Leave out the segments that name the hosting service's interface, so that https and ssh give one name.

    Bitbucket has `[…/]scm/PROJECT/REPO` over https. Azure DevOps has `ORG/PROJECT/_git/REPO` over https, where PROJECT
    is left out if REPO is called the same, and `v3/ORG/PROJECT/REPO` over ssh.
    """
    if segments[-3:-2] == ["scm"]:
        return segments[-2:]
    if len(segments) == 4 and segments[0] == "v3":
        azure = segments[1:]
    elif segments[-2:-1] == ["_git"]:
        azure = [*segments[:-2], segments[-1]]
    else:
        return segments
    return azure[:-1] if len(azure) > 2 and azure[-2] == azure[-1] else azure


def _segment(part: str) -> str:
    """Make one level of a name of a folder's; a leading dot or underscore is part of it (`acme/.github`)."""
    slug = re.sub(r"-{2,}", "-", "".join(c if _may_stand(c) and c not in ":/@" else "-" for c in nfc(part).lower()))
    return slug.lstrip("-").rstrip(_PUNCTUATION)


def _fitting(segments: list[str]) -> str | None:
    """Join the last segments that fit into a name."""
    while segments:
        name = "repo:" + "/".join(segments)
        if len(name) <= MAX_LENGTH and not _problem(name):
            return name
        segments = segments[1:]
    return None
