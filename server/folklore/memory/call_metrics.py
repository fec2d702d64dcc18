"""What a process may be told of its own work, to be counted by whoever runs it."""

from __future__ import annotations

from folklore.model import Answer


class Meter:
    """Told of calls, answers and stores; this one counts nothing. The HTTP server has one that does.

    Whoever counts keeps names of tools, codes, branches and numbers, and never a text, a question, a namespace or a
    person.
    """

    def called(self, tool: str, outcome: str, seconds: float) -> None:
        """A tool was called; `outcome` is ok, an error's code, or crashed, cancelled."""

    def answered(self, answer: Answer) -> None:
        """A recall or a search by keyword found this."""

    def stored(self, memories: int) -> None:
        """A batch of so many was stored and is committed."""
