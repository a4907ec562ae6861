"""Who may see and who may change a knowledge base (spec 4.11, decisions.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from builtin_plugins.accounts.api import ADMINISTRATION
from kernel.sdk.accounts import TOKENS, operator_of
from kernel.testing import Actor, Reply, Running
from tests.builtin_plugins.rag.rag_support import (
    Memberships,
    ask_raw,
    fresh_id,
    ingest,
    make_base,
    make_pipeline,
    member,
    path_of,
    problems,
    somebody,
    upload,
)

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

BASES = "/v1/rag/knowledge-bases"
PIPELINES = "/v1/rag/pipeline"


@dataclass
class Scene:
    """An owner and a colleague of one team and organization, and somebody of another."""

    owner: Actor
    colleague: Actor
    stranger: Actor
    team: int
    organization: int


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def scene(running: Running, members: Memberships) -> Scene:
    team, organization = fresh_id(), fresh_id()
    return Scene(
        await member(running, members, [team], [organization]),
        await member(running, members, [team], [organization]),
        await member(running, members, [fresh_id()], [fresh_id()]),
        team,
        organization,
    )


def shared_with(scene: Scene, visibility: str) -> dict[str, Any]:
    extra = {"team": {"team_id": scene.team}, "organization": {"organization_id": scene.organization}}
    return {"visibility": visibility, **extra.get(visibility, {})}


def over(base: str) -> dict[str, Any]:
    return {"name": "Ask", "knowledge_base_ids": [base]}


async def reads(actor: Actor, base: str, document: str) -> list[Reply]:
    return [
        await actor.get(f"{BASES}/{base}"),
        await actor.get(f"{BASES}/{base}/documents"),
        await actor.get(path_of(base, document)),
        await actor.get(path_of(base, document, "/content")),
        await actor.get(path_of(base, document, "/chunks")),
        await actor.post(PIPELINES, json={**over(base), "visibility": "shared"}),
    ]


async def writes(actor: Actor, base: str, document: str) -> list[Reply]:
    return [
        await actor.patch(f"{BASES}/{base}", json={"name": "Mine now"}),
        await upload(actor, base, "other.md", "Something else altogether."),
        await actor.delete(path_of(base, document)),
        await actor.delete(f"{BASES}/{base}"),
    ]


async def sees_in_list(actor: Actor, base: str) -> bool:
    items = (await actor.get(f"{BASES}?limit=500")).json()["items"]
    return base in {item["id"] for item in items}


async def test_administrators_and_services_pass(running: Running, scene: Scene) -> None:
    """An instance administrator and another service see and change what is private."""
    admin = await somebody(running, role="admin")
    service = Actor(running, running.platform.resource(TOKENS).mint_service("helper", 1))
    base = await make_base(scene.owner)
    document = (await ingest(running, scene.owner, base))["document_id"]
    for actor in (admin, service):
        assert {answer.status for answer in await reads(actor, base, document)} == {200}
        assert (await actor.patch(f"{BASES}/{base}", json={"name": "Renamed"})).status == 200
    for pipeline in (await admin.get("/v1/rag/pipeline?limit=500")).json()["items"]:
        if base in pipeline["knowledge_base_ids"]:
            assert (await admin.delete(f"/v1/rag/pipeline/{pipeline['id']}")).status == 200
    assert (await admin.delete(path_of(base, document))).status == 200


async def test_what_belongs_to_nobody(running: Running, scene: Scene) -> None:
    """A service's knowledge base has no owner: every account reads it, administrators and services change it,
    and it is never private.
    """
    service = Actor(running, running.platform.resource(TOKENS).mint_service("importer", 1))
    assert "body.visibility" in problems(await service.post(BASES, json={"name": "n"}))
    base = await make_base(service, visibility="shared")
    document = (await ingest(running, service, base))["document_id"]
    pipeline = await make_pipeline(service, base, visibility="shared")
    for path in (f"{BASES}/{base}", f"{PIPELINES}/{pipeline}"):
        seen = (await scene.stranger.get(path)).json()
        owner = seen["owner_id"] if "owner_id" in seen else seen["owner_user_id"]
        assert (owner, seen["visibility"]) == (None, "shared")
        assert "body.visibility" in problems(await service.patch(path, json={"visibility": "private"}))
        for change in ({"name": "Mine"}, {"visibility": "private"}):
            assert (await scene.stranger.patch(path, json=change)).status == 403
        assert (await scene.stranger.delete(path)).status == 403
    assert {answer.status for answer in await reads(scene.stranger, base, document)} == {200}
    file = await scene.stranger.upload(f"{BASES}/{base}/upload", "a.md", b"# A", "text/markdown")
    assert (file.status, file.json()["code"]) == (403, "not_owner")
    assert (await scene.stranger.delete(path_of(base, document))).status == 403
    assert (await service.patch(f"{BASES}/{base}", json={"name": "Ours"})).status == 200
    assert "body.visibility" in problems(await service.post(PIPELINES, json=over(base)))
    assert (await service.delete(f"{PIPELINES}/{pipeline}")).status == 200
    assert (await service.delete(f"{BASES}/{base}")).status == 200


async def test_a_service_names_an_owner(running: Running, scene: Scene) -> None:
    service = Actor(running, running.platform.resource(TOKENS).mint_service("importer", 1))
    named = {"owner_id": scene.owner.user["id"]}
    base = await make_base(service, **named)
    assert (await scene.owner.get(f"{BASES}/{base}")).json()["owner_id"] == scene.owner.user["id"]
    assert (await scene.stranger.get(f"{BASES}/{base}")).status == 404
    assert (await scene.owner.patch(f"{BASES}/{base}", json={"name": "Mine"})).status == 200
    await make_base(service, **named, visibility="team", team_id=scene.team)
    unknown = {"name": "n", "owner_id": 2**31 - 1}
    assert "body.owner_id" in problems(await service.post(BASES, json=unknown))
    assert "body.owner_id" in problems(await scene.stranger.post(BASES, json={"name": "n", **named}))
    named = {"owner_user_id": scene.owner.user["id"]}
    pipeline = (await service.post(PIPELINES, json={**over(base), **named})).json()["pipeline_id"]
    assert (await scene.owner.get(f"{PIPELINES}/{pipeline}")).status == 200
    assert (await scene.stranger.get(f"{PIPELINES}/{pipeline}")).status == 404
    refused = await scene.stranger.post(PIPELINES, json={**over(base), **named})
    assert "body.owner_user_id" in problems(refused)


class TestSharing:
    async def test_with_a_team_needs_membership(self, running: Running, scene: Scene) -> None:
        """403 for a team that the token does not name, on creation and on change; nothing changes."""
        foreign = {"visibility": "team", "team_id": fresh_id()}
        refused = await scene.owner.post(BASES, json={"name": "n", **foreign})
        assert (refused.status, refused.json()["code"]) == (403, "not_in_team")
        base = await make_base(scene.owner)
        assert (await scene.owner.patch(f"{BASES}/{base}", json=foreign)).status == 403
        assert (await scene.owner.get(f"{BASES}/{base}")).json()["visibility"] == "private"

    async def test_with_an_organization_needs_membership(self, running: Running, scene: Scene) -> None:
        foreign = {"name": "n", "visibility": "organization", "organization_id": fresh_id()}
        assert (await scene.owner.post(BASES, json=foreign)).status == 403

    async def test_an_administrators_own_team_counts(self, running: Running, members: Memberships) -> None:
        team = fresh_id()
        admin = await member(running, members, [team], role="admin")
        base = await make_base(admin, visibility="team", team_id=team)
        assert (await admin.get(f"{BASES}/{base}")).json()["team_id"] == team
        other = {"visibility": "team", "team_id": fresh_id()}
        assert (await admin.patch(f"{BASES}/{base}", json=other)).status == 403

    async def test_team_id_of_the_request_or_the_existing_one(self, running: Running, scene: Scene) -> None:
        base = await make_base(scene.owner)
        path = f"{BASES}/{base}"
        assert "body.team_id" in problems(await scene.owner.patch(path, json={"visibility": "team"}))
        body = {"visibility": "team", "team_id": scene.team}
        assert (await scene.owner.patch(path, json=body)).json()["team_id"] == scene.team
        again = await scene.owner.patch(path, json={"visibility": "team", "name": "Renamed"})
        assert (again.status, again.json()["team_id"]) == (200, scene.team)

    @pytest.mark.parametrize("visibility", ["private", "organization", "shared"])
    async def test_other_visibility_clears_the_team(
        self, running: Running, scene: Scene, visibility: str
    ) -> None:
        base = await make_base(scene.owner, visibility="team", team_id=scene.team)
        assert await sees_in_list(scene.colleague, base)
        changed = await scene.owner.patch(f"{BASES}/{base}", json=shared_with(scene, visibility))
        assert changed.json()["team_id"] is None
        assert await sees_in_list(scene.colleague, base) == (visibility != "private")

    async def test_leaving_the_team_loses_sight(
        self, running: Running, scene: Scene, members: Memberships
    ) -> None:
        colleague = await member(running, members, [scene.team])
        base = await make_base(scene.owner, visibility="team", team_id=scene.team)
        pipeline = await make_pipeline(colleague, base)
        assert (await ask_raw(colleague, pipeline, "What?")).status == 200
        name = colleague.user["username"]
        members.teams[name] = []
        left = await running.sign_in(name, colleague.password)
        assert (await left.get(f"{BASES}/{base}")).status == 404
        assert (await ask_raw(left, pipeline, "What?")).status == 409


async def listed_pipelines(actor: Actor) -> dict[str, Any]:
    items = (await actor.get(f"{PIPELINES}?limit=500")).json()["items"]
    return {item["id"]: item for item in items}


class TestPipelines:
    async def test_sharing_follows_the_rule_of_knowledge_bases(self, running: Running, scene: Scene) -> None:
        """403 for a team or organization that one is not in, 422 without one; leaving `team` forgets it."""
        base = await make_base(scene.owner)
        pipeline = await make_pipeline(scene.owner, base, visibility="team", team_id=scene.team)
        path = f"{PIPELINES}/{pipeline}"
        foreign = [
            {"visibility": "team", "team_id": fresh_id()},
            {"visibility": "organization", "organization_id": fresh_id()},
        ]
        for body in foreign:
            assert (await scene.owner.patch(path, json=body)).status == 403
            made = {"name": "n", "knowledge_base_ids": [base], **body}
            assert (await scene.owner.post(PIPELINES, json=made)).status == 403
        assert "body.organization_id" in problems(
            await scene.owner.patch(path, json={"visibility": "organization"})
        )
        assert (await scene.owner.get(path)).json()["team_id"] == scene.team
        cleared = (await scene.owner.patch(path, json={"visibility": "private"})).json()
        assert (cleared["visibility"], cleared["team_id"]) == ("private", None)
        assert pipeline not in await listed_pipelines(scene.colleague)

    async def test_answers_from_what_the_asker_sees(self, running: Running, scene: Scene) -> None:
        """A knowledge base out of sight is not searched, not cited and not named; the others answer."""
        secret, open_base = await make_base(scene.owner), await make_base(scene.owner, visibility="shared")
        await ingest(running, scene.owner, secret, "s.md", "The mascot Quillfeather lives in the tower.")
        await ingest(running, scene.owner, open_base, "o.md", "The mascot lives in a house by the river.")
        pipeline = await make_pipeline(scene.owner, secret, open_base, visibility="shared")
        path = f"{PIPELINES}/{pipeline}"
        question = "Where does the mascot live?"
        for hybrid in (False, True):
            mine = await ask_raw(scene.owner, pipeline, question, hybrid=hybrid)
            assert b"Quillfeather" in mine.body
            theirs = await ask_raw(scene.stranger, pipeline, question, hybrid=hybrid)
            assert b"river" in theirs.body and b"Quillfeather" not in theirs.body
            assert secret.encode() not in theirs.body and b"s.md" not in theirs.body
        shown = [await scene.stranger.get(path), await scene.stranger.get(f"{PIPELINES}?limit=500")]
        assert all(secret.encode() not in answer.body for answer in shown)
        assert (await listed_pipelines(scene.stranger))[pipeline]["knowledge_base_ids"] == [open_base]
        assert (await scene.owner.get(path)).json()["knowledge_base_ids"] == [secret, open_base]

    async def test_without_a_visible_knowledge_base(self, running: Running, scene: Scene) -> None:
        base = await make_base(scene.owner)
        pipeline = await make_pipeline(scene.owner, base, visibility="shared")
        hidden = await ask_raw(scene.stranger, pipeline, "What?")
        theirs = await make_base(scene.stranger, visibility="shared")
        other = await make_pipeline(scene.colleague, theirs)
        assert (await scene.stranger.delete(f"{BASES}/{theirs}")).status == 200
        gone = await ask_raw(scene.colleague, other, "What?")
        assert (hidden.status, hidden.body) == (gone.status, gone.body) == (409, gone.body)

    async def test_a_change_keeps_what_is_out_of_sight(
        self, running: Running, scene: Scene, members: Memberships
    ) -> None:
        base = await make_base(scene.owner, visibility="shared")
        pipeline = await make_pipeline(scene.colleague, base)
        assert (await scene.owner.patch(f"{BASES}/{base}", json={"visibility": "private"})).status == 200
        renamed = await scene.colleague.patch(f"{PIPELINES}/{pipeline}", json={"name": "Later"})
        assert (renamed.status, renamed.json()["knowledge_base_ids"]) == (200, [])
        assert (await scene.owner.patch(f"{BASES}/{base}", json={"visibility": "shared"})).status == 200
        assert (await listed_pipelines(scene.colleague))[pipeline]["knowledge_base_ids"] == [base]


@pytest.mark.parametrize("visibility", ["private", "team", "organization", "shared"])
async def test_looking_as_another_member(scene: Scene, running: Running, visibility: str) -> None:
    base = await make_base(scene.owner, **shared_with(scene, visibility))
    expected = {"private": "private", "shared": "everyone"}.get(visibility, visibility)
    for other, reason in ((scene.owner, "owner"), (scene.colleague, expected)):
        seen = (await scene.owner.get(f"{BASES}/{base}/sight?user_id={other.user['id']}")).json()
        real = await other.get(f"{BASES}/{base}")
        assert (seen["sees"], seen["reason"]) == (real.status == 200, reason)
        assert seen["changes"] is (other is scene.owner)
        assert seen["explanation"]
    admin = await running.user(role="admin")
    path = f"{BASES}/{base}/sight?user_id={scene.stranger.user['id']}"
    told = (await admin.get(path)).json()
    assert told["sees"] is ((await scene.stranger.get(f"{BASES}/{base}")).status == 200)
    assert told["reason"] == {"private": "private", "shared": "everyone"}.get(
        visibility, f"not_in_{visibility}"
    )


async def test_who_may_look_as_whom(scene: Scene, running: Running) -> None:
    """Strangers and unknown accounts are the same to an owner; nobody but the owner asks at all."""
    base = await make_base(scene.owner, **shared_with(scene, "team"))
    path = f"{BASES}/{base}/sight?user_id="
    stranger = await scene.owner.get(f"{path}{scene.stranger.user['id']}")
    unknown = await scene.owner.get(f"{path}999999")
    assert (stranger.status, stranger.json()) == (404, unknown.json())
    assert (await scene.colleague.get(f"{path}{scene.owner.user['id']}")).status == 403
    assert (await scene.stranger.get(f"{path}{scene.owner.user['id']}")).status == 404
    admin = await running.user(role="admin")
    gone = await running.user()
    assert (await admin.get(f"{path}{admin.user['id']}")).json()["reason"] == "administrator"
    administration = running.platform.resource(ADMINISTRATION)
    await administration.set_active(operator_of(running.platform), gone.user["id"], False)
    told = (await admin.get(f"{path}{gone.user['id']}")).json()
    assert (told["sees"], told["changes"], told["reason"]) == (False, False, "inactive")
