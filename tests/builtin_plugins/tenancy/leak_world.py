"""A small world for the leak matrix: a victim with one of everything, and all who must not see it.

Whatever belongs to the victim carries a canary, a word that stands nowhere else; `audience` says of each
canary who may read it. What an actor may do is told by plain facts (memberships, keys), not by the platform.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import select, update

from builtin_plugins.tenancy.models import GroupChild, PermissionGroup, Role, RolePermission
from kernel.db.tables import JobRecord
from kernel.sdk import Account, Permission, Unit, utc_now
from kernel.sdk.accounts import TOKENS, TokenScope
from kernel.testing import Actor, Reply, Running
from tests.builtin_plugins.rag.rag_support import make_base, make_pipeline, upload
from tests.builtin_plugins.tenancy.tenancy_support import (
    fresh,
    give_keys,
    id_of,
    join,
    join_team,
    make_org,
    make_team,
    suspend,
)
from tests.fakes.keeping import Keeper

VARIANTS = ("private", "team", "organization")
READERS = {"private": "rightful", "team": "admin", "organization": "member"}
"""Who alone may read the document that has readers of its own, in the knowledge base of each visibility."""
ORG_KEYS = ("org.members.manage", "org.roles.manage", "org.settings.manage", "org.audit.read")
NOWHERE = "00000000-0000-4000-8000-000000000000"
NOBODY = 2_147_480_000


@dataclass
class Person:
    """An actor of the matrix, and the facts about it.

    `organizations` are unsuspended memberships with their role; `teams` those that count.
    """

    name: str
    actor: Actor
    organizations: dict[int, str] = field(default_factory=dict)
    teams: dict[int, str] = field(default_factory=dict)
    suspended_in: set[int] = field(default_factory=set)
    is_admin: bool = False
    is_platform_admin: bool = False
    is_anonymous: bool = False
    is_active: bool = True
    scopes: frozenset[TokenScope] | None = None

    @property
    def id(self) -> int:
        """The account's id; nobody's for a stranger without a token."""
        return NOBODY if self.is_anonymous else id_of(self.actor)


@dataclass
class World:
    """Who there is, what there is, and the facts by which the expected answers are derived."""

    running: Running
    permissions: dict[str, Permission]
    parents: dict[int, int | None] = field(default_factory=dict)
    team_homes: dict[int, int | None] = field(default_factory=dict)
    people: dict[str, Person] = field(default_factory=dict)
    ids: dict[str, Any] = field(default_factory=dict)
    canaries: dict[str, Callable[[Person], bool]] = field(default_factory=dict)

    @property
    def victim(self) -> Person:
        return self.people["rightful"]

    def canary(self, what: str, audience: Callable[[Person], bool]) -> str:
        word = f"canary-{what}-{secrets.token_hex(6)}"
        self.canaries[word] = audience
        return word

    def holds(self, person: Person, key: str, within: int, *, or_admin: bool = False) -> bool:
        """Whether somebody holds a key in an organization or team, by its declaration and the facts."""
        if person.is_platform_admin or (or_admin and person.is_admin):
            return True
        if self.permissions[key].scope == "team":
            home = self.team_homes.get(within)
            manages = home is not None and self.holds(person, "org.members.manage", home)
            return manages or person.teams.get(within) == "team_admin"
        return any(
            role in self.permissions[key].org_roles and (place == within or role != "member")
            for place in self._lineage(within)
            if (role := person.organizations.get(place)) is not None
        )

    def views(self, person: Person) -> bool:
        return self.holds(person, "org.view", self.ids["organization"])

    def sees(self, person: Person, variant: str) -> bool:
        """Whether somebody sees the victim's rows of a visibility."""
        if person.is_anonymous or not person.is_active:
            return False
        if person.is_admin or person.id == self.victim.id:
            return True
        if variant == "team":
            return self.ids["team"] in person.teams
        return variant == "organization" and self.ids["organization"] in person.organizations

    def _lineage(self, organization: int) -> list[int]:
        lineage, place = [], self.parents.get(organization, None)
        if organization in self.parents:
            lineage.append(organization)
        while place is not None:
            lineage.append(place)
            place = self.parents[place]
        return lineage


async def make_world(running: Running) -> World:
    """The victim's organization between a parent and a part of it, its team, its rows, and everybody else."""
    world = World(running, dict(running.platform.permissions))
    await _people(world)
    await _rows(world)
    await _authority(world)
    await _programs(world)
    return world


