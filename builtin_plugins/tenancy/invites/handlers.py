"""Routes of invites to teams and to organizations (spec 4.3 and 4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from builtin_plugins.tenancy.access.decisions import require
from builtin_plugins.tenancy.errors import (
    AboveYou,
    AlreadyMember,
    IdempotencyKeyUsed,
    InviteClosed,
    InviteExpired,
    InviteForAnother,
    InviteNotFound,
    InviteNotPending,
    InviteRevoked,
    InviteSpent,
    InviteWithdrawn,
    KeyNotHeld,
    MembershipSuspended,
    NotAMember,
    OrganizationNotFound,
    TeamNotFound,
)
from builtin_plugins.tenancy.invites import records as invites
from builtin_plugins.tenancy.invites import redeeming
from builtin_plugins.tenancy.invites.issuing import Outcome, issue, issue_many
from builtin_plugins.tenancy.invites.mail import Issued
from builtin_plugins.tenancy.invites.offers import Offer
from builtin_plugins.tenancy.invites.schemas import (
    BulkInviteCreate,
    BulkInviteResponse,
    BulkOrgInviteCreate,
    BulkOrgInviteResponse,
    InviteCreate,
    InviteOut,
    InvitePreview,
    InviteQuery,
    IssuedInvite,
    IssuedOrgInvite,
    OrgInviteCreate,
    OrgInviteOut,
    OrgInviteQuery,
    RedeemResult,
    Redemption,
)
from builtin_plugins.tenancy.permissions import MEMBERS_MANAGE, TEAM_MANAGE
from builtin_plugins.tenancy.settings import TenancySettings
from kernel.sdk import (
    AUTHENTICATED,
    PUBLIC,
    Answer,
    Context,
    Forbidden,
    Page,
    Rate,
    RouteTable,
    permission,
)

routes = RouteTable("Invites")

ORG_MANAGER = permission(MEMBERS_MANAGE, within="org_id", or_admin=True)
LOOKUPS = Rate(lambda settings: settings.invite_lookups_per_minute, per="ip", settings=TenancySettings)
BULK = Rate(lambda settings: settings.bulk_invites_per_minute, settings=TenancySettings)
NOT_STORED = {"Cache-Control": "no-store"}


@routes.post(
    "/v1/invites",
    access=AUTHENTICATED,
    body=InviteCreate,
    returns=IssuedInvite,
    status=201,
    errors=(Forbidden, TeamNotFound, AlreadyMember, IdempotencyKeyUsed),
)
async def create(ctx: Context, body: InviteCreate) -> Answer:
    """Invite a person to a team. For those who manage the team.

    Only this response contains the token and, with PLATFORM_CLIENT_URL, the link; it also says how to use
    them. If a mail server is configured, an e-mail is sent; if that fails, the invite is still valid. An
    address can be invited again while an invite is pending, for example if the token was lost; the earlier
    invite stays valid until it is revoked. With an `idempotency_key`, a request can be repeated if its
    response is lost. An invite can't be used while its sender is not allowed to invite people.
    """
    offer = Offer(body.team_role, team_id=body.team_id, max_uses=body.max_uses)
    issued = await issue(ctx.caller, offer, body.email, body.idempotency_key)
    return Answer(IssuedInvite(**_issued(issued)), headers=NOT_STORED)


@routes.post(
    "/v1/invites/bulk",
    access=AUTHENTICATED,
    body=BulkInviteCreate,
    returns=BulkInviteResponse,
    rate=BULK,
    errors=(Forbidden, TeamNotFound, IdempotencyKeyUsed),
)
async def create_many(ctx: Context, body: BulkInviteCreate) -> Answer:
    """Invite up to 100 addresses to a team. For those who manage the team.

    Each address has its own result, in the order of the request: `created` with its invite, or `failed` with
    a `reason`: `invalid_email` (only that entry fails; `rule` says which rule the address breaks),
    `duplicate_in_request`, `already_member` or `already_invited`.
    """
    offer = Offer(body.team_role, team_id=body.team_id, max_uses=body.max_uses)
    outcomes = await issue_many(ctx.caller, offer, body.emails, body.idempotency_key)
    return Answer(BulkInviteResponse.model_validate(_results(outcomes)), headers=NOT_STORED)


@routes.get(
    "/v1/invites",
    access=AUTHENTICATED,
    query=InviteQuery,
    returns=Page[InviteOut],
    errors=(Forbidden, TeamNotFound),
)
async def list_all(ctx: Context, query: InviteQuery) -> Page[InviteOut]:
    """List the invites of a team, newest first. For those who manage the team."""
    await require(ctx.caller, TEAM_MANAGE, query.team_id, or_admin=True)
    rows, total = await ctx.read(invites.list_page, Offer("", team_id=query.team_id), query)
    items = [InviteOut(**row) for row in rows]
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.post(
    "/v1/invites/{invite_id:int}/revoke",
    access=AUTHENTICATED,
    returns=InviteOut,
    errors=(Forbidden, InviteNotFound, InviteNotPending),
)
async def revoke(ctx: Context, invite_id: int) -> InviteOut:
    """Revoke a pending invite to a team. For those who manage the team.

    403 for the invited person and for other members of the team; 404 for everyone else.
    """
    return InviteOut(**await invites.revoke(ctx.caller, invite_id))


@routes.get(
    "/v1/invites/by-token/{token}",
    access=PUBLIC,
    returns=InvitePreview,
    rate=LOOKUPS,
    errors=(InviteNotFound,),
)
async def preview(ctx: Context, token: str) -> InvitePreview:
    """Show what an invite is for. The token is the credential.

    An invite whose sender is no longer allowed to invite people is shown as `revoked`. For an invite to an
    organization, `management` says what it means that the organization manages an account, and
    `managed_by_default` whether it would manage the caller's.
    """
    return await ctx.read(redeeming.preview, ctx.platform.permissions, token, ctx.principal.id)


@routes.post(
    "/v1/invites/by-token/{token}/redeem",
    access=AUTHENTICATED,
    body=Redemption | None,
    returns=RedeemResult,
    rate=LOOKUPS,
    errors=(
        InviteNotFound,
        InviteForAnother,
        MembershipSuspended,
        NotAMember,
        InviteSpent,
        InviteRevoked,
        InviteExpired,
        InviteWithdrawn,
        InviteClosed,
        AlreadyMember,
    ),
    token_scopes=(),
)
async def redeem(ctx: Context, token: str, body: Redemption | None) -> RedeemResult:
    """Accept an invite and join its team or organization.

    With `accept_management`, the organization may manage the account; an account that was created after the
    invite is managed unless that is false. The response says what holds; `POST` and `DELETE …/management`
    change it later.

    403 if `max_uses` is 1 and the invite is for another e-mail address, if the membership is suspended, or if
    the team belongs to an organization of which the account is not an active member. 409 if the invite is
    revoked, expired, used up or withdrawn, or if the account is already a member (its role stays as it is).
    An account can use an invite only once, and not at all if it was removed after the invite was sent (409).
    """
    return await redeeming.redeem(ctx.caller, token, body.accept_management if body else None)


@routes.post(
    "/v1/organizations/{org_id:int}/invites",
    access=ORG_MANAGER,
    body=OrgInviteCreate,
    returns=IssuedOrgInvite,
    status=201,
    errors=(AboveYou, KeyNotHeld, OrganizationNotFound, AlreadyMember, IdempotencyKeyUsed),
)
async def create_for_organization(ctx: Context, org_id: int, body: OrgInviteCreate) -> Answer:
    """Invite a person to an organization; works like an invite to a team.

    You can't offer a role with permissions that you don't have in the organization yourself.
    """
    offer = Offer(body.org_role, organization_id=org_id, max_uses=body.max_uses)
    issued = await issue(ctx.caller, offer, body.email, body.idempotency_key)
    return Answer(IssuedOrgInvite(**_issued(issued)), headers=NOT_STORED)


@routes.post(
    "/v1/organizations/{org_id:int}/invites/bulk",
    access=ORG_MANAGER,
    body=BulkOrgInviteCreate,
    returns=BulkOrgInviteResponse,
    rate=BULK,
    errors=(AboveYou, KeyNotHeld, OrganizationNotFound, IdempotencyKeyUsed),
)
async def create_many_for_organization(ctx: Context, org_id: int, body: BulkOrgInviteCreate) -> Answer:
    """Invite up to 100 addresses to an organization. The results are like those for a team."""
    offer = Offer(body.org_role, organization_id=org_id, max_uses=body.max_uses)
    outcomes = await issue_many(ctx.caller, offer, body.emails, body.idempotency_key)
    return Answer(BulkOrgInviteResponse.model_validate(_results(outcomes)), headers=NOT_STORED)


@routes.get(
    "/v1/organizations/{org_id:int}/invites",
    access=ORG_MANAGER,
    query=OrgInviteQuery,
    returns=Page[OrgInviteOut],
    errors=(OrganizationNotFound,),
)
async def list_of_organization(ctx: Context, org_id: int, query: OrgInviteQuery) -> Page[OrgInviteOut]:
    """List the invites of an organization, newest first."""
    rows, total = await ctx.read(invites.list_page, Offer("", organization_id=org_id), query)
    items = [OrgInviteOut(**row) for row in rows]
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.post(
    "/v1/organizations/{org_id:int}/invites/{invite_id:int}/revoke",
    access=ORG_MANAGER,
    returns=OrgInviteOut,
    errors=(InviteNotFound, InviteNotPending),
)
async def revoke_of_organization(ctx: Context, org_id: int, invite_id: int) -> OrgInviteOut:
    """Revoke a pending invite of this organization."""
    return OrgInviteOut(**await ctx.write(invites.revoke_in, ctx.caller, org_id, invite_id))


def _issued(issued: Issued) -> dict[str, Any]:
    names = ("token", "link", "how_to_accept", "email_sent")
    return {**invites.fields_of(issued.invite), **{name: getattr(issued, name) for name in names}}


def _results(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    results = [
        {
            "email": one.email,
            "status": "failed" if one.issued is None else "created",
            "error": one.error,
            "reason": one.reason,
            "rule": one.rule,
            "invite": None if one.issued is None else _issued(one.issued),
        }
        for one in outcomes
    ]
    failed = sum(one.issued is None for one in outcomes)
    return {"results": results, "created_count": len(results) - failed, "failed_count": failed}
