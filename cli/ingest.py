"""`platformctl ingest`: upload files and folders to a knowledge base, and wait until they can be asked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.texts import App, examples

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
) -> None:
    """Upload files and folders. What is there already is skipped, so it can be run again after anything."""
    from cli import console, running
    from cli.failures import CommandFailed
    from cli.ingesting import ingest_all

    report = running.run(ingest_all(paths, base, hidden=hidden, wait=wait))
    for name, why in report.problems:
        console.warn(f"{name}: {why}")
    text = f"{report.uploaded} uploaded, {report.skipped} there already"
    console.done(f"{text}, {report.completed} of them read" if wait else text)
    if report.problems:
        raise CommandFailed(f"{len(report.problems)} of {report.files} files failed")
