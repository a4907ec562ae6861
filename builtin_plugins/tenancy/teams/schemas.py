"""Bodies and answers of the routes of teams (spec 2.12 and 4.3, decisions.md "Teams")."""

from __future__ import annotations

import unicodedata
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from builtin_plugins.tenancy.fields import Id
from kernel.sdk import READABLE, Body, PageQuery, example

_NAME_LIMIT = 255

Description = Annotated[str, Field(max_length=10_000)]
TeamRole = Literal["team_admin", "member"]


def name_key(name: str) -> str:
    """The key by which team names are compared, regardless of case and Unicode form."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _storable(name: str) -> str:
    if not name_key(name).strip() or len(name_key(name)) > _NAME_LIMIT:
        raise ValueError(
            "the name is too long; shorten it" if name_key(name).strip() else "the name is blank"
        )
    return name


TeamName = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=_NAME_LIMIT),
    READABLE,
    AfterValidator(_storable),
]


class TeamCreate(Body):
    """A new team. Names are unique; case does not matter."""

    model_config = example(name="Field service", description="Stations north of the Arctic Circle")

    name: TeamName
    description: Description = ""
    organization_id: Id | None = Field(
        None, description="The organization that the team belongs to; only its members can join the team."
    )


class TeamUpdate(BaseModel):
    """Fields that can be changed. Omitted fields stay as they are; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", **example(description="Stations on Senja"))

    name: TeamName | None = None
    description: Description | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.name is None and self.description is None:
            raise ValueError("send a name, a description, or both")
        return self


class TeamQuery(PageQuery):
    """Which teams to list."""

    q: str = Field("", max_length=_NAME_LIMIT, description="Only teams with this text in their name.")
    mine: bool = Field(False, description="Only the caller's own teams.")


class TeamOut(BaseModel):
    """A team."""

    id: int
    name: str
    description: str
    organization_id: int | None = Field(
        description="The organization that it belongs to; null also for callers who may not see that "
        "organization."
    )
    created_at: datetime
    member_count: int


class TeamMemberOut(BaseModel):
    """A member of a team."""

    user_id: int
    username: str
    email: str | None = Field(
        description="Null unless the caller is a member of the team, manages it, or is an administrator."
    )
    team_role: TeamRole
    joined_at: datetime


class TeamDetails(TeamOut):
    """A team with its members, longest-standing first."""

    members: list[TeamMemberOut]
    unlisted: bool = Field(
        description="Whether it only stands for the people with whom something is shared: it has no name, is "
        "in no list and never changes."
    )


class TeamMemberCreate(Body):
    """The account to add, and its role in the team."""

    model_config = example(user_id=2, team_role="member")

    user_id: Id
    team_role: TeamRole = "member"


class TeamMemberUpdate(Body):
    """The member's new role."""

    model_config = example(team_role="team_admin")

    team_role: TeamRole
