"""The plugin for retrieval-augmented generation: the service `rag-pipeline`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from builtin_plugins.rag import hookspecs
from builtin_plugins.rag.answering.languages import LanguageDetector
from builtin_plugins.rag.events import DocumentDeleted, DocumentIngested
from builtin_plugins.rag.exchange.importing import IMPORT
from builtin_plugins.rag.handlers import (
    documents,
    exchange,
    ingestion,
    knowledge_bases,
    pipelines,
    sight,
    system,
)
from builtin_plugins.rag.handlers.aliases import singular
from builtin_plugins.rag.methods.decisions import DECISIONS, Decisions
from builtin_plugins.rag.methods.registry import METHODS, Methods
from builtin_plugins.rag.models import Base, KnowledgeBase
from builtin_plugins.rag.parsing.runner import parser_processes
from builtin_plugins.rag.permissions import PERMISSIONS
from builtin_plugins.rag.questions.measuring import ask_measured
from builtin_plugins.rag.questions.rerankers import RERANKER, open_reranker
from builtin_plugins.rag.questions.thread import QUESTION_THREAD, open_question_thread
from builtin_plugins.rag.services import feeding, graphs, leaving, lookup, reading
from builtin_plugins.rag.services.health import check_reranker, health_fields
from builtin_plugins.rag.services.ingestion_jobs import INGEST
from builtin_plugins.rag.services.languages import LANGUAGES
from builtin_plugins.rag.services.offering import ask_pipeline, pipeline_tools
from builtin_plugins.rag.services.outcomes import OUTCOMES, Outcomes
from builtin_plugins.rag.services.parsers import PARSER_PROCESSES, PARSERS, Parsers
from builtin_plugins.rag.services.receipts import SIGNER, open_signer
from builtin_plugins.rag.services.reembedding import REEMBED
from builtin_plugins.rag.services.removal import REMOVE
from builtin_plugins.rag.services.samples import sample_answers
from builtin_plugins.rag.services.sentence_vectors import SENTENCE_VECTORS, SentenceVectors
from builtin_plugins.rag.services.small import EMBEDDING_LINE, EmbeddingLine
from builtin_plugins.rag.services.telling import TELL_LANGUAGES
from builtin_plugins.rag.services.transfer import Place, export_rows, read_sections
from builtin_plugins.rag.settings import RagSettings
from builtin_plugins.rag.trees.job import BUILD_TREES
from kernel.sdk import (
    PLUGIN_STATES,
    Account,
    Caller,
    Children,
    Context,
    Event,
    HealthCheck,
    JobRef,
    Permission,
    Platform,
    Plugin,
    Resource,
    Scope,
    Service,
    SharedThing,
    Tables,
    Tool,
    Unit,
    contracts,
    hookimpl,
)


class RagPlugin(Plugin):
    """Knowledge bases, documents, pipelines, questions."""

    name = "rag"
    version = "0.1.0"
    description = "Knowledge bases, document ingestion and cited answers"
    author = "Platform"
    after = ("embeddings", "models")

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        return [hookspecs]

    @hookimpl
    def register_settings(self) -> type[RagSettings]:
        return RagSettings

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_permissions(self) -> Sequence[Permission]:
        return PERMISSIONS

    @hookimpl
    def register_events(self) -> Sequence[type[Event]]:
        return [DocumentIngested, DocumentDeleted]

    @hookimpl
    def register_jobs(self) -> Sequence[JobRef]:
        return [INGEST, REMOVE, BUILD_TREES, REEMBED, IMPORT, TELL_LANGUAGES]

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Any]]:
        return [
            Resource(PARSERS, _open_parsers),
            Resource(PARSER_PROCESSES, _open_parser_processes),
            Resource(EMBEDDING_LINE, _open_embedding_line),
            Resource(OUTCOMES, _open_outcomes),
            Resource(METHODS, _open_methods),
            Resource(DECISIONS, _open_decisions),
            Resource(LANGUAGES, _open_languages),
            Resource(RERANKER, open_reranker),
            Resource(SENTENCE_VECTORS, _open_sentence_vectors),
            Resource(QUESTION_THREAD, open_question_thread),
            Resource(SIGNER, open_signer),
        ]

    @hookimpl
    def register_services(self) -> Sequence[Service]:
        tables = (
            *(system.routes, knowledge_bases.routes, exchange.routes),
            *(documents.routes, ingestion.routes, sight.routes, pipelines.routes),
        )
        old = singular(knowledge_bases.routes, documents.routes)
        return [
            Service(
                "rag-pipeline",
                (*tables, old),
                self.version,
                aliases=("/v1",),
                health_extra=health_fields,
                title="Platform RAG pipeline",
            )
        ]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("reranking", check_reranker, service="rag-pipeline")]

    @hookimpl
    def hand_over_shared(self, unit: Unit, account: Account, heir: Scope | None) -> Sequence[SharedThing]:
        return leaving.hand_over(unit, account, heir)

    @hookimpl
    async def on_account_deleted(self, platform: Platform, account_id: int) -> None:
        await leaving.remove_owned(platform, account_id)

    @hookimpl
    async def offer_tools(self, ctx: Context) -> Sequence[Tool]:
        return await pipeline_tools(ctx)

    @hookimpl
    async def list_pipelines(self, caller: Caller) -> Sequence[contracts.PipelineEntry]:
        return await lookup.list_pipelines(caller)

    @hookimpl
    async def ask_pipeline(
        self,
        caller: Caller,
        pipeline_id: str,
        question: str,
        history: Sequence[contracts.ChatMessage],
        options: Mapping[str, Any],
    ) -> contracts.PipelineEvents:
        return await ask_pipeline(caller, pipeline_id, question, history, options)

    @hookimpl
    async def search_passages(
        self, caller: Caller, question: str, top_k: int, knowledge_base_ids: Sequence[str] | None
    ) -> Sequence[contracts.CitedPassage]:
        return await reading.search_passages(caller, question, top_k, knowledge_base_ids)

    @hookimpl
    async def list_documents(
        self, caller: Caller, limit: int, offset: int
    ) -> Sequence[contracts.DocumentEntry]:
        return await reading.list_documents(caller, limit, offset)

    @hookimpl
    async def find_pipelines(
        self, caller: Caller, pipeline_ids: Sequence[str]
    ) -> Mapping[str, contracts.PipelineEntry]:
        return await lookup.find_pipelines(caller, pipeline_ids)

    @hookimpl
    def select_pipelines(self, scope: Scope) -> Select[str]:
        return lookup.seen(scope)

    @hookimpl
    def list_methods(self, platform: Platform) -> Sequence[str]:
        return platform.resource(METHODS).names

    @hookimpl
    async def find_documents(
        self, caller: Caller, document_ids: Sequence[str]
    ) -> Mapping[str, contracts.DocumentEntry]:
        return await lookup.find_documents(caller, document_ids)

    @hookimpl
    async def read_document(
        self, caller: Caller, knowledge_base_id: str, document_id: str, chunk_id: str | None
    ) -> contracts.DocumentText:
        return await reading.read_document(caller, knowledge_base_id, document_id, chunk_id)

    @hookimpl
    def select_graph_documents(self, scope: Scope) -> Select[str]:
        return graphs.seen(scope)

    @hookimpl
    def list_graph_documents(
        self, session: Session, knowledge_base_id: str
    ) -> Sequence[contracts.GraphDocument]:
        return graphs.graph_documents(session, knowledge_base_id)

    @hookimpl
    def hold_graph_document(self, unit: Unit, document_id: str) -> contracts.GraphDocument | None:
        return graphs.hold(unit, document_id)

    @hookimpl
    async def read_passages(
        self, platform: Platform, knowledge_base_id: str, document_id: str, limit: int, offset: int
    ) -> contracts.DocumentPassages:
        return await graphs.read_passages(platform, knowledge_base_id, document_id, limit, offset)

    @hookimpl
    async def open_knowledge_base(
        self, caller: Caller, known: str | None, name: str, description: str
    ) -> str:
        return await feeding.open_knowledge_base(caller, known, name, description)

    @hookimpl
    async def store_document(
        self, caller: Caller, knowledge_base_id: str, filename: str, content: bytes
    ) -> str:
        return await feeding.store_document(caller, knowledge_base_id, filename, content)

    @hookimpl
    async def delete_document(self, caller: Caller, knowledge_base_id: str, document_id: str) -> bool:
        return await feeding.delete_document(caller, knowledge_base_id, document_id)

    @hookimpl
    async def find_sample_answers(self, platform: Platform) -> Mapping[str, str]:
        return await sample_answers(platform)

    @hookimpl(optionalhook=True)
    async def ask_knowledge_base(
        self,
        caller: Caller,
        knowledge_base_id: str,
        question: str,
        configuration: contracts.AskConfiguration,
    ) -> contracts.MeasuredAnswer:
        return await ask_measured(caller, knowledge_base_id, question, configuration)

    @hookimpl(optionalhook=True)
    def select_knowledge_bases(self, scope: Scope) -> Select[str]:
        return select(KnowledgeBase.id).where(scope.sees(KnowledgeBase))

    @hookimpl(optionalhook=True)
    def list_pipelines_over(self, session: Session, scope: Scope, knowledge_base_id: str) -> Sequence[str]:
        return lookup.pipelines_over(session, scope, knowledge_base_id)

    @hookimpl(optionalhook=True)
    def owns_knowledge_base(self, session: Session, scope: Scope, knowledge_base_id: str) -> bool | None:
        found = session.get(KnowledgeBase, knowledge_base_id)
        return None if found is None else scope.owns(found)

    @hookimpl(optionalhook=True)
    def hold_documents(
        self, unit: Unit, knowledge_base_id: str, document_ids: Sequence[str]
    ) -> Sequence[str]:
        return lookup.hold_documents(unit, knowledge_base_id, document_ids)

    @hookimpl(optionalhook=True)
    def list_query_methods(self, platform: Platform) -> Sequence[str]:
        return platform.resource(METHODS).names

    @hookimpl(optionalhook=True)
    def export_rows(
        self, session: Session, team_id: int | None, organization_id: int | None
    ) -> Mapping[str, Any]:
        return export_rows(session, Place(team_id, organization_id))

    @hookimpl(optionalhook=True)
    async def import_rows(
        self,
        platform: Platform,
        sections: Mapping[str, Any],
        team_id: int | None,
        organization_id: int | None,
        owner_id: int,
        policy: contracts.ImportPolicy,
    ) -> contracts.ImportPlan:
        return await read_sections(platform, sections, Place(team_id, organization_id), owner_id, policy)


@asynccontextmanager
async def _open_parsers(platform: Platform) -> AsyncIterator[Parsers]:
    declared = [
        (plugin, parser)
        for plugin, parsers in platform.hooks.ask_now(hookspecs.register_parsers)
        for parser in parsers
    ]
    yield Parsers(declared)


@asynccontextmanager
async def _open_parser_processes(_platform: Platform) -> AsyncIterator[Children]:
    async with aclosing(parser_processes()) as children:
        yield children


@asynccontextmanager
async def _open_embedding_line(_platform: Platform) -> AsyncIterator[EmbeddingLine]:
    yield EmbeddingLine()


@asynccontextmanager
async def _open_methods(platform: Platform) -> AsyncIterator[Methods]:
    states = platform.resource(PLUGIN_STATES)

    def in_service(plugin: str) -> bool:
        return states.is_loaded(plugin) and states.is_on(plugin)

    yield Methods(platform.hooks.ask_now(hookspecs.register_methods), in_service)


@asynccontextmanager
async def _open_languages(platform: Platform) -> AsyncIterator[LanguageDetector]:
    yield LanguageDetector(platform.settings.home)


@asynccontextmanager
async def _open_sentence_vectors(_platform: Platform) -> AsyncIterator[SentenceVectors]:
    yield SentenceVectors()


@asynccontextmanager
async def _open_decisions(_platform: Platform) -> AsyncIterator[Decisions]:
    yield Decisions()


@asynccontextmanager
async def _open_outcomes(platform: Platform) -> AsyncIterator[Outcomes]:
    yield Outcomes(
        platform, platform.metrics.counter("documents_processed_total", "Documents ingested.", ("status",))
    )
