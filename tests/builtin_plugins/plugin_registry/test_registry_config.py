"""Configuring plugins while they run: what is shown, what is refused, and where it takes effect."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import field_validator
from sqlalchemy import select, update

from builtin_plugins.owner_secrets.api import OWNER_SECRETS, SecretOwner
from builtin_plugins.plugin_registry.models import ConfigValue
from kernel.sdk import Unit, hookimpl
from kernel.testing import Actor, Running, Start
from tests.builtin_plugins.manifest_webhooks.webhook_support import until
from tests.builtin_plugins.plugin_registry.registry_support import Customer, Shop, ShopSettings
from tests.fakes.audit import audited

OWN = "plugin_registry"
PATH = "/v1/plugins/shop/config"


async def in_effect(running: Running) -> dict[str, Any]:
    return dict((await running.anonymous.get("/v1/shop/greeting")).json())


async def put(actor: Actor, **values: Any) -> tuple[int, Any]:
    answer = await actor.put(PATH, json=values)
    return answer.status, answer.json()


async def test_shown(start_platform: Start) -> None:
    """The configurable fields by their environment's names, with types, defaults and masked secrets."""
    running = await start_platform(OWN, Shop, Customer, env={"SHOP_KEY": "k1", "SHOP_LIMIT": "4"})
    user = await running.user()
    body = (await user.get(PATH)).json()
    assert body["plugin"] == "shop" and body["configurable"] is True
    fields = {field["key"]: field for field in body["schema"]}
    assert {key: field["type"] for key, field in fields.items()} == {
        "SHOP_GREETING": "string",
        "SHOP_LIMIT": "int",
        "SHOP_RATIO": "float",
        "SHOP_LOUD": "bool",
        "SHOP_MODE": "string",
        "SHOP_KEY": "string",
        "SHOP_NICKNAME": "string",
    }
    assert fields["SHOP_GREETING"]["default"] == "hello"
    assert fields["SHOP_GREETING"]["description"] == "What to say."
    assert fields["SHOP_MODE"]["options"] == ["slow", "quick"]
    assert [key for key, field in fields.items() if field["secret"]] == ["SHOP_KEY"]
    assert (body["values"]["SHOP_KEY"], body["values"]["SHOP_LIMIT"]) == ("***", 4)
    empty = (await user.get("/v1/plugins/customer/config")).json()
    assert empty == {"plugin": "customer", "configurable": False, "schema": [], "values": {}}


async def test_changed(start_platform: Start, database_url: str | None) -> None:
    """A change is in effect at once, over the environment, in every process, and after a restart."""
    env = {"DATABASE_URL": database_url, "SHOP_GREETING": "from the environment"}
    first = await start_platform(OWN, Shop, env=env)
    second = await start_platform(OWN, Shop, env=env)
    user = await first.user()
    status, body = await put(user, SHOP_GREETING="merhaba", SHOP_LIMIT=7, SHOP_LOUD="yes")
    assert status == 200
    assert body["updated"] == ["SHOP_GREETING", "SHOP_LIMIT", "SHOP_LOUD"]
    assert (body["values"]["SHOP_LIMIT"], body["values"]["SHOP_LOUD"]) == (7, True)
    wanted = {"greeting": "merhaba", "limit": 7, "loud": True, "key": None}
    assert await in_effect(first) == wanted

    async def followed() -> bool:
        return await in_effect(second) == wanted

    await until(followed)
    third = await start_platform(OWN, Shop, env=env)
    assert await in_effect(third) == wanted
    status, body = await put(user, SHOP_GREETING=None)
    assert status == 200 and body["values"]["SHOP_GREETING"] == "from the environment"
    assert (await in_effect(first))["limit"] == 7


async def test_administered(start_platform: Start, database_url: str | None) -> None:
    """Administrators alone see and change some settings; of these, the environment's win and say so."""
    env = {"DATABASE_URL": database_url, "SHOP_HOURS": "9"}
    first, second = [await start_platform(OWN, Shop, env=env) for _ in range(2)]
    user, admin = await first.user(), await first.user(role="admin")
    assert "SHOP_SHELVES" not in (await user.get(PATH)).json()["values"]
    assert (await put(user, SHOP_SHELVES=6))[0] == 403
    fields = {field["key"]: field for field in (await admin.get(PATH)).json()["schema"]}
    assert (fields["SHOP_SHELVES"]["fixed_by"], fields["SHOP_HOURS"]["fixed_by"]) == (None, "SHOP_HOURS")
    assert (await put(admin, SHOP_HOURS=10))[0] == 409
    assert (await put(admin, SHOP_SHELVES=0))[0] == 400
    status, body = await put(admin, SHOP_SHELVES=6)
    assert (status, body["values"]["SHOP_SHELVES"], body["values"]["SHOP_HOURS"]) == (200, 6, 9)

    async def followed() -> bool:
        return second.platform.settings_of(ShopSettings).shelves == 6

    await until(followed)
    (entry,) = await audited(first.platform, "plugin.configured")
    assert (entry.before_state, entry.after_state) == ({"SHOP_SHELVES": None}, {"SHOP_SHELVES": 6})


