"""Tests of the installation with the real Claude Code, Codex, Gemini CLI and OpenCode: `make assistants`.

They come from npm, at the locked versions, and are kept in .assistants/. The model is a script; nothing leaves this
machine.
"""

import os
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.conformance.node import Programs, installed


def main() -> int:
    programs = installed(
        Path(__file__).with_name("node"),
        ROOT / ".assistants",
        "Node and four assistants (1.2 GB)",
    )
    os.environ["FOLKLORE_TEST_CLIENTS"] = str(_linked(programs))
    return pytest.main(
        [str(ROOT / "tests/assistants/test_assistants.py"), "-q", *sys.argv[1:]]
    )


def _linked(programs: Programs) -> Path:
    """Return a folder with a link to each program: those of packages need their install scripts, which do not run."""
    folder = programs.folder / "bin"
    folder.mkdir(exist_ok=True)
    found = {
        "claude": programs.claude,
        "opencode": programs.opencode,
        "node": programs.node,
    }
    found |= {name: programs.module(f".bin/{name}") for name in ("codex", "gemini")}
    for name, program in found.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(program)
    return folder


if __name__ == "__main__":
    sys.exit(main())
