"""Names of namespaces: their rules, suggestions for unknown names, and the name that belongs to a git repository."""

from __future__ import annotations

import hashlib
import re
import string
import unicodedata
from collections.abc import Callable, Iterable
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import unquote

from folklore.errors import InvalidInput
from folklore.text.arguments import is_null_word
from folklore.text.clean import nfc

if TYPE_CHECKING:
    from difflib import SequenceMatcher

MAX_LENGTH = 100
# The namespace of a process outside any repository.
DEFAULT = "default"
_PRIVATE = "-private"
_PUNCTUATION = "._-:/@"
_LEVELS = re.compile(r"[:/]")
_WORDS = re.compile(r"[._\-:/@]")
_MIN_SIMILARITY = 0.6
# Names that are compared by their letters, and of these the most similar ones by their order too.
_MAX_COMPARED = 1_000
_MAX_ALIGNED = 20
# Scripts of which letters look like letters of another one, and such letters of Cyrillic and Greek (Unicode TR 39).
_CONFUSABLE_SCRIPTS = frozenset({"LATIN", "CYRILLIC", "GREEK"})
_LIKE_LATIN = frozenset("асеорхуѕіјһԁԛԝАВЕЅІЈКМНОРСТУХοΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")
_LOWER_ASCII = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)

_URL = re.compile(r"[a-z][a-z0-9+.-]*://([^/?#]*)([^?#]*)", re.IGNORECASE)
# A user name may contain "@" and "\" (mail addresses, Windows domains).
_SSH_SHORT = re.compile(
    r"(?:[^:/\s]+@)?(\[[^\]\s]*\]|[^@:/\\\s]{2,}):(?!//)(.*)", re.DOTALL
)
# The older address of an organisation of Azure DevOps, which names it in the host.
_VISUAL_STUDIO = re.compile(
    r"(?:[^@]*@)?([^.@]+)\.visualstudio\.com(?::\d+)?", re.IGNORECASE
)
_REPOSITORY = "repo:"
# The host that a name leaves out, and hosts of services by their addresses for ssh.
_DEFAULT_HOST = "github.com"
_HOST_BY_SSH = {
    "ssh.github.com": _DEFAULT_HOST,
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
    "ssh.dev.azure.com": "dev.azure.com",
}
_DIGITS = 8
_DIGESTED = re.compile(rf"(repo:.+)@[0-9a-f]{{{_DIGITS}}}")
# No owner at GitHub has a dot in its name.
_HOSTED = re.compile(r"repo:[^/]*\.[^/]*/(.+)")
_DRIVE = re.compile(r".:")
_DOT_GIT = re.compile(r"\.git$", re.IGNORECASE)


def normalise(name: str, *, field: str = "namespace") -> str:
    """Return a namespace's name trimmed and composed; its case is kept.

    A name has 1 – 100 letters, digits and `. _ - : / @`, begins and ends with a letter or digit, and has a word between
    every two `:` or `/`. Raises InvalidInput with `field`, the broken rule and a valid name as a hint.
    """
    text = name.strip()
    if len(text) <= MAX_LENGTH:  # composing an over-long text would be wasted
        text = nfc(text)
    if len(text) > MAX_LENGTH:
        raise InvalidInput(
            field,
            f"a name of {len(text)} characters is over the limit of {MAX_LENGTH}.",
        )
    if problem := _problem(text):
        raise InvalidInput(field, problem, hint=_proposal(text))
    return text


def new(name: str, *, field: str = "namespace") -> str:
    """Return the normalised name of a namespace that may have to be created. Raises InvalidInput.

    null, None and undefined are no names: a program wrote them where it had none.
    """
    if is_null_word(name):
        problem = f"{name.strip()!r} is how programs write that there is no name."
        raise InvalidInput(field, problem, hint="Leave it out, or give a name.")
    return normalise(name, field=field)


def key(name: str) -> str:
    """Return the key that identifies a namespace: its name with A – Z in lower case, all other letters unchanged.

    Equal to `lower(name collate "C")` in the database. Full case folding differs between Python, Postgres and its
    locales, and would take two namespaces for one.
    """
    return name.translate(_LOWER_ASCII)


def prefix_of(pattern: str) -> str | None:
    """Return the prefix of the names that a pattern matches: `repo:acme/` for `repo:acme/*`; None for a plain name.

    It is in the case in which keys are compared. Raises InvalidInput for a `*` in another place.
    """
    text = pattern.strip()
    if "*" not in text:
        return None
    levels = text[:-2]
    separator = text[-2:-1]
    if not text.endswith("*") or separator not in (":", "/") or "*" in levels:
        problem = "a pattern ends with /* or :* and has no other *."
        raise InvalidInput("grant", problem, hint="For example: repo:acme/* or repo:*")
    return key(normalise(levels, field="grant")) + separator


