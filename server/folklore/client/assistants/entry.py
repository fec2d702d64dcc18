"""Folklore's entry in the settings of another program: its names, and the errors of an edit."""

import re
from collections.abc import Mapping
from typing import Any

Entry = Mapping[str, Any]

NAME = "folklore"
HOOKS = "hooks"
HOOK_TOOL = "client_hook"
BOM = "\ufeff"


class EditError(ValueError):
    """Text that is not valid, or that cannot be edited. `hint` is the next step for its owner."""

    def __init__(
        self, message: str, hint: str = "Correct it, then run this command again."
    ) -> None:
        super().__init__(message)
        self.hint = hint


def not_editable(key: str) -> EditError:
    """Return the error of a file in which an edit of this section would change other values too."""
    return EditError(
        f"has `{key}` twice or in a form that Folklore cannot edit; nothing was changed.",
        "Edit it by hand; `folklore install --print` shows the entry.",
    )


def invalid(language: str, problem: str) -> EditError:
    """Return the error of a text that is not valid JSON or TOML."""
    return EditError(f"is not valid {language} ({problem}); nothing was changed.")


def newline_of(text: str) -> str:
    """Return how the lines of a text end."""
    match = re.search(r"\r?\n", text)
    return match.group() if match else "\n"
