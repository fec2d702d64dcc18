"""Screens of the command line: on terminals of 80 and 160 columns, with NO_COLOR, and in a pipe."""

import asyncio
import time
from pathlib import Path

import pytest

from folklore.cli import screen
from folklore.cli.output import print_checks
from folklore.contract.health import Check
from folklore.engine import Engine
from folklore.phases import show_phases
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.terminal import on_terminal

LONG = (
    "The gateway of the billing service listens on port 8443 behind the load balancer of the harbour. "
    * 3
)
WIDE = (
    "課金サービスの入口は港の負荷分散装置の後ろで八四四三番の口を開けている。" * 4
    + " 🚢 gateway 👩‍👩‍👧 ❤️"
)
COMMANDS = (
    ("list",),
    ("recall", "where does the gateway listen?"),
    ("search", "gateway"),
    ("show", "1", "2"),
    ("history", "1"),
    ("log",),
    ("status",),
    ("--help",),
    ("shwo",),
    ("show", "ffffffff"),
)


@pytest.fixture(name="stored")
async def _stored(folklore: CommandLine) -> CommandLine:
    for text in (LONG, WIDE, "Ada reviews the gateway on Mondays."):
        await folklore.done(
            "store",
            text,
            "--tag",
            "area/billing",
            "--source",
            "wiki/harbour/gateway.md",
        )
    await folklore.done("store", "The gateway of the shop is closed.", "-n", "shop")
    await folklore.done("list")
    return folklore


async def seen(
    folklore: CommandLine, *arguments: object, **options: object
) -> list[str]:
    shown = await asyncio.to_thread(
        on_terminal,
        folklore.environment,
        *arguments,
        **options,  # type: ignore[arg-type]
    )
    return shown.lines


async def test_no_line_is_wider_than_the_terminal(stored: CommandLine) -> None:
    for arguments in COMMANDS:
        lines = await seen(stored, *arguments, columns=80)

        assert lines, arguments
        # A word that is longer, such as the path of a home, stays whole.
        assert [
            line for line in lines if screen.cells(line) > 80 and " " in line.strip()
        ] == [], arguments


async def test_a_terminal_has_styles_and_none_with_no_color_or_in_a_pipe(
    stored: CommandLine,
) -> None:
    plain = await asyncio.to_thread(
        on_terminal, stored.environment, "recall", "gateway", NO_COLOR="1"
    )
    coloured = await asyncio.to_thread(
        on_terminal, stored.environment, "recall", "gateway"
    )
    piped = await asyncio.to_thread(stored.process, "recall", "gateway")

    assert "\x1b[31m\x1b[1mgateway\x1b[0m" in coloured.raw
    assert "\x1b[" not in plain.raw
    assert "\x1b[" not in piped.out
    assert piped.err == ""
    assert "gateway" in piped.out


async def test_a_pipe_gets_texts_unfolded_in_full(stored: CommandLine) -> None:
    shown = await asyncio.to_thread(stored.process, "show", "4")

    assert LONG.strip() in shown.out


async def test_inflected_words_of_a_question_are_highlighted(
    folklore: CommandLine,
) -> None:
    await folklore.done("store", "Deployments of the gateway run at night.")

    shown = await asyncio.to_thread(
        on_terminal, folklore.environment, "recall", "when do we deploy?"
    )

    assert "\x1b[31m\x1b[1mDeployments\x1b[0m" in shown.raw


async def test_results_of_several_projects_are_grouped_with_their_rank(
    stored: CommandLine,
) -> None:
    lines = (await stored.done("search", "gateway", "-n", "*")).splitlines()
    numbers = [int(line.split(".")[0]) for line in lines if line[:2].strip().isdigit()]

    assert [line for line in lines if line in ("notes", "shop")] in (
        ["notes", "shop"],
        ["shop", "notes"],
    )
    assert sorted(numbers) == [1, 2, 3, 4]


