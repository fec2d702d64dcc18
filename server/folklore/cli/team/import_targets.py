"""Targets of an import: which part of a source goes to which namespace, and who can read it there."""

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from folklore.cli.team.claude_projects import ClaudeProjects, encoded
from folklore.cli.team.web_pages import web_pages
from folklore.client.project import project_namespace, repository_root
from folklore.config import expanded, known_home
from folklore.contract.lines import Lines, numbered
from folklore.contract.namespaces import ListNamespacesRequest
from folklore.contract.people import CallerInfo, ListTokensRequest
from folklore.contract.requests import Operations
from folklore.errors import InvalidInput
from folklore.memory.transfer.formats import files as page_files
from folklore.memory.transfer.formats.commits import commit_lines
from folklore.memory.transfer.formats.conversations import (
    conversation_lines,
    is_conversations,
)
from folklore.memory.transfer.formats.pages import PageFile, PageFormat, Pages
from folklore.memory.transfer.formats.recognition import read_format
from folklore.model import Token
from folklore.text import names

# The user's own notes in the configuration of Claude Code, and files by which that folder is known.
_PERSONAL = ("CLAUDE.md", "CLAUDE.local.md", "rules", "agent-memory")
_CLAUDE_FILES = ("history.jsonl", "settings.json", ".claude.json")


@dataclass(frozen=True, slots=True)
class Target:
    """A part of a source, with its lines and its namespace; without one, it is left out for a reason.

    `stored` is the number of memories in the namespace, None if it does not exist. `readers` are the names that have a
    grant for it besides the author, `owners` those that may read everything. `titles` are shown before an import of
    what no person wrote down as a note.
    """

    source: str
    namespace: str | None
    lines: Lines = iter(())
    pages: Pages | None = None
    reason: str = ""
    titles: tuple[str, ...] = ()
    stored: int | None = None
    readers: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()

    @property
    def memories(self) -> int | None:
        """The number of memories in the source, None before they were read."""
        if self.pages is None:
            return len(self.titles) or None
        return self.pages.count


@dataclass(frozen=True, slots=True)
class Options:
    """Choices of the user: one namespace for all, a namespace by folder of a project.

    `project` is the namespace of the project that the command works in. `private_hosts` may be read by `web`.
    `remote` is the setting.
    """

    author: str
    project: str
    namespace: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    private_hosts: tuple[str, ...] = ()
    remote: str | None = None

    @property
    def private(self) -> str:
        """The namespace of the user alone."""
        return names.private(self.author)


def found_format(file: str) -> str:
    """Return the format of a file or a folder, by its name and what is in it; `jsonl` if nothing else is known.

    Raises InvalidInput, which names what the file is, if that is known and not read.
    """
    path = Path(file)
    if file.startswith(("https://", "http://")):
        return "web"
    if file == "git" and not path.exists():
        return "git"
    # stdin, or a pipe, which can be read once
    if not (path.is_file() or path.is_dir()):
        return "jsonl"
    if is_conversations(path):
        return "conversations"
    if _claude_root(path.resolve()) is not None:
        return "claude-memory"
    if path.is_dir():
        return _folder_format(path.resolve())
    return _file_format(path)


def _folder_format(folder: Path) -> str:
    top = [
        page_files.is_rule_file(child)
        or child.name in (page_files.PERSONAL_RULES, ".git")
        for child in folder.iterdir()
    ]
    ruled = any(top) and any(
        next(page_files.rule_files(folder, personal=personal), None)
        for personal in (False, True)
    )
    return "rules" if ruled else "markdown"


def _file_format(path: Path) -> str:
    if (
        page_files.is_rule_file(path.resolve())
        or path.name == page_files.PERSONAL_RULES
    ):
        return "rules"
    if path.name.lower().endswith(page_files.MARKDOWN):
        return "markdown"
    return read_format(path) or "jsonl"


_LOOKED_FOR = {
    "claude-memory": "notes of Claude Code (CLAUDE.md, projects/*/memory/*.md)",
    "git": "commits or decision records that give reasons",
    "markdown": "Markdown pages",
    "rules": "rules for assistants (AGENTS.md, CLAUDE.md, .cursor/rules and the like)",
}


def targets_of(form: str, sources: Sequence[str], options: Options) -> list[Target]:
    """Return the targets of a source, or of several pages, in one of the formats of a path. Raises InvalidInput."""
    if form == "web":
        targets = [
            _target(pages.origin, options.project, pages)
            for pages in web_pages(sources, options.private_hosts)
        ]
    else:
        targets = list(_READERS[form](_existing(form, sources[0]), options))
    if not targets:
        looked_for = _LOOKED_FOR.get(form, f"files of the format {form}")
        raise InvalidInput(
            "FILE",
            f"{sources[0]} has no {looked_for}; there is nothing to import.",
            hint="--format names another format.",
        )
    return [
        replace(target, namespace=options.namespace or target.namespace)
        for target in targets
    ]


