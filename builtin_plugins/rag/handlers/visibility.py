"""The route that looks at a knowledge base as another member."""

from __future__ import annotations

from builtin_plugins.rag.errors import KnowledgeBaseNotFound, MemberUnknown, NotOwner
from builtin_plugins.rag.schemas_visibility import Sight, SightQuery
from builtin_plugins.rag.services import visibility_check as service
from kernel.sdk import AUTHENTICATED, Context, RouteTable

routes = RouteTable("Knowledge bases")


@routes.get(
    "/knowledge-bases/{kb_id:uuid}/sight",
    access=AUTHENTICATED,
    query=SightQuery,
    returns=Sight,
    errors=(KnowledgeBaseNotFound, NotOwner, MemberUnknown),
)
async def look_as(ctx: Context, kb_id: str, query: SightQuery) -> Sight:
    """View as another member: whether an account can see and change this knowledge base, and why.

    For its owner, about people who share a team or an organization with them; for administrators, about
    anybody.
    """
    return await service.look_as(ctx.caller, kb_id, query.user_id)