async def test_long_output_goes_through_the_pager_on_a_terminal_alone(
    stored: CommandLine, tmp_path: Path
) -> None:
    kept = tmp_path / "paged.txt"
    pager = tmp_path / "pager.sh"
    pager.write_text(f"#!/bin/sh\ncat > {kept}\n")
    pager.chmod(0o755)

    short = await asyncio.to_thread(
        on_terminal, stored.environment, "list", "--limit", "1", PAGER=str(pager)
    )
    assert "Ada" not in short.text
    assert not kept.exists()
    await asyncio.to_thread(
        on_terminal,
        stored.environment,
        "list",
        "--format",
        "detailed",
        PAGER=str(pager),
    )
    assert "Ada reviews" in kept.read_text()
    kept.unlink()
    piped = await asyncio.to_thread(
        stored.process, "list", "--format", "detailed", PAGER=str(pager)
    )
    assert "Ada reviews" in piped.out
    assert not kept.exists()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\x07b\x08c\rd", "a\\x07b\\x08c\\rd"),
        ("left\u202eright", "left\\u202eright"),
        ("\x9b31m", "\\x9b31m"),
        ("tab\tand\nline", "tab\tand\nline"),
    ],
)
def test_control_characters_are_written_out(text: str, shown: str) -> None:
    assert screen.visible(text) == shown


async def test_the_file_name_of_an_import_cannot_act_on_the_terminal(
    folklore: CommandLine, tmp_path: Path
) -> None:
    shown = await asyncio.to_thread(
        on_terminal, folklore.environment, "list", "--kind", "a\x1b[2Jb"
    )

    assert shown.code == 2
    assert "\x1b[2J" not in shown.raw


@pytest.mark.parametrize("width", [20, 33, 80])
def test_folded_lines_fit_and_lose_nothing(width: int) -> None:
    for text in (LONG, WIDE, "    indented " * 20, "東京 " * 50):
        lines = list(screen.wrapped(text, width))

        assert all(screen.cells(line) <= width for line in lines)
        assert "".join("".join(lines).split()) == "".join(text.split())


def test_the_findings_of_doctor_are_folded_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(screen, "is_terminal", lambda: True)
    monkeypatch.setattr(screen, "columns", lambda: 80)

    print_checks([Check("tls", "warning", "encrypted " * 20, "certificate " * 20)])

    lines = capsys.readouterr().out.splitlines()
    assert {word for line in lines for word in line.split()} == {
        "warning",
        "tls",
        "encrypted",
        "→",
        "certificate",
    }
    assert max(map(len, lines)) <= 80


def test_a_long_path_stays_whole() -> None:
    path = "/srv/" + "very-long-folder/" * 12

    assert path in list(screen.wrapped(f"See {path} for more.", 40))


def test_a_cut_text_fits_with_its_ellipsis() -> None:
    assert screen.cut("short", 10) == "short"
    assert screen.cells(screen.cut(WIDE, 21)) <= 21
    assert screen.cut(WIDE, 21).endswith("…")


def test_a_phase_is_named_with_an_estimate_while_it_lasts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "_SILENT_SECONDS", 0.0)
    monkeypatch.setattr(screen, "_TICK_SECONDS", 0.01)
    waiting = screen.Progress()

    with waiting.phase("Working", None), waiting.phase("Moving", None) as advance:
        advance(1, 4)
        time.sleep(0.2)
        shown = capsys.readouterr().err

    assert "Moving … 0 s, 1 of 4, about 1 s left" in shown
    assert "Working" not in shown.split("Moving", 1)[1]
    after = capsys.readouterr().err
    assert after.split("\r")[-2].strip() == after.split("\r")[-1] == ""


def test_the_creation_of_the_embedded_database_is_a_phase(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "_SILENT_SECONDS", 0.0)
    monkeypatch.setattr(screen, "_TICK_SECONDS", 0.01)
    engine = Engine(tmp_path / "home")
    show_phases(screen.Progress().phase)
    try:
        engine.start()
    finally:
        show_phases(None)
        engine.stop()

    shown = capsys.readouterr().err
    assert "Starting the embedded Postgres …" in shown
    assert "Creating the embedded database, once … 0 s, usually 5 s" in shown
