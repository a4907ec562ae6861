"""Bodies and answers of the routes of members of an organization (spec 2.6a, 2.12, 4.4)."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from builtin_plugins.tenancy.fields import Id
from kernel.sdk import Body, PageQuery, example

OrgRole = Literal["owner", "admin", "member"]


class MemberQuery(PageQuery):
    """Which members to list."""

    org_role: OrgRole | None = Field(None, description="Members with this role.")
    suspended: bool | None = Field(None, description="Suspended members, or all others.")
    q: str | None = Field(None, min_length=1, max_length=320, description="Part of the name or the e-mail.")


class MemberUpsert(Body):
    """The account and its role."""

    model_config = example(user_id=2, org_role="member")

    user_id: Id
    org_role: OrgRole


class MemberOut(BaseModel):
    """A member of an organization. The flags are only hints; the routes check again."""

    user_id: int
    username: str
    email: str
    org_role: OrgRole
    suspended: bool
    joined_at: datetime
    is_active: bool = Field(description="Whether the account can sign in.")
    managed: bool = Field(description="Whether the account agreed to be managed by this organization.")
    managed_by_caller: bool = Field(
        description="Whether the caller may change, suspend or end this membership."
    )
    resettable_by_caller: bool = Field(
        description="Whether the caller may reset this account's password through the organization."
    )


class Management(BaseModel):
    """Whether an organization manages an account."""

    organization_id: int
    managed_since: datetime


class AccountStatus(BaseModel):
    """An account after its status was set."""

    user_id: int
    is_active: bool