def _existing(form: str, source: str) -> Path:
    path = Path(source)
    if form == "git" and source == "git" and not path.exists():
        return Path()
    if not path.exists():
        raise InvalidInput("FILE", f"{path} does not exist.")
    return path


def _conversations(path: Path, options: Options) -> Iterator[Target]:
    yield Target(path.name, options.private, conversation_lines(path.resolve()))


def _markdown(path: Path, options: Options) -> Iterator[Target]:
    base, origin = _origin("markdown", path.resolve(), options.author)
    pages = Pages(
        "markdown",
        origin,
        page_files.folder_files(path.resolve(), base),
        _below(path.resolve(), base),
    )
    yield _target(path, options.project, pages)


def _target(
    source: object, namespace: str | None, pages: Pages, reason: str = ""
) -> Target:
    name = str(source)
    user = known_home()
    home = f"{user}{os.sep}"
    if user is not None and name.startswith(home):
        name = f"~{os.sep}{name.removeprefix(home)}"
    return Target(name, namespace, pages.lines(), pages, reason)


def _below(path: Path, base: Path) -> tuple[str, ...]:
    """Return the name of a folder or a page, nothing for the whole of `base`."""
    if path == base:
        return ()
    return (path.relative_to(base).as_posix(),)


def _origin(
    form: PageFormat, path: Path, author: str, *, personal: bool = False
) -> tuple[Path, str]:
    """Return the folder that names of pages are relative to, and what the pages are from, the same for each import.

    That is the repository, for every clone of it; else, and for a user's `personal` pages, the folder on this machine.
    """
    folder = path if path.is_dir() else path.parent
    namespace = project_namespace(folder)
    root = repository_root(folder)
    if personal or namespace == names.DEFAULT or not path.is_relative_to(root):
        # As a digest: others who read the memories need not know the names of this machine and its folders.
        place = hashlib.sha256(os.fsencode(f"{platform.node()}:{folder}")).hexdigest()[
            :8
        ]
        return folder, f"{form} {author}:{place}"
    # As earlier versions named it, so that a repeated import finds what they stored.
    return root, f"{form} {names.former(namespace) or namespace}"


def _rules(path: Path, options: Options) -> Iterator[Target]:
    """Yield the rules of a repository, and the user's own rules for it, which stay private."""
    path = path.resolve()
    base, origin = _origin("rules", path, options.author)
    if path.name == ".claude" and path.parent.is_relative_to(base):
        path = path.parent
    if pages := _rule_pages(path, base, origin, personal=False):
        folder = path if path.is_dir() else path.parent
        namespace = project_namespace(folder, options.remote)
        in_repository = namespace != names.DEFAULT
        reason = "" if in_repository else f"{path} is in no git repository"
        yield _target(path, namespace if in_repository else None, pages, reason)
    base, origin = _origin("rules", path, options.author, personal=True)
    if pages := _rule_pages(path, base, origin, personal=True):
        yield _target(
            f"{path} ({page_files.PERSONAL_RULES})" if path.is_dir() else path,
            options.private,
            pages,
        )


def _rule_pages(path: Path, base: Path, origin: str, *, personal: bool) -> Pages | None:
    if path.is_dir():
        files = list(page_files.rule_files(path, personal=personal))
    else:
        if personal == (path.name == page_files.PERSONAL_RULES):
            files = [PageFile(path, path.name)]
        else:
            files = []
    files = [
        replace(file, name=file.path.relative_to(base).as_posix()) for file in files
    ]
    return Pages("rules", origin, files, _below(path, base)) if files else None


def _git(path: Path, options: Options) -> Iterator[Target]:
    """Yield what the history of a repository gives reasons for, its decision records, and how to contribute to it."""
    path = path.resolve()
    folder = path if path.is_dir() else path.parent
    namespace = project_namespace(folder, options.remote)
    root = repository_root(folder)
    if namespace == names.DEFAULT:
        raise InvalidInput(
            "FILE",
            f"{path} is in no git repository.",
            hint="Run it in one, or name its folder.",
        )
    if commits := commit_lines(root):
        titles = tuple(
            json.loads(line)["content"].partition("\n")[0] for line in commits
        )
        yield Target("git log", namespace, numbered(commits), titles=titles)
    decisions = page_files.decision_files(root)
    contributing = page_files.contributing_files(root)
    if decisions:
        pages = Pages(
            "decisions",
            f"decisions {namespace}",
            decisions,
            page_files.DECISION_FOLDERS,
        )
        yield _target("decision records", namespace, pages)
    if contributing:
        pages = Pages(
            "rules",
            f"contributing {namespace}",
            contributing,
            [file.name for file in contributing],
        )
        yield _target(contributing[0].name, namespace, pages)


