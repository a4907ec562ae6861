"""`/v1/bookmarks`."""

from __future__ import annotations

from kernel.sdk import AUTHENTICATED, Context, Page, PageQuery, RouteTable, permission
from sample_plugin import bookmarks
from sample_plugin.bookmarks import Full, Known
from sample_plugin.permissions import ADD
from sample_plugin.schemas import BookmarkCreate, BookmarkOut

routes = RouteTable("Bookmarks")


@routes.post(
    "/v1/bookmarks",
    access=permission(ADD),
    body=BookmarkCreate,
    returns=BookmarkOut,
    status=201,
    errors=(Full, Known),
)
async def create(ctx: Context, body: BookmarkCreate) -> BookmarkOut:
    """Keep a bookmark."""
    return BookmarkOut.model_validate(await bookmarks.add(ctx.platform, body))


@routes.get("/v1/bookmarks", access=AUTHENTICATED, query=PageQuery, returns=Page[BookmarkOut])
async def index(ctx: Context, query: PageQuery) -> Page[BookmarkOut]:
    """List bookmarks, oldest first."""
    found, total = await bookmarks.page(ctx.platform, query.limit, query.offset)
    items = [BookmarkOut.model_validate(item) for item in found]
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)