async def account(
    world: World, name: str, email: str | None = None, *, facts: dict[str, Any] | None = None
) -> Person:
    facts = facts or {}
    username = fresh(name)
    address = email or f"{username}@example.org"
    row = Account(
        username=username,
        username_key=username,
        email=address,
        email_key=address,
        password_hash="none that opens",
        role="admin" if facts.get("is_admin") else "user",
        platform_admin=bool(facts.get("is_platform_admin")),
        is_active=facts.get("is_active", True),
    )
    await world.running.platform.database.write(lambda unit: unit.session.add(row))
    token = world.running.platform.resource(TOKENS).mint(row, {})
    actor = Actor(world.running, token, {"id": row.id, "username": username, "email": address})
    return Person(name, actor, **facts)


async def _people(world: World) -> None:
    running, people, ids = world.running, world.people, world.ids
    for name in ("rightful", "member", "outsider", "other_team", "other_org", "sub_owner", "parent_member"):
        people[name] = await account(world, name)
    for name in ("parent_owner", "suspended", "expired"):
        people[name] = await account(world, name)
    people["admin"] = await account(world, "admin", facts={"is_admin": True})
    people["platform_admin"] = await account(world, "platform_admin", facts={"is_platform_admin": True})
    people["deactivated"] = await account(world, "deactivated", facts={"is_active": False})
    people["anonymous"] = Person("anonymous", running.anonymous, is_anonymous=True)
    parent = await make_org(running, people["parent_owner"].actor)
    ids["organization"] = await make_org(running, people["rightful"].actor, parent=parent)
    ids["sub_organization"] = await make_org(running, people["sub_owner"].actor, parent=ids["organization"])
    ids["other_organization"] = await make_org(running, people["other_org"].actor)
    world.parents = {
        parent: None,
        ids["organization"]: parent,
        ids["sub_organization"]: ids["organization"],
        ids["other_organization"]: None,
    }
    ids["team"] = await make_team(running, people["rightful"].actor, organization=ids["organization"])
    ids["other_team"] = await make_team(running, people["other_team"].actor)
    world.team_homes = {ids["team"]: ids["organization"], ids["other_team"]: None}
    people["parent_owner"].organizations = {parent: "owner"}
    people["rightful"].organizations = {ids["organization"]: "owner"}
    people["sub_owner"].organizations = {ids["sub_organization"]: "owner"}
    people["other_org"].organizations = {ids["other_organization"]: "owner"}
    people["rightful"].teams = {ids["team"]: "team_admin"}
    people["other_team"].teams = {ids["other_team"]: "team_admin"}
    await _enter(world, "parent_member", parent, "member")
    for name, role in (("member", "member"), ("expired", "member"), ("suspended", "owner")):
        await _enter(world, name, ids["organization"], role)
    await _enter(world, "deactivated", ids["organization"], "owner")
    for name, role in (("member", "member"), ("suspended", "team_admin"), ("deactivated", "team_admin")):
        await join_team(running, ids["team"], people[name].actor, role)
        people[name].teams = {ids["team"]: role}
    await suspend(running, ids["organization"], people["suspended"].actor)
    people["suspended"].organizations, people["suspended"].teams = {}, {}
    people["suspended"].suspended_in = {ids["organization"]}
    actor = people["expired"].actor
    await give_keys(running, ids["organization"], actor, *ORG_KEYS, expires_at=utc_now())


async def _enter(world: World, name: str, organization: int, role: str) -> None:
    person = world.people[name]
    await join(world.running, organization, person.actor, role)
    person.organizations = {organization: role}


async def _rows(world: World) -> None:
    """Knowledge bases with a document and its job, and pipelines, of each visibility but `shared`."""
    for variant in VARIANTS:
        base = await new_base(world, variant)
        world.ids[f"kb:{variant}"] = base
        world.ids[f"document:{variant}"] = await new_document(world, base, variant)
        world.ids[f"guarded:{variant}"] = await new_guarded_document(world, base, variant)
        world.ids[f"pipeline:{variant}"] = await new_pipeline(world, variant, base)
    await world.running.run_jobs()
    for variant in VARIANTS:
        world.ids[f"job:{variant}"] = await job_of(world, world.ids[f"document:{variant}"])
        await _mark(world, world.ids[f"job:{variant}"], variant)
    listing = await new_listing(world)
    for variant in VARIANTS:
        world.ids[f"listing:{variant}"] = listing
    world.ids["license"] = await _license(world)
    world.ids["conversation"] = await new_conversation(world)
    endpoint, world.ids["chat_session"] = await new_endpoint(world)
    for variant in VARIANTS:
        world.ids[f"endpoint:{variant}"] = endpoint
    for variant in VARIANTS:
        evaluation_ids = await new_evaluation(world, variant, world.ids[f"kb:{variant}"])
        for what, record_id in zip(
            ("evaluation_set", "question", "evaluation_run"), evaluation_ids, strict=True
        ):
            world.ids[f"{what}:{variant}"] = record_id
    for variant in VARIANTS:
        world.ids[f"source:{variant}"] = await new_source(world, world.ids[f"kb:{variant}"])
    mine = await make_base(world.people["other_org"].actor)
    world.ids["other_kb"] = mine
    await _graph(world)


