"""Bodies and answers of the routes about permissions at a source."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from kernel.sdk import READABLE, Body, PageQuery, example

PrincipalKind = Literal["person", "group"]
Target = Literal["account", "team", "sign_in_group", "everyone", "nobody"]
_HIDDEN = "null if a group of the sign-in is among them, for all but administrators"


class SourceRightsOut(BaseModel):
    """How the permissions at a source are read, and who of there has a counterpart here."""

    is_guarded: bool = Field(description="Whether its documents have the readers that they have there.")
    read_at: datetime | None = Field(description="Of when those are that count now.")
    problem: str | None = Field(description="Why they could not be read since.")
    is_closed: bool = Field(
        description="Whether nobody may read its documents, as they could not be read for too long."
    )
    people: int
    people_unmapped: int = Field(description="Those who stand for no account here, and so read nothing.")
    groups: int
    groups_unmapped: int
    unreadable: int = Field(description="Documents that nobody may read here.")
    by_hand: bool = Field(description="Whether the owner may say who people and groups are: not of a mailbox")


class PrincipalQuery(PageQuery):
    """Which people and groups."""

    kind: PrincipalKind | None = None
    mapped: bool | None = Field(None, description="Only those with, or without, a counterpart here.")


class PrincipalOut(BaseModel):
    """A person or a group at the source."""

    kind: PrincipalKind
    principal: str = Field(description="The id there.")
    name: str
    accounts: int | None = Field(
        description=f"For how many accounts it stands here; -1 for everybody; {_HIDDEN}."
    )
    targets: list[Target] = Field(description="What the owner of the knowledge base says that it is here.")


SignInGroupName = Annotated[str, Field(min_length=1, max_length=255), READABLE]


class CounterpartIn(Body):
    """What a person or group at a source is here."""

    model_config = example(kind="group", principal="staff", target="team", target_id=7)

    kind: PrincipalKind
    principal: Annotated[str, Field(min_length=1, max_length=2_000)]
    target: Target = Field(
        description="`account` or `team` with its id; `sign_in_group`, a group that the identity provider "
        "names at sign-ins, with its name; `everyone` who sees the knowledge base; or `nobody`."
    )
    target_id: int | None = Field(None, ge=1, le=2**31 - 1)
    target_name: SignInGroupName | None = Field(
        None, description="The name of the group of the sign-in, exactly as the identity provider writes it."
    )


class CounterpartsIn(Body):
    """All that is said, in place of what was said before; several of one person or group add up."""

    model_config = example(items=[{"kind": "group", "principal": "staff", "target": "everyone"}])

    items: Annotated[list[CounterpartIn], Field(max_length=10_000)]


class CounterpartOut(BaseModel):
    """What a person or group at a source is here."""

    kind: PrincipalKind
    principal: str
    target: Target
    target_id: int | None
    target_name: str | None


class CounterpartsOut(BaseModel):
    """What the owner says of people and groups at a source."""

    items: list[CounterpartOut]


class DocumentReaderOut(BaseModel):
    """A person or group that may read a document at its source, and the accounts that it stands for here."""

    kind: PrincipalKind
    name: str
    account_ids: list[int] | None = Field(description=f"Its accounts; {_HIDDEN}.")


class DocumentReadersOut(BaseModel):
    """Who may read a document here, and why; of those who see its knowledge base."""

    everybody: bool = Field(description="Whether all of them may.")
    source: str | None = Field(description="The source whose permissions these are.")
    readers: list[DocumentReaderOut]
