"""Secrets of owners: sealed rows, names without values, keys that change, and an end with their owner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import delete, select, update

from builtin_plugins.owner_secrets.api import OWNER_SECRETS, OwnerSecrets, SecretOwner, SecretUnreadable
from builtin_plugins.owner_secrets.keys import KeyFromEnvironment, KeyRing
from kernel.auth.models import Account, AuditEntry, OwnerSecret
from kernel.auth.secrets import SecretStore
from kernel.sdk import Database, Unit
from kernel.testing import Running, Start

VALUE = "ghp_a token of hers"
SHOP = SecretOwner("plugin", "shop")


@pytest.fixture
async def running(start_platform: Start, database_url: str | None) -> Running:
    """A platform with no other plugin, on each database."""
    return await start_platform("owner_secrets", env={"DATABASE_URL": database_url})


@pytest.fixture
def secrets(running: Running) -> OwnerSecrets:
    return running.platform.resource(OWNER_SECRETS)


@pytest.fixture
def database(running: Running) -> Database:
    return running.platform.database


async def test_kept_and_read(secrets: OwnerSecrets, database: Database) -> None:
    """A value comes back masked; a new one replaces it; each owner has names of its own."""
    other = SecretOwner("plugin", "customer")
    await database.write(secrets.put, SHOP, "token", VALUE)
    await database.write(secrets.put, other, "token", SecretStr("another"))
    found = await database.read(secrets.get, SHOP, "token")
    assert found is not None and found.get_secret_value() == VALUE
    assert VALUE not in f"{found!r} {found}"
    await database.write(secrets.put, SHOP, "token", "ключ" * 1000)
    found = await database.read(secrets.get, SHOP, "token")
    assert found is not None and found.get_secret_value() == "ключ" * 1000
    assert await database.read(secrets.get, SHOP, "none") is None
    assert await database.read(secrets.get, SecretOwner("organization", "shop"), "token") is None


async def test_listed_without_values(secrets: OwnerSecrets, database: Database) -> None:
    for name in ("b", "a"):
        await database.write(secrets.put, SHOP, name, VALUE)
    found = await database.read(secrets.list, SHOP)
    assert [entry.name for entry in found] == ["a", "b"] and VALUE not in repr(found)


async def test_removed(secrets: OwnerSecrets, database: Database) -> None:
    for name in ("a", "b", "c"):
        await database.write(secrets.put, SHOP, name, VALUE)
    assert await database.write(secrets.remove, SHOP, "a") is True
    assert await database.write(secrets.remove, SHOP, "a") is False
    assert await database.write(secrets.remove_all, SHOP) == 2
    assert await database.read(secrets.list, SHOP) == []


async def test_sealed(secrets: OwnerSecrets, database: Database) -> None:
    """The row holds neither the value nor anything that two equal values share."""
    for name in ("a", "b"):
        await database.write(secrets.put, SHOP, name, VALUE)
    one, two = await database.read(_rows)
    assert VALUE.encode() not in one["sealed"] and one["sealed"] != two["sealed"]
    assert one["nonce"] != two["nonce"]


async def test_audited(running: Running, secrets: OwnerSecrets, database: Database) -> None:
    """Who changed which secret is written down, its value never."""
    user = await running.user()
    origin = {"actor_id": user.user["id"]}
    organization = SecretOwner("organization", 7)
    await database.write(secrets.put, organization, "token", VALUE, origin)
    await database.write(secrets.put, organization, "token", "another", origin)
    await database.write(secrets.remove, organization, "token", origin)

    def entries(session: Any) -> list[AuditEntry]:
        return list(
            session.scalars(
                select(AuditEntry).where(AuditEntry.target_type == "secret").order_by(AuditEntry.id)
            )
        )

    found = await database.read(entries)
    assert [(e.action, e.target_id, e.before_state, e.after_state) for e in found] == [
        ("secret.stored", "organization:7/token", {"is_set": False}, {"is_set": True}),
        ("secret.stored", "organization:7/token", {"is_set": True}, {"is_set": True}),
        ("secret.removed", "organization:7/token", {"is_set": True}, {"is_set": False}),
    ]
    assert {(e.actor_id, e.scope_org_id) for e in found} == {(user.user["id"], 7)}


async def test_gone_with_the_account(running: Running, secrets: OwnerSecrets, database: Database) -> None:
    user = await running.user()
    owner = SecretOwner("account", user.user["id"])
    await database.write(secrets.put, owner, "token", VALUE)

    def end(unit: Unit) -> None:
        unit.session.execute(delete(Account).where(Account.id == owner.id))

    await database.write(end)
    assert await database.read(_rows) == []


@pytest.mark.parametrize("column", ["sealed", "nonce", "name", "owner_id", "owner_kind", "key_id"])
async def test_tampering_fails_loudly(
    secrets: OwnerSecrets, database: Database, column: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A changed row does not open, be it moved to another owner, renamed, or altered by a bit."""
    await database.write(secrets.put, SHOP, "token", VALUE)
    (row,) = await database.read(_rows)
    changed: dict[str, Callable[[Any], Any]] = {
        "sealed": lambda value: bytes([value[0] ^ 1]) + value[1:],
        "nonce": lambda value: bytes([value[0] ^ 1]) + value[1:],
        "name": lambda _value: "other",
        "owner_id": lambda _value: "customer",
        "owner_kind": lambda _value: "organization",
        "key_id": lambda _value: "0" * 12,
    }
    value = changed[column](row[column])

    def tamper(unit: Unit) -> None:
        unit.session.execute(update(OwnerSecret).values({column: value}))

    await database.write(tamper)
    (row,) = await database.read(_rows)
    with pytest.raises(SecretUnreadable):
        await database.read(secrets.get, SecretOwner(row["owner_kind"], row["owner_id"]), row["name"])
    assert row["name"] in caplog.text and VALUE not in caplog.text


