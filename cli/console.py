"""Output for people and programs: results to standard output, everything else to standard error.

`NO_COLOR` is honored; outside a terminal there are no colors, and lines are not cut to a width.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table
    from rich.text import Text

_WIDE = 10_000
_GAP = 3
_MARGIN = 4
"""The columns that a paragraph needs besides labels and texts."""
_FOLDED = 20
"""The least width of a column whose words are longer, such as ids or paths."""


def out() -> Console:
    """The console for results."""
    return _console(stderr=False)


def err() -> Console:
    """The console for messages."""
    return _console(stderr=True)


def _plain_console() -> Console:
    """A console without colors and without a width."""
    from rich.console import Console

    return Console(highlight=False, width=_WIDE, color_system=None)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, highlight=False, width=None if stream.isatty() else _WIDE)


def print_json(value: Any) -> None:
    """Print a result for programs: one document of indented JSON."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=_json_value) + "\n")


def size(count: float) -> str:
    """A number of bytes in a readable unit."""
    for unit in ("bytes", "kB", "MB"):
        if count < 999.5:
            return f"{count:,.0f} {unit}" if unit == "bytes" or count >= 99.95 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} GB"


def _json_value(value: Any) -> str:
    """Times as the API writes them (ISO 8601), anything else as text."""
    return value.isoformat() if isinstance(value, datetime) else str(value)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str, *, wide: bool = False
) -> None:
    """Print rows under headings; without any, print `empty` to standard error.

    Cells are plain text; one that is a rich `Text` keeps its style. A `wide` table has one line per row,
    whatever the width of the screen. If the screen is too narrow for a table, each row becomes a paragraph.
    """
    from rich.table import Table
    from rich.text import Text

    cells = [[cell if isinstance(cell, Text) else Text(_plain(cell)) for cell in row] for row in rows]
    if not cells:
        note(empty)
        return
    widths = _column_widths(
        [[name, *(row[place].plain for row in cells)] for place, name in enumerate(columns)],
        _WIDE if wide else out().width,
    )
    if widths is None:
        _print_paragraphs(columns, cells)
        return
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, _GAP, 0, 0))
    for name, width in zip(columns, widths, strict=True):
        table.add_column(name.upper(), overflow="fold", width=width)
    for row in cells:
        table.add_row(*row)
    _print_table(table, wide=wide)


def _column_widths(columns: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """Column widths that fit into `room`; None if words would be broken.

    Only words that are too long even for a paragraph, such as paths, may be broken. Space that the words
    leave goes to long texts.
    """
    from rich.cells import cell_len

    whole = [max(map(cell_len, texts)) for texts in columns]
    words = [max((cell_len(word) for text in texts for word in text.split()), default=1) for texts in columns]
    left = room - _GAP * (len(columns) - 1)
    if sum(whole) <= left:
        return whole
    widths = [min(width, _FOLDED) for width in words]
    left -= sum(widths)
    if left < 0:
        return None
    for place, width in enumerate(words):
        more = min(left, width - widths[place])
        widths[place] += more
        left -= more
    paragraph = room - _MARGIN - max((cell_len(texts[0]) for texts in columns[1:]), default=0)
    if any(width < word <= paragraph for width, word in zip(widths, words, strict=True)):
        return None
    wanting = sorted(range(len(columns)), key=lambda place: whole[place] - widths[place])
    for number, place in enumerate(wanting):
        more = min(whole[place] - widths[place], left // (len(wanting) - number))
        widths[place] += more
        left -= more
    return widths


def _print_paragraphs(columns: Sequence[str], rows: Sequence[Sequence[Text]]) -> None:
    for number, row in enumerate(rows):
        if number:
            out().print()
        out().print(row[0])
        _print_table(_grid(zip(columns[1:], row[1:], strict=True)))


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print labels with their texts, one below the other; facts without text are left out."""
    from rich.text import Text

    _print_table(_grid((label, Text(text)) for label, text in facts))


def _grid(facts: Iterable[tuple[str, Text]]) -> Table:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for label, text in facts:
        if text:
            grid.add_row(f"  {label}", text)
    return grid


def _print_table(table: Table, *, wide: bool = False) -> None:
    """Print a table; outside a terminal, or if `wide`, without the padding of its last column."""
    console = out()
    if console.is_terminal and not wide:
        console.print(table)
        return
    console = _plain_console()
    with console.capture() as captured:
        console.print(table)
    sys.stdout.write("".join(line.rstrip() + "\n" for line in captured.get().splitlines()))


def _plain(cell: object) -> str:
    return "" if cell is None else str(cell)


def print_indented(text: Text, by: int) -> None:
    """Print a paragraph indented by `by` columns; wrapped only on a terminal."""
    from rich.padding import Padding
    from rich.text import Text

    console = out()
    if console.is_terminal:
        console.print(Padding(text, (0, 0, 0, by)))
        return
    for line in text.split("\n"):
        console.print(Text(" " * by) + line, soft_wrap=True)


def print_beside(head: Text, text: Text) -> None:
    """Print a head and a text; if `text` is wrapped, it stays to the right of the head."""
    _print_table(_beside(head, text))


def _beside(head: Text, text: Text) -> Table:
    from rich.table import Table

    grid = Table.grid(padding=0)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(head, text)
    return grid


class Busy:
    """A spinner with the current step and its duration; see `busy`."""

    def __init__(self, progress: Progress, text: str) -> None:
        self._progress = progress
        self._task = progress.add_task(f"{text} …", total=None)

    def step(self, text: str) -> None:
        """Show the current step. Outside a terminal, each step is a line."""
        if self._progress.disable:
            note(f"{text} …")
        self._progress.reset(self._task, description=f"{text} …")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Hide the spinner while something is printed."""
        self._progress.stop()
        yield
        self._progress.start()


@contextmanager
def busy(text: str) -> Iterator[Busy]:
    """Show on the terminal of standard error that work is in progress."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = err()
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield Busy(progress, text)


def done(text: str) -> None:
    """Report a success."""
    _line("✓", "green", text)


def note(text: str) -> None:
    """Report something worth knowing."""
    _line("•", "dim", text)


def warn(text: str) -> None:
    """Report something that needs attention."""
    _line("!", "yellow", text)


def failed(text: str, remedy: str = "") -> None:
    """Report a failure and its remedy."""
    _line("error:", "bold red", text)
    if remedy:
        _line("      ", "", remedy)


def _line(mark: str, style: str, text: str) -> None:
    """Print a message; if it is wrapped, it stays to the right of its mark."""
    from rich.text import Text

    console, head = err(), Text(f"{mark} ", style)
    console.print(_beside(head, Text(text)) if console.is_terminal else head + Text(text))


def styled_status(status: str) -> Any:
    """A status in its color."""
    from rich.text import Text

    styles = {"loaded": "green", "live": "green", "ok": "green", "failed": "bold red", "refused": "bold red"}
    return Text(status.replace("_", " "), styles.get(status, "yellow"))
