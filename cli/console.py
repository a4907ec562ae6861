"""Writing for people and for programs: results to standard output, everything else to standard error.

`NO_COLOR` is honoured; away from a terminal there is neither colour nor a line cut to its width.
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
"""What a paragraph takes from the screen beside its labels and texts."""
_FOLDED = 20
"""The narrowest that a column may get for a word that is longer, such as an id or a path."""


def out() -> Console:
    """The console of results."""
    return _console(stderr=False)


def err() -> Console:
    """The console of messages."""
    return _console(stderr=True)


def _plain_console() -> Console:
    """Neither colours nor a width."""
    from rich.console import Console

    return Console(highlight=False, width=_WIDE, color_system=None)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, highlight=False, width=None if stream.isatty() else _WIDE)


def print_json(value: Any) -> None:
    """A result for a program: indented JSON, one document."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=_json_value) + "\n")


def size(count: float) -> str:
    """Bytes in the unit that people would name."""
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
    """Rows under headings; `empty` is said on standard error when there are none.

    Cells are plain text; one that is a rich `Text` keeps its style. A `wide` table has one line for each row,
    whatever the width of the screen. Where the screen is too narrow for a table, each row is a paragraph.
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
    """A width for each column's texts, so that all fit into `room`; None where words would be cut in pieces.

    Only words that would be too long for a paragraph, such as a path, may be. What is left when all words
    have room goes to long texts.
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
    """Labels and texts below each other; a fact without text is left out."""
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
    """As it is on a terminal; elsewhere, and when `wide`, without the blanks that fill its last column."""
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
    """A paragraph on standard output, `by` columns to the right; wrapped on a terminal only."""
    from rich.padding import Padding
    from rich.text import Text

    console = out()
    if console.is_terminal:
        console.print(Padding(text, (0, 0, 0, by)))
        return
    for line in text.split("\n"):
        console.print(Text(" " * by) + line, soft_wrap=True)


def print_beside(head: Text, text: Text) -> None:
    """A line with a head; where `text` is wrapped, it stays to the right of the head."""
    _print_table(_beside(head, text))


def _beside(head: Text, text: Text) -> Table:
    from rich.table import Table

    grid = Table.grid(padding=0)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(head, text)
    return grid


class Busy:
    """A spinner with the step that is under way and the time it has taken; see `busy`."""

    def __init__(self, progress: Progress, text: str) -> None:
        self._progress = progress
        self._task = progress.add_task(f"{text} …", total=None)

    def step(self, text: str) -> None:
        """Say what is done now. Away from a terminal each step is a line."""
        if self._progress.disable:
            note(f"{text} …")
        self._progress.reset(self._task, description=f"{text} …")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take the spinner off the screen while something is printed."""
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
    """Something worked."""
    _line("✓", "green", text)


def note(text: str) -> None:
    """Something worth knowing."""
    _line("•", "dim", text)


def warn(text: str) -> None:
    """Something that needs attention."""
    _line("!", "yellow", text)


def failed(text: str, remedy: str = "") -> None:
    """Something went wrong, and what to do about it."""
    _line("error:", "bold red", text)
    if remedy:
        _line("      ", "", remedy)


def _line(mark: str, style: str, text: str) -> None:
    """A message; where it is wrapped, it stays to the right of its mark."""
    from rich.text import Text

    console, head = err(), Text(f"{mark} ", style)
    console.print(_beside(head, Text(text)) if console.is_terminal else head + Text(text))


def styled_status(status: str) -> Any:
    """A status in its colour."""
    from rich.text import Text

    styles = {"loaded": "green", "live": "green", "ok": "green", "failed": "bold red", "refused": "bold red"}
    return Text(status, styles.get(status, "yellow"))
