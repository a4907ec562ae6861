"""Texts that several commands share."""

from __future__ import annotations


def examples(*lines: tuple[str, str], after: str = "") -> str:
    """The examples under a command's help: a command line and what it is for."""
    width = max(len(command) for command, _ in lines)
    shown = [f"  [cyan]{command.ljust(width)}[/cyan]  [dim]{purpose}[/dim]" for command, purpose in lines]
    return "\n".join(["[bold]Examples[/bold]", *shown]) + (f"\n\n{after}" if after else "")
