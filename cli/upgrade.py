"""`platformctl upgrade`: what this version would change in the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import AsJson
from cli.texts import App, examples

if TYPE_CHECKING:
    from kernel.db.migrate import Pending
    from kernel.platform import Platform

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
    found, before = running.run(_look())
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
            before.show()
    if found:
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Before:
    """What happens before the migrations, in a sentence; a `problem` if the operator may not want that."""

    text: str
    problem: bool = True

    def show(self) -> None:
        from cli import console

        (console.warn if self.problem else console.note)(self.text)


async def _look() -> tuple[list[Pending], _Before]:
    """What is pending, and what happens before it is applied to a database in use."""
    from cli import running
    from kernel.db.startup import SCHEMA

    async with running.stored_platform(apply_migrations=False) as platform:
        return platform.resource(SCHEMA).pending, _before(platform)


def _before(platform: Platform) -> _Before:
    from cli.plugin_facts import out_of_service
    from kernel.start_guards import refusal

    if (refused := refusal(platform.plugins)) is not None:
        return _Before(f"The upgrade will be refused: {refused}.")
    if (why := out_of_service(platform, "platform_ops")) is not None:
        return _Before(f"No backup is made first: the plugin platform_ops is out of service: {why}.")
    from builtin_plugins.platform_ops.settings import OpsSettings

    if not platform.settings_of(OpsSettings).backup_before_upgrade:
        return _Before("No backup is made first: PLATFORM_BACKUP_BEFORE_UPGRADE is false.")
    return _Before("A backup is made before they are applied.", problem=False)
