"""`platformctl upgrade`: what this version would change in the database."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options import AsJson
from cli.texts import App, examples

app = App()


@app.command(
    epilog=examples(
        ("platformctl upgrade --check", "exit code 1 if migrations are pending"),
        after="Install the new version first. Its first start then makes a backup and applies the "
        "migrations; so does 'platformctl upgrade' without --check.",
    )
)
def upgrade(
    check: Annotated[bool, typer.Option("--check", help="Only show what would change.")] = False,
    as_json: AsJson = False,
) -> None:
    """Apply pending migrations, after a backup; or with --check, show what an upgrade would change."""
    from cli import console, db, running
    from kernel import __version__

    if not check:
        db.upgrade()
        return
    found = running.run(db.pending_migrations())
    if as_json:
        waiting = [{"owner": item.owner, "revisions": item.revisions} for item in found]
        console.print_json({"version": __version__, "pending": waiting})
    elif any(item.is_new for item in found if item.owner == "kernel"):
        console.note("The database has no tables yet; the first start of the platform makes them.")
    else:
        rows = [(item.owner, ", ".join(item.revisions)) for item in found]
        console.print_table(
            ("owner", "revisions"), rows, f"The database is up to date for version {__version__}."
        )
        if found:
            console.note(
                "A backup is made before they are applied, unless PLATFORM_BACKUP_BEFORE_UPGRADE=false."
            )
    if found:
        raise typer.Exit(1)
