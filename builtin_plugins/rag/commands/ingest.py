"""`platformctl ingest`: upload files and folders to a knowledge base, and wait until they are searchable."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import AsJson
from cli.texts import App, examples

if TYPE_CHECKING:
    from builtin_plugins.rag.commands.upload_run import UploadReport

app = App()


@app.command(
    epilog=examples(
        ("platformctl ingest handbook.pdf --kb Handbook", "one file"),
        ("platformctl ingest ~/papers --kb Papers", "a folder and everything below it"),
        ("platformctl ingest ~/papers --kb Papers", "again: only what is new or has changed"),
        ("platformctl ingest lease.pdf --kb Leases --set tags=office --set tags=Bergen", "with two tags"),
        after="Sign in first, with 'platformctl login URL'.",
    )
)
def ingest(
    paths: Annotated[list[Path], typer.Argument(help="Files and folders.", exists=True)],
    base: Annotated[
        str, typer.Option("--kb", help="Name or id of the knowledge base; created if there is none.")
    ],
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="Give all of them a value, such as year=2026. Repeat it for more fields, or more values.",
        ),
    ] = None,
    hidden: Annotated[bool, typer.Option(help="Upload hidden files, too.")] = False,
    wait: Annotated[bool, typer.Option(help="Wait until the documents can be searched.")] = True,
    as_json: AsJson = False,
) -> None:
    """Upload files and folders. Run it again for what is new: a file that has changed replaces its earlier
    version, and what is there already is skipped.
    """
    from builtin_plugins.rag.commands.upload_run import ingest_all, read_values
    from cli import console, running
    from cli.failures import CommandFailed

    try:
        metadata = read_values(values or [])
        report = running.run(ingest_all(paths, base, metadata, hidden=hidden, wait=wait))
    except KeyboardInterrupt:
        console.note("interrupted: run it again for the rest; files already uploaded are still being read")
        raise
    if as_json:
        console.print_json(asdict(report))
    else:
        _tell(report, wait=wait)
    if report.problems:
        files = report.files + report.inside
        raise CommandFailed(f"{len(report.problems)} of {files} files failed")


def _tell(report: UploadReport, *, wait: bool) -> None:
    from cli import console

    for name, why in report.problems + report.notices:
        console.warn(f"{name}: {why}")
    console.done(_nothing_new(report, wait=wait) or _done(report, wait=wait))
    if report.documents < report.completed:
        console.note(
            f"Files of the same content are one document: {report.documents} for {report.completed} files"
        )


def _nothing_new(report: UploadReport, *, wait: bool) -> str | None:
    """The message if every file was there already; None otherwise."""
    if report.skipped != report.files or (wait and report.completed != report.files):
        return None
    is_single = report.files == 1
    files = "the file is" if is_single else f"all {report.files:,} files are"
    searchable = f", and can be searched{_inside(report)}" if wait else ""
    return f"nothing new: {files} already there{searchable}"


def _done(report: UploadReport, *, wait: bool) -> str:
    new = f", {report.replaced:,} of them new versions" if report.replaced else ""
    text = f"{report.uploaded:,} uploaded{new}, {report.skipped:,} already there"
    return f"{text}, {report.completed:,} of them read{_inside(report)}" if wait else text


def _inside(report: UploadReport) -> str:
    if not report.inside:
        return ""
    return f"; {report.inside:,} more from inside, {report.inside_completed:,} of them read"
