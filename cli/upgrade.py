"""`platformctl upgrade`: what this version would change in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import AsJson
from cli.texts import App, examples

if TYPE_CHECKING:
    from kernel.db.migrate import Pending
    from kernel.plugins.diagnostics import Finding

app = App()


@app.command(
    epilog=examples(
        ("platformctl upgrade --check", "exit code 1 if migrations are pending"),
        after="Install the new version first. Its first start then makes a backup, unless that is turned "
        "off, and applies the migrations; so does 'platformctl upgrade' without --check.",
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
    pending, before = running.run(_look())
    if as_json:
        waiting = [{"owner": item.owner, "revisions": item.revisions} for item in pending]
        console.print_json({"version": __version__, "pending": waiting})
    elif any(item.is_new for item in pending if item.owner == "kernel"):
        console.note("The database has no tables yet; the first start of the platform makes them.")
    else:
        rows = [(item.owner, ", ".join(item.revisions)) for item in pending]
        console.print_table(
            ("owner", "revisions"), rows, f"The database is up to date for version {__version__}."
        )
        for finding in before if pending else ():
            (console.note if finding.status == "ok" else console.warn)(finding.text)
    if pending:
        raise typer.Exit(1)


async def _look() -> tuple[list[Pending], list[Finding]]:
    """What is pending, and what happens before it is applied to a database in use."""
    from cli import running
    from cli.checks import of_plugins
    from kernel.db.startup import SCHEMA
    from kernel.plugins.diagnostics import Finding
    from kernel.process.start_guards import refusal

    async with running.stored_platform(apply_migrations=False) as platform:
        pending = platform.resource(SCHEMA).pending
        if (refused := refusal(platform.plugins)) is not None:
            return pending, [Finding("upgrade", "failed", f"The upgrade will be refused: {refused}.")]
        findings = [finding async for finding in of_plugins(platform, "upgrade")]
        none = Finding("upgrade", "warning", "No backup is made first: no plugin in service makes one.")
        return pending, findings or [none]
