"""Files of each format of pages: which ones below a folder are read, under which names, and which are left out and why.

Symbolic links to folders are not followed, and a link to a file only if the file is in the same folder tree: a
repository of others must not be able to name a file of this user.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from folklore_import.pages import PageFile

# The endings of Markdown pages.
MARKDOWN = (".md", ".markdown", ".mdx")
# The endings of other files with texts that a folder of pages has: they are not read, and counted.
_OTHER_PAGES = (
    *(".txt", ".rst", ".adoc", ".org", ".html", ".htm", ".canvas", ".excalidraw"),
    *(".csv", ".tsv", ".json", ".ipynb", ".pdf", ".docx", ".doc", ".odt", ".rtf"),
)
_SKIPPED_FOLDERS = frozenset(
    {"node_modules", "venv", "__pycache__", "vendor", "dist", "build", "target"}
)
# Files with rules for assistants, by name and by the folder that they are in.
_RULE_FILES = frozenset({"AGENTS.md", "CLAUDE.md", "GEMINI.md", ".cursorrules"})
_RULE_FOLDERS = {
    (".cursor", "rules"): ".mdc",
    (".claude", "rules"): ".md",
    (".github", "instructions"): ".md",
}
# Folders of decision records, one a file.
DECISION_FOLDERS = (
    "docs/adr",
    "docs/decisions",
    "docs/architecture/decisions",
    "doc/adr",
    "adr",
)
# The user's own notes on a project, which are not in its repository.
PERSONAL_RULES = "CLAUDE.local.md"


def markdown_files(
    root: Path, base: Path, *, personal: bool = False
) -> Iterator[PageFile]:
    """Yield a file, or the Markdown files below a folder, the user's own only if `personal`.

    Names are relative to `base`.
    """
    if not root.is_dir():
        return iter([PageFile(root, _name(root, base))])

    def chosen(path: Path) -> bool:
        return path.name.lower().endswith(MARKDOWN) and (
            personal or path.name != PERSONAL_RULES
        )

    return _walk(root, base, chosen)


def folder_files(root: Path, base: Path) -> Iterator[PageFile]:
    """Yield the Markdown files of a folder as `markdown_files` does, and other files with texts as skipped."""
    yield from markdown_files(root, base)
    if root.is_dir():
        others = _walk(root, base, lambda path: path.suffix.lower() in _OTHER_PAGES)
        for file in others:
            yield replace(file, skipped=f"{file.path.suffix.lower()} file")


def rule_files(root: Path, *, personal: bool = False) -> Iterator[PageFile]:
    """Yield the rules for assistants in a repository, or with `personal` the user's own, which its team does not have.

    Other repositories below the folder, such as submodules and worktrees, are left out.
    """

    def chosen(path: Path) -> bool:
        if personal:
            return path.name == PERSONAL_RULES
        return is_rule_file(path)

    def entered(path: Path) -> bool:
        hidden = (".claude", ".cursor", ".github")
        return (path.name in hidden or not path.name.startswith(".")) and not (
            path / ".git"
        ).exists()

    return _walk(root, root, chosen, entered)


def is_rule_file(path: Path) -> bool:
    """Return True if an assistant reads the file as its rules, by its name and its folders."""
    folders = path.parts[:-1]
    return (
        path.name in _RULE_FILES
        or path.parts[-2:] == (".github", "copilot-instructions.md")
        or any(
            path.name.endswith(suffix) and folder in pairwise(folders)
            for folder, suffix in _RULE_FOLDERS.items()
        )
    )


def decision_files(root: Path) -> list[PageFile]:
    """Return the decision records of a repository; their names are relative to it."""
    return [
        file
        for name in DECISION_FOLDERS
        if (root / name).is_dir()
        for file in markdown_files(root / name, root)
    ]


def contributing_files(root: Path) -> list[PageFile]:
    """Return the pages of a repository that say how to contribute."""
    paths = [root / folder / "CONTRIBUTING.md" for folder in (".", ".github", "docs")]
    return [PageFile(path, _name(path, root)) for path in paths if path.is_file()]


def claude_files(folder: Path, base: Path) -> Iterator[PageFile]:
    """Yield the notes that Claude Code keeps below a folder; names are relative to `base`."""
    return markdown_files(folder, base, personal=True)


def _walk(
    root: Path,
    base: Path,
    accepts: Callable[[Path], bool],
    entered: Callable[[Path], bool] = lambda folder: not folder.name.startswith("."),
) -> Iterator[PageFile]:
    """Yield the chosen files in the order of their paths, of the folders that are `entered`.

    A file that several links name is read once.
    """
    real = root.resolve()
    visited = set[Path]()
    for folder, folders, files in os.walk(root):
        below = Path(folder)
        folders[:] = sorted(
            name
            for name in folders
            if name not in _SKIPPED_FOLDERS and entered(below / name)
        )
        for path in filter(accepts, sorted(below / name for name in files)):
            target = Path(os.path.realpath(path))
            reason = _reason(path, target, real)
            if not reason and target in visited:
                reason = "another name of a page"
            elif not reason:
                visited.add(target)
            yield PageFile(path, _name(path, base), reason)


def _reason(path: Path, target: Path, root: Path) -> str:
    """Return the reason why a file is left out, empty for one that is read."""
    if path.is_symlink() and not target.is_relative_to(root):
        return "link out of the folder"
    try:
        # A device or a named pipe would never end.
        return "" if target.is_file() or not target.exists() else "no ordinary file"
    except OSError:  # opening it reports the error
        return ""


def _name(path: Path, base: Path) -> str:
    if path.is_relative_to(base):
        name = path.relative_to(base).as_posix()
    else:
        name = path.name
    return name.encode(
        errors="replace"
    ).decode()  # a name in another encoding than UTF-8
