"""The progress bars of `platformctl ingest` while files are uploaded and read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

_MOST_DOCUMENTS = 4
_NAME_WIDTH = 30
_BAR_WIDTH = 20


class IngestReading(NamedTuple):
    """A document's progress: `done` of `total`, in `unit`s."""

    document_id: str
    name: str
    done: int
    total: int
    unit: str


class Bars:
    """A bar for uploads, one for reading, and one for each document that takes long."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.table import Column

        name = Column(no_wrap=True, overflow="ellipsis", width=_NAME_WIDTH)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False, table_column=name),
            BarColumn(_BAR_WIDTH),
            TextColumn("{task.fields[count]}", markup=False, table_column=Column(no_wrap=True)),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._uploading: TaskID | None = None
        self._reading: TaskID | None = None
        self._documents: dict[str, TaskID] = {}

    @property
    def are_seen(self) -> bool:
        """Whether the bars are shown."""
        return not self._progress.disable

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def uploaded(self, done: int, total: int) -> None:
        """Show how many files were sent or skipped."""
        self._uploading = self._show(self._uploading, "Uploading", done, total)

    def waits(self, why: str, seconds: float) -> None:
        """Show for how long nothing goes on, and why; what comes next clears it."""
        task = self._uploading if self._reading is None else self._reading
        if task is not None:
            self._progress.update(task, description=f"{why}: waiting {seconds:.0f} s")

    def read(
        self, done: int, total: int, seconds_left: int | None, documents: Sequence[IngestReading]
    ) -> None:
        """Show how many documents were read, and some of those in progress."""
        left = "" if not seconds_left else ", about {}:{:02} left".format(*divmod(seconds_left, 60))
        self._reading = self._show(self._reading, f"Reading{left}", done, total)
        readings = {reading.document_id: reading for reading in documents[:_MOST_DOCUMENTS]}
        for over in self._documents.keys() - readings.keys():
            self._progress.remove_task(self._documents.pop(over))
        for key, reading in readings.items():
            task = self._documents.get(key)
            self._documents[key] = self._show(
                task, f"  {reading.name}", reading.done, reading.total, reading.unit
            )

    def _show(self, task: TaskID | None, text: str, done: int, total: int, unit: str = "") -> TaskID:
        values: dict[str, Any] = {
            "description": text,
            "completed": done,
            "total": total,
            "count": f"{done:,} of {total:,} {unit}".rstrip(),
        }
        if task is None:
            return self._progress.add_task(**values)
        self._progress.update(task, **values)
        return task
