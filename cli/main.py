"""`platformctl`: the command line of the platform.

Nothing heavy is imported here: each command imports what it needs, so help and completion are fast.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from cli.group import EXTEND, MANAGE, RUN, USE, LazyApp, LazyGroup
from cli.texts import examples

ENTRIES = (
    ("serve", LazyApp("cli.serve", "Start the platform: the API and a worker for its jobs.", RUN)),
    ("service", LazyApp("cli.service", "Run the platform as a systemd service.", RUN)),
    ("worker", LazyApp("cli.worker", "Run jobs only, on this or another machine.", RUN)),
    ("login", LazyApp("cli.login", "Sign in to a running platform.", USE)),
    ("doctor", LazyApp("cli.doctor", "Check the installation and suggest a fix for each problem.", MANAGE)),
    ("status", LazyApp("cli.status", "Show services, queue, failures, disk and backups.", MANAGE)),
    ("support-bundle", LazyApp("cli.support_bundle", "Create an archive for a bug report.", MANAGE)),
    ("service-token", LazyApp("cli.service_token", "Create bearer tokens for other services.", MANAGE)),
    ("db", LazyApp("cli.db", "Update the database schema, or see what is pending.", MANAGE)),
    ("upgrade", LazyApp("cli.upgrade", "See what an upgrade would change.", MANAGE)),
    ("jobs", LazyApp("cli.jobs", "Follow and cancel background jobs; list schedules.", MANAGE)),
    ("settings", LazyApp("cli.configuration", "Show all settings and their values.", MANAGE)),
    ("plugins", LazyApp("cli.plugins", "List, explain, install and uninstall plugins.", EXTEND)),
    ("hooks", LazyApp("cli.hooks", "Show all hooks that a plugin can implement.", EXTEND)),
    ("bench", LazyApp("cli.bench", "Run the benchmarks of a source checkout.", EXTEND)),
)


class PlatformGroup(LazyGroup):
    """The commands of `platformctl`: what belongs to no plugin, and what plugins bring."""

    entries = ENTRIES


app = typer.Typer(
    cls=PlatformGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        ("platformctl demo", "try it out in a temporary instance"),
        ("platformctl serve", "start, and print where to go next"),
        ("platformctl users create ada --admin", "the first account"),
        ("platformctl doctor", "find problems and how to fix them"),
        after="Exit codes: 0\xa0done, 1\xa0failed, 2\xa0wrong\xa0usage, 3\xa0not\xa0found, 4\xa0refused, "
        "130\xa0interrupted.\n\nPlugins can add commands; 'platformctl plugins commands' lists them.",
    ),
)


def _show_version(value: bool) -> None:
    if value:
        from kernel import __version__

        typer.echo(f"platformctl {__version__}")
        raise typer.Exit()


@app.callback()
def platformctl(
    version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Platform: upload documents, ask questions, get cited answers; extend it with plugins."""


def intruder() -> str | None:
    """Why the imported `kernel` is not ours; None if it is, from the same folder as `cli`.

    `kernel` is a common name: another distribution's package might be imported instead.
    """
    import kernel

    ours = Path(__file__).resolve().parent.parent
    theirs = (
        Path(kernel.__file__).resolve().parent.parent if kernel.__file__ else "a folder without __init__.py"
    )
    if theirs == ours:
        return None
    return (
        f"the package 'kernel' comes from {theirs}, but platformctl from {ours}. Another distribution or "
        "folder has taken the name: uninstall it, or give the platform its own environment "
        "(./setup.sh makes one)."
    )


def fill_missing_streams() -> None:
    """Replace standard streams that the parent has closed by /dev/null.

    Python sets them to None, and the next opened files would get their descriptors.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))


def allow_any_text() -> None:
    """Let characters that a stream's encoding lacks, outside UTF-8, be replaced instead of ending a command.

    Standard error does that anyway.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def main() -> None:
    """The entry point of `platformctl`."""
    fill_missing_streams()
    allow_any_text()
    problem = intruder()
    if problem is not None:
        sys.stderr.write(f"error: {problem}\n")
        sys.exit(1)
    from kernel.libs import memory

    memory.skip_collection_at_exit()
    app(prog_name="platformctl")
