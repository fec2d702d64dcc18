"""The working copy of a process: spellings of its paths, contents that a memory is about, and what changed since.

Only committed changes count: an edit in progress is the caller's own. A file is compared with the content that it had
when the memory was stored (`blobs`), committed or not; so a commit of that content, a rebase, a squash or a revert
makes nothing stale. Without that content, the memory's commit counts, else its time. A folder is stale only if it
vanished.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from pathlib import Path
from time import monotonic

from folklore.background import in_thread
from folklore.client.code.git import Change, Git, GitFailed
from folklore.contract.anchors import Anchor
from folklore.stale import Stale
from folklore.text.names import former, key
from folklore.text.paths import ROOT, is_inside, plain_path

# What one answer waits for git; what comes later is known to the next answers.
_ANSWER_SECONDS = 0.5
# What git may take for what the answers of this process show, and how long after a failure it is not asked.
_GIT_SECONDS = 10.0
_PAUSE_SECONDS = 600.0
_LARGEST = 16 * 1024 * 1024  # bytes of a file that is hashed
_ROUNDS = 4  # in which the history is read for the files of an answer
_CACHED = 4_096  # comparisons
# Id and type of an object that the repository does not have.
_UNKNOWN = ("", "")
# A branch, a tag, HEAD~2 or a part of a hash; git reads other words as searches.
_REVISION = re.compile(r"[\w./~^@{}+-]{1,100}")


@dataclass(frozen=True, slots=True)
class Tied:
    """Paths in their one spelling, the commit's full hash, and the ids of the contents, as a memory stores them."""

    paths: tuple[str, ...]
    commit: str | None = None
    blobs: tuple[str, ...] = ()

    @property
    def revision(self) -> str:
        """The commit as a caller stated it, if git may read it, else an empty text."""
        if self.commit is None or not _REVISION.fullmatch(self.commit):
            return ""
        return self.commit


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A file that may have changed, or is `is_missing`. `content` is the id of the content that the memory is about.

    `commit` is the memory's, if this repository has it, and `is_committed` is True if the content is the file's in it;
    both texts may be empty. `at` is the memory's time, in seconds since 1970.
    """

    path: str
    content: str
    is_committed: bool
    is_missing: bool
    commit: str
    at: int

    def is_changed_by(self, change: Change) -> bool:
        """Return True for a change of this file, or of one in this folder."""
        return f"{change.path}/".startswith(f"{self.path}/")


@dataclass(frozen=True, slots=True)
class _Repository:
    """A repository: its root, the caller's directory relative to it (`prefix`), and as the caller named it."""

    root: Path
    prefix: str
    directory: Path

    @property
    def named_root(self) -> Path:
        """The root as the caller names it, who may have come by symbolic links."""
        if not self.prefix:
            return self.directory
        return self.directory.parents[self.prefix.count("/")]


