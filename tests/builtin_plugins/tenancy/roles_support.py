"""What the tests of roles share: a plugin with keys of its own; roles and groups made over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from kernel.sdk import Context, Permission, Plugin, RouteTable, hookimpl, permission
from kernel.testing import Actor, Reply
from tests.builtin_plugins.tenancy.tenancy_support import fresh, id_of

PUBLISH = Permission(
    "notes.publish", "Publish notes of an organization.", granted_to="nobody", scope="organization"
)
DRAFT = Permission(
    "notes.draft",
    "Draft notes of an organization.",
    granted_to="nobody",
    scope="organization",
    org_roles=("owner", "admin"),
)
PIN = Permission(
    "notes.pin", "Pin notes of a team.", granted_to="nobody", scope="team"
)  # a key that no role may hold

notes_routes = RouteTable("Notes")


@notes_routes.post("/v1/notes/{org_id:int}/publish", access=permission(PUBLISH, within="org_id"), returns=str)
async def publish(ctx: Context, org_id: int) -> str:
    """Publish a note."""
    return "published"


@notes_routes.post("/v1/notes/{org_id:int}/draft", access=permission(DRAFT, within="org_id"), returns=str)
async def draft(ctx: Context, org_id: int) -> str:
    """Draft a note."""
    return "drafted"


class Notes(Plugin):
    """Somebody else's plugin, with permissions that organizations grant."""

    name = "notes"

    @hookimpl
    def register_permissions(self) -> Sequence[Permission]:
        return [PUBLISH, DRAFT, PIN]

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [notes_routes]


def roles_of(organization: int, role: int | None = None) -> str:
    """The path of an organization's roles, or of one."""
    return f"/v1/organizations/{organization}/roles" + ("" if role is None else f"/{role}")


def groups_of(organization: int, group: int | None = None, rest: str = "") -> str:
    """The path of an organization's permission groups, or of one."""
    path = f"/v1/organizations/{organization}/permission-groups"
    return path + ("" if group is None else f"/{group}{rest}")


def given_to(organization: int, who: Actor, role: int | None = None) -> str:
    """The path of a member's roles, or of one."""
    path = f"/v1/organizations/{organization}/members/{id_of(who)}/roles"
    return path + ("" if role is None else f"/{role}")


async def make_role(
    actor: Actor, organization: int, *keys: str, groups: Sequence[int] = (), name: str | None = None
) -> dict[str, Any]:
    body = {
        "name": name or fresh("role"),
        "permissions": list(keys),
        "permission_group_ids": list(groups),
    }
    return created_record(await actor.post(roles_of(organization), json=body))


async def make_group(
    actor: Actor, organization: int, *keys: str, children: Sequence[int] = (), name: str | None = None
) -> dict[str, Any]:
    """A new permission group, with others nested in it."""
    body = {"name": name or fresh("group"), "permissions": list(keys)}
    group = created_record(await actor.post(groups_of(organization), json=body))
    for child in children:
        group = created_record(await nest(actor, organization, group["id"], child))
    return group


async def nest(actor: Actor, organization: int, group: int, child: int) -> Reply:
    body = {"child_group_id": child}
    return await actor.post(groups_of(organization, group, "/children"), json=body)


async def assign(
    actor: Actor, organization: int, who: Actor, role: int, expires_at: datetime | None = None
) -> Reply:
    body: dict[str, Any] = {"role_id": role}
    if expires_at is not None:
        body["expires_at"] = expires_at.isoformat()
    return await actor.post(given_to(organization, who), json=body)


async def effective(actor: Actor, organization: int, who: Actor, key: str | None = None) -> dict[str, Any]:
    answer = await ask_effective(actor, organization, who, key)
    assert answer.status == 200, answer.body
    return dict(answer.json())


async def ask_effective(actor: Actor, organization: int, who: Actor, key: str | None = None) -> Reply:
    """Whatever asking for the effective permissions of a member answers."""
    path = f"/v1/organizations/{organization}/members/{id_of(who)}/effective-permissions"
    return await actor.get(path, params={} if key is None else {"key": key})


async def keys_of(actor: Actor, organization: int, who: Actor) -> set[str]:
    return {one["permission_key"] for one in (await effective(actor, organization, who))["permissions"]}


def created_record(answer: Reply) -> dict[str, Any]:
    assert answer.status == 201, answer.body
    return dict(answer.json())
