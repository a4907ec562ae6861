"""Settings of the RAG plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Final

from pydantic import AfterValidator, Field, SecretStr, model_validator

from builtin_plugins.documents.api import OcrOptions, ParseLimits
from kernel.sdk import ExistingFolder, Settings, base_address, env

_FEW_PAGES: Final = 4


class RagSettings(Settings):
    """Uploads, parsing, chunking and answering."""

    env_prefix: ClassVar[str] = "PLATFORM_RAG_"
    administered: ClassVar[frozenset[str]] = frozenset(
        {
            "max_upload_size_mb",
            "large_document_mb",
            "account_storage_mb",
            "account_passages",
            "account_queued_mb",
            "organization_storage_mb",
            "organization_passages",
            "document_versions",
            "document_version_days",
            "trash_days",
            "parse_cpu_seconds",
            "parse_seconds",
            "ocr_languages",
            "ocr_seconds",
            "archive_files",
            "archive_mb",
            "max_text_chars",
            "max_chunks",
            "answer_chars",
            "question_model_calls",
            "question_tokens",
            "question_seconds",
            "step_seconds",
            "verdict_tokens",
            "enhance_seconds",
            "rerank_candidates",
        }
    )

    max_upload_size_mb: int = Field(
        50,
        ge=1,
        le=10_000,
        validation_alias=env("MAX_UPLOAD_SIZE_MB"),
        description="Largest file that can be uploaded, in MB.",
    )
    large_document_mb: float = Field(
        2,
        gt=0,
        description="Files larger than this many MB always go to the queue of large documents, so they "
        "don't delay smaller ones.",
    )
    account_storage_mb: int = Field(
        10_000, ge=0, description="Most MB of files in the knowledge bases of one account; 0 is no limit."
    )
    account_passages: int = Field(
        2_000_000, ge=0, description="Most passages in the knowledge bases of one account; 0 is no limit."
    )
    account_queued_mb: int = Field(
        2_000,
        ge=0,
        description="Most MB of files of one account that wait to be read; 0 is no limit.",
    )
    organization_storage_mb: int = Field(
        100_000,
        ge=0,
        description="Most MB of files in the knowledge bases shared with one organization; 0 is no limit.",
    )
    organization_passages: int = Field(
        20_000_000,
        ge=0,
        description="Most passages in the knowledge bases shared with one organization; 0 is no limit.",
    )
    document_versions: int = Field(
        10,
        ge=0,
        le=400,
        description="How many replaced versions of a document are kept, with their files; 0 keeps none.",
    )
    document_version_days: int = Field(
        0, ge=0, le=36_500, description="Days for which a replaced version is kept at most; 0 is no limit."
    )
    trash_days: int = Field(
        30,
        ge=0,
        le=3650,
        description="Days for which documents that people delete can be taken back; 0 deletes them at once.",
    )
    embedding_model: str = Field(
        "multilingual-e5-small",
        min_length=1,
        description="Embedding model for knowledge bases that don't specify one.",
    )
    parse_memory_mb: int = Field(2048, ge=256, description="Memory limit in MB for one parser process.")
    parse_cpu_seconds: int = Field(
        600, ge=1, le=604_800, description="CPU time limit in seconds for one parser process."
    )
    parse_seconds: float = Field(
        900, gt=0, le=604_800, description="Time limit in seconds for one parser process."
    )
    ocr_languages: str = Field(
        "eng",
        pattern=r"^[A-Za-z_/]{2,32}(\+[A-Za-z_/]{2,32}){0,9}$",
        description="Languages in which tesseract reads scanned pages and pictures, such as `eng+deu`.",
    )
    ocr_seconds: float = Field(
        3600,
        gt=0,
        le=604_800,
        description="Time limit in seconds for reading one document with many scanned pages.",
    )
    archive_files: int = Field(
        1000, ge=1, le=10_000, description="Most files that are taken out of one archive or message."
    )
    archive_mb: int = Field(
        500, ge=1, description="Most MB that are taken out of one archive or message, unpacked."
    )
    max_text_chars: int = Field(
        200_000_000, ge=1000, le=10_000_000_000, description="Most characters of text in one document."
    )
    max_chunks: int = Field(
        1_000_000,
        ge=1,
        description="Most passages in one document; an overlap close to the chunk size creates very many.",
    )
    answer_chars: int = Field(
        16_000, ge=1500, le=1_000_000, description="Longest prompt for the model runtime, in characters."
    )
    question_model_calls: int = Field(
        8, ge=1, le=100, description="Most calls to the model for one question, including the answer."
    )
    question_tokens: int = Field(
        50_000,
        ge=1000,
        description="Most tokens for one question; what is left limits the answer. Where the model runtime "
        "reports none, they are estimated.",
    )
    question_seconds: float = Field(
        240,
        gt=0,
        description="Longest time for one question in seconds, not counting the search itself. "
        "Half of it is kept for the answer.",
    )
    step_seconds: float = Field(
        60, gt=0, description="Longest time in seconds for one model call that prepares an answer."
    )
    verdict_tokens: int = Field(
        300,
        ge=50,
        le=4000,
        description="Most tokens of one of the model's judgements, which it gives as JSON.",
    )
    enhance_seconds: float = Field(
        2, gt=0, description="Longest wait in seconds for a plugin that improves a ranking."
    )
    rerank_candidates: int = Field(
        4,
        ge=1,
        le=20,
        validation_alias=env("RERANK_CANDIDATE_MULTIPLIER"),
        description="With `rerank`, this many times `top_k` passages are reranked, but at least this "
        "many times 5.",
    )
    rerank_folder: Annotated[Path | None, ExistingFolder()] = Field(
        None,
        description="Folder with a cross-encoder in sentence-transformers' format that reranks passages on "
        "this machine; needs the full installation.",
    )
    rerank_url: Annotated[str, AfterValidator(base_address)] | None = Field(
        None,
        description="Address of a server with a `/v1/rerank` route, such as llama.cpp's or vLLM's, or of "
        "TEI. Without one, and without a folder, nothing is reranked.",
    )
    rerank_model: str | None = Field(None, description="Model to ask the reranking server for.")
    rerank_api_key: SecretStr | None = Field(None, description="API key of the reranking server.")
    rerank_seconds: float = Field(10, gt=0, description="Longest wait in seconds for the reranking server.")

    @model_validator(mode="after")
    def _one_reranker(self) -> RagSettings:
        if self.rerank_folder is not None and self.rerank_url is not None:
            raise ValueError("name either 'rerank_folder' or 'rerank_url'")
        return self

    def parse_limits(self, *, large: bool = True, recognizer: str | None = None) -> ParseLimits:
        """What one document may cost; a document that isn't large may still have a few scanned pages."""
        seconds = max(self.parse_seconds, self.ocr_seconds) if large else self.parse_seconds
        pages = OcrOptions().most_pages if large else _FEW_PAGES
        return ParseLimits(
            *(self.parse_memory_mb, self.parse_cpu_seconds, seconds, self.max_text_chars),
            ocr=OcrOptions(self.ocr_languages, pages, recognizer),
        )
