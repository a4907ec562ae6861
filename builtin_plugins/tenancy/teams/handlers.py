"""Routes of teams and of their members (spec 4.3)."""

from __future__ import annotations

from builtin_plugins.tenancy.errors import (
    AlreadyMember,
    LastTeamAdmin,
    MemberNotFound,
    NotAMember,
    OutsideOrganization,
    TeamNameTaken,
    TeamNotFound,
    UserNotFound,
)
from builtin_plugins.tenancy.permissions import TEAM_MANAGE
from builtin_plugins.tenancy.teams import members
from builtin_plugins.tenancy.teams import service as teams
from builtin_plugins.tenancy.teams.schemas import (
    TeamCreate,
    TeamDetails,
    TeamMemberCreate,
    TeamMemberOut,
    TeamMemberUpdate,
    TeamOut,
    TeamQuery,
    TeamUpdate,
)
from kernel.sdk import AUTHENTICATED, Context, Forbidden, Page, PageQuery, RouteTable, permission

routes = RouteTable("Teams")

MANAGER = permission(TEAM_MANAGE, within="team_id", or_admin=True)


@routes.post(
    "/v1/teams",
    access=AUTHENTICATED,
    body=TeamCreate,
    returns=TeamOut,
    status=201,
    errors=(NotAMember, TeamNameTaken),
)
async def create(ctx: Context, body: TeamCreate) -> TeamOut:
    """Create a team. The caller becomes its team_admin.

    A team with an `organization_id` belongs to that organization: only its members can join, and its owners
    and administrators can manage the team. The caller must be an active member of it.
    """
    return await ctx.write(teams.create, ctx.caller, body)


@routes.get("/v1/teams", access=AUTHENTICATED, query=TeamQuery, returns=Page[TeamOut])
async def list_all(ctx: Context, query: TeamQuery) -> Page[TeamOut]:
    """List the teams of the instance, oldest first."""
    items, total = await teams.list_page(ctx.caller, query)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.get("/v1/teams/{team_id:int}", access=AUTHENTICATED, returns=TeamDetails, errors=(TeamNotFound,))
async def get(ctx: Context, team_id: int) -> TeamDetails:
    """Show one team with all of its members; `…/members` lists them in pages.

    Their e-mail addresses are shown to fellow members, to those who manage the team, and to administrators.
    """
    return await teams.get(ctx.caller, team_id)


@routes.get(
    "/v1/teams/{team_id:int}/members",
    access=AUTHENTICATED,
    query=PageQuery,
    returns=Page[TeamMemberOut],
    errors=(TeamNotFound,),
)
async def list_members(ctx: Context, team_id: int, query: PageQuery) -> Page[TeamMemberOut]:
    """List the members of a team, longest-standing first."""
    items, total = await members.list_page(ctx.caller, team_id, query)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.patch(
    "/v1/teams/{team_id:int}",
    access=MANAGER,
    body=TeamUpdate,
    returns=TeamOut,
    errors=(TeamNotFound, TeamNameTaken),
)
async def update(ctx: Context, team_id: int, body: TeamUpdate) -> TeamOut:
    """Change a team's name or description."""
    own = await teams.own_organizations(ctx.caller)
    return await ctx.write(teams.update, ctx.caller, team_id, body, own)


@routes.delete("/v1/teams/{team_id:int}", access=MANAGER, status=204, errors=(TeamNotFound,))
async def remove(ctx: Context, team_id: int) -> None:
    """Delete a team with its memberships and invites.

    What was shared with the team is kept, but from then on only its owner sees it.
    """
    await ctx.write(teams.remove, ctx.caller, team_id)


@routes.post(
    "/v1/teams/{team_id:int}/members",
    access=MANAGER,
    body=TeamMemberCreate,
    returns=TeamMemberOut,
    status=201,
    errors=(TeamNotFound, UserNotFound, AlreadyMember, OutsideOrganization),
)
async def add_member(ctx: Context, team_id: int, body: TeamMemberCreate) -> TeamMemberOut:
    """Add an active account to a team.

    404 for an unknown or deactivated account. The member's token includes the team after the next refresh;
    searches and lists include it at once.
    """
    return await ctx.write(members.add, ctx.caller, team_id, body)


@routes.patch(
    "/v1/teams/{team_id:int}/members/{user_id:int}",
    access=MANAGER,
    body=TeamMemberUpdate,
    returns=TeamMemberOut,
    errors=(TeamNotFound, MemberNotFound, LastTeamAdmin),
)
async def change_member(ctx: Context, team_id: int, user_id: int, body: TeamMemberUpdate) -> TeamMemberOut:
    """Change a member's role in a team to team_admin or member.

    409 if no other active team_admin would remain, unless the caller is an instance administrator.
    """
    return await ctx.write(members.change_role, ctx.caller, team_id, user_id, body)


@routes.delete(
    "/v1/teams/{team_id:int}/members/{user_id:int}",
    access=AUTHENTICATED,
    status=204,
    errors=(Forbidden, TeamNotFound, MemberNotFound, LastTeamAdmin),
)
async def remove_member(ctx: Context, team_id: int, user_id: int) -> None:
    """Remove a member (for those who manage the team), or leave the team.

    409 if no other active team_admin would remain, unless the caller is an instance administrator: make
    another member team_admin first, or delete the team.
    """
    await members.remove(ctx.caller, team_id, user_id)