async def test_without_the_key(
    running: Running, secrets: OwnerSecrets, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """A database without the home's key reveals nothing, and the log names the missing file."""
    await database.write(secrets.put, SHOP, "token", VALUE)
    running.platform.secrets.remove("owner-secrets")
    with pytest.raises(SecretUnreadable):
        await database.read(secrets.get, SHOP, "token")
    assert "PLATFORM_HOME/secrets/owner-secrets" in caplog.text


async def test_the_key_changes(running: Running, secrets: OwnerSecrets, database: Database) -> None:
    """Every row is sealed again, values stay, and old keys go with the second change."""
    for number in range(7):
        await database.write(secrets.put, SHOP, f"token-{number}", VALUE)
    before = {row["key_id"] for row in await database.read(_rows)}
    assert await secrets.change_key(database) == 7
    after = {row["key_id"] for row in await database.read(_rows)}
    assert len(after) == 1 and not before & after
    found = await database.read(secrets.get, SHOP, "token-3")
    assert found is not None and found.get_secret_value() == VALUE
    await secrets.change_key(database)
    kept = running.platform.secrets.get("owner-secrets")
    assert kept is not None and len(kept.split("\n")) == 2
    assert (running.platform.settings.home / "secrets" / "owner-secrets").stat().st_mode & 0o777 == 0o600


async def test_the_key_changes_twice_at_once(
    running: Running, secrets: OwnerSecrets, database: Database
) -> None:
    """Two operators, or a timer and a person: both end, no key is lost, and every value stays."""
    for number in range(7):
        await database.write(secrets.put, SHOP, f"token-{number}", VALUE)
    async with asyncio.timeout(60):
        await asyncio.gather(*(secrets.change_key(database) for _ in range(3)))
    assert await database.read(secrets.unreadable) == []
    assert len({row["key_id"] for row in await database.read(_rows)}) == 1


def _secrets_with_keys(home: Path, *lines: str) -> OwnerSecrets:
    """Secrets as a process has them whose environment holds these keys."""
    environment = {"PLATFORM_SECRET_OWNER_SECRETS": "\n".join(lines)}
    return OwnerSecrets(KeyRing(SecretStore(home, environment)))


async def test_the_key_of_the_environment_changes(database: Database, tmp_path: Path) -> None:
    """The platform can't change a variable: it says what to do, then seals with the first of its keys."""
    old, new = "o" * 64, "n" * 64
    before, during, after = (
        _secrets_with_keys(tmp_path, old),
        _secrets_with_keys(tmp_path, new, old),
        _secrets_with_keys(tmp_path, new),
    )
    await database.write(before.put, SHOP, "token", VALUE)
    async with asyncio.timeout(60):
        with pytest.raises(KeyFromEnvironment, match="PLATFORM_SECRET_OWNER_SECRETS"):
            await before.change_key(database)
        assert await during.change_key(database) == 1
    found = await database.read(after.get, SHOP, "token")
    assert found is not None and found.get_secret_value() == VALUE
    assert not (tmp_path / "secrets").exists()


@pytest.mark.parametrize(
    ("name", "value"), [("Token", VALUE), ("", VALUE), ("a/b", VALUE), ("token", ""), ("token", "x" * 70_000)]
)
async def test_refused(secrets: OwnerSecrets, database: Database, name: str, value: str) -> None:
    """A name or value that can't be one is refused, and nothing is stored."""
    with pytest.raises(ValueError, match="secret"):
        await database.write(secrets.put, SHOP, name, value)
    assert await database.read(_rows) == []


def _rows(session: Any) -> list[dict[str, Any]]:
    return [dict(row) for row in session.execute(select(OwnerSecret.__table__)).mappings()]