async def test_environment_set_later(start_platform: Start, database_url: str | None) -> None:
    """What an administrator stored gives way when the environment sets it, and counts again without it."""
    env = {"DATABASE_URL": database_url}
    first = await start_platform(OWN, Shop, env=env)
    assert (await put(await first.user(role="admin"), SHOP_HOURS=10))[0] == 200
    later = await start_platform(OWN, Shop, env={**env, "SHOP_HOURS": "9"})
    assert later.platform.settings_of(ShopSettings).hours == 9
    third = await start_platform(OWN, Shop, env=env)
    assert third.platform.settings_of(ShopSettings).hours == 10


async def test_environment_takes_the_place_of_a_wrong_one(
    start_platform: Start, database_url: str | None
) -> None:
    """A stored value that can't be any more, and that the environment's replaces, stops no other change."""
    env = {"DATABASE_URL": database_url}
    first = await start_platform(OWN, Shop, env=env)
    assert (await put(await first.user(role="admin"), SHOP_HOURS=10))[0] == 200

    def spoil(unit: Unit) -> None:
        mine = (ConfigValue.plugin == "shop") & (ConfigValue.field == "hours")
        unit.session.execute(update(ConfigValue).where(mine).values(value=0))

    await first.platform.database.write(spoil)
    later = await start_platform(OWN, Shop, env={**env, "SHOP_HOURS": "9"})
    assert (await put(await later.user(role="admin"), SHOP_SHELVES=6))[0] == 200


@pytest.mark.parametrize("value", ["inf", "1e999"])
async def test_no_end(start_platform: Start, database_url: str | None, value: str) -> None:
    """A number without an end is refused, with its key: no limit works with it, and no JSON has it."""
    running = await start_platform(OWN, Shop, env={"DATABASE_URL": database_url})
    status, body = await put(await running.user(role="admin"), SHOP_WIDTH=value)
    assert (status, "SHOP_WIDTH" in str(body)) == (400, True)


def bytes_of(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.glob("platform.db*"))


async def test_secret(start_platform: Start, platform_home: Path) -> None:
    """A secret takes effect everywhere, is never shown, and is stored encrypted alone."""
    first = await start_platform(OWN, Shop)
    second = await start_platform(OWN, Shop)
    user = await first.user()
    status, body = await put(user, SHOP_KEY="hunter2")
    assert status == 200 and body["values"]["SHOP_KEY"] == "***"
    assert (await in_effect(first))["key"] == "hunter2"

    async def followed() -> bool:
        return (await in_effect(second))["key"] == "hunter2"

    await until(followed)
    status, body = await put(user, SHOP_KEY="***", SHOP_LIMIT=2)
    assert body["updated"] == ["SHOP_LIMIT"] and (await in_effect(first))["key"] == "hunter2"
    await put(user, SHOP_KEY="hunter3")
    assert (await in_effect(first))["key"] == "hunter3"
    rows = await first.platform.database.read(lambda session: session.scalars(select(ConfigValue)).all())
    assert {row.field: row.value for row in rows} == {"key": None, "limit": 2}
    assert "config.shop.key" not in first.platform.secrets.names()
    assert b"hunter" not in bytes_of(platform_home)
    status, body = await put(user, SHOP_KEY=None)
    assert (await in_effect(first))["key"] is None
    owner, secrets = SecretOwner("plugin", "shop"), first.platform.resource(OWNER_SECRETS)
    assert await first.platform.database.read(secrets.list, owner) == []


async def test_secret_of_an_earlier_release(start_platform: Start) -> None:
    """A secret setting that lies in a file is taken into the database; other files are left alone."""
    first = await start_platform(OWN, Shop)
    first.platform.secrets.set("config.shop.key", "hunter2")
    first.platform.secrets.set("config.mine", "a webhook's")

    def remember(unit: Unit) -> None:
        unit.session.add(ConfigValue(plugin="shop", field="key", value=None))

    await first.platform.database.write(remember)
    second = await start_platform(OWN, Shop)
    assert (await in_effect(second))["key"] == "hunter2"
    assert {"config.shop.key", "config.mine"} & set(first.platform.secrets.names()) == {"config.mine"}
    third = await start_platform(OWN, Shop)
    assert (await in_effect(third))["key"] == "hunter2"


