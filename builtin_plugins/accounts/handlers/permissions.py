"""The permission keys that plugins have declared (spec 4.6)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from kernel.sdk import AUTHENTICATED, Context, RouteTable

routes = RouteTable("Operations")


class PermissionOut(BaseModel):
    """A permission key and what it allows."""

    key: str
    description: str
    scope: Literal["instance", "organization", "team"]


class PermissionList(BaseModel):
    """Every declared permission."""

    permissions: list[PermissionOut]


@routes.get("/v1/permissions", access=AUTHENTICATED, returns=PermissionList, fixed=True)
async def permissions(ctx: Context) -> PermissionList:
    """List all permission keys with their meaning."""
    ordered = sorted(ctx.platform.permissions.values(), key=lambda p: p.key)
    records = [PermissionOut(key=p.key, description=p.description, scope=p.scope) for p in ordered]
    return PermissionList(permissions=records)
