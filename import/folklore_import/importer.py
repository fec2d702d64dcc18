"""The importer of this distribution: its formats, and how a source is known to be of one of them.

The readers of a file turn it into numbered lines as `folklore export` writes them; the others find the targets first.
Lines, pages and conversations are read on demand, so that a source may be larger than memory; other JSON documents are
read whole. A record that cannot become a line is given as its error. Ids follow from the record, so that a repeated
import changes only the records that changed.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from folklore.errors import InvalidInput
from folklore.importers import FileFormat, Importer, Options, PathFormat, Target
from folklore_import import files as page_files
from folklore_import.claude_notes import claude_root, claude_targets
from folklore_import.conversations import is_conversations
from folklore_import.graph import graph_lines
from folklore_import.recognition import described, read_format, refuse_unreadable
from folklore_import.records import mem0_lines, service_lines
from folklore_import.targets import (
    conversation_targets,
    git_targets,
    markdown_targets,
    rule_targets,
    web_targets,
)

# What a source is searched for, as errors name it.
_LOOKED_FOR = {
    "claude-memory": "notes of Claude Code (CLAUDE.md, projects/*/memory/*.md)",
    "git": "commits or decision records that give reasons",
    "markdown": "Markdown pages",
    "rules": "rules for assistants (AGENTS.md, CLAUDE.md, .cursor/rules and the like)",
}
_PAGES = f"Files {', '.join(page_files.MARKDOWN)} are pages."
# Formats of a file whose beginning tells if it cannot be one.
_OF_RECORDS = (
    "jsonl",
    "mcp-memory-json",
    "mem0",
    "mcp-memory-service",
    "conversations",
)


def _recognise(source: str) -> str | None:
    """Return the format of a source by its name and content, None for an unknown one.

    Raises InvalidInput, which names what the file is, if that is known and not read.
    """
    path = Path(source)
    if source.startswith(("https://", "http://")):
        return "web"
    if source == "git" and not path.exists():
        return "git"
    # stdin, or a pipe, which can be read once
    if not (path.is_file() or path.is_dir()):
        return None
    if is_conversations(path):
        return "conversations"
    if claude_root(path.resolve()) is not None:
        return "claude-memory"
    if path.is_dir():
        return _folder_format(path.resolve())
    return _file_format(path)


def _folder_format(folder: Path) -> str:
    may_have_rules = any(
        page_files.is_rule_file(child)
        or child.name in (page_files.PERSONAL_RULES, ".git")
        for child in folder.iterdir()
    )
    if may_have_rules:
        for personal in (False, True):
            if next(page_files.rule_files(folder, personal=personal), None):
                return "rules"
    return "markdown"


def _file_format(path: Path) -> str | None:
    is_personal = path.name == page_files.PERSONAL_RULES
    if is_personal or page_files.is_rule_file(path.resolve()):
        return "rules"
    if path.name.lower().endswith(page_files.MARKDOWN):
        return "markdown"
    return read_format(path)


def _check(form: str, source: str) -> None:
    path = Path(source)
    if form in _OF_RECORDS and path.is_file():
        refuse_unreadable(path)


# Finds the targets of a path.
_Reader = Callable[[Path, Options], Iterable[Target]]


def _targets(
    form: str, reader: _Reader, sources: Sequence[str], options: Options
) -> list[Target]:
    """Return the targets of the one source, which is a file or a folder. Raises InvalidInput if there are none."""
    source = sources[0]
    targets = list(reader(_existing(form, source), options))
    if not targets:
        looked_for = _LOOKED_FOR.get(form, f"files of the format {form}")
        raise InvalidInput(
            "FILE",
            f"{source} has no {looked_for}; there is nothing to import.",
            hint="--format names another format.",
        )
    return _with_namespace(targets, options)


def _existing(form: str, source: str) -> Path:
    """Return the path of a source; the word `git` means this directory. Raises InvalidInput."""
    path = Path(source)
    if form == "git" and source == "git" and not path.exists():
        return Path()
    if not path.exists():
        raise InvalidInput("FILE", f"{path} does not exist.")
    return path


def _web_targets(sources: Sequence[str], options: Options) -> list[Target]:
    return _with_namespace(web_targets(sources, options), options)


def _with_namespace(targets: Iterable[Target], options: Options) -> list[Target]:
    return [
        replace(target, namespace=options.namespace or target.namespace)
        for target in targets
    ]


def _pages(form: str, reader: _Reader) -> PathFormat:
    """Return a format whose memories follow the pages, as these are edited."""
    return PathFormat(partial(_targets, form, reader), "overwrite", hint=_PAGES)


IMPORTER = Importer(
    formats={
        "mcp-memory-json": FileFormat(graph_lines),
        "mem0": FileFormat(mem0_lines),
        "mcp-memory-service": FileFormat(service_lines),
        "markdown": _pages("markdown", markdown_targets),
        "rules": _pages("rules", rule_targets),
        "claude-memory": _pages("claude-memory", claude_targets),
        "web": PathFormat(_web_targets, "overwrite", of_addresses=True, hint=_PAGES),
        "git": _pages("git", git_targets),
        # the turns of a conversation are not edited
        "conversations": PathFormat(
            partial(_targets, "conversations", conversation_targets)
        ),
    },
    recognise=_recognise,
    check=_check,
    describe=described,
)
