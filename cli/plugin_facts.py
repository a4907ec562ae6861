"""What commands know about plugins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from kernel.platform import Platform
    from kernel.plugins.loading import PluginRecord


@dataclass(frozen=True)
class PluginFacts:
    """A plugin as the commands show it."""

    name: str
    version: str
    status: str
    reason: str | None
    distribution: str | None
    description: str
    place: str | None = None
    requires: tuple[str, ...] = ()
    hooks: list[str] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    enable_with: str | None = None


def require(platform: Platform, name: str) -> None:
    """Raise CommandFailed if a plugin that the command needs is out of service."""
    from cli.failures import CommandFailed

    if (why := out_of_service(platform, name)) is not None:
        raise CommandFailed(
            f"the plugin '{name}', which this command needs, is out of service: {why}",
            f"'platformctl plugins why {name}' says more.",
        )


def out_of_service(platform: Platform, name: str) -> str | None:
    """Why a plugin is out of service; None if it is not."""
    record = {one.name: one for one in platform.plugins}.get(name)
    if record is None:
        return "it is not installed"
    return None if record.status == "loaded" else record.reason or record.status


async def disabled_plugins(platform: Platform, *, quiet: bool = False) -> Mapping[str, str]:
    """The plugins that are disabled in the database, with the reason. Their records say `loaded`.

    If that is unknown, print a warning, unless `quiet`.
    """
    from cli import console, running
    from kernel.errors import ANY_ERROR
    from kernel.hooks import hookspecs

    def ask(session: Session | None) -> Mapping[str, str]:
        reasons = platform.hooks.ask_now(hookspecs.find_disabled_plugins, platform=platform, session=session)
        return reasons or {}

    try:
        if not has_database(platform):
            return ask(None)
        with running.private_files():
            return await platform.database.read(ask)
    except ANY_ERROR as error:  # boundary: the database, or another author's plugin
        if not quiet:
            console.warn(f"can't find out which plugins are disabled: {type(error).__name__}")
        return {}


async def outgrown(platform: Platform) -> Mapping[str, str]:
    """The plugins that are older than their tables, with the reason why they won't start.

    Empty if the database can't be read.
    """
    from sqlalchemy.exc import SQLAlchemyError

    from cli import running
    from kernel.db.migrate import UnknownRevision, known_revisions, revision_of
    from kernel.db.startup import SCHEMA, unfitting

    if not has_database(platform):
        return {}
    reasons = {}
    try:
        with running.private_files():
            for owner in platform.resource(SCHEMA).owners():
                revisions, current = known_revisions(owner), await revision_of(platform.database, owner.name)
                if revisions and current is not None and current not in revisions:
                    reasons[owner.name] = str(unfitting(UnknownRevision(current, sorted(revisions))))
    except (SQLAlchemyError, OSError):
        return {}
    return reasons


def has_database(platform: Platform) -> bool:
    """Whether there is a database: reading must not create one."""
    return _is_there(platform.database.url)


def _is_there(url: str) -> bool:
    from sqlalchemy.engine import make_url

    address = make_url(url)
    return address.get_backend_name() != "sqlite" or Path(address.database or "").is_file()


async def applied_revisions(owners: Iterable[str]) -> dict[str, str]:
    """The revisions that the platform's database has of these owners' tables; only of those with tables."""
    from cli import running
    from kernel.db.engine import Database
    from kernel.db.migrate import revision_of

    url = running.kernel_settings().sqlalchemy_url
    if not _is_there(url):
        return {}
    database = Database(url)
    try:
        with running.private_files():
            revisions = {owner: await revision_of(database, owner) for owner in owners}
    finally:
        await database.close()
    return {owner: revision for owner, revision in revisions.items() if revision is not None}


def variables_of(record: PluginRecord) -> list[str]:
    """The environment variables of a loaded plugin's settings."""
    declare = getattr(record.instance, "register_settings", None)
    cls = declare() if declare else None
    return [names[0] for names in cls.env_names().values()] if cls else []
