"""`platformctl db`: the database's schema, owner by owner."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import AsJson
from cli.texts import examples

if TYPE_CHECKING:
    from kernel.db.migrate import Pending

app = typer.Typer(
    rich_markup_mode="rich",
    no_args_is_help=True,
    help="The kernel and each plugin own their tables and bring their own migrations.",
    epilog=examples(
        ("platformctl db pending", "what an upgrade would do"),
        ("platformctl db upgrade", "do it, under a lock"),
        ("platformctl db check", "compare models with tables"),
        after="PLATFORM_MIGRATE_ON_START=false leaves upgrading to 'db upgrade'.",
    ),
)


@app.command(epilog=examples(("platformctl db pending --json", "an empty list when all is up to date")))
def pending(as_json: AsJson = False) -> None:
    """List migrations that the database lacks; changes nothing."""
    from cli import console, running

    found = running.run(_pending())
    if as_json:
        console.print_json([{"owner": item.owner, "revisions": item.revisions} for item in found])
        return
    rows = [(item.owner, ", ".join(item.revisions)) for item in found]
    console.print_table(("owner", "revisions"), rows, "The database is up to date.")


async def _pending() -> list[Pending]:
    from cli import running

    async with running.stored_platform(apply_migrations=False) as platform:
        return platform.pending


@app.command(epilog=examples(("platformctl db upgrade", "waits for another process that migrates")))
def upgrade() -> None:
    """Apply pending migrations: the kernel's, then each plugin's, one transaction each."""
    from cli import console, running
    from cli.failures import CommandFailed

    applied, broken = running.run(_upgrade())
    for item in applied:
        console.done(f"{item.owner}: {', '.join(item.revisions)}")
    if not applied:
        console.note("The database is up to date.")
    if broken:
        raise CommandFailed("; ".join(broken), "'platformctl plugins list' shows what is out of service.")


async def _upgrade() -> tuple[list[Pending], list[str]]:
    """What was applied, and the plugins whose migration failed."""
    from cli import running

    async with running.stored_platform(apply_migrations=False) as platform:
        found = platform.pending
        await platform.migrate(apply=True)
        records = platform.host.records
        bad = {item.owner for item in found if item.owner != "kernel" and records[item.owner].reason}
        return [i for i in found if i.owner not in bad], [f"{n}: {records[n].reason}" for n in sorted(bad)]


@app.command(epilog=examples(("platformctl db check", "exit code 1 when something differs")))
def check(as_json: AsJson = False) -> None:
    """Compare the models of every owner with the tables; fails when they differ or migrations are pending."""
    from cli import console, running
    from cli.failures import CommandFailed

    found = running.run(_drift())
    if as_json:
        console.print_json(found)
    else:
        for owner, lines in found.items():
            for line in lines:
                console.warn(f"{owner}: {line}")
    if any(found.values()):
        raise CommandFailed("the database differs from the models", "Try: platformctl db upgrade")
    console.done(f"tables and models agree ({', '.join(found)})")


async def _drift() -> dict[str, list[str]]:
    from cli import running
    from kernel.db import migrate

    async with running.stored_platform(apply_migrations=False) as platform:
        found: dict[str, list[str]] = {}
        late = {item.owner: item.revisions for item in platform.pending}
        for owner in platform.owners():
            waiting = [f"revision {revision} is pending" for revision in late.get(owner.name, ())]
            found[owner.name] = waiting or list(await migrate.drift(platform.database, owner))
        return found


@app.command(
    epilog=examples(
        ('platformctl db revision -p rag -m "add summaries"', "writes 0002_add_summaries.py"),
        after="For plugin authors: compares the models with an up-to-date database; read what it wrote.",
    )
)
def revision(
    plugin: Annotated[str, typer.Option("--plugin", "-p", help="Whose tables, or 'kernel'.")],
    message: Annotated[str, typer.Option("--message", "-m", help="What changes.")],
) -> None:
    """Write the next migration of a plugin from the difference between its models and the database."""
    from cli import console, running

    console.done(f"{running.run(_revision(plugin, message))}")


async def _revision(plugin: str, message: str) -> Path:
    from cli import running
    from cli.failures import Missing
    from kernel.db import migrate

    async with running.stored_platform(apply_migrations=True) as platform:
        owner = next((item for item in platform.owners() if item.name == plugin), None)
        if owner is None:
            raise Missing(f"no loaded plugin '{plugin}' has tables", "See: platformctl plugins list")
        return await migrate.write_revision(platform.database, owner, message)
