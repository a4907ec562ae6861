"""`platformctl ingest`: upload files and folders to a knowledge base, and wait until they are searchable."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import AsJson
from cli.texts import App, examples

if TYPE_CHECKING:
    from cli.ingesting import Report

app = App()


@app.command(
    epilog=examples(
        ("platformctl ingest handbook.pdf --kb Handbook", "one file"),
        ("platformctl ingest ~/papers --kb Papers", "a folder with all below it"),
        ("platformctl ingest ~/papers --kb Papers", "again: only what is new"),
        after="Sign in first, with 'platformctl login URL'.",
    )
)
def ingest(
    paths: Annotated[list[Path], typer.Argument(help="Files and folders.", exists=True)],
    base: Annotated[
        str, typer.Option("--kb", help="Name or id of the knowledge base; created if there is none.")
    ],
    hidden: Annotated[bool, typer.Option(help="Upload hidden files, too.")] = False,
    wait: Annotated[bool, typer.Option(help="Wait until the documents can be searched.")] = True,
    as_json: AsJson = False,
) -> None:
    """Upload files and folders. What is there already is skipped, so it can be run again after anything."""
    from cli import console, running
    from cli.failures import CommandFailed
    from cli.ingesting import ingest_all

    report = running.run(ingest_all(paths, base, hidden=hidden, wait=wait))
    if as_json:
        console.print_json(asdict(report))
    else:
        _tell(report, wait=wait)
    if report.problems:
        files = report.files + report.inside
        raise CommandFailed(f"{len(report.problems)} of {files} files failed")


def _tell(report: Report, *, wait: bool) -> None:
    from cli import console

    for name, why in report.problems + report.notices:
        console.warn(f"{name}: {why}")
    text = f"{report.uploaded} uploaded, {report.skipped} there already"
    console.done(f"{text}{_read(report)}" if wait else text)
    if report.documents < report.completed:
        console.note(
            f"Files of the same content are one document: {report.documents} for {report.completed} files"
        )


def _read(report: Report) -> str:
    text = f", {report.completed} of them read"
    if report.inside:
        text += f"; {report.inside} more from inside, {report.inside_completed} of them read"
    return text
