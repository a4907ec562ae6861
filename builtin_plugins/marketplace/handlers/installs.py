"""Installs and ratings (wire-facts 10.2, 10.3)."""

from __future__ import annotations

from kernel.sdk import ADMIN, AUTHENTICATED, PUBLIC_OR_MORE, Context, PageQuery, RouteTable

from ..errors import (
    DependencyMissing,
    DependentsEnabled,
    ListingNotFound,
    NeverInstalled,
    PluginNotInstalled,
    TooManyInstalled,
)
from ..schemas import (
    Enabled,
    InstallationOut,
    InstallationPage,
    MyInstallations,
    RatingGiven,
    RatingPage,
    RatingRequest,
    RatingsQuery,
    Switched,
)
from ..services import installing, ratings

routes = RouteTable("Installs and ratings")

# Open to anybody, so open to every credential.
ANY_SCOPE = ("ask", "tools", "manage")

_ONE = "/v1/marketplace/plugins/{plugin_id:uuid}"


@routes.post(
    f"{_ONE}/install",
    access=AUTHENTICATED,
    returns=InstallationOut,
    errors=(ListingNotFound, TooManyInstalled, DependencyMissing),
)
async def install(ctx: Context, plugin_id: str) -> InstallationOut:
    """Install a plugin for the caller; doing it twice is not an error.

    If it requires plugins that the caller has not installed, it stays installed but disabled, and the
    answer is a 409 that names them.
    """
    return await installing.install(ctx.caller, plugin_id)


@routes.delete(
    f"{_ONE}/uninstall",
    access=AUTHENTICATED,
    returns=Switched,
    errors=(PluginNotInstalled, DependentsEnabled),
)
async def uninstall(ctx: Context, plugin_id: str) -> Switched:
    """Uninstall a plugin for the caller. One that other enabled plugins require is kept."""
    return await ctx.write(installing.uninstall, ctx.caller, plugin_id)


@routes.post(
    f"{_ONE}/enable", access=AUTHENTICATED, returns=Enabled, errors=(PluginNotInstalled, DependencyMissing)
)
async def enable(ctx: Context, plugin_id: str) -> Enabled:
    """Enable an installed plugin, and the disabled ones that it requires."""
    return await ctx.write(installing.enable, ctx.caller, plugin_id)


@routes.post(
    f"{_ONE}/disable", access=AUTHENTICATED, returns=Switched, errors=(PluginNotInstalled, DependentsEnabled)
)
async def disable(ctx: Context, plugin_id: str) -> Switched:
    """Disable an installed plugin. One that other enabled plugins require is kept."""
    return await ctx.write(installing.disable, ctx.caller, plugin_id)


@routes.get(
    f"{_ONE}/installations",
    access=ADMIN,
    query=PageQuery,
    returns=InstallationPage,
    errors=(ListingNotFound,),
)
async def list_installations(ctx: Context, plugin_id: str, query: PageQuery) -> InstallationPage:
    """List all accounts' installs of a plugin, newest first."""
    return await ctx.read(installing.list_all, plugin_id, query)


@routes.get("/v1/marketplace/installations/me", access=AUTHENTICATED, returns=MyInstallations)
async def list_own(ctx: Context) -> MyInstallations:
    """List what the caller has installed, newest first."""
    return await ctx.read(installing.list_own, ctx.caller)


@routes.get(
    f"{_ONE}/ratings",
    access=PUBLIC_OR_MORE,
    token_scopes=ANY_SCOPE,
    query=RatingsQuery,
    returns=RatingPage,
    errors=(ListingNotFound,),
)
async def list_ratings(ctx: Context, plugin_id: str, query: RatingsQuery) -> RatingPage:
    """Show a plugin's overall rating, and reviews, newest first."""
    return await ctx.read(ratings.list_page, ctx.principal, plugin_id, query)


@routes.post(
    f"{_ONE}/ratings",
    access=AUTHENTICATED,
    body=RatingRequest,
    returns=RatingGiven,
    status=201,
    errors=(ListingNotFound, NeverInstalled),
)
async def rate(ctx: Context, plugin_id: str, body: RatingRequest) -> RatingGiven:
    """Rate a plugin that the caller has, or had; a second rating replaces the first."""
    return await ctx.write(ratings.rate, ctx.caller, plugin_id, body)
