"""Targets of an import: which part of a source goes to which namespace."""

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from folklore.client.project import project_namespace, repository_root
from folklore.config import known_home
from folklore.contract.lines import numbered
from folklore.errors import InvalidInput
from folklore.importers import Options, PagesRead, Target
from folklore.text import names
from folklore_import import files as page_files
from folklore_import.commits import commit_lines
from folklore_import.conversations import conversation_lines
from folklore_import.pages import PageFile, PageFormat, Pages


def web_targets(sources: Sequence[str], options: Options) -> Iterator[Target]:
    """Yield a target for each page of the web."""
    from folklore_import.web_pages import (
        web_pages,  # its HTTP client takes long to import
    )

    for pages in web_pages(sources, options.private_hosts):
        yield page_target(pages.origin, options.project, pages)


def conversation_targets(path: Path, options: Options) -> Iterator[Target]:
    """Yield one target: a user's conversations are for that user alone."""
    yield Target(path.name, options.private, conversation_lines(path.resolve()))


def markdown_targets(path: Path, options: Options) -> Iterator[Target]:
    """Yield one target: the pages of a folder, or one page."""
    real_path = path.resolve()
    base, origin = origin_of("markdown", real_path, options.author)
    files = page_files.folder_files(real_path, base)
    pages = Pages("markdown", origin, files, path_below(real_path, base))
    yield page_target(path, options.project, pages)


def page_target(
    source: Path | str, namespace: str | None, pages: Pages, reason: str = ""
) -> Target:
    """Return pages as a target, of which `source` is shown; without a namespace, `reason` says why it is left out."""
    return Target(
        _with_tilde(str(source)),
        namespace,
        pages.lines(),
        pages.count,
        PagesRead(
            origin=pages.origin,
            below=pages.below,
            ids=frozenset(pages.ids),
            unread=frozenset(pages.unread),
        ),
        reason,
        close=pages.close,
    )


def _with_tilde(path: str) -> str:
    """Return a path with `~` in place of the user's home."""
    user = known_home()
    home = f"{user}{os.sep}"
    if user is not None and path.startswith(home):
        return f"~{os.sep}{path.removeprefix(home)}"
    return path


def path_below(path: Path, base: Path) -> tuple[str, ...]:
    """Return the name of a folder or a page, nothing for the whole of `base`."""
    if path == base:
        return ()
    return (path.relative_to(base).as_posix(),)


def origin_of(
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
        name = os.fsencode(f"{platform.node()}:{folder}")
        digest = hashlib.sha256(name).hexdigest()[:8]
        return folder, f"{form} {author}:{digest}"
    # As earlier versions named it, so that a repeated import finds what they stored.
    return root, f"{form} {names.former(namespace) or namespace}"


def rule_targets(path: Path, options: Options) -> Iterator[Target]:
    """Yield the rules of a repository, and the user's own rules for it, which stay private."""
    path = path.resolve()
    base, origin = origin_of("rules", path, options.author)
    if path.name == ".claude" and path.parent.is_relative_to(base):
        path = path.parent
    pages = _rule_pages(path, base, origin, personal=False)
    if pages is not None:
        yield _target_of_repository(path, pages, options)

    base, origin = origin_of("rules", path, options.author, personal=True)
    pages = _rule_pages(path, base, origin, personal=True)
    if pages is not None:
        source = str(path)
        if path.is_dir():
            source = f"{path} ({page_files.PERSONAL_RULES})"
        yield page_target(source, options.private, pages)


def _target_of_repository(path: Path, pages: Pages, options: Options) -> Target:
    folder = path if path.is_dir() else path.parent
    namespace = project_namespace(folder, options.remote)
    if namespace == names.DEFAULT:
        return page_target(path, None, pages, f"{path} is in no git repository")
    return page_target(path, namespace, pages)


def _rule_pages(path: Path, base: Path, origin: str, *, personal: bool) -> Pages | None:
    """Return the rules in a folder, or in one file, None if there are none."""
    files: list[PageFile] = []
    if path.is_dir():
        files = list(page_files.rule_files(path, personal=personal))
    elif personal == (path.name == page_files.PERSONAL_RULES):
        files = [PageFile(path, path.name)]
    if not files:
        return None
    named = [
        replace(file, name=file.path.relative_to(base).as_posix()) for file in files
    ]
    return Pages("rules", origin, named, path_below(path, base))


def git_targets(path: Path, options: Options) -> Iterator[Target]:
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
    commits = commit_lines(root)
    if commits:
        contents = [json.loads(line)["content"] for line in commits]
        titles = tuple(content.partition("\n")[0] for content in contents)
        yield Target(
            "git log", namespace, numbered(commits), len(titles), titles=titles
        )

    decisions = page_files.decision_files(root)
    contributing = page_files.contributing_files(root)
    if decisions:
        origin = f"decisions {namespace}"
        folders = page_files.DECISION_FOLDERS
        pages = Pages("decisions", origin, decisions, folders)
        yield page_target("decision records", namespace, pages)
    if contributing:
        origin = f"contributing {namespace}"
        file_names = [file.name for file in contributing]
        pages = Pages("rules", origin, contributing, file_names)
        yield page_target(contributing[0].name, namespace, pages)
