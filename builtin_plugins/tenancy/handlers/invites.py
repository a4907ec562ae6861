"""Routes of invites to teams and to organizations (spec 4.3 and 4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from builtin_plugins.tenancy.errors import (
    AboveYou,
    AlreadyMember,
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
from builtin_plugins.tenancy.permissions import MEMBERS_MANAGE, TEAM_MANAGE
from builtin_plugins.tenancy.schemas_invites import (
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
)
from builtin_plugins.tenancy.services import invites, redeeming
from builtin_plugins.tenancy.services.access import insist
from builtin_plugins.tenancy.services.invite_mail import Issued
from builtin_plugins.tenancy.services.invite_offers import Offer
from builtin_plugins.tenancy.services.inviting import Outcome, issue, issue_many
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
    errors=(Forbidden, TeamNotFound, AlreadyMember),
)
async def create(ctx: Context, body: InviteCreate) -> Answer:
    """Invite somebody to a team, for those who manage the team.

    The answer holds the token and, with PLATFORM_CLIENT_URL, the link, both never shown again; the e-mail is
    sent where a mail server is configured, and one that fails does not lose the invite. An address may be
    invited again while an invite is pending, as by somebody who lost the token; the earlier invite stays
    until it is revoked. An invite admits nobody while its sender may no longer invite.
    """
    offer = Offer(body.team_role, team_id=body.team_id, max_uses=body.max_uses)
    issued = await issue(ctx.platform, ctx.principal, offer, body.email, ctx.audit_origin())
    return Answer(IssuedInvite(**_issued(issued)), headers=NOT_STORED)


@routes.post(
    "/v1/invites/bulk",
    access=AUTHENTICATED,
    body=BulkInviteCreate,
    returns=BulkInviteResponse,
    rate=BULK,
    errors=(Forbidden, TeamNotFound),
)
async def create_many(ctx: Context, body: BulkInviteCreate) -> Answer:
    """Invite up to 100 addresses to a team, for those who manage the team.

    Each address has its own result, in the order of the request: `created` with its invite, or `failed` with
    a `reason`: `invalid_email` (what is no address fails alone, and `rule` says why it is none),
    `duplicate_in_request`, `already_member`, `already_invited`.
    """
    offer = Offer(body.team_role, team_id=body.team_id, max_uses=body.max_uses)
    outcomes = await issue_many(ctx.platform, ctx.principal, offer, body.emails, ctx.audit_origin())
    return Answer(BulkInviteResponse.model_validate(_results(outcomes)), headers=NOT_STORED)


@routes.get(
    "/v1/invites",
    access=AUTHENTICATED,
    query=InviteQuery,
    returns=Page[InviteOut],
    errors=(Forbidden, TeamNotFound),
)
async def list_all(ctx: Context, query: InviteQuery) -> Page[InviteOut]:
    """List the invites of a team, the newest first, for those who manage the team."""
    await insist(ctx.platform, ctx.principal, TEAM_MANAGE, query.team_id, or_admin=True)
    rows, total = await invites.list_page(ctx.platform, Offer("", team_id=query.team_id), query)
    items = [InviteOut(**row) for row in rows]
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.post(
    "/v1/invites/{invite_id:int}/revoke",
    access=AUTHENTICATED,
    returns=InviteOut,
    errors=(Forbidden, InviteNotFound, InviteNotPending),
)
async def revoke(ctx: Context, invite_id: int) -> InviteOut:
    """Revoke a pending invite to a team, for those who manage the team.

    403 for the invited person and for other members of the team, 404 for those who are strangers to it.
    """
    return InviteOut(**await invites.revoke(ctx.platform, ctx.principal, invite_id, ctx.audit_origin()))


@routes.get(
    "/v1/invites/by-token/{token}",
    access=PUBLIC,
    returns=InvitePreview,
    rate=LOOKUPS,
    errors=(InviteNotFound,),
)
async def preview(ctx: Context, token: str) -> InvitePreview:
    """Show what an invite is for; the token is the credential.

    An invite whose sender may no longer invite is shown as `revoked`.
    """
    return await redeeming.preview(ctx.platform, token)


@routes.post(
    "/v1/invites/by-token/{token}/redeem",
    access=AUTHENTICATED,
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
)
async def redeem(ctx: Context, token: str) -> RedeemResult:
    """Join the team or the organization of an invite.

    403 for another account than the invited one where `max_uses` is 1, and for a suspended member; 409 for an
    invite that is revoked, expired, spent or withdrawn, and for a member, whose role stays as it is. An
    invite admits each account once, and none that was removed after it was sent (409). A team of an
    organization takes only active members of the organization (403).
    """
    return await redeeming.redeem(ctx.platform, ctx.principal, token, ctx.audit_origin())


@routes.post(
    "/v1/organizations/{org_id:int}/invites",
    access=ORG_MANAGER,
    body=OrgInviteCreate,
    returns=IssuedOrgInvite,
    status=201,
    errors=(AboveYou, KeyNotHeld, OrganizationNotFound, AlreadyMember),
)
async def create_for_organization(ctx: Context, org_id: int, body: OrgInviteCreate) -> Answer:
    """Invite somebody to an organization; as for a team.

    Nobody can offer a role that may do more in the organization than he may himself.
    """
    offer = Offer(body.org_role, organization_id=org_id, max_uses=body.max_uses)
    issued = await issue(ctx.platform, ctx.principal, offer, body.email, ctx.audit_origin())
    return Answer(IssuedOrgInvite(**_issued(issued)), headers=NOT_STORED)


@routes.post(
    "/v1/organizations/{org_id:int}/invites/bulk",
    access=ORG_MANAGER,
    body=BulkOrgInviteCreate,
    returns=BulkOrgInviteResponse,
    rate=BULK,
    errors=(AboveYou, KeyNotHeld, OrganizationNotFound),
)
async def create_many_for_organization(ctx: Context, org_id: int, body: BulkOrgInviteCreate) -> Answer:
    """Invite up to 100 addresses to an organization; results as for a team."""
    offer = Offer(body.org_role, organization_id=org_id, max_uses=body.max_uses)
    outcomes = await issue_many(ctx.platform, ctx.principal, offer, body.emails, ctx.audit_origin())
    return Answer(BulkOrgInviteResponse.model_validate(_results(outcomes)), headers=NOT_STORED)


@routes.get(
    "/v1/organizations/{org_id:int}/invites",
    access=ORG_MANAGER,
    query=OrgInviteQuery,
    returns=Page[OrgInviteOut],
    errors=(OrganizationNotFound,),
)
async def list_of_organization(ctx: Context, org_id: int, query: OrgInviteQuery) -> Page[OrgInviteOut]:
    """List the invites of an organization, the newest first."""
    rows, total = await invites.list_page(ctx.platform, Offer("", organization_id=org_id), query)
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
    return OrgInviteOut(**await invites.revoke_in(ctx.platform, org_id, invite_id, ctx.audit_origin()))


def _issued(issued: Issued) -> dict[str, Any]:
    once = {"token": issued.token, "link": issued.link, "email_sent": issued.email_sent}
    return {**invites.fields_of(issued.invite), **once}


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
