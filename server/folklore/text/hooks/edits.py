"""Edits of files as assistants make them: the path, the new text, and the words by which an edit is looked up."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

# Characters of an edit that are read, and words of it that are looked up.
_READ = 20_000
_WORDS = 200
_FILE = re.compile(r"^\*\*\* (?:Add|Update) File: (.+)$", re.MULTILINE)
_ADDED = re.compile(r"^\+(.*)$", re.MULTILINE)
# A name in code with its parts, as `http.Get` or `time::sleep`.
_NAME = re.compile(r"[^\W\d_]\w*(?:(?:\.|::?)[^\W\d_]\w*)*")
_LEAST = 3
# What a memory writes as code: between backticks, or with signs or capitals within.
_CODE = re.compile(r"`[^`]+`|\b\w+(?:[_./:]+\w+)+|\b\w*[a-z][A-Z]\w*")
# Where a name in code has a next word.
_PART = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")
# Words of code and of paths that say nothing of what an edit is about, in any language of programming.
_COMMON_WORDS = (
    "and are but for from has not only that the this was with all new "
    "bool class const def else err error export false fn func function if import int interface let nil none null "
    "package private protected pub public return self static str string struct super true type undefined use val var "
    "void yield app apps code crates data file files get items key lib list main mod name packages path set src test "
    "tests value css go htm html java js json jsx kt md php py rb rs scss sh sql toml ts tsx txt xml yaml yml"
)
_COMMON = frozenset(_COMMON_WORDS.split())


@dataclass(frozen=True, slots=True)
class Edit:
    """A file and the text that is written into it."""

    path: str
    text: str

    @property
    def question(self) -> str:
        """The question of an edit: the distinct words and names of text and path, without those that occur in any code."""
        path = self.path.replace("/", " ").replace(".", " ")
        names = []
        for name in dict.fromkeys(_NAME.findall(f"{self.text[:_READ]}\n{path}")):
            if len(name) >= _LEAST and name.lower() not in _COMMON:
                names.append(name)
        return " ".join(names[:_WORDS])

    def weight_in_code(self, lexemes: Mapping[str, float], memory: str) -> float:
        """Return the weight of the lexemes of the new text, not of the path, that a memory has within code."""
        names = " ".join(_CODE.findall(memory))
        code = f" {_PART.sub(' ', names)}".lower()
        text = self.text[:_READ].lower()
        path = self.path.lower()
        weight = 0.0
        for lexeme, weight_of_lexeme in lexemes.items():
            begins_word_of_code = len(lexeme) >= _LEAST and f" {lexeme}" in code
            if begins_word_of_code and lexeme in text and lexeme not in path:
                weight += weight_of_lexeme
        return weight


def edit_of(path: str, text: str, patch: str) -> Edit | None:
    """Return an edit by its path and text, or the first of a patch (`*** Update File: …`); None without a path."""
    if not path:
        patch = patch[:_READ]
        file = _FILE.search(patch)
        if file is None:
            return None
        next_file = _FILE.search(patch, file.end())
        end = next_file.start() if next_file else _READ
        path = file[1]
        text = "\n".join(_ADDED.findall(patch[file.end() : end]))
    return Edit(path.strip(), text)
