"""Notes of Claude Code: the user's own, and those on each project, which go to the namespace of its repository."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from folklore.config import expanded, known_home
from folklore.importers import Options, Target
from folklore_import import files as page_files
from folklore_import.claude_projects import ClaudeProjects, encoded
from folklore_import.pages import Pages
from folklore_import.targets import origin_of, page_target, path_below

# The user's own notes in the configuration of Claude Code, and files by which that folder is known.
_PERSONAL = ("CLAUDE.md", "CLAUDE.local.md", "rules", "agent-memory")
_CLAUDE_FILES = ("history.jsonl", "settings.json", ".claude.json")


def claude_root(path: Path) -> Path | None:
    """Return the configuration folder of Claude Code that a path is, or that holds the user's notes there."""
    user = known_home()
    for folder in (path, *path.parents):
        projects = (folder / "projects").is_dir()
        is_of_user = user is not None and folder.parent == user.resolve()
        is_root = folder.name == ".claude" and (is_of_user or projects)
        if is_root or (
            projects and any((folder / name).is_file() for name in _CLAUDE_FILES)
        ):
            parts = path.relative_to(folder).parts
            holds_notes = not parts or parts[0] in ("projects", *_PERSONAL)
            return folder if holds_notes else None
    return None


def claude_targets(path: Path, options: Options) -> Iterator[Target]:
    """Yield the user's own notes, and those on each project."""
    path = path.resolve()
    root = claude_root(path)
    if root is None:
        yield _notes_elsewhere(path, options)
        return
    # The folder on this machine: two people, or two machines, may have projects of the same name.
    _, origin = origin_of("claude-memory", root, options.author, personal=True)
    first = path.relative_to(root).parts[:1]
    if first != ("projects",):
        yield from _own_notes(path, root, origin, options)
    if first in ((), ("projects",)):
        yield from _project_notes(path, root, origin, options)


def _notes_elsewhere(path: Path, options: Options) -> Target:
    base, origin = origin_of("claude-memory", path, options.author, personal=True)
    files = page_files.claude_files(path, base)
    pages = Pages("claude-memory", origin, files, path_below(path, base))
    reason = "it is not in a configuration folder of Claude Code"
    return page_target(path, None, pages, reason)


def _own_notes(
    path: Path, root: Path, origin: str, options: Options
) -> Iterator[Target]:
    """Yield the user's own notes in a configuration folder, or in a part of it."""
    if path == root:
        folders = [root / name for name in _PERSONAL if (root / name).exists()]
    else:
        folders = [path]
    files = [
        file for folder in folders for file in page_files.claude_files(folder, root)
    ]
    if files:
        below = path_below(path, root) or _PERSONAL
        pages = Pages("claude-memory", origin, files, below)
        yield page_target(path, options.private, pages)


def _project_notes(
    path: Path, root: Path, origin: str, options: Options
) -> Iterator[Target]:
    """Yield the notes on the project that a path below `projects` is of, else on all projects."""
    resolver = ClaudeProjects(root, options.remote)
    parts = path.relative_to(root).parts
    projects = root / "projects"
    if len(parts) > 1:
        folders = [projects / parts[1]]
    else:
        folders = sorted(filter(Path.is_dir, projects.glob("*")))
    for folder in folders:
        memory = path if len(parts) > 2 else folder / "memory"
        files = list(page_files.claude_files(memory, root)) if memory.exists() else []
        if not files:
            continue
        namespace = options.namespace or _mapped(folder, options.mapping)
        reason = ""
        if namespace is None:
            namespace, reason = resolver.namespace(folder)
        pages = Pages("claude-memory", origin, files, path_below(memory, root))
        yield page_target(folder.relative_to(root), namespace, pages, reason)


def _mapped(folder: Path, mapping: Mapping[str, str]) -> str | None:
    """Return the namespace that the user gave for a project: by its folder, or by its directory."""
    for name, namespace in mapping.items():
        is_folder = folder.name.strip("-") == name.strip("-")
        if is_folder or folder.name == encoded(str(expanded(Path(name)).absolute())):
            return namespace
    return None