class WorkingCopy:
    """The repository around a directory, about whose files the memories of `namespace` are."""

    def __init__(
        self, directory: Callable[[], Path], namespace: Callable[[], str]
    ) -> None:
        self._directory = directory
        self._namespace = namespace
        self._paused = 0.0
        self._late: asyncio.Future[list[tuple[Stale, ...]]] | None = None
        # the present commit, and what was found out at it
        self._known: tuple[str, dict[_Suspect, Stale | None]] = ("", {})

    @cached_property
    def _repository(self) -> _Repository | None:
        directory = self._directory()
        try:
            root, prefix = Git(directory, monotonic() + 5).top()
        except GitFailed:
            return None
        return _Repository(Path(root), prefix, directory.absolute())

    @property
    def found(self) -> bool:
        """True in a repository."""
        return self._repository is not None

    @property
    def namespace(self) -> str:
        """The namespace whose memories are about these files."""
        return self._namespace()

    def holds(self, namespace: str | None) -> bool:
        """Return True if memories of a namespace, None for the present one, are about these files."""
        if namespace is None:
            return True
        project = self._namespace()
        return key(namespace.strip()) in (key(project), former(project))

    def top(self, folder: str) -> str:
        """Return the path of the root as the caller names it, for a folder in it; another folder as it is."""
        path = Path(folder)
        if self._repository is None or not path.is_absolute():
            return folder
        root = self._repository.named_root
        if path.is_relative_to(root):
            return str(root)
        return folder

    def spellings(self, path: str) -> tuple[str, ...]:
        """Return a path relative to the root, the likeliest first: a relative one may start here or at the root."""
        plain = plain_path(path)
        repository = self._repository
        if repository is None:
            return (plain,)
        below_root = _below_root(plain, repository)
        if below_root is not None:
            return (below_root,)
        if not repository.prefix or not is_inside(plain):
            return (plain,)
        here = plain_path(f"{repository.prefix}/{plain}")
        if not is_inside(here):
            return (plain,)
        if _exists(repository.root, plain) and not _exists(repository.root, here):
            return (plain, here)
        return (here, plain)

    def tie(self, codes: Sequence[tuple[Sequence[str], str | None]]) -> list[Tied]:
        """Return paths and commits as memories store them that are stored now; the present commit where none is given.

        Without git, paths get their one spelling alone. One git call, however many memories.
        """
        tied = []
        for paths, commit in codes:
            likeliest = dict.fromkeys(self.spellings(path)[0] for path in paths)
            tied.append(Tied(tuple(likeliest), commit))
        if self._repository is None:
            return tied
        root = self._repository.root
        try:
            objects = _Objects(root, Git(root, monotonic() + 4 * _ANSWER_SECONDS), tied)
        except GitFailed:
            return tied
        return [_anchored(code, objects) for code in tied]

    async def marks(self, anchors: Sequence[Anchor]) -> list[tuple[Stale, ...]]:
        """Return the marks of one answer, none if git fails.

        The answer waits half a second; what takes longer is known to later answers.
        """
        none: list[tuple[Stale, ...]] = [()] * len(anchors)
        is_comparing = self._late is not None and not self._late.done()
        if is_comparing or monotonic() < self._paused:
            return none

        def compared() -> list[tuple[Stale, ...]]:
            try:
                return self.stale(anchors)
            except (GitFailed, OSError, ValueError):
                # an answer does not fail by its marks
                self._paused = monotonic() + _PAUSE_SECONDS
                return none

        # a command that has its answer does not wait for it
        comparison = in_thread(compared, "folklore-stale")
        done, _ = await asyncio.wait({comparison}, timeout=_ANSWER_SECONDS)
        if done:
            return comparison.result()
        self._late = comparison
        return none

    def stale(
        self, anchors: Sequence[Anchor], *, seconds: float = _GIT_SECONDS
    ) -> list[tuple[Stale, ...]]:
        """Return for each memory its files that changed or vanished since, those that vanished first.

        One git call, and one or two more for changes that this process has not seen. Raises GitFailed, also after
        `seconds`.
        """
        marks: list[tuple[Stale, ...]] = [()] * len(anchors)
        ours = {}
        for index, anchor in enumerate(anchors):
            if anchor.paths and self.holds(anchor.namespace):
                ours[index] = anchor
        if not ours or self._repository is None:
            return marks
        root = self._repository.root
        git = Git(root, monotonic() + seconds)
        objects = _Objects(root, git, list(ours.values()))
        suspects = {index: _suspects(ours[index], objects) for index in ours}
        known = self._compared(git, objects, set(chain(*suspects.values())))
        for index, of_memory in suspects.items():
            changed = [mark for mark in map(known.get, of_memory) if mark is not None]
            changed.sort(key=lambda mark: (not mark.vanished, mark.since))
            marks[index] = tuple(changed)
        return marks

    def _compared(
        self, git: Git, objects: _Objects, suspects: Set[_Suspect]
    ) -> Mapping[_Suspect, Stale | None]:
        """Return the mark of each file, None for one that did not change, by the history; remember them.

        Raises GitFailed.
        """
        head = objects.head
        root = objects.root
        known_head, cache = self._known
        if known_head != head:  # the next commit may change any file
            cache = {}
        new = suspects - cache.keys()
        uncommitted = set()  # as the memory is about it, and not committed yet
        for suspect in new:
            if suspect.content in _content_ids(root, suspect.path, len(head)):
                uncommitted.add(suspect)
        departures = _departures(git, head, new - uncommitted)
        removals = []
        for suspect, change in departures.items():
            if change is not None and suspect.is_missing:
                removals.append(change)
        moves = _moves(git, root, removals)

        known = dict(list(cache.items())[-_CACHED:])
        known |= dict.fromkeys(uncommitted)
        for suspect, change in departures.items():
            known[suspect] = None if change is None else _mark(suspect, change, moves)
        self._known = head, known
        return known


