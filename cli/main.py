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

from cli.group import Entry, LazyGroup
from cli.texts import examples

RUN, USE, LOOK_AFTER, EXTEND = "Run", "Use", "Manage", "Extend"

ENTRIES = (
    Entry("serve", "cli.serve", "Start the platform: the API and a worker for its jobs.", RUN),
    Entry("service", "cli.service", "Run the platform as a systemd service.", RUN),
    Entry("worker", "cli.worker", "Run jobs only, on this or another machine.", RUN),
    Entry(
        "demo",
        "cli.demo",
        "Try it out: ingest documents, ask, get cited answers. Leaves nothing behind.",
        RUN,
    ),
    Entry("login", "cli.login", "Sign in to a running platform, for ingest and ask.", USE),
    Entry("ingest", "cli.ingest", "Upload files and folders, and wait until they are searchable.", USE),
    Entry("ask", "cli.ask", "Ask a question, and get a cited answer.", USE),
    Entry("models", "cli.models", "Try a small language model on this machine.", RUN),
    Entry("doctor", "cli.doctor", "Check the installation and suggest a fix for each problem.", LOOK_AFTER),
    Entry("status", "cli.status", "Show services, queue, failures, disk and backups.", LOOK_AFTER),
    Entry("support-bundle", "cli.support_bundle", "Create an archive for a bug report.", LOOK_AFTER),
    Entry("users", "cli.users", "Create, list and manage accounts.", LOOK_AFTER),
    Entry(
        "platform-admin",
        "cli.platform_admin",
        "Grant or revoke Platform Admin; issue a setup code.",
        LOOK_AFTER,
    ),
    Entry(
        "sso-link", "cli.sso_link", "Let people keep a local account when they sign in by SSO.", LOOK_AFTER
    ),
    Entry("secret", "cli.secret", "Store, list and remove secrets, such as those of webhooks.", LOOK_AFTER),
    Entry("service-token", "cli.service_token", "Create bearer tokens for other services.", LOOK_AFTER),
    Entry("token", "cli.token", "Create, list and revoke personal access tokens.", LOOK_AFTER),
    Entry("db", "cli.db", "Update the database schema, or see what is pending.", LOOK_AFTER),
    Entry("backup", "cli.backup", "Make, check, restore and rehearse backups.", LOOK_AFTER),
    Entry("upgrade", "cli.upgrade", "See what an upgrade would change.", LOOK_AFTER),
    Entry("eval", "cli.evaluation", "Measure how well a knowledge base answers.", LOOK_AFTER),
    Entry("rag", "cli.rag", "Prove that documents were deleted.", LOOK_AFTER),
    Entry("jobs", "cli.jobs", "Follow and cancel background jobs; list schedules.", LOOK_AFTER),
    Entry("settings", "cli.configuration", "Show all settings and their values.", LOOK_AFTER),
    Entry("plugins", "cli.plugins", "List, explain, install and uninstall plugins.", EXTEND),
    Entry("manifests", "cli.manifests", "Validate and list webhook manifests.", EXTEND),
    Entry("graph", "cli.graph", "Draw the knowledge graph of documents.", EXTEND),
    Entry("hooks", "cli.hooks", "Show all hooks that a plugin can implement.", EXTEND),
    Entry("openapi", "cli.openapi", "Print the API's OpenAPI document.", EXTEND),
    Entry("bench", "cli.bench", "Run the benchmarks of a source checkout.", EXTEND),
)


class PlatformGroup(LazyGroup):
    """The commands of `platformctl`."""

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


def _show_version(asked: bool) -> None:
    if asked:
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
    from kernel import collector_timing

    collector_timing.skip_at_exit()
    app(prog_name="platformctl")
