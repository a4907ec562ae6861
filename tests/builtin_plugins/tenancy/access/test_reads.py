"""`doctor --leaks` on an instance's own rows: nothing to find, or what was planted."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from datetime import timedelta

import pytest
from sqlalchemy import update

from builtin_plugins.conversations.models import Thread
from builtin_plugins.rag.models import Document, TrashedDocument
from builtin_plugins.tenancy.models import Membership
from cli.checks import of_plugins
from kernel.sdk import Finding, Platform, Plugin, Principal, Scope, Unit, hookimpl, utc_now
from kernel.testing import Actor, Running, Start
from tests.builtin_plugins.rag.rag_support import make_base, make_pipeline, upload
from tests.builtin_plugins.tenancy.tenancy_support import id_of, make_org, somebody
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.keeping import Keeper

KINDS = {"knowledge bases", "pipelines", "documents", "conversations", "published chats"}


class GenerousPlugin(Plugin):
    """Says that an account belongs to a team in which it is not."""

    name = "generous"
    version = "1.0"
    requires = ("tenancy",)
    gift: tuple[int, int] | None = None

    @hookimpl(tryfirst=True)
    async def find_scope(self, platform: Platform, principal: Principal) -> Scope | None:
        if self.gift is None or principal.id != self.gift[0]:
            return None
        return Scope(principal.id, teams=(self.gift[1],))


@dataclass
class Office:
    """Ann shares with a team; Bob is in it, Eve is not; Cleo is in an organization that has suspended Dan."""

    running: Running
    ann: Actor
    bob: Actor
    eve: Actor
    dan: Actor
    team: int
    organization: int
    base: str
    guarded: str
    inside: str

    async def findings(self) -> dict[str, Finding]:
        every = [one async for one in of_plugins(self.running.platform, "reads")]
        return {one.facts["rows"]: one for one in every}

    async def set_audience(self, audience: str | None) -> None:
        """Of the document that came out of the guarded one."""
        mine = update(Document).where(Document.id == self.inside).values(audience_id=audience)

        def write(unit: Unit) -> None:
            unit.session.execute(mine)

        await self.running.platform.database.write(write)


async def office(running: Running) -> Office:
    ann, bob, cleo, dan, eve = [await somebody(running) for _ in range(5)]
    await somebody(running, role="admin")
    team = (await ann.post("/v1/teams", json={"name": "Crew"})).json()["id"]
    added = await ann.post(f"/v1/teams/{team}/members", json={"user_id": id_of(bob), "team_role": "member"})
    assert added.status in (200, 201), added.body
    organization = await make_org(running, cleo)
    base = await make_base(ann, visibility="team", team_id=team)
    await make_base(cleo, visibility="organization", organization_id=organization)
    await make_base(eve)
    pipeline = await make_pipeline(ann, base, visibility="team", team_id=team)
    await upload(ann, base)
    keeper, packed = Keeper(running.platform, base), io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("inside.md", "The bonus is 700 EUR.")
    guarded = await keeper.put("secret.zip", packed.getvalue(), keeper.readers("board"))
    await keeper.members(board=[id_of(ann)])
    await running.run_jobs()
    listed = (await ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["items"]
    [inside] = [one["document_id"] for one in listed if one["filename"] == "inside.md"]

    def add(unit: Unit) -> None:
        suspended = utc_now() - timedelta(days=1)
        member = {"organization_id": organization, "org_role": "member"}
        unit.session.add(Membership(**member, user_id=id_of(dan), suspended_at=suspended))
        holder = str(id_of(ann))
        unit.session.add(Thread(holder=holder, conversation_id="own"))
        unit.session.add(Thread(holder=holder, conversation_id="two", shared_pipeline_id=pipeline))

    await running.platform.database.write(add)
    return Office(running, ann, bob, eve, dan, team, organization, base, guarded, inside)


@pytest.mark.either_database
async def test_differences_are_found_and_only_they(database_url: str | None, start_platform: Start) -> None:
    plugins = ("tenancy", "rag", "conversations", "published_chat", HashEmbeddings(), GenerousPlugin)
    running = await start_platform(*plugins, env={"DATABASE_URL": database_url})
    there = await office(running)
    healthy = await there.findings()
    assert healthy.keys() == KINDS
    assert {one.status for one in healthy.values()} == {"ok"}, healthy
    assert {one.facts["accounts"] for one in healthy.values()} == {6}
    assert all(healthy[kind].facts["questions"] for kind in KINDS - {"published chats"})

    # A plugin gives too much.
    GenerousPlugin.gift = (id_of(there.eve), there.team)
    try:
        generous = await there.findings()
    finally:
        GenerousPlugin.gift = None
    assert generous["knowledge bases"].facts["leaks"] == [(id_of(there.eve), there.base)]
    leaking = {"knowledge bases", "pipelines", "documents", "conversations"}
    assert {kind for kind, one in generous.items() if one.status == "failed"} == leaking

    # What came out of a guarded document has lost its readers.
    guarded = (await there.findings())["documents"].facts["questions"]
    await there.set_audience(None)
    damaged = (await there.findings())["documents"]
    assert damaged.status == "failed"
    assert (id_of(there.bob), there.inside) in damaged.facts["leaks"]
    assert id_of(there.ann) not in {account for account, _ in damaged.facts["leaks"]}
    assert damaged.facts["questions"] > guarded

    # A document in the trash that is not hidden.
    await there.set_audience("gone")
    row = {"document_id": there.inside, "main_id": there.inside, "knowledge_base_id": there.base}
    await running.platform.database.write(
        lambda unit: unit.session.add(TrashedDocument(**row, trashed_at=utc_now()))
    )
    assert (await there.findings())["documents"].status == "ok"
    await there.set_audience(None)
    trashed = (await there.findings())["documents"].facts["leaks"]
    assert {account for account, _ in trashed} >= {id_of(there.ann), id_of(there.bob)}
