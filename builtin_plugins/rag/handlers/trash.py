"""Routes of the trash of knowledge bases."""

from __future__ import annotations

from builtin_plugins.rag.errors import BusyBase, KnowledgeBaseNotFound, NotOwner, NoTrash
from builtin_plugins.rag.schemas import KnowledgeBaseOut, MessageWithId
from builtin_plugins.rag.schemas_receipts import Deleted
from builtin_plugins.rag.schemas_trash import BaseTrash, TrashedBaseIn
from builtin_plugins.rag.services import base_trash as service
from kernel.sdk import AUTHENTICATED, Context, PageQuery, RouteTable

routes = RouteTable("Knowledge bases")

_TRASH = "/knowledge-bases/trash"


@routes.get(_TRASH, access=AUTHENTICATED, query=PageQuery, returns=BaseTrash)
async def list_bases(ctx: Context, query: PageQuery) -> BaseTrash:
    """List the knowledge bases in the trash that the caller may take back, the latest first."""
    return await service.list_page(ctx.caller, query)


@routes.post(
    _TRASH,
    access=AUTHENTICATED,
    body=TrashedBaseIn,
    returns=MessageWithId,
    errors=(KnowledgeBaseNotFound, NotOwner, NoTrash, BusyBase),
)
async def put_base(ctx: Context, body: TrashedBaseIn) -> MessageWithId:
    """Put a knowledge base into the trash. Until it is taken back, nothing finds, counts or answers from it;
    pipelines over it stay, and answer from what they have left.
    """
    await service.put(ctx.caller, body.knowledge_base_id)
    return MessageWithId(message="Knowledge base moved to the trash", id=body.knowledge_base_id)


@routes.post(
    f"{_TRASH}/{{kb_id:uuid}}/restore",
    access=AUTHENTICATED,
    returns=KnowledgeBaseOut,
    errors=(KnowledgeBaseNotFound,),
)
async def take_base_back(ctx: Context, kb_id: str) -> KnowledgeBaseOut:
    """Take a knowledge base out of the trash, with its documents. It comes back private; share it again."""
    return await service.take_back(ctx.caller, kb_id)


@routes.delete(
    f"{_TRASH}/{{kb_id:uuid}}", access=AUTHENTICATED, returns=Deleted, errors=(KnowledgeBaseNotFound,)
)
async def remove_trashed_base(ctx: Context, kb_id: str) -> Deleted:
    """Delete a knowledge base in the trash for good. The answer holds a signed receipt."""
    receipt = await service.remove(ctx.caller, kb_id)
    return Deleted(message="Knowledge base deleted", id=kb_id, receipt=receipt)
