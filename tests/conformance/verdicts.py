"""Verdicts over the checks of two servers, without input or output."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from enum import StrEnum

# Scenario → check → status, as the suite words it: SUCCESS, INFO, SKIPPED, WARNING, FAILURE.
Scenarios = Mapping[str, Mapping[str, str]]

_BAD = ("WARNING", "FAILURE")
_OF_EVERY_SCENARIO = {
    "wire-schema-valid"
}  # whatever was sent fits the schema, even if it was only a refusal


class Verdict(StrEnum):
    """Verdict over one line of the report."""

    PASSED = "passed"
    NOT_OFFERED = "not offered"
    BOTH_FAIL = "both fail"
    BOTH_SKIP = "both skip"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Line:
    """Row of the table."""

    what: str
    verdict: Verdict
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Waiver:
    """Checks of a feature that the product does not offer, with the reason."""

    because: str
    checks: Set[str]


def compare(
    ours: Scenarios, theirs: Scenarios, waivers: Mapping[str, Waiver]
) -> list[Line]:
    """A line for each scenario that ran on either side or is waived."""
    return [
        _line(
            scenario,
            ours.get(scenario, {}),
            theirs.get(scenario, {}),
            waivers.get(scenario),
        )
        for scenario in sorted({*ours, *theirs, *waivers})
    ]


def _line(
    scenario: str,
    ours: Mapping[str, str],
    theirs: Mapping[str, str],
    waiver: Waiver | None,
) -> Line:
    if not ours or not theirs:
        return Line(
            scenario,
            Verdict.FAILED,
            f"did not run on {'the reference' if ours else 'Folklore'}",
        )
    behind = _behind(ours, theirs)
    waived = waiver.checks if waiver else frozenset()
    passed = {check for check, status in ours.items() if status == "SUCCESS"}
    if unexplained := behind - waived:
        return Line(
            scenario,
            Verdict.FAILED,
            f"behind the reference: {', '.join(sorted(unexplained))}",
        )
    if stale := waived & (passed | (waived - {*ours, *theirs})):
        return Line(
            scenario, Verdict.FAILED, f"waived for nothing: {', '.join(sorted(stale))}"
        )
    if waiver:
        detail = f"{len(waived)} checks, {len(passed)} others pass: {waiver.because}"
        return Line(scenario, Verdict.NOT_OFFERED, detail)
    if shared := {check for check, status in ours.items() if status in _BAD}:
        return Line(scenario, Verdict.BOTH_FAIL, f"{len(shared)} of {len(ours)} checks")
    if not passed - _OF_EVERY_SCENARIO:
        return Line(
            scenario, Verdict.BOTH_SKIP, "asks for an extension that neither declares"
        )
    return Line(scenario, Verdict.PASSED, f"{len(passed)} checks")


def _behind(ours: Mapping[str, str], theirs: Mapping[str, str]) -> Set[str]:
    """Checks that the reference passes and we do not (skipped and absent ones too), or that go badly here alone."""
    missed = {
        check
        for check, status in theirs.items()
        if status == "SUCCESS" and ours.get(check) != "SUCCESS"
    }
    worse = {
        check
        for check, status in ours.items()
        if status in _BAD and theirs.get(check) not in _BAD
    }
    return missed | worse
