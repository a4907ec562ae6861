"""Routes of knowledge bases, relative to the service root."""

from __future__ import annotations

from builtin_plugins.rag.errors import (
    DependentPipelines,
    KnowledgeBaseNotFound,
    NotInTeam,
    NotOwner,
    ReembeddingUnderWay,
)
from builtin_plugins.rag.metadata.rules import queue_rules
from builtin_plugins.rag.permissions import KB_CREATE
from builtin_plugins.rag.questions import searching
from builtin_plugins.rag.schemas import (
    KnowledgeBaseCreate,
    KnowledgeBaseDelete,
    KnowledgeBaseOut,
    KnowledgeBaseQuery,
    KnowledgeBaseUpdate,
    ReembedRequest,
    SearchAnswer,
    SearchRequest,
    TreeRequest,
)
from builtin_plugins.rag.schemas_receipts import Deleted
from builtin_plugins.rag.services import knowledge_bases as service
from builtin_plugins.rag.services import loading, reembedding
from builtin_plugins.rag.services.embedding import check_embedding_model
from builtin_plugins.rag.trees.job import start
from kernel.sdk import AUTHENTICATED, Context, Page, RouteTable, Unavailable, permission

from ..schemas import MessageWithId

routes = RouteTable("Knowledge bases")


@routes.post(
    "/knowledge-bases",
    access=permission(KB_CREATE),
    body=KnowledgeBaseCreate,
    returns=KnowledgeBaseOut,
    errors=(NotInTeam,),
)
async def create(ctx: Context, body: KnowledgeBaseCreate) -> KnowledgeBaseOut:
    """Create a knowledge base."""
    model = await check_embedding_model(ctx.platform, body.embedding_model)
    return await service.create(ctx.caller, body, model)


@routes.get(
    "/knowledge-bases",
    access=AUTHENTICATED,
    query=KnowledgeBaseQuery,
    returns=Page[KnowledgeBaseOut],
    token_scopes=("ask",),
)
async def list_all(ctx: Context, query: KnowledgeBaseQuery) -> Page[KnowledgeBaseOut]:
    """List the knowledge bases that the caller can see."""
    items, total = await service.list_page(ctx.caller, query)
    return Page(items=items, total=total, limit=query.limit, offset=query.offset)


@routes.get(
    "/knowledge-bases/{kb_id:uuid}",
    access=AUTHENTICATED,
    returns=KnowledgeBaseOut,
    errors=(KnowledgeBaseNotFound,),
    token_scopes=("ask",),
)
async def get(ctx: Context, kb_id: str) -> KnowledgeBaseOut:
    """Show one knowledge base."""
    return await service.get(ctx.caller, kb_id)


@routes.patch(
    "/knowledge-bases/{kb_id:uuid}",
    access=AUTHENTICATED,
    body=KnowledgeBaseUpdate,
    returns=KnowledgeBaseOut,
    errors=(KnowledgeBaseNotFound, NotOwner, NotInTeam),
)
async def update(ctx: Context, kb_id: str, body: KnowledgeBaseUpdate) -> KnowledgeBaseOut:
    """Change the name, description, model, visibility or dates. Documents and vectors are kept."""
    return await service.update(ctx.caller, kb_id, body, queue_rules)


@routes.delete(
    "/knowledge-bases/{kb_id:uuid}",
    access=AUTHENTICATED,
    body=KnowledgeBaseDelete | None,
    returns=Deleted,
    errors=(KnowledgeBaseNotFound, NotOwner, DependentPipelines),
)
async def remove(ctx: Context, kb_id: str, body: KnowledgeBaseDelete | None) -> Deleted:
    """Delete a knowledge base with its documents and vectors. The answer holds a signed receipt."""
    confirmed = body.confirm_delete_pipeline_ids if body else []
    receipt = await service.remove(ctx.caller, kb_id, confirmed)
    return Deleted(message="Knowledge base deleted", id=kb_id, receipt=receipt)


@routes.post(
    "/knowledge-bases/{kb_id:uuid}/trees",
    access=AUTHENTICATED,
    body=TreeRequest | None,
    returns=MessageWithId,
    status=202,
    errors=(KnowledgeBaseNotFound, NotOwner),
)
async def build_trees(ctx: Context, kb_id: str, body: TreeRequest | None) -> MessageWithId:
    """Build the missing summary trees of a knowledge base's documents, for the method `raptor`. Returns the
    id of the job that does it.
    """
    job_id = await start(ctx.caller, kb_id, rebuild=body is not None and body.rebuild)
    return MessageWithId(message="Started; follow it at /v1/jobs", id=job_id)


@routes.post(
    "/knowledge-bases/{kb_id:uuid}/reembed",
    access=AUTHENTICATED,
    body=ReembedRequest,
    returns=MessageWithId,
    status=202,
    errors=(KnowledgeBaseNotFound, NotOwner, ReembeddingUnderWay, Unavailable),
)
async def reembed(ctx: Context, kb_id: str, body: ReembedRequest) -> MessageWithId:
    """Change the embedding model. The old vectors are used until all passages are embedded by the new model.
    Returns the id of the job that does it; cancelling it leaves the old model.
    """
    await loading.own_knowledge_base(ctx.caller, kb_id)
    model = await check_embedding_model(ctx.platform, body.embedding_model)
    job_id = await reembedding.start(ctx.caller, kb_id, model)
    return MessageWithId(message="Started; follow it at /v1/jobs", id=job_id)


@routes.post(
    "/knowledge-bases/{kb_id:uuid}/search",
    access=AUTHENTICATED,
    body=SearchRequest,
    returns=SearchAnswer,
    errors=(KnowledgeBaseNotFound, Unavailable),
    long=True,
    token_scopes=("ask",),
)
async def search(ctx: Context, kb_id: str, body: SearchRequest) -> SearchAnswer:
    """Find passages in a knowledge base, ranked, without generating an answer."""
    return await searching.search_base(ctx.caller, kb_id, body)
