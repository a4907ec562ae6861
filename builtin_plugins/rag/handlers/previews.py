"""The route that shows a document as it looks, relative to the service root."""

from __future__ import annotations

from typing import Final

from aiohttp import ETag, hdrs, web

from builtin_plugins.rag.errors import (
    DocumentNotFound,
    KnowledgeBaseNotFound,
    NoPreview,
)
from builtin_plugins.rag.services import previews
from builtin_plugins.rag.services.records import OriginalLost
from kernel.sdk import AUTHENTICATED, Context, Rate, RouteTable

routes = RouteTable("Documents")

# The page is data, wherever it is opened: it runs nothing, loads nothing, and has an origin of its own.
_POLICY: Final = (
    "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)


@routes.get(
    "/knowledge-bases/{kb_id:uuid}/documents/{document_id:uuid}/preview",
    access=AUTHENTICATED,
    media_type="text/html",
    returns=str,
    also_statuses=(304,),
    errors=(KnowledgeBaseNotFound, DocumentNotFound, NoPreview, OriginalLost),
    rate=Rate(60),
    long=True,
    token_scopes=("ask",),
)
async def preview(ctx: Context, kb_id: str, document_id: str) -> web.StreamResponse:
    """Show a document as it looks, as one HTML page without scripts, links and requests: DOCX, PPTX, XLSX,
    ODT, CSV, HTML, Markdown and mail. `ETag` stays the same as long as the page does.
    """
    document = await previews.find(ctx.caller, kb_id, document_id)
    tag = previews.tag_of(document)
    headers = {
        hdrs.CACHE_CONTROL: "private, no-cache",
        "Content-Security-Policy": _POLICY,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }
    tags = ctx.request.if_none_match or ()
    if any(one.value in (tag, "*") for one in tags):
        response: web.StreamResponse = web.Response(status=304, headers=headers)
        response.etag = ETag(tag)
        return response
    async with previews.page_of(ctx.caller, document) as page:
        response = web.Response(body=page, content_type="text/html", charset="utf-8", headers=headers)
        response.etag = ETag(tag)
        await response.prepare(ctx.request)
        await response.write_eof()  # in its account's turn: who doesn't read it gets no other
    return response
