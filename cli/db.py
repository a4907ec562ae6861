"""`platformctl db`: the database schema, owner by owner."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import AsJson
from cli.texts import App, examples

if TYPE_CHECKING:
    from kernel.db.migrate import Pending

app = App(
    no_args_is_help=True,
    help="The kernel and each plugin have their own tables and migrations.",
    epilog=examples(
        ("platformctl db pending", "list migrations that are not yet applied"),
        ("platformctl db upgrade", "apply them"),
        ("platformctl db check", "compare the models with the tables"),
        after="With PLATFORM_MIGRATE_ON_START=false, only 'db upgrade' applies migrations.",
    ),
)


@app.command(
    epilog=examples(("platformctl db pending --json", "an empty list if the database is up to date"))
)
def pending(as_json: AsJson = False) -> None:
    """List the migrations that are not yet applied. Nothing is changed."""
    from cli import console, running

    pending_owners = running.run(pending_migrations())
    if as_json:
        console.print_json([{"owner": item.owner, "revisions": item.revisions} for item in pending_owners])
        return
    rows = [(item.owner, ", ".join(item.revisions)) for item in pending_owners]
    console.print_table(("owner", "revisions"), rows, "The database is up to date.")


async def pending_migrations() -> list[Pending]:
    """The migrations that the database lacks, by owner."""
    from cli import running
    from kernel.db.startup import SCHEMA

    async with running.stored_platform(apply_migrations=False) as platform:
        return platform.resource(SCHEMA).pending


@app.command(epilog=examples(("platformctl db upgrade", "waits if another process is migrating")))
def upgrade() -> None:
    """Apply pending migrations: first the kernel's, then each plugin's, each owner in one transaction."""
    from cli import console, running
    from cli.failures import CommandFailed

    applied, broken = running.run(_upgrade())
    for item in applied:
        console.done(f"{item.owner}: {', '.join(item.revisions)}")
    if not (applied or broken):
        console.note("The database is up to date.")
    if broken:
        raise CommandFailed(
            "; ".join(broken), "'platformctl plugins list' shows which plugins are out of service."
        )


async def _upgrade() -> tuple[list[Pending], list[str]]:
    """The applied migrations, and the plugins whose tables can't be used."""
    from cli import running
    from kernel.boot import upgrade
    from kernel.db.startup import SCHEMA
    from kernel.plugins.states import PLUGIN_STATES

    running.refuse_as_root(running.kernel_settings().home)
    async with running.stored_platform(apply_migrations=False) as platform:
        schema = platform.resource(SCHEMA)
        late = schema.pending
        await upgrade(platform)
        records = platform.resource(PLUGIN_STATES).records
        bad = {item.owner for item in late if item.owner != "kernel" and records[item.owner].reason}
        failed = {name: records[name].reason for name in bad} | schema.unusable
        return [i for i in late if i.owner not in bad], [f"{n}: {why}" for n, why in sorted(failed.items())]


@app.command(epilog=examples(("platformctl db check", "exit code 1 if something differs")))
def check(as_json: AsJson = False) -> None:
    """Compare the models with the tables. Fails if they differ or if migrations are pending."""
    from cli import console, running
    from cli.failures import CommandFailed

    differences, unusable, late = running.run(_drift())
    if as_json:
        console.print_json(differences)
    else:
        for owner, lines in differences.items():
            for line in lines:
                console.warn(f"{owner}: {line}")
    differing = [owner for owner, lines in differences.items() if lines]
    if late:
        raise CommandFailed("the database does not match the models", "Try: platformctl db upgrade")
    if unusable:
        raise CommandFailed("a plugin's tables can't be used; it stays out of service until they can")
    if differing:
        raise CommandFailed(
            "the database does not match the models",
            f'If the models changed, write a migration: platformctl db revision -p {differing[0]} -m "…"',
        )
    console.done(f"the tables match the models ({', '.join(differences)})")


async def _drift() -> tuple[dict[str, list[str]], bool, bool]:
    """The differences by owner; whether any tables can't be used; whether migrations are pending."""
    from cli import running
    from cli.revisions import drift
    from kernel.db.startup import SCHEMA

    async with running.stored_platform(apply_migrations=False) as platform:
        schema = platform.resource(SCHEMA)
        differences = {name: [why] for name, why in schema.unusable.items()}
        late = {item.owner: item.revisions for item in schema.pending}
        for owner in schema.owners():
            waiting = [f"revision {revision} is pending" for revision in late.get(owner.name, ())]
            differences[owner.name] = waiting or list(await drift(platform.database, owner))
        return differences, bool(schema.unusable), bool(late)


@app.command(
    epilog=examples(
        ('platformctl db revision -p acme_notes -m "add tags"', "writes 0002_add_tags.py"),
        after="For plugin authors. Compares the models with an up-to-date database; review what "
        "it writes. Nothing is written if nothing differs, or if the plugin is not installed from "
        "its source folder.",
    )
)
def revision(
    plugin: Annotated[str, typer.Option("--plugin", "-p", help="Name of the plugin, or 'kernel'.")],
    message: Annotated[str, typer.Option("--message", "-m", help="Short description of the change.")],
) -> None:
    """Write a plugin's next migration from the differences between its models and the database."""
    from cli import console, running

    console.done(f"{running.run(_revision(plugin, message))}")


async def _revision(plugin: str, message: str) -> Path:
    from cli import running
    from cli.failures import Missing, Refused
    from cli.revisions import drift, write_revision
    from kernel.db.startup import SCHEMA

    async with running.stored_platform(apply_migrations=True) as platform:
        owner = next((item for item in platform.resource(SCHEMA).owners() if item.name == plugin), None)
        if owner is None:
            raise Missing(f"no loaded plugin '{plugin}' has tables", "See: platformctl plugins list")
        _refuse_installed(plugin, owner.tables.migrations)
        if not await drift(platform.database, owner):
            raise Refused(
                f"the tables of '{plugin}' match its models: there is nothing to migrate",
                "Change the models first.",
            )
        return await write_revision(platform.database, owner, message)


def _refuse_installed(plugin: str, folder: Path) -> None:
    """Refuse an installed copy, whose next upgrade would lose the migration: it belongs in the source."""
    from cli.failures import Refused

    if {"site-packages", "dist-packages"} & set(folder.parts):
        raise Refused(
            f"'{plugin}' is installed as a copy in {folder.parent}",
            "Install its source folder in editable mode (pip install -e FOLDER), then try again.",
        )