async def _graph(world: World) -> None:
    """A graph of a text of the victim's own, that nobody else sees, not even an administrator."""
    word = world.canary("graph", lambda person: person.id == world.victim.id)
    body = {"document_id": word, "title": word, "text": f"The treasure {word} is buried in Senja."}
    answer = await world.victim.actor.post("/v1/graph-rag/construct-graph", json=body)
    assert answer.status == 200, answer.body


def _shared(world: World, variant: str) -> dict[str, Any]:
    extra = {} if variant == "private" else {f"{variant}_id": world.ids[variant]}
    return {"visibility": variant, **extra}


async def new_base(world: World, variant: str) -> str:
    """A knowledge base of the victim, full of canaries."""

    def audience(person: Person) -> bool:
        return world.sees(person, variant)

    words = {key: world.canary(f"kb-{key}-{variant}", audience) for key in ("name", "description")}
    return await make_base(world.victim.actor, **words, **_shared(world, variant), graph=True)


async def new_document(world: World, base: str, variant: str) -> str:
    """A document of the victim; its ingestion is queued."""

    def audience(person: Person) -> bool:
        return world.sees(person, variant)

    name, text = (world.canary(f"document-{key}-{variant}", audience) for key in ("name", "text"))
    answer = await upload(
        world.victim.actor, base, f"{name}.md", f"The treasure is a {text} of gold from Senja."
    )
    return str(answer.json()["document_id"])


async def new_guarded_document(world: World, base: str, variant: str) -> str:
    """A document with a reader of its own; its ingestion is queued."""
    reader = world.people[READERS[variant]].id

    def audience(person: Person) -> bool:
        return person.id == reader and world.sees(person, variant)

    name, text = (world.canary(f"guarded-{key}-{variant}", audience) for key in ("name", "text"))
    keeper = Keeper(world.running.platform, base)
    await keeper.members(only=[reader])
    sentence = f"The treasure is a {text} of gold from Senja, which Berit Solheim found in Tromsø."
    return await keeper.put(f"{name}.md", sentence, keeper.readers("only"))


async def job_of(world: World, document: str) -> str:
    """The id of the job that works on a document."""
    query = select(JobRecord.id).where(JobRecord.subject == document)
    return str(await world.running.platform.database.read(lambda session: session.scalar(query)))


async def _mark(world: World, job: str, variant: str) -> None:
    """Let the job say a word that only those may read who see the document."""
    word = world.canary(f"job-message-{variant}", lambda person: world.sees(person, variant))
    change = update(JobRecord).where(JobRecord.id == job).values(message=word)
    await world.running.platform.database.write(lambda unit: unit.session.execute(change) and None)


async def new_pipeline(world: World, variant: str, base: str) -> str:
    name = world.canary(f"pipeline-name-{variant}", lambda person: world.sees(person, variant))
    return await make_pipeline(world.victim.actor, base, name=name, **_shared(world, variant))


async def new_listing(world: World) -> str:
    """A draft of the victim in the catalog of plugins."""
    words = {
        key: world.canary(f"listing-{key}", lambda person: world.sees(person, "private"))
        for key in ("name", "description")
    }
    body = {**words, "display_name": "Draft", "author": "somebody"}
    answer = await world.victim.actor.post("/v1/marketplace/plugins", json=body)
    assert answer.status == 201, answer.body
    return str(answer.json()["id"])


async def new_conversation(world: World, question: str | None = None) -> str:
    """A conversation of the victim, which nobody else may read unless it gets shared."""
    word = question or world.canary("conversation", lambda person: person.id == world.victim.id)
    conversation_id = str(uuid.uuid4())
    path = f"/v1/rag/pipeline/{world.ids['pipeline:private']}/query"
    answer = await world.victim.actor.post(path, json={"question": word, "conversation_id": conversation_id})
    assert answer.status == 200, answer.body
    return conversation_id


