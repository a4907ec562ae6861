"""`platformctl doctor`: is this installation sound, and what to do where it is not."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from cli.failures import Missing
from cli.options import AsJson
from cli.texts import App, examples

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from kernel.plugins.diagnostics import Finding

_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "failed": ("✗", "bold red")}

app = App()


@app.command(
    epilog=examples(
        ("platformctl doctor", "check everything; nothing is changed"),
        ("platformctl doctor --json", "as JSON"),
        ("platformctl doctor --leaks", "does anybody read what they may not?"),
        ("platformctl doctor --leaks SOURCE", "the same, of one source alone"),
        after="The exit code is 1 if a check failed, and 0 if there are only warnings.",
    )
)
def doctor(
    source: Annotated[
        str | None, typer.Argument(help="With --leaks: only this source.", metavar="SOURCE")
    ] = None,
    leaks: Annotated[
        bool, typer.Option("--leaks", help="Compare what accounts read with what they may read.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check packages, home, secrets, database, ports, model files, plugins and manifests."""
    from cli import console, running

    if source is not None and not leaks:
        raise typer.BadParameter("a source goes with --leaks", param_hint="SOURCE")
    findings = running.run(_examine(_leaks(source) if leaks else None, show=not as_json))
    if source is not None and not findings:
        raise Missing("no source with permissions of its own has this id")
    failed = sum(item.status == "failed" for item in findings)
    if as_json:
        console.print_json([asdict(item) for item in findings])
    else:
        _summary(failed, sum(item.status == "warning" for item in findings))
    if failed:
        raise typer.Exit(1)


async def _examine(leaks: AsyncIterator[Finding] | None, *, show: bool) -> list[Finding]:
    """Collect all findings; with `show`, print each as soon as it is known."""
    from cli import checks, console

    findings = []
    with console.busy("Checking") as busy:
        async for finding in leaks or checks.examine():
            findings.append(finding)
            if show:
                with busy.paused():
                    _show(finding)
    return findings


async def _leaks(source: str | None) -> AsyncIterator[Finding]:
    """What plugins find of one source, or of all and of what accounts read here."""
    from cli import checks, running

    async with running.working_platform() as platform:
        async for finding in checks.of_plugins(platform, "leaks"):
            if source is None or finding.facts.get("source") == source:
                yield finding
        if source is None:
            async for finding in checks.of_plugins(platform, "reads"):
                yield finding


def _show(finding: Finding) -> None:
    from rich.text import Text

    from cli import console

    mark, style = _MARKS[finding.status]
    head = Text.assemble((f"{mark} ", style), (f"{finding.check:<13}", "bold"))
    console.print_beside(head, Text(finding.text))
    if finding.remedy:
        console.print_beside(Text.assemble(" " * 15, ("→ ", "dim")), Text(finding.remedy))


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _summary(failed: int, warned: int) -> None:
    from cli import console

    if failed:
        console.out().print(
            f"\n[bold red]{_count(failed, 'failure')}[/bold red], {_count(warned, 'warning')}"
        )
    elif warned:
        console.out().print(f"\n[yellow]{_count(warned, 'warning')}[/yellow], no failures")
    else:
        console.out().print("\n[green]All is well.[/green]")
