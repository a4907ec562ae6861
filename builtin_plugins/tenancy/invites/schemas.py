"""Bodies and answers of the routes of invites (spec 2.5 and 2.12, decisions.md "Team invites")."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, EmailStr, Field, StringConstraints

from builtin_plugins.tenancy.fields import Id
from builtin_plugins.tenancy.teams.schemas import TeamRole
from kernel.sdk import Body, PageQuery, example

_KEY_LIMIT = 320


def _storable(email: str) -> str:
    if len(email.casefold()) > _KEY_LIMIT:
        raise ValueError("the address is too long")
    return email


Email = Annotated[EmailStr, Field(max_length=254), AfterValidator(_storable)]
MaxUses = Annotated[int, Field(ge=1, le=1000)]
OrgRole = Literal["owner", "admin", "member"]
InviteStatus = Literal["pending", "accepted", "revoked", "expired"]
Addresses = Annotated[
    list[Annotated[str, StringConstraints(strip_whitespace=True, max_length=500)]],
    Field(
        min_length=1,
        max_length=100,
        description="E-mail addresses. An invalid one fails alone, with the reason `invalid_email`.",
    ),
]
BulkReason = Literal["invalid_email", "duplicate_in_request", "already_member", "already_invited"]

Key = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=255,
        description="Any text of your choice, such as a UUID; use a new one for each request. If the "
        "response is lost, send the request again with the same key: the invite that it made is returned as "
        "it is now, with its token, and no second e-mail is sent. 409 if it now offers something else.",
    ),
]

_USES = (
    "How many accounts may redeem it. With 1 it is personal: only an account with this e-mail address may;"
    " with more, anybody who has the token may, each account once."
)
_TOKEN = "The credential that redeems the invite. Shown only here; only its hash is kept."
_LINK = "Where the invited person accepts, with the token; null without PLATFORM_CLIENT_URL."
_HOW = (
    "What to send to the invited person, and how they accept: with the link, or without one with the token."
)
_SENT = "Whether the mail server accepted the e-mail; null when no e-mail is configured."


class InviteCreate(Body):
    """An invite to a team."""

    model_config = example(email="grace@example.org", team_id=1, team_role="member")

    email: Email
    team_id: Id
    team_role: TeamRole = "member"
    max_uses: MaxUses = Field(1, description=_USES)
    idempotency_key: Key = None


class BulkInviteCreate(Body):
    """Invites to a team, one for each address."""

    model_config = example(emails=["grace@example.org", "alan@example.org"], team_id=1)

    emails: Addresses
    team_id: Id
    team_role: TeamRole = "member"
    max_uses: MaxUses = Field(1, description=_USES)
    idempotency_key: Key = None


class OrgInviteCreate(Body):
    """An invite to an organization."""

    model_config = example(email="grace@example.org", org_role="member")

    email: Email
    org_role: OrgRole = "member"
    max_uses: MaxUses = Field(1, description=_USES)
    idempotency_key: Key = None


class BulkOrgInviteCreate(Body):
    """Invites to an organization, one for each address."""

    model_config = example(emails=["grace@example.org", "alan@example.org"], org_role="member")

    emails: Addresses
    org_role: OrgRole = "member"
    max_uses: MaxUses = Field(1, description=_USES)
    idempotency_key: Key = None


class _Invite(BaseModel):
    id: int
    email: str
    status: InviteStatus
    max_uses: int
    use_count: int
    expires_at: datetime
    created_at: datetime


class InviteOut(_Invite):
    """An invite to a team."""

    team_id: int
    team_role: TeamRole


class OrgInviteOut(_Invite):
    """An invite to an organization."""

    organization_id: int
    org_role: OrgRole


class _Issued(BaseModel):
    token: str = Field(description=_TOKEN)
    link: str | None = Field(description=_LINK)
    how_to_accept: str = Field(description=_HOW)
    email_sent: bool | None = Field(description=_SENT)


class IssuedInvite(InviteOut, _Issued):
    """A new invite to a team, with its token."""


class IssuedOrgInvite(OrgInviteOut, _Issued):
    """A new invite to an organization, with its token."""


Issued = TypeVar("Issued", IssuedInvite, IssuedOrgInvite)


class _BulkItem(BaseModel, Generic[Issued]):
    email: str = Field(description="As it was sent.")
    status: Literal["created", "failed"]
    error: str | None = Field(None, description="What went wrong, in words; null when it was created.")
    reason: BulkReason | None = Field(None, description="The same as a stable code.")
    rule: str | None = Field(None, description="With `invalid_email`, the rule that the address breaks.")
    invite: Issued | None = Field(None, description="The new invite with its token; null when it failed.")


class BulkInviteResultItem(_BulkItem[IssuedInvite]):
    """The result for one address."""


class BulkOrgInviteResultItem(_BulkItem[IssuedOrgInvite]):
    """The result for one address."""


class _Counts(BaseModel):
    created_count: int
    failed_count: int


class BulkInviteResponse(_Counts):
    """The result for each address, in the order of the request."""

    results: list[BulkInviteResultItem]


class BulkOrgInviteResponse(_Counts):
    """The result for each address, in the order of the request."""

    results: list[BulkOrgInviteResultItem]


class OrgInviteQuery(PageQuery):
    """Which invites to list."""

    status: InviteStatus | None = Field(None, description="Only invites in this state.")


class InviteQuery(OrgInviteQuery):
    """Which invites to list."""

    team_id: Id


class _Target(BaseModel):
    team_id: int | None = Field(None, description="For an invite to a team; otherwise null.")
    team_name: str | None = None
    team_role: TeamRole | None = None
    organization_id: int | None = Field(None, description="For an invite to an organization; otherwise null.")
    organization_name: str | None = None
    org_role: OrgRole | None = None


MANAGING = (
    "Those who manage an organization's members can reset the password of an account that the organization "
    "manages, and so sign in as it and read what is private to it, and deactivate it, as long as it belongs "
    "to no other organization."
)


class InvitePreview(_Target):
    """What an invite is for, as shown to anyone who has its token."""

    email: str
    status: InviteStatus
    expires_at: datetime
    management: str | None = Field(
        None, description="What it means that the organization manages an account; null for a team."
    )
    managed_by_default: bool | None = Field(
        None,
        description="Whether the organization will manage the account unless `accept_management` is false: "
        "true if the account was created after the invite. Without a token, it is true, as for an account "
        "that is created now. Null for a team.",
    )


class Redemption(BaseModel):
    """How to redeem an invite."""

    model_config = ConfigDict(extra="forbid", **example(accept_management=False))

    accept_management: bool | None = Field(
        None,
        description=f"Whether the organization may manage the account. {MANAGING} Without it, only an "
        "account that was created after the invite is managed. Ignored for a team.",
    )


class RedeemResult(_Target):
    """What the caller joined. The session's token includes it after the next refresh."""

    message: str
    managed: bool | None = Field(
        None, description="Whether the organization manages the account from now on; null for a team."
    )