async def test_secret_whose_key_is_gone(start_platform: Start) -> None:
    """The plugin runs with its other values, /health names it, and a new value mends it."""
    first = await start_platform(OWN, Shop)
    await put(await first.user(), SHOP_KEY="hunter2", SHOP_LIMIT=7)
    first.platform.secrets.set("owner-secrets", "another key")
    second = await start_platform(OWN, Shop)
    health = (await second.anonymous.get("/health")).json()
    assert "secret" in health["checks"]["plugin_settings"]
    status, _ = await put(await second.user(), SHOP_KEY="hunter3")
    assert (status, (await in_effect(second))["key"]) == (200, "hunter3")
    assert (await in_effect(second))["limit"] == 7
    assert (await second.anonymous.get("/health")).json()["checks"]["plugin_settings"] == "healthy"


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b'{"SHOP_LIMIT": 99}', "SHOP_LIMIT"),
        (b'{"SHOP_LIMIT": "many"}', "SHOP_LIMIT"),
        (b'{"SHOP_LOUD": "perhaps"}', "SHOP_LOUD"),
        (b'{"SHOP_MODE": "medium"}', "SHOP_MODE"),
        (b'{"SHOP_GREETING": 5}', "SHOP_GREETING"),
        (b'{"SHOP_GREETING": ["x"]}', "SHOP_GREETING"),
        (b'{"SHOP_GREETING": "a\\u0000b"}', "SHOP_GREETING"),
        (b'{"SHOP_FOLDER": "/etc"}', "SHOP_FOLDER"),
        (b'{"limit": 5}', "SHOP_LIMIT"),
        (b"[]", "object"),
        (b"{", "JSON"),
        (b"", "JSON"),
    ],
)
async def test_refused(start_platform: Start, body: bytes, named: str) -> None:
    """What does not fit is 400 and named, and nothing of the request takes effect."""
    running = await start_platform(OWN, Shop)
    user = await running.user()
    answer = await user.put(PATH, data=body)
    assert answer.status == 400 and named in answer.detail
    mixed = await user.put(PATH, json={"SHOP_GREETING": "changed", "SHOP_LIMIT": 99})
    assert mixed.status == 400 and (await in_effect(running))["greeting"] == "hello"


async def test_stored_value_that_no_longer_fits(start_platform: Start) -> None:
    """A value that a newer release refuses is not applied; the plugin runs, and /health says so."""
    first = await start_platform(OWN, Shop)
    user = await first.user()
    await put(user, SHOP_LIMIT=7)
    change = update(ConfigValue).values(value=99)
    await first.platform.database.write(lambda unit: unit.session.execute(change).close())
    second = await start_platform(OWN, Shop)
    assert (await in_effect(second))["limit"] == 3
    checks = (await second.anonymous.get("/health")).json()["checks"]
    assert "SHOP_LIMIT" in checks["plugin_settings"]


async def test_stored_value_at_which_a_plugin_fails(start_platform: Start) -> None:
    """The newer release's validator raises what it must not: only its own settings are not applied."""
    first = await start_platform(OWN, Shop)
    await put(await first.user(), SHOP_GREETING="Hullo")

    class NewSettings(ShopSettings):
        @field_validator("greeting")
        @classmethod
        def _translated(cls, value: str) -> str:
            return {"hello": "hello"}[value]

    class NewShop(Shop):
        @hookimpl
        def register_settings(self) -> type[ShopSettings]:
            return NewSettings

    second = await start_platform(OWN, NewShop)
    health = (await second.anonymous.get("/health")).json()
    assert {health["plugins"][name]["status"] for name in (OWN, "shop")} == {"loaded"}
    assert "shop: " in health["checks"]["plugin_settings"]


async def test_webhook_cap_follows(start_platform: Start, platform_home: Path) -> None:
    """A built-in plugin's setting: a larger webhook body passes right after the change."""
    from tests.builtin_plugins.manifest_webhooks.webhook_support import drop, manifest
    from tests.fakes.hash_embeddings import HashEmbeddings

    drop(platform_home / "manifests", "a.yaml", manifest())
    running = await start_platform(OWN, "manifest_webhooks", HashEmbeddings())
    user = await running.user()
    large = json.dumps({"text": "x", "rest": "y" * (1024 * 1024)}).encode()

    async def deliver() -> int:
        headers = {"Content-Type": "application/json"}
        answer = await running.anonymous.post("/webhook/notes", data=io.BytesIO(large), headers=headers)
        return answer.status

    assert await deliver() == 413
    path = "/v1/plugins/manifest_webhooks/config"
    assert (await user.put(path, json={"MAX_WEBHOOK_BODY_SIZE_MB": 2})).status == 200
    assert await deliver() == 200
