"""Bodies and answers of the routes of organizations (spec 4.4, decisions.md "Organizations")."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from builtin_plugins.tenancy.fields import Id
from kernel.sdk import READABLE, Body, example

_SLUG = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)


def _slug(value: str) -> str:
    if not _SLUG.fullmatch(value):
        raise ValueError("use 1 to 63 letters a-z, digits and dashes, with no dash at either end")
    return value


OrganizationName = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=255),
    READABLE,
]
Slug = Annotated[
    str,
    StringConstraints(strip_whitespace=True, to_lower=True, min_length=1, max_length=63),
    AfterValidator(_slug),
    Field(
        description="Lower-case letters, digits and dashes; unique in the instance. Capitals become "
        "lower case.",
        json_schema_extra={"pattern": "^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$"},
    ),
]


class OrganizationCreate(Body):
    """A new organization; with `parent_id` it becomes a sub-organization."""

    model_config = example(name="Nordlys Instruments", slug="nordlys")

    name: OrganizationName
    slug: Slug
    owner_user_id: Id | None = Field(None, description="An active account; the caller by default.")
    parent_id: Id | None = None


class OrganizationUpdate(BaseModel):
    """Fields that can be changed. Omitted fields stay as they are; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", **example(name="Nordlys Instruments"))

    name: OrganizationName | None = None
    slug: Slug | None = None


class OrganizationOut(BaseModel):
    """An organization."""

    id: int
    name: str
    slug: str
    parent_id: int | None
    created_at: datetime
    member_count: int = Field(description="Memberships, suspended ones included.")


class OrganizationCreated(OrganizationOut):
    """The organization that was created, with its first owner and its default team."""

    owner_user_id: int
    default_team_id: int


class MyOrganization(BaseModel):
    """An organization of the caller."""

    id: int
    name: str
    slug: str
    parent_id: int | None = Field(
        description="Null for a top-level organization, and while the membership is suspended."
    )
    created_at: datetime
    member_count: int | None = Field(description="Null while the membership is suspended.")
    org_role: str
    suspended: bool = Field(description="A suspended membership gives no rights.")
    joined_at: datetime
    managed: bool = Field(description="Whether the caller agreed to be managed by the organization.")


class SwitchRequest(Body):
    """The organization to switch to."""

    model_config = example(organization_id=1)

    organization_id: Id


class SwitchResult(BaseModel):
    """A token with `active_tenant_id`."""

    access_token: str
    token_type: str = "bearer"
    expires_in: int = Field(description="Seconds until the token expires.")
