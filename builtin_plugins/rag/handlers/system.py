"""Routes about the service itself."""

from __future__ import annotations

from importlib.util import find_spec

from builtin_plugins.inference import api as inference
from builtin_plugins.rag import api
from builtin_plugins.rag.questions.methods import METHODS
from builtin_plugins.rag.questions.rerankers import RERANKER
from builtin_plugins.rag.schemas_system import (
    EnhancerState,
    RagCapabilities,
    RetrieverState,
    RootOut,
    UsageOut,
)
from builtin_plugins.rag.services import usage as service
from builtin_plugins.rag.services.embedding import embed
from builtin_plugins.rag.services.health import has_model_runtime
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import AUTHENTICATED, Context, Message, RouteTable, Unavailable

routes = RouteTable("RAG")


@routes.get("/", access=AUTHENTICATED, returns=RootOut, token_scopes=("ask",))
async def root(ctx: Context) -> RootOut:
    """Show the name and version of the service."""
    available = await has_model_runtime(ctx.platform)
    return RootOut(name="rag-pipeline", version="0.1.0", status="running", ollama_available=available)


@routes.get("/capabilities", access=AUTHENTICATED, returns=RagCapabilities, token_scopes=("ask",))
async def capabilities(ctx: Context) -> RagCapabilities:
    """Show which features are available on this server."""
    has_conversations = bool(ctx.platform.hooks.implementations(api.open_turn))
    reranker = ctx.resource(RERANKER)
    return RagCapabilities(
        methods={**dict.fromkeys(ctx.resource(METHODS).names, True), "conversational": has_conversations},
        enhancers={
            "rerank": EnhancerState(
                available=reranker is not None,
                backend=None if reranker is None else "cross_encoder",
                place=None if reranker is None else reranker.place,
            ),
            "compress": EnhancerState(available=True),
        },
        retrievers={
            "dense": RetrieverState(available=True),
            "hybrid": RetrieverState(available=True),
            "parent_child": RetrieverState(available=True, note="one neighbor on each side"),
            "metadata_filter": RetrieverState(available=True, note="any field of the documents"),
        },
        optional_deps={
            "sentence_transformers": find_spec("sentence_transformers") is not None,
            "rank_bm25": True,
        },
    )


@routes.get("/usage", access=AUTHENTICATED, returns=UsageOut, token_scopes=("ask",))
async def usage(ctx: Context) -> UsageOut:
    """Show how much the account and its organizations use of storage, passages and queue, and may use."""
    return await service.show(ctx.caller)


@routes.post("/initialize", access=AUTHENTICATED, returns=Message, errors=(Unavailable,), long=True)
async def initialize(ctx: Context) -> Message:
    """Load the embedding engine now, so that the first question doesn't wait for it, and check the model
    runtime.
    """
    if await ctx.platform.hooks.ask(inference.check_model_runtime, platform=ctx.platform) is False:
        raise Unavailable("The model runtime does not answer; check that it runs and its address")
    await embed(ctx.platform, ctx.settings_of(RagSettings).embedding_model, ["warm up"], "query")
    return Message(message="The pipeline is ready")
