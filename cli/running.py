"""Opens a platform for one command."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from cli.settings import CliSettings
    from kernel.http.routes import BoundRoute
    from kernel.platform import Platform, Role
    from kernel.plugins.loading import Candidate
    from kernel.settings.loading import KernelSettings, SettingsLoader

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a short command's coroutine."""
    return asyncio.run(work)


def make_loader(overrides: Mapping[str, str] | None = None) -> SettingsLoader:
    """A loader for the environment and `config.yaml`; `overrides` come from the command line."""
    from cli.settings import CliSettings
    from kernel.settings.loading import SettingsLoader

    loader = SettingsLoader.from_home(overrides=overrides)
    loader.load("cli", CliSettings)
    return loader


def cli_settings() -> CliSettings:
    """The settings of the command line."""
    from cli.settings import CliSettings

    return make_loader().load("cli", CliSettings)


def kernel_settings(overrides: Mapping[str, str] | None = None) -> KernelSettings:
    """The kernel's settings, for commands that need no platform."""
    from kernel.settings.loading import KernelSettings

    return make_loader(overrides).load("kernel", KernelSettings)


def is_unused(home: Path) -> bool:
    """Whether no platform was ever started in this home. Leaves nothing there."""
    return not home.is_dir() or not any(home.iterdir())


def own_address(settings: KernelSettings) -> str:
    """The address of this installation's API on this machine."""
    wildcards = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}
    return f"http://{wildcards.get(settings.host, settings.host)}:{settings.port}"


@contextmanager
def private_files() -> Iterator[None]:
    """Make files written during the block private to their owner, even in a home that others can read."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@asynccontextmanager
async def stored_platform(
    *,
    apply_migrations: bool | None = None,
    overrides: Mapping[str, str] | None = None,
    kernel_only: bool = False,
) -> AsyncIterator[Platform]:
    """A platform with its database open, and none of its plugins' resources.

    With `kernel_only`, no plugin is imported. A new database takes seconds: the terminal says so.
    """
    from cli import console
    from kernel.boot import open_platform

    quiet()
    candidates: list[Candidate] | None = [] if kernel_only else None
    if apply_migrations is not False:
        refuse_as_root(kernel_settings(overrides).home)
    with private_files():
        async with AsyncExitStack() as stack:
            with nullcontext() if apply_migrations is False else console.busy("Opening the database"):
                platform = await stack.enter_async_context(
                    open_platform(
                        make_loader(overrides), candidates=candidates, apply_migrations=apply_migrations
                    )
                )
            yield platform


@asynccontextmanager
async def working_platform() -> AsyncIterator[Platform]:
    """A platform with its plugins' resources open, beside serving processes. Migrates nothing."""
    from kernel.boot import open_platform

    quiet()
    refuse_as_root(kernel_settings().home)
    with private_files():
        async with open_platform(make_loader(), role="worker", apply_migrations=False) as platform:
            yield platform


def platform_of(environment: Mapping[str, str], role: Role) -> AbstractAsyncContextManager[Platform]:
    """The platform of another environment, such as that of a copy in a temporary home."""
    from kernel.boot import open_platform
    from kernel.settings.loading import SettingsLoader

    return open_platform(SettingsLoader.from_home(environment), role=role)


async def refuse_used_database(environment: Mapping[str, str]) -> None:
    """Refuse a database that isn't empty. Raises StartupError if it can't be used."""
    import sqlalchemy as sa

    from cli.failures import Refused
    from kernel.db.engine import Database
    from kernel.db.startup import unusable
    from kernel.settings.loading import KernelSettings, SettingsLoader

    settings = SettingsLoader.from_home(environment).load("kernel", KernelSettings)
    database = Database(settings.sqlalchemy_url)
    try:
        tables = await database.read(lambda session: sa.inspect(session.connection()).get_table_names())
    except (sa.exc.SQLAlchemyError, OSError) as error:
        raise unusable(error, settings.sqlalchemy_url) from error
    finally:
        await database.close()
    if tables:
        text = f"the database already has tables, such as {sorted(tables)[0]}"
        raise Refused(text, "Name an empty database.")


def owner_of(path: Path) -> str:
    """The owner's account name; if it has none on this machine, #number, which sudo and chown accept, too."""
    try:
        return path.owner()
    except KeyError:
        return f"#{path.stat().st_uid}"


def refuse_as_root(home: Path) -> None:
    """Keep root from leaving files in a service's home, which would stop the service from starting."""
    from cli.failures import Refused

    secrets = home / "secrets"
    used = secrets if secrets.is_dir() else home
    if os.geteuid() == 0 and used.is_dir() and (uid := used.stat().st_uid) != 0:
        owner = owner_of(used)
        raise Refused(
            f"{home} belongs to {owner}, who could not read what root writes there",
            f"Run the command as {owner}: sudo -E -u '{owner}' …; in a container, set its user to {uid}",
        )


def refuse_behind(platform: Platform) -> None:
    """Refuse a database with pending migrations, which may lack guards, too."""
    from cli.failures import Refused
    from kernel.db.startup import SCHEMA

    if platform.resource(SCHEMA).pending:
        raise Refused("the database has pending migrations", "Apply them: platformctl db upgrade")


@asynccontextmanager
async def explained_platform(overrides: Mapping[str, str] | None = None) -> AsyncIterator[Platform]:
    """The plugins' declarations, without touching the database."""
    from kernel.boot import declared_platform

    quiet()
    async with declared_platform(make_loader(overrides)) as platform:
        yield platform


def endpoints_of(platform: Platform, service: str | None) -> tuple[Sequence[BoundRoute], str]:
    """The routes and the title of a service at its own root; without a name, those of the gateway."""
    from cli.failures import Missing
    from kernel.gateway.app import gateway_app, service_app
    from kernel.plugins.offers import OFFERS

    if service is None:
        return gateway_app(platform).endpoints, "Platform"
    offered = platform.resource(OFFERS).services
    if service not in offered:
        names = ", ".join(sorted(offered)) or "none"
        raise Missing(f"no plugin offers the service '{service}'", f"Offered here: {names}.")
    offer = offered[service][1]
    return service_app(platform, offer).endpoints, offer.title or offer.name


def quiet() -> None:
    """Keep log lines out of a short command's output: it prints what matters itself."""
    from kernel.observe import logs

    if cli_settings().debug:
        logs.configure("DEBUG", "text")
    else:
        logging.getLogger().handlers[:] = [logging.NullHandler()]
