"""The plugin for retrieval-augmented generation: the service `rag-pipeline`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select
from sqlalchemy.orm import Session

from builtin_plugins.accounts.api import AuditedTarget, SharedThing
from builtin_plugins.inference import api as inference
from builtin_plugins.rag import api
from builtin_plugins.rag.answering.languages import LanguageDetector
from builtin_plugins.rag.contradictions.job import FIND_CONTRADICTIONS
from builtin_plugins.rag.events import DocumentDeleted, DocumentIngested
from builtin_plugins.rag.handlers import (
    contradictions,
    differences,
    documents,
    facets,
    finding,
    ingestion,
    knowledge_bases,
    metadata,
    pipelines,
    previews,
    system,
    trash,
    visibility,
)
from builtin_plugins.rag.handlers.aliases import singular
from builtin_plugins.rag.metadata.editing import IncomingMetadata, describe
from builtin_plugins.rag.metadata.proposing import PROPOSE_VALUES
from builtin_plugins.rag.metadata.rules import APPLY_RULES
from builtin_plugins.rag.models import Base, KnowledgeBase
from builtin_plugins.rag.mounts import SERVICE
from builtin_plugins.rag.permissions import PERMISSIONS
from builtin_plugins.rag.questions.asking_bases import ask_bases
from builtin_plugins.rag.questions.measuring import ask_measured
from builtin_plugins.rag.questions.methods import METHODS, Methods
from builtin_plugins.rag.questions.question import QUESTION_THREAD, open_question_thread
from builtin_plugins.rag.questions.rerankers import RERANKER, open_reranker
from builtin_plugins.rag.questions.searching import search_passages
from builtin_plugins.rag.rights import audiences, explaining, hooks
from builtin_plugins.rag.rights.reading import readable_documents
from builtin_plugins.rag.services import (
    account_removal,
    audit_names,
    graphs,
    lookup,
    plugin_documents,
    question_counts,
    reading,
)
from builtin_plugins.rag.services.base_trash import EMPTY_BASES
from builtin_plugins.rag.services.cataloging import open_catalog
from builtin_plugins.rag.services.contents import open_contents
from builtin_plugins.rag.services.documents import EMPTY_TRASH
from builtin_plugins.rag.services.health import check_reranker, health_fields
from builtin_plugins.rag.services.ingestion_jobs import INGEST
from builtin_plugins.rag.services.language_detection import TELL_LANGUAGES
from builtin_plugins.rag.services.leaks import find_leaks
from builtin_plugins.rag.services.loading import LANGUAGES, seen_bases
from builtin_plugins.rag.services.pipeline_tools import ask_pipeline, pipeline_tools
from builtin_plugins.rag.services.previews import PREVIEW_TURNS, open_preview_turns
from builtin_plugins.rag.services.receipts import KEY, SIGNER, WITHOUT_KEY, open_signer
from builtin_plugins.rag.services.records import OUTCOMES, Outcomes
from builtin_plugins.rag.services.reembedding import REEMBED
from builtin_plugins.rag.services.removal import REMOVE
from builtin_plugins.rag.services.samples import sample_answers
from builtin_plugins.rag.services.small_texts import EMBEDDING_LINE, EmbeddingLine
from builtin_plugins.rag.services.storage_days import RECORD_STORAGE
from builtin_plugins.rag.services.versions import FORGET_OLD
from builtin_plugins.rag.settings import RagSettings
from builtin_plugins.rag.trees.job import BUILD_TREES
from builtin_plugins.tools.api import Tool
from kernel.sdk import (
    PLUGIN_STATES,
    Account,
    Caller,
    Context,
    Diagnostic,
    Event,
    HealthCheck,
    JobRef,
    Permission,
    Platform,
    Plugin,
    Resource,
    Scope,
    Service,
    Tables,
    Unit,
    hookimpl,
)

if TYPE_CHECKING:
    from typer import Typer

    from builtin_plugins.tenancy import api as tenancy


class RagPlugin(Plugin):
    """Knowledge bases, documents, pipelines, questions."""

    name = "rag"
    version = "0.1.0"
    description = "Knowledge bases, document ingestion and cited answers"
    author = "Platform"
    requires = ("accounts", "documents", "inference", "long_jobs", "tools", "vectors")
    after = ("embeddings", "models", "tenancy", "platform_ops")

    @hookimpl
    def register_commands(self) -> Sequence[tuple[str, Typer]]:
        from builtin_plugins.rag.commands import COMMANDS  # asked by the terminal alone

        return COMMANDS

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        return [api, hooks]

    @hookimpl
    def name_embedding_models(self, platform: Platform) -> Sequence[tuple[str, str]]:
        settings = platform.settings_of(RagSettings)
        is_set = "embedding_model" in settings.model_fields_set
        return [("PLATFORM_RAG_EMBEDDING_MODEL", settings.embedding_model)] if is_set else []

    @hookimpl(optionalhook=True)
    def describe_secrets(self) -> Mapping[str, str]:
        return {KEY: WITHOUT_KEY}

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
        return [
            INGEST,
            REMOVE,
            BUILD_TREES,
            REEMBED,
            TELL_LANGUAGES,
            FORGET_OLD,
            question_counts.FORGET_FIGURES,
            RECORD_STORAGE,
            EMPTY_TRASH,
            EMPTY_BASES,
            APPLY_RULES,
            FIND_CONTRADICTIONS,
            PROPOSE_VALUES,
        ]

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Any]]:
        return [
            Resource(EMBEDDING_LINE, _open_embedding_line),
            Resource(OUTCOMES, _open_outcomes),
            Resource(METHODS, _open_methods),
            Resource(LANGUAGES, _open_languages),
            Resource(RERANKER, open_reranker),
            Resource(QUESTION_THREAD, open_question_thread),
            Resource(SIGNER, open_signer),
            Resource(PREVIEW_TURNS, open_preview_turns),
            Resource(question_counts.QUESTIONS, question_counts.open_question_counter),
            Resource(api.CONTENTS, open_contents),
            Resource(api.CATALOG, open_catalog),
        ]

    @hookimpl
    def register_services(self) -> Sequence[Service]:
        tables = (
            *(system.routes, knowledge_bases.routes),
            *(
                documents.routes,
                differences.routes,
                previews.routes,
                metadata.routes,
                facets.routes,
                ingestion.routes,
            ),
            *(visibility.routes, pipelines.routes, contradictions.routes, finding.routes),
            trash.routes,
        )
        old = singular(knowledge_bases.routes, documents.routes)
        return [
            replace(
                SERVICE,
                tables=(*tables, old),
                version=self.version,
                aliases=("/v1",),
                health_extra=health_fields,
            )
        ]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("reranking", check_reranker, service="rag-pipeline")]

    @hookimpl
    def register_diagnostics(self) -> Sequence[Diagnostic]:
        return [Diagnostic("reads", find_leaks)]

    @hookimpl
    def name_audited_targets(
        self, session: Session, scope: Scope, target_type: str, target_ids: Sequence[str]
    ) -> Mapping[str, AuditedTarget]:
        return audit_names.name_targets(session, scope, target_type, target_ids)

    @hookimpl(optionalhook=True)
    def hand_over_shared(self, unit: Unit, account: Account, heir: Scope | None) -> Sequence[SharedThing]:
        return account_removal.hand_over(unit, account, heir)

    @hookimpl(optionalhook=True)
    async def on_account_deleted(self, platform: Platform, account_id: int) -> None:
        await account_removal.remove_owned(platform, account_id)

    @hookimpl
    async def offer_tools(self, ctx: Context) -> Sequence[Tool]:
        return await pipeline_tools(ctx)

    @hookimpl
    async def list_pipelines(self, caller: Caller) -> Sequence[api.PipelineEntry]:
        return await lookup.list_pipelines(caller)

    @hookimpl
    async def ask_pipeline(
        self,
        caller: Caller,
        pipeline_id: str,
        question: str,
        history: Sequence[inference.ChatMessage],
        options: Mapping[str, Any],
    ) -> api.PipelineEvents:
        return await ask_pipeline(caller, pipeline_id, question, history, options)

    @hookimpl
    async def ask_knowledge_bases(
        self,
        caller: Caller,
        knowledge_base_ids: Sequence[str],
        question: str,
        history: Sequence[inference.ChatMessage],
        options: Mapping[str, Any],
        generation: Mapping[str, Any],
    ) -> api.BaseAnswerEvents:
        return await ask_bases(caller, knowledge_base_ids, question, history, options, generation)

    @hookimpl
    async def search_passages(
        self,
        caller: Caller,
        question: str,
        top_k: int,
        knowledge_base_ids: Sequence[str] | None,
        metadata_filter: Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
        use_period: bool = True,
    ) -> Sequence[api.Passage]:
        return await search_passages(
            caller, question, top_k, knowledge_base_ids, metadata_filter, as_of, use_period
        )

    @hookimpl
    async def list_documents(self, caller: Caller, limit: int, offset: int) -> Sequence[api.DocumentEntry]:
        return await reading.list_documents(caller, limit, offset)

    @hookimpl
    async def find_pipelines(
        self, caller: Caller, pipeline_ids: Sequence[str]
    ) -> Mapping[str, api.PipelineEntry]:
        return await lookup.find_pipelines(caller, pipeline_ids)

    @hookimpl
    def select_pipelines(self, scope: Scope) -> Select[str]:
        return lookup.visible_pipelines(scope)

    @hookimpl
    def list_methods(self, platform: Platform) -> Sequence[str]:
        return platform.resource(METHODS).names

    @hookimpl
    async def find_documents(
        self, caller: Caller, document_ids: Sequence[str]
    ) -> Mapping[str, api.DocumentEntry]:
        return await lookup.find_documents(caller, document_ids)

    @hookimpl
    async def read_document(
        self, caller: Caller, knowledge_base_id: str, document_id: str, chunk_id: str | None
    ) -> api.DocumentText:
        return await reading.read_document(caller, knowledge_base_id, document_id, chunk_id)

    @hookimpl
    def select_graph_documents(self, scope: Scope) -> Select[str]:
        return graphs.documents_with_graph(scope)

    @hookimpl
    def list_graph_documents(self, session: Session, knowledge_base_id: str) -> Sequence[api.GraphDocument]:
        return graphs.graph_documents(session, knowledge_base_id)

    @hookimpl
    def hold_graph_document(self, unit: Unit, document_id: str) -> api.GraphDocument | None:
        return graphs.hold(unit, document_id)

    @hookimpl
    async def read_passages(
        self, platform: Platform, knowledge_base_id: str, document_id: str, limit: int, offset: int
    ) -> api.DocumentPassages:
        return await graphs.read_passages(platform, knowledge_base_id, document_id, limit, offset)

    @hookimpl
    async def open_knowledge_base(
        self, caller: Caller, known: str | None, name: str, description: str
    ) -> str:
        return await plugin_documents.open_knowledge_base(caller, known, name, description)

    @hookimpl
    async def store_document(
        self, caller: Caller, knowledge_base_id: str, filename: str, content: bytes
    ) -> str:
        return await plugin_documents.store_document(caller, knowledge_base_id, filename, content)

    @hookimpl
    async def delete_document(self, caller: Caller, knowledge_base_id: str, document_id: str) -> bool:
        return await plugin_documents.delete_document(caller, knowledge_base_id, document_id)

    @hookimpl
    async def put_document(self, caller: Caller, knowledge_base_id: str, document: api.PluginDocument) -> str:
        return await plugin_documents.put_document(caller, knowledge_base_id, document)

    @hookimpl
    async def rename_document(self, caller: Caller, knowledge_base_id: str, key: str, filename: str) -> bool:
        return await plugin_documents.rename_document(caller, knowledge_base_id, key, filename)

    @hookimpl
    async def drop_document(self, caller: Caller, knowledge_base_id: str, key: str) -> bool:
        return await plugin_documents.drop_document(caller, knowledge_base_id, key)

    @hookimpl
    async def release_document(self, caller: Caller, knowledge_base_id: str, key: str, path: str) -> bool:
        return await plugin_documents.release_document(caller, knowledge_base_id, key, path)

    @hookimpl
    def grant_documents(
        self,
        unit: Unit,
        knowledge_base_id: str,
        readers_by_key: Mapping[str, api.DocumentReaders | None],
    ) -> int:
        return audiences.grant(unit, knowledge_base_id, readers_by_key)

    @hookimpl
    def set_reader_members(self, unit: Unit, holder: str, members: Mapping[str, Sequence[int]]) -> int:
        return audiences.set_members(unit, holder, members)

    @hookimpl
    def drop_audiences(self, unit: Unit, holder: str) -> int:
        return audiences.drop(unit, holder)

    @hookimpl
    def count_unreadable_documents(self, session: Session, knowledge_base_id: str, holder: str) -> int:
        return audiences.count_unreadable(session, knowledge_base_id, holder)

    @hookimpl
    async def list_document_readers(
        self, caller: Caller, knowledge_base_id: str, document_id: str
    ) -> api.DocumentAudience:
        return await explaining.list_document_readers(caller, knowledge_base_id, document_id)

    @hookimpl
    async def describe_document(
        self, caller: Caller, knowledge_base_id: str, document_id: str, metadata: Mapping[str, Any]
    ) -> bool:
        await describe(caller, knowledge_base_id, document_id, IncomingMetadata(metadata, origin="source"))
        return True

    @hookimpl(optionalhook=True)
    async def find_sample_answers(self, platform: Platform) -> Mapping[str, str]:
        return await sample_answers(platform)

    @hookimpl
    async def ask_knowledge_base(
        self,
        caller: Caller,
        knowledge_base_id: str,
        question: str,
        configuration: api.AskConfiguration,
        metadata_filter: Mapping[str, Any] | None,
    ) -> api.MeasuredAnswer:
        return await ask_measured(caller, knowledge_base_id, question, configuration, metadata_filter)

    @hookimpl
    def select_knowledge_bases(self, scope: Scope) -> Select[str]:
        return seen_bases(scope)

    @hookimpl
    def select_readable_documents(self, scope: Scope) -> Select[str]:
        return readable_documents(scope)

    @hookimpl
    def count_rating(
        self,
        unit: Unit,
        pipeline_id: str,
        asked_at: datetime,
        former: question_counts.Rating,
        rating: question_counts.Rating,
    ) -> bool:
        question_counts.count_rating(unit, pipeline_id, asked_at, former, rating)
        return True

    @hookimpl
    def list_pipelines_over(self, session: Session, scope: Scope, knowledge_base_id: str) -> Sequence[str]:
        return lookup.pipelines_over(session, scope, knowledge_base_id)

    @hookimpl
    def owns_knowledge_base(self, session: Session, scope: Scope, knowledge_base_id: str) -> bool | None:
        knowledge_base = session.get(KnowledgeBase, knowledge_base_id)
        return None if knowledge_base is None else scope.owns(knowledge_base)

    @hookimpl
    def hold_documents(
        self, unit: Unit, knowledge_base_id: str, document_ids: Sequence[str]
    ) -> Sequence[str]:
        return lookup.hold_documents(unit, knowledge_base_id, document_ids)

    @hookimpl(optionalhook=True)
    def export_rows(
        self, session: Session, team_id: int | None, organization_id: int | None
    ) -> Mapping[str, Any]:
        from builtin_plugins.rag.services.transfer import ShareTarget, export_rows

        return export_rows(session, ShareTarget(team_id, organization_id))

    @hookimpl(optionalhook=True)
    async def import_rows(
        self,
        platform: Platform,
        sections: Mapping[str, Any],
        team_id: int | None,
        organization_id: int | None,
        owner_id: int,
        policy: tenancy.ImportPolicy,
    ) -> tenancy.ImportPlan:
        from builtin_plugins.rag.services.transfer import ShareTarget, read_sections

        return await read_sections(
            platform, sections, ShareTarget(team_id, organization_id), owner_id, policy
        )


@asynccontextmanager
async def _open_embedding_line(_platform: Platform) -> AsyncIterator[EmbeddingLine]:
    yield EmbeddingLine()


@asynccontextmanager
async def _open_methods(platform: Platform) -> AsyncIterator[Methods]:
    states = platform.resource(PLUGIN_STATES)

    def in_service(plugin: str) -> bool:
        return states.is_loaded(plugin) and states.is_on(plugin)

    declared = platform.hooks.ask_now(api.register_methods)
    # Third parties come last, so that none takes a built-in method's name.
    yield Methods(sorted(declared, key=lambda one: not states.records[one[0]].built_in), in_service)


@asynccontextmanager
async def _open_languages(platform: Platform) -> AsyncIterator[LanguageDetector]:
    yield LanguageDetector(platform.settings.home)


@asynccontextmanager
async def _open_outcomes(platform: Platform) -> AsyncIterator[Outcomes]:
    yield Outcomes(
        platform, platform.metrics.counter("documents_processed_total", "Documents ingested.", ("status",))
    )
