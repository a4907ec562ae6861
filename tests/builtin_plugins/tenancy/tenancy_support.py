"""What the tests of tenancy share: accounts without the cost of a password, organizations, teams, members.

Rows that a test only needs to be there are written directly; what it tests goes over HTTP.
"""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Any

import jwt
from sqlalchemy import select

from builtin_plugins.tenancy.models import (
    Membership,
    Organization,
    Role,
    RoleAssignment,
    RolePermission,
    Team,
    TeamMember,
)
from builtin_plugins.tenancy.services.standing import changed
from builtin_plugins.tenancy.services.tree import place
from kernel.auth.models import AuditEntry
from kernel.sdk import Account, utc_now
from kernel.testing import Actor, Reply, Running


def fresh(what: str) -> str:
    """A name that no other test uses."""
    return f"{what}-{secrets.token_hex(4)}"


async def somebody(
    running: Running,
    *,
    role: str = "user",
    platform_admin: bool = False,
    is_active: bool = True,
    local: bool = False,
) -> Actor:
    """A new account with a token; a `local` one counts as one with a password, which nobody knows."""
    name = fresh("somebody")
    email = f"{name}@example.org"
    account = Account(
        username=name,
        username_key=name,
        email=email,
        email_key=email,
        role=role,
        platform_admin=platform_admin,
        is_active=is_active,
        password_hash="unknown" if local else None,
    )
    async with running.platform.database.unit() as unit:
        unit.session.add(account)
    token = running.platform.tokens.mint(account, {})
    return Actor(running, token, {"id": account.id, "username": name, "email": email})


async def renew(running: Running, actor: Actor) -> None:
    """Give an actor a new session, as a sign-in would."""
    async with running.platform.database.read() as session:
        account = await session.get_one(Account, id_of(actor))
    actor.token = running.platform.tokens.mint(account, {})


def id_of(actor: Actor) -> int:
    """The account's id."""
    return int(actor.user["id"])


async def make_org(running: Running, owner: Actor | None = None, *, parent: int | None = None) -> int:
    """A new organization, with an owner if one is given; answers its id."""
    slug = fresh("org")
    async with running.platform.database.unit() as unit:
        organization = Organization(name=slug.title(), slug=slug, parent_id=parent)
        unit.session.add(organization)
        await unit.session.flush()
        await place(unit, organization)
    if owner is not None:
        await join(running, organization.id, owner, "owner")
    return int(organization.id)


async def join(running: Running, organization_id: int, actor: Actor, role: str = "member") -> None:
    """Make somebody a member of an organization."""
    row = Membership(organization_id=organization_id, user_id=id_of(actor), org_role=role)
    async with running.platform.database.unit() as unit:
        unit.session.add(row)
        await changed(unit, [row.user_id])


async def suspend(running: Running, organization_id: int, actor: Actor) -> None:
    """Suspend a membership, without the route's side effects on the session."""
    async with running.platform.database.unit() as unit:
        row = await unit.session.get_one(Membership, (organization_id, id_of(actor)))
        row.suspended_at = utc_now()
        await changed(unit, [row.user_id])


async def make_team(running: Running, admin: Actor | None = None, *, organization: int | None = None) -> int:
    """A new team, with a team_admin if one is given; answers its id."""
    name = fresh("team")
    async with running.platform.database.unit() as unit:
        team = Team(name=name, name_key=name.casefold(), organization_id=organization)
        unit.session.add(team)
    if admin is not None:
        await join_team(running, team.id, admin, "team_admin")
    return int(team.id)


async def join_team(running: Running, team_id: int, actor: Actor, role: str = "member") -> None:
    """Make somebody a member of a team."""
    async with running.platform.database.unit() as unit:
        unit.session.add(TeamMember(team_id=team_id, user_id=id_of(actor), team_role=role))
        await changed(unit, [id_of(actor)])


async def give_keys(
    running: Running, organization_id: int, actor: Actor, *keys: str, expires_at: datetime | None = None
) -> int:
    """A new custom role with these keys, assigned to a member; answers the role's id."""
    name = fresh("role")
    async with running.platform.database.unit() as unit:
        role = Role(organization_id=organization_id, name=name, name_key=name)
        unit.session.add(role)
        await unit.session.flush()
        unit.session.add_all(RolePermission(role_id=role.id, permission_key=key) for key in keys)
        assigned = {"organization_id": organization_id, "user_id": id_of(actor), "expires_at": expires_at}
        unit.session.add(RoleAssignment(role_id=role.id, **assigned))
        await changed(unit, [id_of(actor)])
    return int(role.id)


async def claims(actor: Actor) -> dict[str, Any]:
    """The claims that a refresh gives the actor now; the actor goes on with the fresh token."""
    answer = await actor.post("/v1/auth/refresh")
    assert answer.status == 200, answer.body
    actor.token = str(answer.json()["access_token"])
    return read_claims(actor.token)


def read_claims(token: str) -> dict[str, Any]:
    """The claims of a token."""
    return dict(jwt.decode(token, options={"verify_signature": False}))


async def audited(running: Running, action: str, target_id: int | str | None = None) -> list[AuditEntry]:
    """Audit entries of an action, the oldest first."""
    query = select(AuditEntry).where(AuditEntry.action == action).order_by(AuditEntry.id)
    if target_id is not None:
        query = query.where(AuditEntry.target_id == str(target_id))
    async with running.platform.database.read() as session:
        return list(await session.scalars(query))


def problems(answer: Reply) -> dict[str, str]:
    """The places and messages of a 422."""
    assert answer.status == 422, answer.body
    return {".".join(map(str, one["loc"])): one["msg"] for one in answer.detail}


def refused(answer: Reply, status: int, code: str | None = None) -> None:
    """Hold an answer to be this refusal."""
    assert answer.status == status, (answer.status, answer.body)
    if code is not None:
        assert answer.json()["code"] == code, answer.body
