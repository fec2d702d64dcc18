"""Checks of `folklore doctor` on the screen."""

from collections.abc import Sequence
from dataclasses import asdict

from folklore.cli import screen
from folklore.cli.output import paint, print_json, print_line
from folklore.memory.requests import without_nulls
from folklore.memory.results import Check

_COLOURS = {"ok": "green", "warning": "yellow", "failed": "red", "skipped": "yellow"}
_INDENT = 19


def print_checks(checks: Sequence[Check], *, as_json: bool, ok: bool) -> None:
    """Print checks as lines or as JSON."""
    if as_json:
        print_json({"ok": ok, "checks": [without_nulls(asdict(check)) for check in checks]})
        return
    for check in checks:
        status = paint(f"{check.status:<8}", fg=_COLOURS[check.status])
        first, *rest = (
            screen.wrapped(check.detail, screen.columns() - _INDENT) if screen.is_terminal() else [check.detail]
        )
        print_line(f"{status}{check.name:<10} {first}")
        for line in rest:
            print_line(f"{'':<{_INDENT}}{line}")
        if check.hint:
            print_line(f"{'':<{_INDENT}}→ {check.hint}")