class _Objects:
    """Commits and files of a repository at HEAD and at some revisions, read by one git call; and files as they are.

    `head` is the present commit, empty before the first one.
    """

    def __init__(self, root: Path, git: Git, codes: Sequence[Anchor | Tied]) -> None:
        names = ["HEAD^{commit}"]
        for code in codes:
            revisions = ["HEAD", code.revision] if code.revision else ["HEAD"]
            for revision in revisions:
                names.append(f"{revision}^{{commit}}")
                names += [f"{revision}:{path}" for path in code.paths]
        self.root = root
        self._objects = git.objects(names)
        self._contents: dict[str, str] = {}
        self.head = self.commit("HEAD")

    def commit(self, revision: str) -> str:
        """Return the id of a commit, empty for an unknown one."""
        return self._objects.get(f"{revision}^{{commit}}", _UNKNOWN)[0]

    def file(self, revision: str, path: str) -> tuple[str, str]:
        """Return id and type of a file or a folder, both empty for an unknown one."""
        return self._objects.get(f"{revision}:{path}", _UNKNOWN)

    def content(self, revision: str, path: str) -> str:
        """Return the id of a file at a commit, else as it is now; empty for a folder and an unknown file."""
        id_, type_ = self.file(revision or "HEAD", path)
        if type_ == "tree":
            return ""
        if revision:
            return id_ if type_ == "blob" else ""
        if path not in self._contents:
            ids = _content_ids(self.root, path, len(self.head) or 40)
            if ids and id_ not in ids:
                id_ = ids[0]
            self._contents[path] = id_
        return self._contents[path]


def _anchored(code: Tied, objects: _Objects) -> Tied:
    """Return paths with the full hash of their commit, the present one if none is stated, and their contents there."""
    inside = [path for path in code.paths if is_inside(path)]
    commit = objects.commit(code.revision)
    is_former = commit not in ("", objects.head)
    revision = code.revision if is_former else ""
    blobs = []
    for path in inside:
        id_ = objects.content(revision, path)
        if id_:
            blobs.append(f"{id_} {path}")
    known = commit or code.commit
    if not known and inside:
        known = objects.head
    return replace(code, commit=known or None, blobs=tuple(blobs))


def _suspects(anchor: Anchor, objects: _Objects) -> list[_Suspect]:
    """Return the files of a memory that have another content now, or vanished.

    A file that git does not have, and that is here, did not vanish.
    """
    suspects: list[_Suspect] = []
    if not objects.head:
        return suspects
    contents = anchor.contents
    commit = objects.commit(anchor.revision)
    at = int(anchor.at.timestamp())
    for path in anchor.paths:
        now, type_ = objects.file("HEAD", path)
        if not is_inside(path) or path == ROOT or type_ == "tree":
            continue
        committed, _ = objects.file(anchor.revision, path)
        content = contents.get(path) or committed
        if now:
            differs = now != content
        else:
            differs = not _exists(objects.root, path)
        if differs:
            is_committed = committed != "" and content == committed
            suspect = _Suspect(path, content, is_committed, not now, commit, at)
            suspects.append(suspect)
    return suspects


def _departures(
    git: Git, head: str, suspects: Set[_Suspect]
) -> dict[_Suspect, Change | None]:
    """Return the change of each file in the history since its memory; None where there is none."""
    timed = {suspect for suspect in suspects if not suspect.commit}
    departures = _departures_since(git, head, timed) if timed else {}
    # In a history without branches, the changes since the commit of the oldest memory answer all in one round.
    for rounds_left in reversed(range(_ROUNDS)):
        undated = suspects - departures.keys()
        if not undated:
            break
        oldest = min(undated, key=lambda suspect: suspect.at).commit
        history = git.changes(head, _paths(undated), without=oldest)
        for suspect in undated:
            whole = suspect.commit == oldest or rounds_left == 0
            change = _departure(suspect, history, whole=whole)
            if change is not None or whole:
                departures[suspect] = change
    return departures


def _departures_since(
    git: Git, head: str, suspects: Set[_Suspect]
) -> dict[_Suspect, Change | None]:
    """Return the change of each file since the time of its memory, whose commit is not known; None where there is none."""
    since = min(suspect.at for suspect in suspects)
    history = git.changes(head, _paths(suspects), since=since)
    return {suspect: _departure(suspect, history, whole=True) for suspect in suspects}


