"""Routes of organizations (spec 4.4)."""

from __future__ import annotations

from builtin_plugins.tenancy.errors import NotAMember, OrganizationNotFound, SlugTaken, TooDeep
from builtin_plugins.tenancy.organizations import creation, service
from builtin_plugins.tenancy.organizations.schemas import (
    MyOrganization,
    OrganizationCreate,
    OrganizationCreated,
    OrganizationOut,
    OrganizationUpdate,
    SwitchRequest,
    SwitchResult,
)
from builtin_plugins.tenancy.permissions import ORG_LIST, ORG_VIEW, SETTINGS_MANAGE
from kernel.sdk import AUTHENTICATED, Context, Forbidden, Page, PageQuery, RouteTable, permission
from kernel.sdk.accounts import TOKENS

routes = RouteTable("Organizations")

VIEWER = permission(ORG_VIEW, within="org_id", or_admin=True)
SETTER = permission(SETTINGS_MANAGE, within="org_id", or_admin=True)


@routes.post(
    "/v1/organizations",
    access=AUTHENTICATED,
    body=OrganizationCreate,
    returns=OrganizationCreated,
    status=201,
    errors=(Forbidden, SlugTaken, TooDeep),
)
async def create(ctx: Context, body: OrganizationCreate) -> OrganizationCreated:
    """Create an organization with its first owner and a default team, in one transaction.

    For instance administrators and Platform Admins; with `parent_id` also for those who have
    `org.settings.manage` in the parent organization.
    """
    return await creation.create(ctx.caller, body)


@routes.post(
    "/v1/organizations/switch",
    access=AUTHENTICATED,
    body=SwitchRequest,
    returns=SwitchResult,
    errors=(NotAMember,),
    token_scopes=(),
)
async def switch(ctx: Context, body: SwitchRequest) -> SwitchResult:
    """Switch to one of the caller's organizations. Returns a token with `active_tenant_id`.

    The home `tenant_id` stays, and the session does not last any longer. 403 if the organization is unknown,
    or if the caller is not a member or is suspended.
    """
    token = await service.switch(ctx.caller, body.organization_id)
    return SwitchResult(access_token=token, expires_in=ctx.platform.resource(TOKENS).lifetime)


@routes.get("/v1/organizations/mine", access=AUTHENTICATED, returns=list[MyOrganization])
async def list_own(ctx: Context) -> list[MyOrganization]:
    """List the caller's organizations as a plain array, the one joined first at the top."""
    return await ctx.read(service.list_own, ctx.principal.id)


@routes.get("/v1/organizations", access=permission(ORG_LIST), query=PageQuery, returns=Page[OrganizationOut])
async def list_all(ctx: Context, query: PageQuery) -> Page[OrganizationOut]:
    """List all organizations of the instance."""
    items, total = await ctx.read(service.list_page, query)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.get(
    "/v1/organizations/{org_id:int}", access=VIEWER, returns=OrganizationOut, errors=(OrganizationNotFound,)
)
async def get(ctx: Context, org_id: int) -> OrganizationOut:
    """Show one organization."""
    return await ctx.read(service.get, org_id)


@routes.patch(
    "/v1/organizations/{org_id:int}",
    access=SETTER,
    body=OrganizationUpdate,
    returns=OrganizationOut,
    errors=(OrganizationNotFound, SlugTaken),
)
async def update(ctx: Context, org_id: int, body: OrganizationUpdate) -> OrganizationOut:
    """Change the name or the slug of an organization."""
    return await ctx.write(service.update, ctx.caller, org_id, body)


@routes.get(
    "/v1/organizations/{org_id:int}/organizations",
    access=VIEWER,
    query=PageQuery,
    returns=Page[OrganizationOut],
    errors=(OrganizationNotFound,),
)
async def list_below(ctx: Context, org_id: int, query: PageQuery) -> Page[OrganizationOut]:
    """List the organizations directly below an organization, as far as the caller can see them.

    Owners, administrators and custom roles with the permission see all of them; other members see those to
    which they also belong.
    """
    items, total = await service.list_below(ctx.caller, org_id, query)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)