def nearest(name: str, candidates: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Return the known names most similar to a name, best first: by spelling, by last level, or by a shared word."""
    from difflib import SequenceMatcher

    requested = name.strip().lower()[:MAX_LENGTH]
    matcher = SequenceMatcher(b=requested, autojunk=False)

    def similarity_by_letters(other: str) -> float:
        return _similarity(requested, matcher, other, SequenceMatcher.quick_ratio)

    compared = islice(candidates, _MAX_COMPARED)
    likely = nlargest(_MAX_ALIGNED, compared, key=similarity_by_letters)
    similar = []
    for other in likely:
        score = _similarity(requested, matcher, other, SequenceMatcher.ratio)
        if score >= _MIN_SIMILARITY:
            similar.append((-score, other))
    similar.sort()
    return tuple(other for _, other in similar[:limit])


def of_project(remote: str) -> str | None:
    """Return the namespace of a git remote, with what tells it from one of the same path elsewhere; None without a path.

    `git@github.com:acme/api.git` gives `repo:acme/api`, `https://gitlab.com/acme/api` `repo:gitlab.com/acme/api`, and
    `/srv/acme/api.git` `repo:acme/api@` and a digest of the path. A host without a dot in the short form of ssh is an
    alias on one machine, and is left out.
    """
    name = from_remote(remote)
    if name is None:
        return None
    text = remote.strip()
    url = _URL.match(text)
    if url and url[1] and not text.lower().startswith("file:"):
        _, _, host_and_port = url[1].rpartition("@")
        return _with_host(name, host_and_port)
    short = None if url else _SSH_SHORT.fullmatch(text)
    if short is None:
        return _with_digest(name, text)
    host = short[1]
    if "." not in host:
        return name
    return _with_host(name, host)


def of_folder(path: str) -> str | None:
    """Return the namespace of a repository without a remote: `repo:api@` and a digest of its path."""
    name = from_directory(path)
    if name is None:
        return None
    return _with_digest(name, path)


def former(name: str) -> str | None:
    """Return the name that earlier versions gave a project, without its host or the digest of its path; None if equal."""
    text = key(name.strip())
    if digested := _DIGESTED.fullmatch(text):
        return digested[1]
    if hosted := _HOSTED.fullmatch(text):
        return f"{_REPOSITORY}{hosted[1]}"
    return None


def is_of_folder(name: str) -> bool:
    """Return True for the name of a project that its folder tells from others."""
    return _DIGESTED.fullmatch(key(name.strip())) is not None


def _with_host(name: str, netloc: str) -> str:
    """Return a name with its host, but of GitHub, in front; without the port, since each transport has its own."""
    if netloc.startswith("["):  # an address of IPv6 names no host
        return name
    host = _level(re.sub(r":\d*$", "", netloc))
    host = _HOST_BY_SSH.get(host, host)
    if host == _DEFAULT_HOST or not host or host.startswith(f"{_DEFAULT_HOST}-"):
        return name
    if host.endswith(".visualstudio.com"):
        host = "dev.azure.com"
    if "." not in host:
        host += "."  # as the whole name of a host is written, so that it is no owner
    hosted = f"{_REPOSITORY}{host}/{name.removeprefix(_REPOSITORY)}"
    if len(hosted) > MAX_LENGTH or _problem(hosted):
        return name
    return hosted


def _with_digest(name: str, path: str) -> str:
    digest = hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{name[: MAX_LENGTH - _DIGITS - 1].rstrip(_PUNCTUATION)}@{digest}"


def from_remote(remote: str) -> str | None:
    """Return the path of a git remote as a name (`git@github.com:acme/api.git` gives `repo:acme/api`), None without one.

    Accepts URLs of any scheme, the short form of ssh, and local paths, of which the last two folders are used. Host,
    port, user and password are left out, so every transport of a repository gives the same name.
    """
    text = remote.strip()
    if url := _URL.match(text):
        local = url[1] == "" or text.lower().startswith("file:")
        path = unquote(url[2])
    elif short := _SSH_SHORT.fullmatch(text):
        local = False
        path = unquote(short[2])
    else:
        local = True
        path = text
    levels = _levels_of(path, local=local)
    organisation = _VISUAL_STUDIO.fullmatch(url[1]) if url else None
    if organisation:
        levels = [level for level in levels if level != "defaultcollection"]
        levels.insert(0, _level(organisation[1]))
    if local:
        return _repository_name(levels[-2:])
    return _repository_name(_without_service_levels(levels))


def from_directory(path: str) -> str | None:
    """Return a folder as a name: `/home/sarah/api` gives `repo:api`."""
    return _repository_name(_levels_of(path, local=True)[-1:])


def private(author: str) -> str:
    """Return the namespace of a person's own notes: `Alice` gives `alice-private`."""
    name = _level(author)[: MAX_LENGTH - len(_PRIVATE)].rstrip(_PUNCTUATION)
    if not name or _problem(name + _PRIVATE):
        return _PRIVATE.removeprefix("-")
    return name + _PRIVATE


def _problem(name: str) -> str | None:
    if not name:
        return "a name is 1 – 100 characters long; this one is empty."
    if not all(_is_allowed(char) for char in name):
        return "a name is made of letters, digits and . _ - : / @ only."
    if name[0] in _PUNCTUATION or name[-1] in _PUNCTUATION or not name[0].isalnum():
        return "a name begins and ends with a letter or digit."
    if any(not level.strip(".") for level in _LEVELS.split(name)):
        return "there must be a word between every two : or / of a name."
    if name.isascii():
        return None
    return _imitation(name)


def _imitation(name: str) -> str | None:
    """Return why a name could be read as another one: a word of two scripts that look alike, or none that is Latin."""
    for word in filter(None, _WORDS.split(name)):
        scripts = {_script_of(char) for char in word if char.isalpha()}
        confusable = sorted(scripts & _CONFUSABLE_SCRIPTS)
        if len(confusable) > 1:
            mixed = " and ".join(map(str.capitalize, confusable))
            return f"a word is in one script; {word!r} mixes letters of {mixed} that look alike."
    letters = {char for char in name if char.isalpha() and not char.isascii()}
    if letters and letters <= _LIKE_LATIN:
        return "the letters of the name that are not Latin all look like Latin ones, so it would be read as another name."
    return None


def _script_of(letter: str) -> str:
    """Return the first word of a letter's name in Unicode: LATIN, GREEK."""
    script, _, _ = unicodedata.name(letter, "").partition(" ")
    return script


def _is_allowed(char: str) -> bool:
    if char.isalnum() or char in _PUNCTUATION:
        return True
    return unicodedata.category(char) in ("Mn", "Mc")  # marks, as of accents


def _proposal(name: str) -> str:
    """Build a valid name by replacing each run of characters that are not allowed by `-`."""
    slug = re.sub(r"[:/]*([:/])", r"\1", _hyphenated(name))
    slug = re.sub(r"-{2,}", "-", slug)
    slug = re.sub(r"-?([:/])-?", r"\1", slug).strip(_PUNCTUATION)
    if slug and not _problem(slug):
        return f"For example: {slug}"
    return "For example: payments-team or repo:acme/api"


def _hyphenated(text: str, also: str = "") -> str:
    """Return a text in lower case with `-` for each character that no name has, and for each of `also`."""
    chars = []
    for char in nfc(text).lower():
        is_kept = _is_allowed(char) and char not in also
        chars.append(char if is_kept else "-")
    return "".join(chars)


def _similarity(
    requested: str,
    matcher: SequenceMatcher[str],
    other: str,
    ratio: Callable[[SequenceMatcher[str]], float],
) -> float:
    """Return how alike two names are, 0 to 1: as wholes, by their last levels or a shared word, or by their letters."""
    lower = other[:MAX_LENGTH].lower()
    last = _LEVELS.split(lower)[-1]
    if requested and requested == lower:
        return 1.0
    if requested and _LEVELS.split(requested)[-1] == last:
        return 0.95
    best = 0.0
    if requested and requested in _WORDS.split(lower):
        best = 0.8
    for candidate in (lower, last):
        matcher.set_seq1(candidate)
        if matcher.real_quick_ratio() > best:
            best = max(best, ratio(matcher))
    return best


def _levels_of(path: str, *, local: bool) -> list[str]:
    """Split a path into levels of a name, without the drive letter, the suffix .git and empty levels."""
    parts = re.split(r"[/\\]+", path.strip())
    folders = [folder for folder in parts if folder not in ("", ".", "..")]
    if folders and _DRIVE.fullmatch(folders[0]):
        del folders[0]
    if folders:
        folders[-1] = _DOT_GIT.sub("", folders[-1])
        if local and not folders[-1]:
            # the .git folder of a clone: the folder around it has the name
            del folders[-1]
    return list(filter(None, map(_level, folders)))


def _level(folder: str) -> str:
    """Return a folder as one level of a name; a leading dot or underscore belongs to it (`acme/.github`)."""
    level = re.sub(r"-{2,}", "-", _hyphenated(folder, also=":/@"))
    return level.lstrip("-").rstrip(_PUNCTUATION)


def _without_service_levels(levels: list[str]) -> list[str]:
    """Remove the levels that only the URL of a hosting service has, so that https and ssh give the same name.

    Bitbucket has `[…/]scm/PROJECT/REPO` over https. Azure DevOps has `ORG/PROJECT/_git/REPO` over https, where PROJECT
    is left out if REPO has the same name, and `v3/ORG/PROJECT/REPO` over ssh.
    """
    if levels[-3:-2] == ["scm"]:
        return levels[-2:]
    if len(levels) == 4 and levels[0] == "v3":
        azure = levels[1:]
    elif levels[-2:-1] == ["_git"]:
        azure = [*levels[:-2], levels[-1]]
    else:
        return levels
    project_has_name_of_repository = len(azure) > 2 and azure[-2] == azure[-1]
    if project_has_name_of_repository:
        return azure[:-1]
    return azure


def _repository_name(levels: list[str]) -> str | None:
    """Join as many of the last levels as a name has room for."""
    levels = levels[-MAX_LENGTH:]
    while levels:
        name = "repo:" + "/".join(levels)
        if len(name) <= MAX_LENGTH and not _problem(name):
            return name
        levels = levels[1:]
    return None
