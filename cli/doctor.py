"""`platformctl doctor`: is this installation sound, and what to do where it is not."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from cli.options import AsJson
from cli.texts import examples

if TYPE_CHECKING:
    from cli.machine_checks import Finding

_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "failed": ("✗", "bold red")}

app = typer.Typer(rich_markup_mode="rich")


@app.command(
    epilog=examples(
        ("platformctl doctor", "check everything; changes nothing"),
        ("platformctl doctor --json", "for a program"),
        after="Exit code 1 when a check failed; warnings alone end with 0.",
    )
)
def doctor(as_json: AsJson = False) -> None:
    """Check the installation: packages, home, secrets, database, ports, model files, plugins, manifests."""
    from cli import console, running

    found = running.run(_examine(show=not as_json))
    failed = sum(item.status == "failed" for item in found)
    if as_json:
        console.print_json([asdict(item) for item in found])
    else:
        _summary(failed, sum(item.status == "warning" for item in found))
    if failed:
        raise typer.Exit(1)


async def _examine(*, show: bool) -> list[Finding]:
    """Every finding; shown as soon as it is known."""
    from cli import checks, console

    found = []
    with console.err().status("Checking …"):
        async for finding in checks.examine():
            found.append(finding)
            if show:
                _show(finding)
    return found


def _show(finding: Finding) -> None:
    from rich.text import Text

    from cli import console

    mark, style = _MARKS[finding.status]
    out = console.out()
    out.print(Text.assemble((f"{mark} ", style), (f"{finding.check:<12}", "bold"), finding.text))
    if finding.remedy:
        out.print(Text.assemble(" " * 14, ("→ ", "dim"), finding.remedy))


def _summary(failed: int, warned: int) -> None:
    from cli import console

    if failed:
        console.out().print(f"\n[bold red]{failed} failed[/bold red], {warned} to look at")
    elif warned:
        console.out().print(f"\n[yellow]{warned} to look at[/yellow], nothing failed")
    else:
        console.out().print("\n[green]All is well.[/green]")
