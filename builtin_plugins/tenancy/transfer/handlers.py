"""Routes that export teams and organizations and import them (spec 4.3, 4.4)."""

from __future__ import annotations

from builtin_plugins.tenancy.errors import OrganizationNotFound, TeamNotFound
from builtin_plugins.tenancy.permissions import SETTINGS_MANAGE, TEAM_MANAGE
from builtin_plugins.tenancy.transfer import exports, imports
from builtin_plugins.tenancy.transfer.schemas import (
    MAX_BUNDLE,
    ImportQuery,
    ImportReport,
    OrganizationBundle,
    OrganizationImport,
    TeamBundle,
    TeamImport,
)
from kernel.sdk import Answer, Context, PayloadTooLarge, Rate, RouteTable, permission

routes = RouteTable("Export and import")

# A report reveals which e-mail addresses have accounts here; this limit prevents trying many of them.
_RATE = Rate(10)
_TEAM = permission(TEAM_MANAGE, within="team_id", or_admin=True)
_ORGANIZATION = permission(SETTINGS_MANAGE, within="org_id", or_admin=True)


@routes.get("/v1/teams/{team_id:int}/export", access=_TEAM, returns=TeamBundle, errors=(TeamNotFound,))
async def export_team(ctx: Context, team_id: int) -> Answer:
    """Export a team as a JSON file.

    It contains the name and description, the members by e-mail, and the settings of knowledge bases and
    pipelines that are shared with this team. It contains no documents, vectors, ids or secrets.
    """
    bundle = await exports.export_team(ctx.caller, team_id)
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
    """Import a bundle into this team, completely or not at all.

    Existing data is neither changed nor removed. Active accounts join as `member`, whatever the bundle says;
    unknown accounts are reported. Knowledge bases and pipelines are shared with this team and belong to the
    caller. `policy` says what to do if a name is already taken: `skip` keeps the existing one, `rename` gives
    the new one another name, `fail` stops the import with 422.
    """
    return await imports.import_team(ctx.caller, team_id, body, dry_run=query.dry_run)


@routes.get(
    "/v1/organizations/{org_id:int}/export",
    access=_ORGANIZATION,
    returns=OrganizationBundle,
    errors=(OrganizationNotFound,),
)
async def export_organization(ctx: Context, org_id: int) -> Answer:
    """Export an organization as a JSON file.

    It contains the name and slug, the members by e-mail with their roles, the settings of knowledge bases and
    pipelines that are shared with this organization, and the settings of plugins. It contains no documents,
    vectors, ids or secrets.
    """
    bundle = await exports.export_organization(ctx.caller, org_id)
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
    """Import a bundle into this organization, completely or not at all.

    Works like an import into a team. Members are added only if the caller can manage members here.
    """
    return await imports.import_organization(ctx.caller, org_id, body, dry_run=query.dry_run)


def _attachment(bundle: TeamBundle | OrganizationBundle, filename: str) -> Answer:
    headers = {"Content-Disposition": f'attachment; filename="{filename}"', "Cache-Control": "no-store"}
    return Answer(bundle, headers=headers)
