"""Logs: all go to stderr, and contain no text of libraries below a warning."""

import json
import subprocess
import sys

import pytest
from structlog.testing import capture_logs

from folklore.log import Outage

PROGRAM = """
import logging, sys, warnings
import structlog
early = structlog.get_logger("early")
from folklore import log
log.configure(sys.argv[1], sys.argv[2])
logging.basicConfig(stream=sys.stdout)  # as the bundled model's package does when it is imported
early.info("from an early logger", count=3)
structlog.get_logger().warning("of ours")
logging.getLogger("library").warning("of %s", "theirs")
logging.getLogger("httpx").info("chatter")
structlog.get_logger().debug("details")
try:
    1 / 0
except ZeroDivisionError:
    structlog.get_logger().exception("crashed")
"""


def logged(level: str, form: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, level, form],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert done.stdout == ""
    return done.stderr


def test_the_json_format_writes_one_object_per_line() -> None:
    entries = [json.loads(line) for line in logged("info", "json").splitlines()]

    assert [entry["event"] for entry in entries] == [
        "from an early logger",
        "of ours",
        "of theirs",
        "crashed",
    ]
    assert [entry["level"] for entry in entries] == [
        "info",
        "warning",
        "warning",
        "error",
    ]
    assert all(entry["timestamp"].endswith("Z") for entry in entries)
    assert entries[0]["count"] == 3
    assert "ZeroDivisionError" in entries[3]["exception"]


def test_the_console_format_has_no_colours_in_a_file() -> None:
    text = logged("info", "console")

    assert "\x1b" not in text
    assert "from an early logger" in text
    assert "ZeroDivisionError" in text
    assert "chatter" not in text
    assert "details" not in text


def test_lines_below_the_level_are_not_written() -> None:
    errors = {
        json.loads(line)["event"] for line in logged("error", "json").splitlines()
    }
    everything = {
        json.loads(line)["event"] for line in logged("debug", "json").splitlines()
    }

    assert errors == {"crashed"}
    assert "details" in everything
    assert "chatter" not in everything, "debug lines of libraries can contain arguments"


@pytest.mark.parametrize(
    "first",
    [
        "get_logger('of.us').warning('of ours')",
        "logging.getLogger('theirs').warning('of ours')",
    ],
)
def test_the_first_line_configures_the_logs_and_imports_structlog(first: str) -> None:
    script = (
        "import logging, sys\n"
        "from folklore.log import configure_on_use, get_logger\n"
        "configure_on_use('warning', 'json')\n"
        "assert 'structlog' not in sys.modules\n"
        f"{first}\n"
        "get_logger('of.us').info('below the level')\n"
    )

    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    [line] = ran.stderr.splitlines()
    assert json.loads(line)["event"] == "of ours"


def test_what_began_before_an_outage_or_its_end_shows_nothing() -> None:
    with capture_logs() as entries:
        outage = Outage("begun", "over")
        before = outage.period
        outage.failed("refused", before)
        during = outage.period
        outage.over(before)
        outage.failed("refused", before)
        outage.over(during)
        outage.failed("aborted", during)
        outage.over(during)

    assert [(entry["event"], entry.get("failed")) for entry in entries] == [
        ("begun", None),
        ("over", 2),
    ]
