"""Routes that take teams and organizations out as a file and in again (spec 4.3, 4.4)."""

from __future__ import annotations

from builtin_plugins.tenancy.errors import OrganizationNotFound, TeamNotFound
from builtin_plugins.tenancy.permissions import SETTINGS_MANAGE, TEAM_MANAGE
from builtin_plugins.tenancy.schemas_transfer import (
    MAX_BUNDLE,
    ImportQuery,
    ImportReport,
    OrganizationBundle,
    OrganizationImport,
    TeamBundle,
    TeamImport,
)
from builtin_plugins.tenancy.services import exports, imports
from kernel.sdk import Answer, Context, PayloadTooLarge, Rate, RouteTable, permission

routes = RouteTable("Export and import")

# A report tells which e-mail addresses have accounts here: nobody reads the whole instance off it.
_RATE = Rate(10)
_TEAM = permission(TEAM_MANAGE, within="team_id", or_admin=True)
_ORGANIZATION = permission(SETTINGS_MANAGE, within="org_id", or_admin=True)


@routes.get("/v1/teams/{team_id:int}/export", access=_TEAM, returns=TeamBundle, errors=(TeamNotFound,))
async def export_team(ctx: Context, team_id: int) -> Answer:
    """Take a team out as a JSON file.

    It holds name and description, the roster by e-mail, and the settings of knowledge bases and pipelines
    with the visibility `team` here: no documents, no vectors, no ids, no secrets.
    """
    bundle = await exports.export_team(ctx.platform, team_id, ctx.audit_origin())
    return _attachment(bundle, f"team-{team_id}.json")


@routes.post(
    "/v1/teams/{team_id:int}/import",
    access=_TEAM,
    body=TeamImport,
    query=ImportQuery,
    returns=ImportReport,
    errors=(TeamNotFound, PayloadTooLarge),
    max_body=MAX_BUNDLE,
    rate=_RATE,
    long=True,
)
async def import_team(ctx: Context, team_id: int, body: TeamImport, query: ImportQuery) -> ImportReport:
    """Bring a team's bundle into this team, all of it or nothing.

    Nothing that is there is changed or removed. Active accounts join as `member` whatever the bundle says,
    unknown ones are reported. Knowledge bases and pipelines come in shared with this team and owned by the
    caller; `policy` says what becomes of one whose name is taken here: `skip` keeps what is there, `rename`
    makes the new one under another name, `fail` ends the import with 422.
    """
    return await imports.import_team(
        ctx.platform, ctx.principal, team_id, body, ctx.audit_origin(), dry_run=query.dry_run
    )


@routes.get(
    "/v1/organizations/{org_id:int}/export",
    access=_ORGANIZATION,
    returns=OrganizationBundle,
    errors=(OrganizationNotFound,),
)
async def export_organization(ctx: Context, org_id: int) -> Answer:
    """Take an organization out as a JSON file.

    It holds name and slug, the members by e-mail with their roles, the settings of knowledge bases and
    pipelines with the visibility `organization` here, and what plugins are set to: no documents, no
    vectors, no ids, no secrets.
    """
    bundle = await exports.export_organization(ctx.platform, org_id, ctx.audit_origin())
    return _attachment(bundle, f"organization-{org_id}.json")


@routes.post(
    "/v1/organizations/{org_id:int}/import",
    access=_ORGANIZATION,
    body=OrganizationImport,
    query=ImportQuery,
    returns=ImportReport,
    errors=(OrganizationNotFound, PayloadTooLarge),
    max_body=MAX_BUNDLE,
    rate=_RATE,
    long=True,
)
async def import_organization(
    ctx: Context, org_id: int, body: OrganizationImport, query: ImportQuery
) -> ImportReport:
    """Bring an organization's bundle into this organization, all of it or nothing.

    As with teams. Members join only if the caller may manage members here.
    """
    return await imports.import_organization(
        ctx.platform, ctx.principal, org_id, body, ctx.audit_origin(), dry_run=query.dry_run
    )


def _attachment(bundle: TeamBundle | OrganizationBundle, filename: str) -> Answer:
    headers = {"Content-Disposition": f'attachment; filename="{filename}"', "Cache-Control": "no-store"}
    return Answer(bundle, headers=headers)
