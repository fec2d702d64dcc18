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
    def words(self) -> str:
        """The distinct words and names of the text and of the path, without those that occur in any code."""
        path = self.path.replace("/", " ").replace(".", " ")
        names = dict.fromkeys(_NAME.findall(f"{self.text[:_READ]}\n{path}"))
        return " ".join(
            [
                name
                for name in names
                if len(name) >= _LEAST and name.lower() not in _COMMON
            ][:_WORDS]
        )

    def weight_in_code(self, lexemes: Mapping[str, float], memory: str) -> float:
        """Return the weight of the lexemes of the new text, not of the path, that a memory has within code."""
        code = " ".join(["", *_PART.split(" ".join(_CODE.findall(memory)))]).lower()
        code_lexemes = [
            lexeme
            for lexeme in lexemes
            if len(lexeme) >= _LEAST and f" {lexeme}" in code
        ]
        text = self.text[:_READ].lower()
        path = self.path.lower()
        return sum(
            lexemes[lexeme]
            for lexeme in code_lexemes
            if lexeme in text and lexeme not in path
        )


def edit_of(path: str, text: str, patch: str) -> Edit | None:
    """Return an edit by its path and text, or the first of a patch (`*** Update File: …`); None without a path."""
    if not path:
        files = list(_FILE.finditer(patch[:_READ]))
        if not files:
            return None
        end = files[1].start() if len(files) > 1 else _READ
        path = files[0][1]
        text = "\n".join(_ADDED.findall(patch[files[0].end() : end]))
    return Edit(path.strip(), text)
