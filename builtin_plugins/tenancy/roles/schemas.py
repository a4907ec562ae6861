"""Bodies and answers of roles, permission groups, assignments and effective permissions (spec 2.5, 2.6)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, StringConstraints

from builtin_plugins.tenancy.fields import Id
from kernel.sdk import READABLE, Body, example

MAX_NAME = 100
MAX_GROUPS_OF_ROLE = 100


def name_key(name: str) -> str:
    """The key by which two names count as the same."""
    return name.casefold()


def _fits_folded(name: str) -> str:
    if len(name_key(name)) > MAX_NAME:
        raise ValueError(f"is too long: at most {MAX_NAME} characters after case folding")
    return name


def _utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("is out of range") from None


Name = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_NAME),
    READABLE,
    AfterValidator(_fits_folded),
]
Text = Annotated[str, Field(max_length=2000)]
Key = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Keys = Annotated[
    list[Key],
    Field(
        max_length=1000,
        description="Keys of the scope `organization`; GET /v1/permissions lists all with their meaning.",
    ),
]
GroupIds = Annotated[
    list[Id],
    Field(
        max_length=MAX_GROUPS_OF_ROLE,
        description="Permission groups usable here: the organization's own and those of organizations above.",
    ),
]
Expiry = Annotated[
    datetime,
    AfterValidator(_utc),
    Field(description="When the assignment ends; without an offset it is UTC. Must be in the future."),
]


class RoleCreate(Body):
    """A new role, for use in the organization and those below it."""

    model_config = example(
        name="Member care", description="Invites people", permissions=["org.members.manage"]
    )

    name: Name
    description: Text = ""
    permissions: Keys = []
    permission_group_ids: GroupIds = []


class RoleUpdate(Body):
    """Fields that can be changed. Omitted fields stay as they are. Lists are replaced as a whole."""

    model_config = example(description="Looks after the members")

    name: Name | None = None
    description: Text | None = None
    permissions: Keys | None = None
    permission_group_ids: GroupIds | None = None


class GroupCreate(Body):
    """A new permission group, for use in the organization and those below it."""

    model_config = example(name="People", permissions=["org.members.manage"])

    name: Name
    description: Text = ""
    permissions: Keys = []


class GroupUpdate(Body):
    """Fields that can be changed. Omitted fields stay as they are. Nested groups have their own route."""

    model_config = example(name="People")

    name: Name | None = None
    description: Text | None = None
    permissions: Keys | None = None


class ChildGroupIdRequest(Body):
    """The permission group to nest."""

    model_config = example(child_group_id=2)

    child_group_id: Id


class DeleteQuery(BaseModel):
    """Whether to delete something that is in use."""

    force: bool = Field(False, description="Delete it even if it is in use; everybody who has it loses it.")


class GroupRef(BaseModel):
    """A permission group by id and name."""

    id: int
    name: str


class RoleOut(BaseModel):
    """A role: built in, of this organization, or of an organization above."""

    id: int
    organization_id: int | None = Field(description="Where it is defined; null for a built-in role.")
    name: str
    description: str
    is_builtin: bool
    permissions: list[str]
    permission_groups: list[GroupRef]
    inherited_from: int | None = Field(
        description="The organization above that defines it; it is changed there. Null for one defined here."
    )
    created_at: datetime


class GroupOut(BaseModel):
    """A permission group with the groups nested directly in it."""

    id: int
    organization_id: int
    name: str
    description: str
    permissions: list[str]
    children: list[GroupRef]
    inherited_from: int | None = Field(
        description="The organization above that defines it; it is changed there. Null for one defined here."
    )
    created_at: datetime


class AssignRequest(Body):
    """A role for a member, optionally with an expiry date."""

    model_config = example(role_id=1, expires_at="2030-12-31T23:59:59Z")

    role_id: Id
    expires_at: Expiry | None = None


class AssignmentOut(BaseModel):
    """A role that a member has here and in the organizations below."""

    organization_id: int
    user_id: int
    role_id: int
    role_name: str
    expires_at: datetime | None
    is_expired: bool = Field(description="An expired assignment gives no rights.")
    assigned_by: int | None
    created_at: datetime


class BulkRoleAssignRequest(Body):
    """One role for many members."""

    model_config = example(user_ids=[2, 3], role_id=1)

    user_ids: list[Id] = Field(min_length=1, max_length=500)
    role_id: Id
    expires_at: Expiry | None = None


class BulkRoleAssignItem(BaseModel):
    """The result for one account."""

    user_id: int
    status: Literal["assigned", "already_assigned", "failed"] = Field(
        description="`already_assigned`: the member has the role with exactly this expiry."
    )
    error: str | None = None


class BulkRoleAssignResponse(BaseModel):
    """The result for each account, in the order of the request."""

    results: list[BulkRoleAssignItem]
    assigned_count: int
    failed_count: int


class EffectivePermission(BaseModel):
    """One way in which the member has a permission."""

    permission_key: str
    role_id: int
    role_name: str | None
    permission_group_id: int | None = Field(description="The group that holds the key; null: the role does.")
    permission_group_name: str | None
    via_ancestor_organization_id: int | None = Field(
        description="The organization above in which the role was given; null: given here."
    )


class Obstacle(BaseModel):
    """Something that would grant the key, and why it does not."""

    reason: Literal["suspended", "expired"]
    organization_id: int = Field(description="Where the role was given.")
    role_id: int
    role_name: str
    since: datetime


class Assigner(BaseModel):
    """An account that can assign the role."""

    user_id: int
    username: str
    organization_id: int = Field(description="Where that account holds org.roles.manage.")


class Remedy(BaseModel):
    """A role that contains the key and can be used here."""

    role_id: int
    role_name: str
    is_builtin: bool
    permission_groups: list[GroupRef] = Field(
        description="Path to the key: the role's group, then those nested in it; empty: the role holds it."
    )
    how: str
    assignable_by_caller: bool
    assignable_by: list[Assigner] = Field(description="At most 20. A Platform Admin can, too.")


class Explanation(BaseModel):
    """Why the member has a key or not, and what would grant it; only with `?key=`."""

    key: str
    description: str
    held: bool
    summary: str
    obstacles: list[Obstacle]
    would_grant: list[Remedy] = Field(description="At most 50; empty when the key is held.")


class EffectivePermissionsResponse(BaseModel):
    """All permissions of a member in an organization, and where they come from."""

    organization_id: int
    user_id: int
    permissions: list[EffectivePermission]
    explanation: Explanation | None = None


class EffectiveQuery(BaseModel):
    """All permissions, or one key with an explanation."""

    key: Key | None = Field(None, description="Only this key, with an explanation.")
