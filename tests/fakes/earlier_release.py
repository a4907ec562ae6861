"""A database as release 0.1.0 left it: the kernel's tables with accounts, none of them a Platform Admin."""

from __future__ import annotations

import asyncio
from pathlib import Path

from alembic import command
from argon2 import PasswordHasher
from sqlalchemy import Connection, text

from kernel.db.base import utc_now
from kernel.db.engine import Database
from kernel.db.migrate import alembic_config, kernel_owner
from kernel.settings.loading import KernelSettings, SettingsLoader
from kernel.testing import environment
from kernel.testing.databases import keep_promise

PASSWORD = "correct horse battery"
_CHEAP = PasswordHasher(time_cost=1, memory_cost=64)


async def make_earlier_release(home: Path, database_url: str | None, **roles: str) -> None:
    """Write accounts with these roles, all with `PASSWORD`, at the kernel's first migration.

    If one of them is an administrator, somebody was a Platform Admin once, and is one no longer.
    """
    env = environment(home, {"DATABASE_URL": database_url})
    await asyncio.to_thread(home.mkdir, parents=True, exist_ok=True, mode=0o700)
    if database_url is None:  # the tables of this release may be there already
        await asyncio.to_thread((home / "platform.db").unlink, missing_ok=True)
    await asyncio.to_thread(keep_promise, env, ())
    database = Database(SettingsLoader(env).load("kernel", KernelSettings).sqlalchemy_url)
    try:
        async with database.schema_change() as connection:
            await connection.run_sync(_first_migration)
            for name, role in roles.items():
                await connection.execute(_INSERT, _account(name, role))
            if "admin" in roles.values():
                await connection.execute(_REACHED, {"now": utc_now()})
    finally:
        await database.close()


def _first_migration(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":  # as above
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    command.upgrade(alembic_config(kernel_owner(), connection), "0100")


_INSERT = text(
    "INSERT INTO kernel_account (username, username_key, email, email_key, password_hash, role, "
    "platform_admin, is_active, must_change_password, epoch, created_at) VALUES "
    "(:name, :name, :email, :email, :hash, :role, false, true, false, 0, :now)"
)
_REACHED = text("INSERT INTO kernel_milestone (name, reached_at) VALUES ('platform_admin', :now)")


def _account(name: str, role: str) -> dict[str, object]:
    email = f"{name}@example.org"
    return {"name": name, "email": email, "hash": _CHEAP.hash(PASSWORD), "role": role, "now": utc_now()}
