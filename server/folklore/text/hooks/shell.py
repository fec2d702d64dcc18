"""Commands by which an assistant reads a file: some have no tool of their own for that."""

import shlex
from collections.abc import Sequence

# Characters of a command that may show a file.
_LONGEST = 500
_PRINTERS = frozenset({"cat", "head", "tail", "less", "nl", "bat", "sed"})
# Programs of which an argument before the file may be a script or a count.
_WITH_ARGUMENT = frozenset({"sed", "head", "tail"})
_SHELL_SYNTAX = frozenset("|&;<>$`*?")
_LOGS = (".log", ".out", ".err")


def file_shown(command: str) -> str:
    """Return the file that a command prints: `cat a.py`, `sed -n 1,80p a.py`; empty for any other command.

    What a log file holds is no text of the project.
    """
    if len(command) > _LONGEST or "\n" in command.strip():
        return ""
    try:
        words = shlex.split(command)
    except ValueError:  # a quotation without its end
        return ""
    if not words or words[0] not in _PRINTERS:
        return ""
    if not _SHELL_SYNTAX.isdisjoint(command):
        return ""

    program, *arguments = words
    values = [word for word in arguments if not word.startswith(("-", "+"))]
    if not values or values[-1].endswith(_LOGS):
        return ""
    if program == "sed" and not _only_prints(arguments, values):
        return ""
    if program not in _WITH_ARGUMENT and len(values) > 1:
        return ""
    return values[-1]


def _only_prints(arguments: Sequence[str], values: Sequence[str]) -> bool:
    """Return whether sed prints lines of one file: its values are a script and the file."""
    return "-n" in arguments and len(values) == 2
