"""Checks of `folklore doctor` on the screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from folklore.cli.output import paint, print_json, print_line
from folklore.memory.requests import without_nulls
from folklore.memory.results import Check

_COLOURS = {"ok": "green", "warning": "yellow", "failed": "red", "skipped": "yellow"}


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
