"""Errors of the RAG plugin."""

from __future__ import annotations

from kernel.sdk import (
    Conflict,
    Forbidden,
    NotFound,
    PayloadTooLarge,
    TooManyRequests,
    Unavailable,
    Unprocessable,
    UnsupportedMediaType,
)
from kernel.sdk.http import PreconditionFailed


class KnowledgeBaseNotFound(NotFound):
    code = "knowledge_base_not_found"
    default_detail = "Knowledge base not found"


class DocumentNotFound(NotFound):
    code = "document_not_found"
    default_detail = "Document not found"


class DocumentExists(Conflict):
    code = "document_exists"


class UnreadableDocuments(Conflict):
    code = "unreadable_documents"
    default_detail = (
        "This knowledge base has documents that you may not read, so you can't export it; ask for the right "
        "to read them where they come from, or let somebody export it who has it"
    )


class VersionMismatch(PreconditionFailed):
    code = "version_mismatch"


class NothingToCompare(Conflict):
    code = "nothing_to_compare"
    default_detail = (
        "There are no two versions of this document that were read; name another version, or wait until this "
        "one is read"
    )


class FieldNotFound(NotFound):
    code = "field_not_found"
    default_detail = "This knowledge base has no such field"


class BuiltInField(Conflict):
    code = "built_in_field"
    default_detail = "This name belongs to a field that every knowledge base has; choose another one"


class FieldInUse(Conflict):
    code = "field_in_use"


class PipelineNotFound(NotFound):
    code = "pipeline_not_found"
    default_detail = "Pipeline not found"


class NotOwner(Forbidden):
    code = "not_owner"
    default_detail = "Only the owner may change this"


class NotInTeam(Forbidden):
    code = "not_in_team"
    default_detail = "You are not a member of this team"


class MemberUnknown(NotFound):
    code = "member_not_found"
    default_detail = "No account with this id is in one of your teams or organizations"


class DependentPipelines(Conflict):
    code = "dependent_pipelines"


class ReembeddingUnderWay(Conflict):
    code = "reembedding_under_way"
    default_detail = "The embedding model is already being changed; wait for that job, or cancel it"


class NoTrash(Conflict):
    code = "no_trash"
    default_detail = "This server keeps no trash (PLATFORM_RAG_TRASH_DAYS is 0); delete it for good instead"


class BusyBase(Conflict):
    code = "knowledge_base_busy"
    default_detail = (
        "Its documents are still being read, imported or embedded; wait for that, or delete it for good"
    )


class StorageLimit(PayloadTooLarge):
    code = "storage_limit"
    default_detail = "There is no room for this file"


class QueueLimit(TooManyRequests):
    code = "queue_limit"
    default_detail = "Too many files are waiting to be read"


class KnowledgeBaseGone(Conflict):
    code = "knowledge_base_gone"
    default_detail = (
        "You can't access any knowledge base of this pipeline, or they were deleted; its owner can share "
        "them or choose others"
    )


class UnsupportedDocument(UnsupportedMediaType):
    code = "unsupported_document"
    default_detail = (
        "The file is damaged, or its type is not supported; send PDF, DOCX, PPTX, XLSX, ODT, ODS, ODP, RTF, "
        "EPUB, HTML, e-mail (.eml, .msg, .mbox), Markdown, text, CSV, JSON, Jupyter notebooks, subtitles "
        "(.srt, .vtt), calendars (.ics), contacts (.vcf), pictures (PNG, JPEG, GIF, WebP, TIFF, BMP), or an "
        "archive of these (ZIP, tar, gzip)"
    )


class NoPreview(Unprocessable):
    """A document that can't be shown as it looks."""

    code = "no_preview"


class EmptyDocument(Unprocessable):
    code = "empty_document"


class ModelUnavailable(Unavailable):
    code = "model_unavailable"


class EngineChanged(Unavailable):
    code = "engine_changed"


class NoModel(Unavailable):
    code = "no_model"
    default_detail = (
        "No model is connected, and nothing answers without one; connect a model, or install the plugin "
        "'extractive_answers'"
    )


class GenerationFailed(Unavailable):
    code = "generation_failed"
    default_detail = "The model runtime failed; see the server's log"


class AnswerFailed(GenerationFailed):
    """The model failed on this question: it took too long, wrote too much, or wrote nothing.

    Another question may succeed, so measuring continues.
    """


class MethodFailed(Unavailable):
    code = "method_failed"
