"""Licenses of accounts: activation, keys, validation, lookup, usage."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime, timedelta

import pytest
from sqlalchemy import select, update

from builtin_plugins.licensing.models import License
from builtin_plugins.licensing.services.usage import USAGE
from kernel.sdk import utc_now
from kernel.testing import Actor, Running
from tests.builtin_plugins.licensing.licensing_support import LICENSES, activate, look_up, make_listing
from tests.builtin_plugins.tenancy.tenancy_support import somebody

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOWHERE = "00000000-0000-4000-8000-000000000000"


async def validate(actor: Actor, key: str, plugin_id: str) -> dict[str, object]:
    answer = await actor.post(f"{LICENSES}/validate", json={"license_key": key, "plugin_id": plugin_id})
    assert answer.status == 200, answer.body
    verdict: dict[str, object] = answer.json()
    return verdict


async def test_key_is_shown_once(licensing: Running) -> None:
    """The activation shows the key, which has four groups; afterwards only its end is known anywhere."""
    admin, ann = await somebody(licensing, role="admin"), await somebody(licensing)
    plugin = await make_listing(licensing, admin)
    made = await activate(admin, plugin["id"], user_id=str(ann.user["id"]))
    key = made["license_key"]
    assert re.fullmatch(r"[0-9A-F]{4}(-[0-9A-F]{4}){3}", key)
    assert made["license_key_masked"] == f"****-****-****-{key[-4:]}"
    listed = await ann.get(LICENSES)
    assert listed.json()["count"] == 1
    shown = listed.json()["licenses"][0]
    assert shown["license_key"] == made["license_key_masked"]
    assert shown["plugin_display_name"] == plugin["display_name"]
    assert key.encode() not in listed.body
    rows = await licensing.platform.database.read(
        lambda session: [str(row.__dict__) for row in session.scalars(select(License))]
    )
    assert not any(key in row or key.replace("-", "") in row for row in rows)


async def test_activation_tells_all_that_the_specification_names(licensing: Running) -> None:
    """Every field of ActivatedLicense; the times are naive UTC, the license lasts a year."""
    admin = await somebody(licensing, role="admin")
    plugin = await make_listing(licensing, admin)
    made = await activate(admin, plugin["id"], "professional")
    assert made["tier"] == "pro"
    assert made["activated_by"] == str(admin.user["id"])
    assert made["active"] is True
    assert made["trial_expires_at"] is None
    assert isinstance(made["tenant_id"], str)
    since, until = (datetime.fromisoformat(made[name]) for name in ("valid_from", "valid_until"))
    assert since.tzinfo is None
    assert until - since == timedelta(days=365)


async def test_there_is_one_for_each_account_and_plugin(licensing: Running) -> None:
    """Activating again replaces key and tier: the old key is invalid."""
    admin, ann = await somebody(licensing, role="admin"), await somebody(licensing)
    plugin = await make_listing(licensing, admin)
    first = await activate(admin, plugin["id"], user_id=str(ann.user["id"]))
    second = await activate(admin, plugin["id"], "enterprise", user_id=str(ann.user["id"]))
    assert (await ann.get(LICENSES)).json()["count"] == 1
    assert await look_up(admin, ann.user["id"], plugin["id"]) == "enterprise"
    assert (await validate(ann, first["license_key"], plugin["id"]))["valid"] is False
    assert (await validate(ann, second["license_key"], plugin["id"]))["tier"] == "enterprise"


async def test_a_key_is_for_one_plugin(licensing: Running) -> None:
    """Of another plugin it is invalid, in the words of an unknown key; typed without dashes it is known."""
    admin = await somebody(licensing, role="admin")
    plugin, other = await make_listing(licensing, admin), await make_listing(licensing, admin)
    key = (await activate(admin, plugin["id"]))["license_key"]
    wrong = await validate(admin, key, other["id"])
    assert wrong == await validate(admin, "AAAA-AAAA-AAAA-AAAA", plugin["id"])
    assert (wrong["valid"], wrong["valid_until"]) == (False, None)
    typed = await validate(admin, f" {key.lower().replace('-', ' ')}", plugin["id"])
    assert typed["valid"] is True


async def test_uses_are_counted(licensing: Running) -> None:
    """Each valid check counts at once, and is written together with others."""
    admin = await somebody(licensing, role="admin")
    plugin = await make_listing(licensing, admin)
    made = await activate(admin, plugin["id"])
    counts = [(await validate(admin, made["license_key"], plugin["id"]))["usage_count"] for _ in range(3)]
    assert counts == [1, 2, 3]
    await licensing.platform.resource(USAGE).flush()
    stored = await licensing.platform.database.read(
        lambda session: session.get_one(License, made["id"]).usage_count
    )
    assert stored == 3
    shown = (await admin.get(LICENSES)).json()["licenses"][0]
    assert shown["usage_count"] == 3
    assert shown["last_used_at"] is not None


async def test_uses_are_counted_while_they_are_written(licensing: Running) -> None:
    """A use that is just being written is neither left out nor counted twice."""
    admin = await somebody(licensing, role="admin")
    plugin = await make_listing(licensing, admin)
    key = (await activate(admin, plugin["id"]))["license_key"]
    usage = licensing.platform.resource(USAGE)
    for number in range(1, 41):
        asked, _, listed = await asyncio.gather(
            validate(admin, key, plugin["id"]), usage.flush(), admin.get(LICENSES)
        )
        assert asked["usage_count"] == number
        assert listed.json()["licenses"][0]["usage_count"] in (number - 1, number)


@pytest.mark.parametrize(
    ("change", "reason"), [({"active": False}, "active"), ({"valid_until": None}, "expired")]
)
async def test_what_has_ended_counts_no_more(
    licensing: Running, change: dict[str, object], reason: str
) -> None:
    """A license that was ended or has expired gives no tier; validating it returns the reason."""
    admin = await somebody(licensing, role="admin")
    plugin = await make_listing(licensing, admin)
    made = await activate(admin, plugin["id"])
    values = {**change, **({"valid_until": utc_now()} if "valid_until" in change else {})}
    statement = update(License).where(License.id == made["id"]).values(**values)
    await licensing.platform.database.write(lambda unit: unit.session.execute(statement) and None)
    told = await validate(admin, made["license_key"], plugin["id"])
    assert (told["valid"], reason in told["reason"]) == (False, True)
    assert await look_up(admin, admin.user["id"], plugin["id"]) is None
    assert (await admin.get(LICENSES)).json()["licenses"][0]["active"] is False


async def test_a_new_key_takes_the_place_of_the_old(licensing: Running) -> None:
    """The holder may have a new key, once; for others it is 404."""
    admin, ann, eve = [await somebody(licensing, role=role) for role in ("admin", "user", "user")]
    plugin = await make_listing(licensing, admin)
    made = await activate(admin, plugin["id"], user_id=str(ann.user["id"]))
    assert (await eve.post(f"{LICENSES}/{made['id']}/key")).status == 404
    renewed = await ann.post(f"{LICENSES}/{made['id']}/key")
    assert renewed.headers["Cache-Control"] == "no-store"
    assert (await validate(ann, made["license_key"], plugin["id"]))["valid"] is False
    assert (await validate(ann, renewed.json()["license_key"], plugin["id"]))["valid"] is True


@pytest.mark.parametrize(
    ("holder", "field"),
    [
        ({"user_id": "999999"}, "user_id"),
        ({"user_id": "ada"}, "user_id"),
        ({"organization_id": 999999, "seats": 2}, "organization_id"),
    ],
)
async def test_unknown_holders(licensing: Running, holder: dict[str, object], field: str) -> None:
    """A license for nobody is 422 and names the field."""
    admin = await somebody(licensing, role="admin")
    listing = await make_listing(licensing, admin)
    body = {"plugin_id": listing["id"], "tier": "pro", **holder}
    answer = await admin.post(f"{LICENSES}/activate", json=body)
    assert answer.status == 422, answer.body
    assert answer.json()["detail"][0]["loc"] == ["body", field]
