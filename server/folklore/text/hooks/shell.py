"""Commands by which an assistant reads a file: some have no tool of their own for that."""

import shlex

# Characters of a command that may show a file.
_LONGEST = 500
_PRINTERS = frozenset({"cat", "head", "tail", "less", "nl", "bat", "sed"})
_LOGS = (".log", ".out", ".err")


def file_shown(command: str) -> str:
    """Return the file that a command prints: `cat a.py`, `sed -n 1,80p a.py`; empty for any other command.

    What a log file holds is no text of the project.
    """
    if len(command) > _LONGEST or "\n" in command.strip():
        return ""
    try:
        program, *words = shlex.split(command) or [""]
    except ValueError:  # a quotation without its end
        return ""
    if program not in _PRINTERS or not set("|&;<>$`*?").isdisjoint(command):
        return ""
    values = [word for word in words if not word.startswith(("-", "+"))]
    if not values or values[-1].endswith(_LOGS):
        return ""
    is_script = program == "sed" and (len(values) != 2 or "-n" not in words)
    is_several = program not in ("sed", "head", "tail") and len(values) > 1
    if is_script or is_several:
        return ""
    return values[-1]
