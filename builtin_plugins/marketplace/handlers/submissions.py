"""Submissions and their review (spec 3.1, wire-facts 10.4)."""

from __future__ import annotations

from kernel.sdk import (
    ADMIN,
    ADMIN_OR_SERVICE,
    AUTHENTICATED,
    BadRequest,
    Context,
    InsufficientStorage,
    PayloadTooLarge,
    RouteTable,
    Upload,
    receive_file,
)

from ..errors import IllegalMove, ListingNotFound, NotAWheel, NotEditable
from ..schemas import CatalogQuery, ListingOut, ListingPage
from ..services import submissions, wheels
from ..submission_schemas import History, HistoryQuery, RejectRequest, SubmissionsQuery

routes = RouteTable("Submissions")

_BASE = "/v1/marketplace/submissions"
_ONE = _BASE + "/{plugin_id:uuid}"
_ERRORS = (ListingNotFound, IllegalMove)


@routes.get(f"{_BASE}/mine", access=AUTHENTICATED, query=CatalogQuery, returns=ListingPage)
async def list_own(ctx: Context, query: CatalogQuery) -> ListingPage:
    """List the caller's own listings of every status, most recently changed first."""
    return await ctx.read(submissions.list_own, ctx.principal, query.slice)


@routes.get(_BASE, access=ADMIN, query=SubmissionsQuery, returns=ListingPage)
async def list_queue(ctx: Context, query: SubmissionsQuery) -> ListingPage:
    """List submissions of one status, oldest first."""
    return await ctx.read(submissions.list_queue, ctx.principal, query)


@routes.post(f"{_ONE}/submit", access=AUTHENTICATED, returns=ListingOut, errors=_ERRORS)
async def submit(ctx: Context, plugin_id: str) -> ListingOut:
    """Submit a draft or rejected listing for review; the response shows the results of its checks."""
    return await ctx.write(submissions.move, ctx.caller, plugin_id, "submit")


@routes.post(
    f"{_ONE}/package",
    access=AUTHENTICATED,
    body=Upload(
        file=f"The wheel under the name that `python -m build` gives it; at most {wheels.LIMIT_MB} MB.",
        example={"file": "acme_tides-1.2-py3-none-any.whl"},
    ),
    returns=ListingOut,
    errors=(ListingNotFound, NotEditable, NotAWheel, PayloadTooLarge, BadRequest, InsufficientStorage),
)
async def add_package(ctx: Context, plugin_id: str) -> ListingOut:
    """Upload the plugin's wheel for the automatic checks of a draft or rejected listing.

    None of its code is run. Only its metadata and its SHA-256 are stored.
    """
    await wheels.check_editable(ctx.caller, plugin_id)
    file = await receive_file(ctx, wheels.LIMIT_MB)
    try:
        return await wheels.add_wheel(ctx.caller, plugin_id, file)
    finally:
        file.staged.discard()


@routes.post(f"{_ONE}/claim", access=ADMIN, returns=ListingOut, errors=_ERRORS)
async def claim(ctx: Context, plugin_id: str) -> ListingOut:
    """Take a submission for review; if two reviewers try, one of them gets 409."""
    return await ctx.write(submissions.move, ctx.caller, plugin_id, "claim")


@routes.post(f"{_ONE}/approve", access=ADMIN, returns=ListingOut, errors=_ERRORS)
async def approve(ctx: Context, plugin_id: str) -> ListingOut:
    """Publish a submission that is in review."""
    return await ctx.write(submissions.move, ctx.caller, plugin_id, "approve")


@routes.post(f"{_ONE}/reject", access=ADMIN, body=RejectRequest, returns=ListingOut, errors=_ERRORS)
async def reject(ctx: Context, plugin_id: str, body: RejectRequest) -> ListingOut:
    """Send a submission back with notes; its author may change it and submit it again."""
    return await ctx.write(submissions.move, ctx.caller, plugin_id, "reject", notes=body.notes)


@routes.post(f"{_ONE}/archive", access=ADMIN_OR_SERVICE, returns=ListingOut, errors=_ERRORS)
async def archive(ctx: Context, plugin_id: str) -> ListingOut:
    """Take an approved listing out of the catalog; installs of it stay."""
    return await ctx.write(submissions.move, ctx.caller, plugin_id, "archive")


@routes.get(
    f"{_ONE}/history", access=AUTHENTICATED, query=HistoryQuery, returns=History, errors=(ListingNotFound,)
)
async def show_history(ctx: Context, plugin_id: str, query: HistoryQuery) -> History:
    """Show the status changes of a listing, oldest first, for its author and administrators."""
    return await ctx.read(submissions.history, ctx.principal, plugin_id, query)
