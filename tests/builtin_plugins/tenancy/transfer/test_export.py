"""Teams and organizations as files (spec 4.3, 4.4)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import insert

from builtin_plugins.tenancy.models import Membership
from builtin_plugins.tenancy.transfer.schemas import MAX_MEMBERS
from kernel.sdk import Account, Plugin, Unit, hookimpl
from kernel.testing import Running, Start
from tests.builtin_plugins.plugin_registry.registry_support import Shop
from tests.builtin_plugins.rag.rag_support import ingest, make_base, make_pipeline
from tests.builtin_plugins.tenancy.tenancy_support import (
    audited,
    id_of,
    problems,
    somebody,
    suspend,
)
from tests.builtin_plugins.tenancy.transfer_support import KINDS, Kind, furnish, make_home

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("kind", KINDS)
async def test_bundle(sharing: Running, kind: Kind) -> None:
    """Metadata, members by e-mail, settings of what is shared; no ids, no owners, no unknown options."""
    home = await make_home(sharing, kind)
    await furnish(home)
    mate = await somebody(sharing)
    await home.admit(mate)
    answer = await home.manager.get(f"{home.path}/export")
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{kind}-{home.id}.json"'
    assert answer.headers["Cache-Control"] == "no-store"
    found = answer.json()
    assert datetime.fromisoformat(found.pop("exported_at")).tzinfo is not None
    members = found.pop("members")
    assert {row["email"] for row in members} == {home.manager.user["email"], mate.user["email"]}
    assert (found.pop("format"), found.pop("version")) == (f"platform.{kind}", 1)
    assert set(found.pop(kind)) == ({"name", "description"} if kind == "team" else {"name", "slug"})
    assert found == {
        "knowledge_bases": [
            {
                "name": "Handbook",
                "description": "Rules",
                "embedding_model": "multilingual-e5-small",
                "llm_model": "tiny",
                "chunk_size": 300,
                "chunk_overlap": 20,
            },
            {
                "name": "Minutes",
                "description": "",
                "embedding_model": "multilingual-e5-small",
                "llm_model": None,
                "chunk_size": 1500,
                "chunk_overlap": 150,
            },
        ],
        "pipelines": [
            {
                "name": "Ask us",
                "knowledge_bases": ["Minutes", "Handbook"],
                "retrieval_config": {"top_k": 7, "hybrid": True},
                "generation_config": {"model": "tiny", "temperature": 0.5},
            }
        ],
    }


@pytest.mark.parametrize("kind", KINDS)
async def test_holds_only_what_is_shared_with_it(sharing: Running, kind: Kind) -> None:
    """Nothing private, shared with all or with others; a pipeline names only what is in the bundle."""
    home = await make_home(sharing, kind)
    other = await make_home(sharing, kind, home.manager)
    ann = home.manager
    inside = await make_base(ann, name="Inside", **home.shared)
    outside = [
        await make_base(ann, name="Elsewhere", **other.shared),
        await make_base(ann, name="Private"),
        await make_base(ann, name="Everybody's", visibility="shared"),
    ]
    await ingest(sharing, ann, inside, "story.md", "Once upon a time.")
    await make_pipeline(ann, inside, *outside, name="Ours", **home.shared)
    await make_pipeline(ann, *outside, name="Bare", **home.shared)
    await make_pipeline(ann, inside, name="Mine")
    bundle = await home.export()
    assert [row["name"] for row in bundle["knowledge_bases"]] == ["Inside"]
    assert {row["name"]: row["knowledge_bases"] for row in bundle["pipelines"]} == {
        "Bare": [],
        "Ours": ["Inside"],
    }
    assert "Once upon" not in str(bundle) and "story" not in str(bundle)


async def test_names_that_stand_twice_are_numbered(sharing: Running) -> None:
    """In a bundle a name means one row; the oldest keeps it, and pipelines refer to the right one."""
    home = await make_home(sharing, "team")
    bases = [await make_base(home.manager, name=name, **home.shared) for name in ("A", "A", "A (2)", "A")]
    await make_pipeline(home.manager, bases[1], bases[2], **home.shared)
    bundle = await home.export()
    assert [row["name"] for row in bundle["knowledge_bases"]] == ["A", "A (2)", "A (3)", "A (4)"]
    assert bundle["pipelines"][0]["knowledge_bases"] == ["A (3)", "A (2)"]


async def test_roles_and_suspensions_are_told(sharing: Running) -> None:
    home = await make_home(sharing, "organization")
    boss, out = await somebody(sharing), await somebody(sharing)
    await home.admit(boss, "admin")
    await home.admit(out)
    await suspend(sharing, home.id, out)
    rows = {row["email"]: (row["org_role"], row["suspended"]) for row in (await home.export())["members"]}
    assert rows == {
        home.manager.user["email"]: ("owner", False),
        boss.user["email"]: ("admin", False),
        out.user["email"]: ("member", True),
    }


@pytest.mark.parametrize("kind", KINDS)
async def test_audited(sharing: Running, kind: Kind) -> None:
    """Each export leaves an entry with its counts, the actor and the organization."""
    home = await make_home(sharing, kind)
    await furnish(home)
    await home.export()
    (entry,) = await audited(sharing, f"{kind}.exported", home.id)
    assert entry.after_state == {"members": 1, "knowledge_bases": 2, "pipelines": 1}
    assert (entry.actor_id, entry.target_type) == (id_of(home.manager), kind)
    assert entry.scope_org_id == (home.id if kind == "organization" else None)


class Settings(Plugin):
    """A plugin that keeps something for an organization."""

    name = "keeper"

    @hookimpl(optionalhook=True)
    def export_rows(self, organization_id: int | None) -> dict[str, Any] | None:
        rows = [{"plugin": "keeper", "values": {"color": "green"}}]
        return {"plugin_config": rows} if organization_id is not None else None


@pytest.mark.asyncio(loop_scope="function")
async def test_other_plugins_add_to_the_bundle(start_platform: Start) -> None:
    """Without rag a bundle has no knowledge bases; any plugin may add sections of its own."""
    running = await start_platform("tenancy", Settings)
    home = await make_home(running, "organization")
    bundle = await home.export()
    assert bundle["plugin_config"] == [{"plugin": "keeper", "values": {"color": "green"}}]
    assert "knowledge_bases" not in bundle
    team = await make_home(running, "team")
    assert set(await team.export()) == {"format", "version", "exported_at", "team", "members"}


@pytest.mark.asyncio(loop_scope="function")
async def test_configuration_of_plugins(start_platform: Start) -> None:
    """A bundle has the plugins' settings, without secrets; an import changes none of them."""
    running = await start_platform("tenancy", "plugin_registry", Shop)
    home = await make_home(running, "organization")
    values = {"SHOP_GREETING": "welcome", "SHOP_LIMIT": 7, "SHOP_KEY": "sk-hush"}
    assert (await home.manager.put("/v1/plugins/shop/config", json=values)).status == 200
    bundle = await home.export()
    told = [{"name": "shop", "values": {"SHOP_GREETING": "welcome", "SHOP_LIMIT": 7}}]
    assert bundle["plugin_config"] == told and "sk-hush" not in str(bundle)
    bundle["plugin_config"][0]["values"]["SHOP_GREETING"] = "changed"
    report = await home.take(bundle)
    assert [item["name"] for item in report["skipped"] if item["kind"] == "plugin_config"] == ["shop"]
    assert (await home.export())["plugin_config"] == told
    bundle["plugin_config"][0]["values"] = {"SHOP_GREETING": {"a": "b"}}
    assert any("plugin_config" in place for place in problems(await home.send(bundle)))
    team = await make_home(running, "team")
    assert "plugin_config" not in await team.export()


@pytest.mark.asyncio(loop_scope="function")
async def test_more_members_than_an_import_takes(start_platform: Start) -> None:
    """All members are exported, however many there are; only an import has a limit."""
    running = await start_platform("tenancy")
    home = await make_home(running, "organization")
    await running.platform.database.write(_crowd, home.id, MAX_MEMBERS)
    bundle = await home.export()
    assert len(bundle["members"]) == MAX_MEMBERS + 1
    assert "20,000 members" in problems(await home.send(bundle))["body.bundle"]


def _crowd(unit: Unit, organization_id: int, number: int) -> None:
    names = [f"crowd{at}" for at in range(number)]
    columns = {"role": "user", "is_active": True, "epoch": 0, "created_at": unit.now()}
    flags = {"platform_admin": False, "must_change_password": False}
    accounts = [
        {"username": name, "username_key": name, "email": f"{name}@x.org", "email_key": f"{name}@x.org"}
        | columns
        | flags
        for name in names
    ]
    ids = unit.session.scalars(insert(Account).returning(Account.id), accounts).all()
    joined = {"organization_id": organization_id, "org_role": "member", "joined_at": unit.now()}
    unit.session.execute(insert(Membership), [{"user_id": one, **joined} for one in ids])
