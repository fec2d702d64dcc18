"""The terminal: its width, wide and control characters, styles, the pager."""

import os
import re
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil

import click

from folklore.errors import FolkloreError, InvalidInput

_TOKENS = re.compile(r"\s+|\S+")
# Everything that may act on a terminal, and marks that reorder text. Line breaks and tabs stay.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
_STYLES = re.compile(r"\x1b\[[0-9;]*m")
_STYLE_OR_CONTROL = re.compile(f"({_STYLES.pattern})|{_CONTROLS.pattern}")
_LEAST_WIDTH = 20
_SILENT_SECONDS = 2.0
_TICK_SECONDS = 0.2
# What a command has printed so far, if it may be shown by a pager.
_page: list[str] | None = None
show_page: Callable[[str, bool | None], None] = click.echo_via_pager


def is_terminal() -> bool:
    """Return True if stdout is a terminal."""
    return sys.stdout.isatty()


def has_styles() -> bool:
    """Return True if what is printed may have styles: on a terminal, unless NO_COLOR is set."""
    return is_terminal() and not os.environ.get("NO_COLOR")


def has_progress() -> bool:
    """Return True if stderr is a terminal on which a line can be written anew."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def columns() -> int:
    """Return the width of the terminal; 100 without one."""
    return max(shutil.get_terminal_size((100, 24)).columns, _LEAST_WIDTH)


def paint(text: str, **style: bool | str) -> str:
    """Return text in a style of click, if stdout is a terminal and NO_COLOR is not set."""
    if not style or not text or not has_styles():
        return text
    return click.style(text, **style)  # type: ignore[arg-type]


def visible(text: str) -> str:
    r"""Return text in which control characters are written out, such as \x1b: the terminal must not obey a memory."""
    return _CONTROLS.sub(lambda match: ascii(match[0])[1:-1], text)


def cells(text: str) -> int:
    """Return how many columns a text takes, without its styles: two for each wide character."""
    if "\x1b" in text:
        text = _STYLES.sub("", text)
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # 10 ms, and only for other scripts and emoji

    return cell_len(text)


def cut(text: str, width: int) -> str:
    """Return a text in at most so many columns, with an ellipsis if it is longer."""
    if cells(text) <= width:
        return text
    end = min(len(text), width)
    while cells(text[:end]) > width - 1:
        end -= 1
    return f"{text[:end]}…"


def wrapped(text: str, width: int) -> Iterator[str]:
    """Yield the lines of a text, folded at white space, with the indent of their line.

    A word that is longer than a line (a path, an address) stays whole, so that it can be copied; one of wide characters
    is folded anywhere.
    """
    for line in text.expandtabs(8).split("\n"):
        if cells(line) <= width:
            yield line
            continue
        indent = line[: len(line) - len(line.lstrip())]
        if cells(indent) > width // 2:
            indent = ""
        if not line.isascii():
            yield from _folded(line, width, indent)
            continue
        lines = textwrap.wrap(
            line,
            width,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        yield from lines or [""]


def _folded(text: str, width: int, indent: str) -> Iterator[str]:
    """Yield the lines of a text with other than ASCII characters."""
    line = ""
    used = 0
    for token in _TOKENS.findall(text):
        size = cells(token)
        # A script without spaces, or wide: as many characters as fit.
        if size <= width - cells(indent) or size == len(token):
            parts = [token]
        else:
            parts = list(token)
        for part in parts:
            size = cells(part)
            if line.strip() and used + size > width:
                yield line.rstrip()
                line = indent
                used = cells(indent)
                if part.isspace():
                    continue
            line += part
            used += size
    if line.strip():
        yield line.rstrip()


def echo(text: str = "") -> None:
    """Print a line on stdout, by the pager if there is one; of control characters, only our styles reach a terminal."""
    if has_styles():
        text = _STYLE_OR_CONTROL.sub(lambda match: match[1] or visible(match[0]), text)
    else:
        text = visible(text)
    if _page is None:
        click.echo(text)
    else:
        _page.append(f"{text}\n")


def print_line(text: str = "", **style: bool | str) -> None:
    """Print a text on stdout in a style of click, folded to the width of the terminal; a pipe gets it as it is."""
    folds = is_terminal() and "\x1b" not in text
    for line in wrapped(text, columns()) if folds else [text]:
        echo(paint(line, **style))


def confirm(question: str) -> None:
    """Ask a question on the terminal. Raises FolkloreError unless the answer is yes, InvalidInput without an answer."""
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():  # Ctrl-C
            raise
        hint = "Repeat the command with it."
        raise InvalidInput(
            "--yes", "is needed without a terminal.", hint=hint
        ) from None
    if not agreed:
        raise FolkloreError("The answer was not yes: nothing was changed.")


def print_error(text: str) -> None:
    """Print a text on stderr, folded to the width of a terminal."""
    text = visible(text)
    for line in wrapped(text, columns()) if sys.stderr.isatty() else [text]:
        click.echo(line, err=True)


@contextmanager
def paged() -> Iterator[None]:
    """Show what the block prints by a pager ($PAGER, else less), if it is longer than the terminal."""
    global _page
    if _page is not None or not (is_terminal() and sys.stdin.isatty()):
        yield
        return
    printed: list[str] = []
    _page = printed
    try:
        yield
    finally:
        _page = None
        _show("".join(printed))


def _show(text: str) -> None:
    """Print a text, by a pager if it is longer than the terminal."""
    width, height = shutil.get_terminal_size((100, 24))
    lines = 0
    for line in text.splitlines():
        lines += max(ceil(cells(line) / width), 1)
    if lines < height:
        click.echo(text, nl=False)
    else:
        keeps_styles = None if "LESS" in os.environ else True  # which LESS may remove
        show_page(text.removesuffix("\n"), keeps_styles)


class Progress:
    """A line on stderr while work takes longer than two seconds: the present phase, the time, an estimate.

    A phase within another is shown in its place.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._began = 0.0
        self._lock = threading.Lock()
        self._line = ""

    @contextmanager
    def phase(
        self, text: str, seconds: float | None
    ) -> Iterator[Callable[[int, int], None]]:
        """Show a phase for the length of the block."""
        began = time.monotonic()
        steps = (0, 0)
        end = threading.Event()

        def advance(done: int, total: int) -> None:
            nonlocal steps
            steps = done, total

        def estimate(passed: float) -> str:
            done, total = steps
            if done and not total:
                return f", {done:,}"
            if done:
                return f", {done:,} of {total:,}, about {max(passed / done * (total - done), 1):.0f} s left"
            if seconds is None:
                return ""
            return f", usually {seconds:.0f} s"

        def tick() -> None:
            while not end.wait(_TICK_SECONDS):
                now = time.monotonic()
                if now - self._began >= _SILENT_SECONDS and self._texts[-1] is text:
                    self._write(f"{text} … {now - began:.0f} s{estimate(now - began)}")

        if not self._texts:
            self._began = began
        self._texts.append(text)
        ticking = threading.Thread(target=tick, name="folklore-phase", daemon=True)
        ticking.start()
        try:
            yield advance
        finally:
            end.set()
            ticking.join()
            self._texts.remove(text)
            self._write("")

    def _write(self, line: str) -> None:
        with self._lock:
            if line != self._line:
                text = cut(line, columns() - 1)
                spaces = " " * (cells(self._line) - cells(text))
                sys.stderr.write(f"\r{text}{spaces}" + ("" if text else "\r"))
                sys.stderr.flush()
                self._line = text
