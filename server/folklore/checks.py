"""Checks, as `folklore doctor` and the console show them: each has an outcome, and the next step where it failed."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from folklore.contract.health import Check
from folklore.errors import FolkloreError, Unavailable
from folklore.phases import phase


class Doubt(FolkloreError, has_code=False):
    """Finding that hinders nothing now, and that its reader should know."""


@dataclass(slots=True)
class Checks:
    """The checks so far."""

    checks: list[Check] = field(default_factory=list)
    unreachable: bool = False

    async def check(
        self, name: str, look: Callable[[], Awaitable[str]], *, needs: bool = True
    ) -> None:
        """Run one check; its detail is the text that `look` returns, or the message of its error."""
        if not needs:
            self.checks.append(
                Check(name, "skipped", "needs an earlier check to be ok")
            )
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