async def new_endpoint(world: World) -> tuple[str, str]:
    """A published chat of the victim, and a session of a visitor who has asked something."""
    names = {
        what: world.canary(f"chat-{what}", lambda person: world.sees(person, "private"))
        for what in ("name", "slug")
    }
    page = "https://www.example.org"
    body = {**names, "pipeline_id": world.ids["pipeline:private"], "allowed_origins": page}
    created = await world.victim.actor.post("/v1/rag/endpoints", json=body)
    assert created.status == 201, created.body
    client, path = world.running.anonymous, f"/v1/chat/{names['slug']}"
    token = (await client.post(f"{path}/session", headers={"Origin": page})).json()["token"]
    headers = {"Origin": page, "Authorization": f"Bearer {token}"}
    word = world.canary("chat-question", lambda person: world.sees(person, "private"))
    answer = await client.post(f"{path}/messages", json={"question": word}, headers=headers)
    assert answer.status == 200, answer.body
    endpoint = str(created.json()["id"])
    sessions = (await world.victim.actor.get(f"/v1/rag/endpoints/{endpoint}/sessions")).json()["items"]
    return endpoint, str(sessions[0]["session_id"])


async def new_source(world: World, base: str) -> str:
    """A source of the victim's knowledge base, which only those see who may change that."""

    def audience(person: Person) -> bool:
        return person.id == world.victim.id or person.is_admin

    word = world.canary("source", audience)
    body = {"kind": "folder", "name": word, "settings": {"path": f"/nowhere/{word}"}}
    created = await world.victim.actor.post(f"/v1/rag/knowledge-bases/{base}/sources", json=body)
    assert created.status == 201, created.body
    return str(created.json()["id"])


async def new_evaluation(world: World, variant: str, base: str) -> tuple[str, int, str]:
    """A set of the victim with a question, and a run over it that has not begun: their ids."""
    word = world.canary(f"evaluation-{variant}", lambda person: world.sees(person, variant))
    body = {
        "knowledge_base_id": base,
        "name": word,
        "questions": [{"question": word, "unanswerable": True}],
    }
    actor, path = world.victim.actor, "/v1/rag/evaluation"
    created = await actor.post(f"{path}/sets", json=body)
    assert created.status == 201, created.body
    set_id = str(created.json()["id"])
    question = (await actor.get(f"{path}/sets/{set_id}/questions")).json()["items"][0]["id"]
    run = await actor.post(f"{path}/runs", json={"set_id": set_id})
    assert run.status == 202, run.body
    return set_id, question, str(run.json()["id"])


async def _license(world: World) -> str:
    """A license of the victim's organization, for a plugin that holds no words of the victim."""
    body = {"name": fresh("plugin"), "display_name": "Some plugin", "author": "somebody"}
    listing = (await world.people["admin"].actor.post("/v1/marketplace/plugins", json=body)).json()["id"]
    license_body = {
        "plugin_id": listing,
        "tier": "pro",
        "organization_id": world.ids["organization"],
        "seats": 9,
    }
    answer = await world.people["admin"].actor.post("/v1/marketplace/licenses/activate", json=license_body)
    assert answer.status == 200, answer.body
    return str(answer.json()["id"])


async def _authority(world: World) -> None:
    """Names, members, roles, groups and invites of the victim's organization and team."""
    ids, running = world.ids, world.running
    organization = ids["organization"]

    def insiders(person: Person) -> bool:
        return world.views(person) or person.is_admin or organization in person.suspended_in

    def heirs(person: Person) -> bool:
        return world.holds(person, "org.view", organization) or person.name == "sub_owner"

    words = {"name": world.canary("org-name", insiders), "slug": world.canary("org-slug", insiders)}
    answer = await world.victim.actor.patch(f"/v1/organizations/{organization}", json=words)
    assert answer.status == 200, answer.body
    ids["insider_email"] = world.canary("email", lambda person: world.views(person) or person.is_admin)
    insider = await account(world, "insider", f"{ids['insider_email']}@example.org")
    await join(running, organization, insider.actor, managed=True)
    ids["user"] = insider.id
    for what in ("role", "spare_role"):
        ids[what] = await new_role(world, organization, world.canary(what, heirs))
    for what in ("group", "child_group", "spare_group"):
        ids[what] = await new_group(world, organization, world.canary(what, heirs))
    await running.platform.database.write(
        lambda unit: unit.session.add(GroupChild(group_id=ids["group"], child_group_id=ids["child_group"]))
    )
    await give_keys_of(world, ids["role"])
    ids["team_invite"] = await new_team_invite(world)
    ids["org_invite"] = await new_org_invite(world)
    other = ids["other_organization"]
    answer = await world.people["other_org"].actor.get(f"/v1/organizations/{other}")
    assert answer.status == 200, answer.body
    ids["other_role"] = await new_role(world, other, fresh("role"))
    ids["other_group"] = await new_group(world, other, fresh("group"))


