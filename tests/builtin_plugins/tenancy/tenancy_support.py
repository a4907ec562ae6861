"""What the tests of tenancy share: accounts without the cost of a password, organizations, teams, members.

Rows that a test only needs to be there are written directly; what it tests goes over HTTP.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeVar

import jwt
from sqlalchemy import Executable, update
from sqlalchemy.orm import Session

from builtin_plugins.tenancy.access.cache import changed, changed_for_all
from builtin_plugins.tenancy.access.tree import place
from builtin_plugins.tenancy.models import (
    Membership,
    Organization,
    Role,
    RoleAssignment,
    RolePermission,
    Team,
    TeamMember,
)
from kernel.sdk import Account, Unit, utc_now
from kernel.sdk.accounts import TOKENS
from kernel.testing import Actor, Reply, Running
from kernel.testing import audited as audited
from kernel.testing import somebody as somebody

T = TypeVar("T")


def fresh(what: str) -> str:
    return f"{what}-{secrets.token_hex(4)}"


async def write(running: Running, *what: Any, about: Iterable[Actor] = (), about_all: bool = False) -> None:
    """Write rows, or run statements and functions of a unit, past the routes.

    What is remembered `about` these accounts, or `about_all`, is forgotten.
    """

    def work(unit: Unit) -> None:
        for action in what:
            if isinstance(action, Executable):
                unit.session.execute(action)
            elif callable(action):
                action(unit)
            else:
                unit.session.add(action)
            unit.session.flush()
        changed(unit, map(id_of, about))
        if about_all:
            changed_for_all(unit)

    await running.platform.database.write(work)


async def read(running: Running, what: Callable[[Session], T]) -> T:
    return await running.platform.database.read(what)


async def renew(running: Running, actor: Actor) -> None:
    """Give an actor a new session, as a sign-in would."""
    account = await read(running, lambda session: session.get_one(Account, id_of(actor)))
    actor.token = running.platform.resource(TOKENS).mint(account, {})


def id_of(actor: Actor) -> int:
    return int(actor.user["id"])


async def make_org(running: Running, owner: Actor | None = None, *, parent: int | None = None) -> int:
    """A new organization, with an owner if one is given; returns its id."""
    slug = fresh("org")
    organization = Organization(name=slug.title(), slug=slug, parent_id=parent)
    await write(running, organization, lambda unit: place(unit, organization))
    if owner is not None:
        await join(running, organization.id, owner, "owner")
    return int(organization.id)


async def join(
    running: Running, organization_id: int, actor: Actor, role: str = "member", *, managed: bool = False
) -> None:
    """Make somebody a member of an organization; a `managed` one agreed to be managed by it."""
    row = Membership(organization_id=organization_id, user_id=id_of(actor), org_role=role)
    row.managed_since = utc_now() if managed else None
    await write(running, row, about=[actor])


async def suspend(running: Running, organization_id: int, actor: Actor) -> None:
    """Suspend a membership, without the route's side effects on the session."""
    await change_membership(running, organization_id, actor, suspended_at=utc_now())


async def change_membership(running: Running, organization_id: int, actor: Actor, **columns: Any) -> None:
    """Change columns of a membership, without what a route would do besides."""
    where = (Membership.organization_id == organization_id, Membership.user_id == id_of(actor))
    await write(running, update(Membership).where(*where).values(**columns), about=[actor])


async def make_team(running: Running, admin: Actor | None = None, *, organization: int | None = None) -> int:
    """A new team, with a team_admin if one is given; returns its id."""
    name = fresh("team")
    team = Team(name=name, name_key=name.casefold(), organization_id=organization)
    await write(running, team)
    if admin is not None:
        await join_team(running, team.id, admin, "team_admin")
    return int(team.id)


async def join_team(running: Running, team_id: int, actor: Actor, role: str = "member") -> None:
    await write(running, TeamMember(team_id=team_id, user_id=id_of(actor), team_role=role), about=[actor])


async def give_keys(
    running: Running, organization_id: int, actor: Actor, *keys: str, expires_at: datetime | None = None
) -> int:
    """A new custom role with these keys, assigned to a member; returns the role's id."""
    name = fresh("role")
    role = Role(organization_id=organization_id, name=name, name_key=name)
    await write(running, role)
    role_keys = [RolePermission(role_id=role.id, permission_key=key) for key in keys]
    assigned = {"organization_id": organization_id, "user_id": id_of(actor), "expires_at": expires_at}
    await write(running, *role_keys, RoleAssignment(role_id=role.id, **assigned), about=[actor])
    return int(role.id)


async def claims(actor: Actor) -> dict[str, Any]:
    """The claims that a refresh gives the actor now; the actor continues with the fresh token."""
    answer = await actor.post("/v1/auth/refresh")
    assert answer.status == 200, answer.body
    actor.token = str(answer.json()["access_token"])
    return read_claims(actor.token)


def read_claims(token: str) -> dict[str, Any]:
    return dict(jwt.decode(token, options={"verify_signature": False}))


def problems(answer: Reply) -> dict[str, str]:
    assert answer.status == 422, answer.body
    return {".".join(map(str, one["loc"])): one["msg"] for one in answer.detail}


def refused(answer: Reply, status: int, code: str | None = None) -> None:
    assert answer.status == status, (answer.status, answer.body)
    if code is not None:
        assert answer.json()["code"] == code, answer.body
