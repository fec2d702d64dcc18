"""Logs go to stderr, all of them: stdout belongs to the protocol and to results."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import logging, sys, warnings
import structlog
early = structlog.get_logger("early")
from folklore import log
log.configure(sys.argv[1], sys.argv[2])
logging.basicConfig(stream=sys.stdout)  # as the bundled model's package does when it is imported
early.info("from an early logger", count=3)
structlog.get_logger().warning("of ours")
logging.getLogger("somebody.else").warning("of %s", "theirs")
logging.getLogger("httpx").info("chatter")
structlog.get_logger().debug("details")
try:
    1 / 0
except ZeroDivisionError:
    structlog.get_logger().exception("crashed")
"""


def logged(level: str, form: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, level, form], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout == ""
    return done.stderr


def test_every_line_is_json_for_machines() -> None:
    entries = [json.loads(line) for line in logged("info", "json").splitlines()]

    assert [entry["event"] for entry in entries] == ["from an early logger", "of ours", "of theirs", "crashed"]
    assert [entry["level"] for entry in entries] == ["info", "warning", "warning", "error"]
    assert all(entry["timestamp"].endswith("Z") for entry in entries)
    assert entries[0]["count"] == 3
    assert "ZeroDivisionError" in entries[3]["exception"]


def test_people_read_plain_lines_without_colours_in_a_file() -> None:
    text = logged("info", "console")

    assert "\x1b" not in text
    assert "from an early logger" in text
    assert "ZeroDivisionError" in text
    assert "chatter" not in text
    assert "details" not in text


def test_the_level_decides_what_is_said() -> None:
    errors = {json.loads(line)["event"] for line in logged("error", "json").splitlines()}
    everything = {json.loads(line)["event"] for line in logged("debug", "json").splitlines()}

    assert errors == {"crashed"}
    assert "details" in everything
    assert "chatter" not in everything, "what libraries say at their debug level can name arguments"