def _departure(
    suspect: _Suspect, history: Sequence[Change], *, whole: bool
) -> Change | None:
    """Return the change by which a file got another content than the memory is about, or was removed.

    With `whole`, the history begins at the memory, else possibly before it; then only the content decides.
    """
    changes = [change for change in history if suspect.is_changed_by(change)]
    later = [change for change in changes if change.at > suspect.at]
    # a change that a pull brought may be older than the memory
    since = changes if suspect.commit else later
    if suspect.is_missing:
        removals = [change for change in since if change.kind == "D"]
        if removals and (whole or suspect.is_committed):
            return removals[0]
        return None
    for change in changes:
        if change.old == suspect.content:
            return change
    if whole:
        return _likely_departure(suspect, later, since)
    return None


def _likely_departure(
    suspect: _Suspect, later: Sequence[Change], since: Sequence[Change]
) -> Change | None:
    """Return the change that counts, if none replaced the content itself: it is not known, or was never committed."""
    if not suspect.content:
        for change in reversed(later):
            if change.kind != "A":
                return change
        return None
    # The first one counts as the commit of the work on it, which went on between the store and the commit.
    changes = later or since
    if len(changes) < 2:
        return None
    return changes[-2]


def _moves(
    git: Git, root: Path, removals: Sequence[Change]
) -> dict[tuple[str, str], str]:
    """Return by commit and path where files were moved to, if they are still there."""
    if not removals:
        return {}
    try:
        renames = git.renames(sorted({change.commit for change in removals}))
    except GitFailed:  # which costs the new path alone
        return {}
    moves = {}
    for change in renames:
        if _exists(root, change.to):
            moves[change.commit, change.path] = change.to
    return moves


def _mark(
    suspect: _Suspect, change: Change, moves: Mapping[tuple[str, str], str]
) -> Stale:
    to = moves.get((change.commit, change.path))
    below = change.path.removeprefix(suspect.path)  # the moved file in a folder
    if to is not None and not to.endswith(below):
        to = None
    elif to is not None:
        to = to.removesuffix(below)
    since = datetime.fromtimestamp(change.at, UTC)
    return Stale(suspect.path, since, change.commit, suspect.is_missing, to)


def _paths(suspects: Set[_Suspect]) -> list[str]:
    return sorted({suspect.path for suspect in suspects})


def _below_root(plain: str, repository: _Repository) -> str | None:
    """Return an absolute path, or one that goes upwards from this directory, relative to the root if it is below.

    Git names the root by its real path; the caller may name it by symbolic links.
    """
    goes_upwards = plain == ".." or plain.startswith(("~/", "../"))
    if not goes_upwards and not Path(plain).is_absolute():
        return None
    root = repository.root
    # another drive, no file name, a loop of links, no home
    with suppress(OSError, ValueError, RuntimeError):
        path = repository.directory / Path(plain).expanduser()
        real_path = _real_folder(path)
        for candidate, base in (
            (path, root),
            (path, repository.named_root),
            (real_path, root),
        ):
            relative = plain_path(os.path.relpath(candidate, base))
            if is_inside(relative):
                return relative
    return None


def _exists(root: Path, path: str) -> bool:
    try:
        (root / path).lstat()
    except (OSError, ValueError):  # ValueError: a character that no file name has
        return False
    return True


def _real_folder(path: Path) -> Path:
    """Return a path through no symbolic link but its own last part, which git keeps as a link."""
    return path.parent.resolve() / path.name


def _content_ids(root: Path, path: str, digits: int) -> tuple[str, ...]:
    """Return the ids that git would give to a file here, as it is and with the line ends that git stores.

    None for a folder, a device, a file that is large, cannot be read, or lies behind a symbolic link elsewhere.
    """
    try:
        whole = _real_folder(root / path)
        status = whole.lstat()
        if not whole.is_relative_to(root.resolve()):
            return ()
        if stat.S_ISLNK(status.st_mode):
            return (_blob_id(os.fsencode(whole.readlink()), digits),)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
            return ()
        data = whole.read_bytes()
    except (OSError, ValueError, RuntimeError):  # RuntimeError: a loop of links
        return ()
    ids = dict.fromkeys(
        [_blob_id(data, digits), _blob_id(data.replace(b"\r\n", b"\n"), digits)]
    )
    if os.linesep == "\r\n":
        return tuple(reversed(ids))
    return tuple(ids)


def _blob_id(data: bytes, digits: int) -> str:
    if digits == 40:
        hashed = hashlib.sha1(usedforsecurity=False)
    else:
        hashed = hashlib.sha256()
    hashed.update(b"blob %d\0" % len(data))
    hashed.update(data)
    return hashed.hexdigest()