async def _programs(world: World) -> None:
    """Programs with personal access tokens of some of these people, and one whose token has ended."""
    world.ids["access_token"] = await new_token(world)
    every: tuple[TokenScope, ...] = ("ask", "tools", "manage")
    scopes_by_person: tuple[tuple[str, tuple[TokenScope, ...]], ...] = (
        ("outsider", every),
        ("member", every),
        ("platform_admin", every),
        ("rightful", ("ask",)),
        ("admin", ("tools",)),
        ("other_org", ("manage",)),
    )
    for name, scopes in scopes_by_person:
        program = await _program(world.people[name], scopes)
        world.people[program.name] = program
    ended = await _program(world.people["member"], every)
    token_id = ended.actor.user["token_id"]
    assert (await world.people["member"].actor.delete(f"/v1/auth/tokens/{token_id}")).status == 204
    world.people["ended_token"] = replace(ended, name="ended_token", is_active=False)


async def _program(person: Person, scopes: tuple[TokenScope, ...]) -> Person:
    answer = await person.actor.post("/v1/auth/tokens", json={"name": fresh("program"), "scopes": scopes})
    token = answer.json()
    user = {**person.actor.user, "token_id": token["id"]}
    actor = Actor(person.actor.running, token["token"], user)
    return replace(person, name=f"{person.name}_token", actor=actor, scopes=frozenset(scopes))


async def new_token(world: World) -> int:
    """A personal access token of the victim, with a name that only its owner and Platform Admins read."""
    word = world.canary(
        "access-token", lambda person: person.is_platform_admin or person.id == world.victim.id
    )
    return _id_of_new(await world.victim.actor.post("/v1/auth/tokens", json={"name": word}))


async def new_role(world: World, organization: int, name: str) -> int:
    def make(unit: Unit) -> int:
        row = Role(organization_id=organization, name=name, name_key=name)
        unit.session.add(row)
        unit.session.flush()
        unit.session.add(RolePermission(role_id=row.id, permission_key="org.view"))
        return int(row.id)

    return await world.running.platform.database.write(make)


async def new_group(world: World, organization: int, name: str) -> int:
    row = PermissionGroup(organization_id=organization, name=name, name_key=name)
    await world.running.platform.database.write(lambda unit: unit.session.add(row))
    return int(row.id)


async def give_keys_of(world: World, role: int, user: int | None = None) -> None:
    path = f"/v1/organizations/{world.ids['organization']}/members/{user or world.ids['user']}/roles"
    answer = await world.victim.actor.post(path, json={"role_id": role})
    assert answer.status in (200, 201), answer.body


async def new_team_invite(world: World) -> int:
    """A pending invite to the victim's team, for an address that only its managers know."""
    word = world.canary(
        "team-invite", lambda person: world.holds(person, "team.manage", world.ids["team"], or_admin=True)
    )
    body = {"email": f"{word}@example.org", "team_id": world.ids["team"]}
    return _id_of_new(await world.victim.actor.post("/v1/invites", json=body))


async def new_org_invite(world: World) -> int:
    organization = world.ids["organization"]
    word = world.canary(
        "org-invite", lambda person: world.holds(person, "org.members.manage", organization, or_admin=True)
    )
    path = f"/v1/organizations/{organization}/invites"
    return _id_of_new(await world.victim.actor.post(path, json={"email": f"{word}@example.org"}))


async def new_member(world: World) -> int:
    """A plain member of the victim's organization and team, to be used up."""
    person = await account(world, "extra")
    await join(world.running, world.ids["organization"], person.actor, managed=True)
    await join_team(world.running, world.ids["team"], person.actor)
    return person.id


def _id_of_new(answer: Reply) -> int:
    assert answer.status == 201, answer.body
    return int(answer.json()["id"])
