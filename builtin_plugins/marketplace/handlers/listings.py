"""The catalog: list, search, make, change (wire-facts 10.2)."""

from __future__ import annotations

from builtin_plugins.tools.api import Directory
from kernel.sdk import ADMIN, AUTHENTICATED, PUBLIC, PUBLIC_OR_MORE, Conflict, Context, Forbidden, RouteTable

from ..errors import CategoryNotFound, ListingNameTaken, ListingNotFound
from ..schemas import (
    Categories,
    CategoryCreate,
    CategoryOut,
    FeaturedQuery,
    ListingCreate,
    ListingOut,
    ListingPage,
    ListingsQuery,
    ListingUpdate,
    SearchQuery,
)
from ..services import categories, listings
from ..services.search import search

routes = RouteTable("Catalog")

# Open to anybody, so open to every credential.
ANY_SCOPE = ("ask", "tools", "manage")

_BASE = "/v1/marketplace/plugins"
_ONE = _BASE + "/{plugin_id:uuid}"


@routes.get(_BASE, access=PUBLIC_OR_MORE, token_scopes=ANY_SCOPE, query=ListingsQuery, returns=ListingPage)
async def list_listings(ctx: Context, query: ListingsQuery) -> ListingPage:
    """List plugins of the catalog, newest first.

    Everybody sees approved ones and their own; administrators and services see those of every status.
    """
    return await ctx.read(listings.list_page, ctx.principal, query)


@routes.get(
    f"{_BASE}/search", access=PUBLIC_OR_MORE, token_scopes=ANY_SCOPE, query=SearchQuery, returns=ListingPage
)
async def search_listings(ctx: Context, query: SearchQuery) -> ListingPage:
    """Search approved plugins by words or prefixes of words.

    An exact name comes first, then the most relevant. If nothing matches, plugins with a similar name are
    found.
    """
    return await ctx.read(search, ctx.principal, query.q, query.slice)


@routes.get(
    f"{_BASE}/featured",
    access=PUBLIC_OR_MORE,
    token_scopes=ANY_SCOPE,
    query=FeaturedQuery,
    returns=ListingPage,
)
async def list_featured(ctx: Context, query: FeaturedQuery) -> ListingPage:
    """List the plugins that administrators recommend."""
    return await ctx.read(listings.featured, ctx.principal, query.limit)


@routes.get(
    _ONE, access=PUBLIC_OR_MORE, token_scopes=ANY_SCOPE, returns=ListingOut, errors=(ListingNotFound,)
)
async def get_listing(ctx: Context, plugin_id: str) -> ListingOut:
    """Show one plugin of the catalog."""
    return await ctx.read(listings.get, ctx.principal, plugin_id)


@routes.post(
    _BASE,
    access=AUTHENTICATED,
    body=ListingCreate,
    returns=ListingOut,
    status=201,
    errors=(ListingNameTaken,),
)
async def create_listing(ctx: Context, body: ListingCreate) -> ListingOut:
    """Add a plugin to the catalog, as a draft of the caller; one that a service adds is approved at once."""
    installed_names = Directory(ctx.platform).taken_names()
    return await ctx.write(listings.create, ctx.caller, body, installed_names)


@routes.put(
    _ONE,
    access=AUTHENTICATED,
    body=ListingUpdate,
    returns=ListingOut,
    errors=(ListingNotFound, Forbidden, Conflict),
)
async def update_listing(ctx: Context, plugin_id: str, body: ListingUpdate) -> ListingOut:
    """Change some fields of a listing.

    Your own while it is a draft or rejected; administrators can change any.
    """
    changes = listings.read_changes(body)
    installed_names = Directory(ctx.platform).taken_names()
    return await ctx.write(listings.update, ctx.caller, plugin_id, changes, installed_names)


@routes.get("/v1/marketplace/categories", access=PUBLIC, returns=Categories)
async def list_categories(ctx: Context) -> Categories:
    """List the categories of the catalog by name."""
    return await ctx.read(categories.list_all)


@routes.post(
    "/v1/marketplace/categories",
    access=ADMIN,
    body=CategoryCreate,
    returns=CategoryOut,
    status=201,
    errors=(Conflict,),
)
async def create_category(ctx: Context, body: CategoryCreate) -> CategoryOut:
    """Create a category."""
    return await ctx.write(categories.create, ctx.caller, body)


@routes.delete(
    "/v1/marketplace/categories/{category_id:uuid}", access=ADMIN, status=204, errors=(CategoryNotFound,)
)
async def delete_category(ctx: Context, category_id: str) -> None:
    """Delete a category; its plugins stay, without a category."""
    await ctx.write(categories.remove, ctx.caller, category_id)
