"""Checks of `folklore doctor`: each has an outcome, and the next step where it failed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from folklore.cli.output import paint, print_json, print_line
from folklore.errors import FolkloreError, Unavailable
from folklore.memory.requests import without_nulls
from folklore.phases import phase

_COLOURS = {"ok": "green", "warning": "yellow", "failed": "red", "skipped": "yellow"}


@dataclass(frozen=True, slots=True)
class Check:
    """Outcome of one check. `hint` is the next step."""

    name: str
    status: Literal["ok", "warning", "failed", "skipped"]
    detail: str
    hint: str | None = None


class Doubt(FolkloreError):
    """Finding that hinders nothing now, and that its reader should know."""


@dataclass(slots=True)
class Checks:
    """The checks so far."""

    checks: list[Check] = field(default_factory=list)
    unreachable: bool = False

    async def check(self, name: str, look: Callable[[], Awaitable[str]], *, needs: bool = True) -> None:
        """Run one check; its detail is the text that `look` returns, or the message of its error."""
        if not needs:
            self.checks.append(Check(name, "skipped", "needs an earlier check to be ok"))
            return
        try:
            with phase(f"Checking: {name}"):
                self.checks.append(Check(name, "ok", await look()))
        except Doubt as doubt:
            self.checks.append(Check(name, "warning", doubt.message, doubt.hint))
        except FolkloreError as error:
            self.unreachable |= isinstance(error, Unavailable)
            self.checks.append(Check(name, "failed", error.message, error.hint))

    @property
    def failed(self) -> bool:
        """True if any check failed."""
        return any(check.status == "failed" for check in self.checks)

    @property
    def exit_code(self) -> int:
        """0 if no check failed, 3 if something cannot be reached, else 1."""
        return (3 if self.unreachable else 1) if self.failed else 0


def print_checks(checks: Sequence[Check], *, as_json: bool, ok: bool) -> None:
    """Print checks as lines or as JSON."""
    if as_json:
        print_json({"ok": ok, "checks": [without_nulls(asdict(check)) for check in checks]})
        return
    for check in checks:
        status = paint(f"{check.status:<8}", fg=_COLOURS[check.status])
        print_line(f"{status}{check.name:<10} {check.detail}")
        if check.hint:
            print_line(f"{'':<19}→ {check.hint}")