def _claude_root(path: Path) -> Path | None:
    """Return the configuration folder of Claude Code that a path is, or that holds the user's notes there."""
    user = known_home()
    for folder in (path, *path.parents):
        projects = (folder / "projects").is_dir()
        is_of_user = user is not None and folder.parent == user.resolve()
        is_root = folder.name == ".claude" and (is_of_user or projects)
        if is_root or (
            projects and any((folder / name).is_file() for name in _CLAUDE_FILES)
        ):
            below = path.relative_to(folder).parts
            return folder if not below or below[0] in ("projects", *_PERSONAL) else None
    return None


def _claude(path: Path, options: Options) -> Iterator[Target]:
    """Yield the user's own notes, and those on each project."""
    path = path.resolve()
    root = _claude_root(path)
    if root is None:
        base, origin = _origin("claude-memory", path, options.author, personal=True)
        pages = Pages(
            "claude-memory",
            origin,
            page_files.claude_files(path, base),
            _below(path, base),
        )
        yield _target(
            path, None, pages, "it is not in a configuration folder of Claude Code"
        )
        return
    # The folder on this machine: two people, or two machines, may have projects of the same name.
    _, origin = _origin("claude-memory", root, options.author, personal=True)
    below = path.relative_to(root).parts
    if below[:1] != ("projects",):
        places = (
            [path]
            if below
            else filter(Path.exists, (root / name for name in _PERSONAL))
        )
        if files := [
            file for place in places for file in page_files.claude_files(place, root)
        ]:
            yield _target(
                path,
                options.private,
                Pages("claude-memory", origin, files, _below(path, root) or _PERSONAL),
            )
    if below[:1] in ((), ("projects",)):
        yield from _project_notes(path, root, origin, options)


_READERS = {
    "conversations": _conversations, "markdown": _markdown, "rules": _rules, "git": _git, "claude-memory": _claude
}  # fmt: skip


def _project_notes(
    path: Path, root: Path, origin: str, options: Options
) -> Iterator[Target]:
    """Yield the notes on the project that a path below `projects` is of, else on all projects."""
    resolver = ClaudeProjects(root, options.remote)
    below = path.relative_to(root).parts
    projects = root / "projects"
    for folder in (
        [projects / below[1]]
        if len(below) > 1
        else sorted(filter(Path.is_dir, projects.glob("*")))
    ):
        memory = path if len(below) > 2 else folder / "memory"
        files = list(page_files.claude_files(memory, root)) if memory.exists() else []
        if not files:
            continue
        namespace = options.namespace or _mapped(folder, options.mapping)
        reason = ""
        if namespace is None:
            namespace, reason = resolver.namespace(folder)
        pages = Pages("claude-memory", origin, files, _below(memory, root))
        yield _target(folder.relative_to(root), namespace, pages, reason)


def _mapped(folder: Path, mapping: Mapping[str, str]) -> str | None:
    """Return the namespace that the user gave for a project: by its folder, or by its directory."""
    for name, namespace in mapping.items():
        if folder.name.strip("-") == name.strip("-") or folder.name == encoded(
            str(expanded(Path(name)).absolute())
        ):
            return namespace
    return None


async def described(
    targets: Sequence[Target], operations: Operations, caller: CallerInfo
) -> list[Target]:
    """Add to each target what is stored in its namespace, and who can read it, as far as the caller may know."""
    namespaces = await operations.call(ListNamespacesRequest())
    tokens = await operations.call(ListTokensRequest()) if caller.owner else ()
    counts = {
        names.key(namespace.name): namespace.memories or 0 for namespace in namespaces
    }
    others = [
        token for token in tokens if token.principal.lower() != caller.principal.lower()
    ]
    owners = tuple(sorted({token.principal for token in others if token.owner}))

    def with_readers(target: Target) -> Target:
        if target.namespace is None:
            return target
        readers = _readers(target.namespace, caller, others)
        return replace(
            target,
            stored=counts.get(names.key(target.namespace)),
            readers=readers,
            owners=owners,
        )

    return list(map(with_readers, targets))


def _readers(
    namespace: str, caller: CallerInfo, tokens: Sequence[Token]
) -> tuple[str, ...]:
    if not caller.owner:
        if namespace == names.private(caller.principal):
            return ()
        return ("its team",)
    return tuple(
        sorted({token.principal for token in tokens if _opens(token, namespace)})
    )


def _opens(token: Token, namespace: str) -> bool:
    key = names.key(namespace)
    patterns = [names.key(grant.rpartition(":")[0]) for grant in token.grants]
    return any(
        key == name or (name.endswith("*") and key.startswith(name[:-1]))
        for name in patterns
    )
