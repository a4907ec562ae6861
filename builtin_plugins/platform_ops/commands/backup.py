"""`platformctl backup`: making, checking and restoring backups, and rehearsing a restore."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import typer

from cli.options import AsJson
from cli.texts import App, examples

if TYPE_CHECKING:
    from builtin_plugins.platform_ops.backup.archives import Archive
    from builtin_plugins.platform_ops.backup.manifest import ArchiveManifest
    from cli.failures import Missing

P = ParamSpec("P")
T = TypeVar("T")

app = App(
    no_args_is_help=True,
    help="A backup holds all rows, uploaded files, manifests and, encrypted, secrets. Backups share "
    "identical data. They can be made while the platform is running.",
    epilog=examples(
        ("platformctl backup create", "make one now"),
        ("platformctl backup list", "list all backups"),
        ("platformctl backup drill", "prove that the newest can be restored"),
        ("platformctl backup restore NAME", "replace everything with a backup"),
        after="PLATFORM_BACKUP_TO says where they are stored, PLATFORM_BACKUP_SCHEDULE when they are made, "
        "PLATFORM_BACKUP_PASSPHRASE what encrypts their secrets.",
    ),
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the backup, as 'backup list' shows it.")]
OrNewest = Annotated[
    str | None, typer.Argument(metavar="NAME", help="Name of the backup; the newest one when left out.")
]


@app.command(epilog=examples(("platformctl backup create", "works while the platform is running")))
def create() -> None:
    """Make a backup, and remove the oldest beyond PLATFORM_BACKUP_KEEP.

    Exit code 1 if uploaded files are missing or damaged: the backup is made without them, and lists them.
    """
    from builtin_plugins.platform_ops.backup.service import described
    from cli import console

    name, manifest = _run(_create)
    console.done(described(name, manifest))
    if manifest.sealed is None:
        console.warn(
            "Without PLATFORM_BACKUP_PASSPHRASE or PLATFORM_BACKUP_KEY_FILE, secrets and config.yaml are "
            "left out: keep copies of PLATFORM_HOME/secrets yourself."
        )
    if manifest.missing:
        raise typer.Exit(1)


async def _create() -> tuple[str, ArchiveManifest]:
    from builtin_plugins.platform_ops.backup.service import back_up
    from cli import running
    from cli.plugin_facts import require

    async with running.working_platform() as platform:
        require(platform, "platform_ops")
        return await back_up(platform, "platformctl backup create")


@app.command(name="list", epilog=examples(("platformctl backup list --json", "for scripts")))
def show(as_json: AsJson = False) -> None:
    """List the backups, newest first."""
    from cli import console

    archives = _run(_list)
    if as_json:
        console.print_json(
            [
                {"name": archive.name, "size_bytes": archive.size, "modified_at": archive.modified_at}
                for archive in archives
            ]
        )
        return
    rows = [
        (archive.name, console.size(archive.size), f"{archive.modified_at:%Y-%m-%d %H:%M}")
        for archive in archives
    ]
    console.print_table(
        ("name", "size", "made (UTC)"), rows, "There are no backups. To make one: platformctl backup create"
    )


async def _list() -> list[Archive]:
    from builtin_plugins.platform_ops.backup.archives import ArchiveSizes
    from builtin_plugins.platform_ops.backup.service import archives_of
    from cli import running
    from cli.plugin_facts import require

    async with running.explained_platform() as platform:
        require(platform, "platform_ops")
        return ArchiveSizes().of(archives_of(platform))


@app.command(epilog=examples(("platformctl backup verify", "the newest one")))
def verify(name: OrNewest = None) -> None:
    """Read every byte of a backup. Exit code 1 if it is damaged."""
    from builtin_plugins.platform_ops.backup.service import described
    from cli import console

    name, manifest = _run(_verify, name)
    console.done(f"complete and undamaged: {described(name, manifest)}")


async def _verify(name: str | None) -> tuple[str, ArchiveManifest]:
    from builtin_plugins.platform_ops.backup.service import archives_of
    from cli import running
    from cli.plugin_facts import require

    async with running.explained_platform() as platform:
        require(platform, "platform_ops")
        archives = archives_of(platform)
        name = name or archives.newest()
        archives.objects.load_sizes()
        try:
            return name, archives.verify(name)
        except FileNotFoundError:
            raise _missing(name) from None


@app.command(
    epilog=examples(
        ("platformctl backup restore platform-20260131-030000.tar.gz", "asks before it replaces anything"),
        after="A running platform finishes its requests and restarts. The current state is backed up "
        "first, so you can undo the restore in the same way.",
    )
)
def restore(
    name: Name, yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask for confirmation.")] = False
) -> None:
    """Replace everything with a backup, whether or not the platform is running, on SQLite or PostgreSQL."""
    from cli import console

    _run(_look_for, name)
    if not yes:
        typer.confirm(f"Replace all accounts, documents and settings with those of {name}?", abort=True)
    console.done(_run(_restore, name))


async def _look_for(name: str) -> None:
    from builtin_plugins.platform_ops.backup.service import archives_of
    from cli import running
    from cli.plugin_facts import require

    async with running.explained_platform() as platform:
        require(platform, "platform_ops")
        if name not in {entry.name for entry in archives_of(platform).entries()}:
            raise _missing(name)


def _missing(name: str) -> Missing:
    from cli.failures import Missing

    remedy = "See: platformctl backup list"
    if Path(name).is_file():
        remedy = (
            "Copy everything in its folder, including 'objects', to PLATFORM_HOME/backups, or set"
            " PLATFORM_BACKUP_TO to that folder; then use the name without the path."
        )
    return Missing(f"there is no backup called '{name}'", remedy)


async def _restore(name: str) -> str:
    from builtin_plugins.platform_ops.backup.operator import restore
    from cli import running
    from cli.plugin_facts import require

    async with running.stored_platform() as platform:
        require(platform, "platform_ops")
        return await restore(platform, name)


@app.command(
    epilog=examples(
        ("platformctl backup drill", "exit code 1 if anything differs"),
        ("platformctl backup drill --into postgresql://host/empty", "into PostgreSQL"),
        after="The temporary instance has its own SQLite database, whichever the platform uses, unless "
        "--into names another. Its folder is removed afterwards; the contents of the --into database are "
        "kept.",
    )
)
def drill(
    name: OrNewest = None,
    into: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Restore into this empty database, such as postgresql://host/empty."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Restore a backup into a temporary instance and compare: rows, files, answers to recorded questions."""
    from builtin_plugins.platform_ops.commands.drill import rehearse
    from cli import console

    name, same = _run(rehearse, name, into)
    if as_json:
        console.print_json({"name": name, "same": same})
        return
    for line in same:
        console.done(line)


def _run(work: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
    from builtin_plugins.platform_ops.backup.errors import BackupFailed, StorageAway
    from cli import running
    from cli.failures import CommandFailed

    try:
        return running.run(work(*args, **kwargs))
    except StorageAway as error:
        remedy = "Check PLATFORM_BACKUP_TO, and for S3 the keys and the endpoint: AWS_ACCESS_KEY_ID, "
        remedy += "AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL."
        raise CommandFailed(str(error), remedy) from error
    except BackupFailed as error:
        raise CommandFailed(str(error)) from error
