"""`GET /v1/audit` (spec 2.7, decisions.md). There is no route that alters or deletes an entry."""

from __future__ import annotations

from builtin_plugins.accounts.audit_log import AuditLogListResponse, AuditQuery, list_entries
from kernel.sdk import AUTHENTICATED, Context, Forbidden, RouteTable

routes = RouteTable("Audit")


@routes.get(
    "/v1/audit", access=AUTHENTICATED, query=AuditQuery, returns=AuditLogListResponse, errors=(Forbidden,)
)
async def list_audit_entries(ctx: Context, query: AuditQuery) -> AuditLogListResponse:
    """List what was changed, by whom and when, newest first.

    Platform Admins see everything. Those who manage an organization see what belongs to it and to the
    organizations below it. 403 for everyone else.
    """
    return await list_entries(ctx.platform, ctx.principal, query)
