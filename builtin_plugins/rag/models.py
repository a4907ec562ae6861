"""Tables of the RAG plugin. Chunks are points of the vector store, in their knowledge base's collection."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Date,
    Float,
    ForeignKey,
    Index,
    Integer,
    String,
    Text,
    false,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import Owned, UtcDateTime, json_type, plugin_base, utc_now

Base: Any = plugin_base("rag")


class KnowledgeBase(Owned, Base):
    """A set of documents that share an embedding model and chunk sizes."""

    __tablename__ = "rag_knowledge_base"
    __table_args__ = (
        # A page's order, and what decides who sees a row: skipped and counted rows are not read.
        Index(
            "ix_rag_knowledge_base_in_order",
            *("created_at", "id", "owner_id", "visibility", "team_id", "organization_id"),
        ),
    )

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    name: Mapped[str] = mapped_column(String(255))
    description: Mapped[str] = mapped_column(Text, default="")
    embedding_model: Mapped[str] = mapped_column(String(255))
    llm_model: Mapped[str | None] = mapped_column(String(255))
    chunk_size: Mapped[int] = mapped_column(Integer)
    chunk_overlap: Mapped[int] = mapped_column(Integer)
    graph: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    revision: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    """Counts changes of the embedding model, as vectors of different revisions must not be mixed."""
    reembedding: Mapped[str | None] = mapped_column(String(36))
    """The id of the current change of the embedding model."""
    publishing: Mapped[str] = mapped_column(String(16), default="owner", server_default="owner")
    """Who may publish chats over it: only its `owner`, or, if `allowed`, everybody who can read it."""
    importing: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    """Whether documents of the file that it was made from are still to come, if somebody holds that file."""
    date_field: Mapped[str | None] = mapped_column(String(64))
    """The field whose date counts for documents that don't say from when until when they apply."""
    accept_dates: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    """Whether what a text says about when it applies counts without a person's consent."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)

    @property
    def collection(self) -> str:
        """Where its chunks are in the vector store."""
        return f"rag:{self.id}"

    @property
    def tree_collection(self) -> str:
        """Where the summaries of its document trees are."""
        return f"rag-tree:{self.id}"

    @property
    def earlier_collection(self) -> str:
        """Where the chunks of replaced versions are kept. Nothing searches there."""
        return earlier_collection(self.id)

    @property
    def reading_collection(self) -> str:
        """Where the chunks of documents that are being read are found by their words."""
        return reading_collection(self.id)

    @property
    def coming_collection(self) -> str | None:
        """Where its chunks are being embedded by another model, if they are."""
        return None if self.reembedding is None else coming_collection(self.id, self.reembedding)


def earlier_collection(kb_id: str) -> str:
    """Where the chunks of a knowledge base's replaced versions are kept."""
    return f"rag-earlier:{kb_id}"


def reading_collection(kb_id: str) -> str:
    """Where the chunks of documents that are being read are found by their words, without vectors."""
    return f"rag-reading:{kb_id}"


def import_holder(kb_id: str) -> str:
    """The name under which a knowledge base holds its import file until the import is done."""
    return f"rag:import:{kb_id}"


def coming_collection(kb_id: str, change: str) -> str:
    """Where a change of the embedding model collects its vectors until it is complete."""
    return f"rag-coming:{kb_id}:{change}"


SUPERSEDED: Final = "superseded"
"""The status of a version that a newer one has replaced; no search or list has it."""
INGESTING: Final = "rag.ingest_document"
"""The kind of the jobs that read documents, by whose ids they are known."""


class Document(Base):
    """An uploaded file and how far its ingestion is (spec 3.4), or one version of it.

    Its row outlives its knowledge base until a job removes it, but nobody can reach it.
    """

    __tablename__ = "rag_document"
    __table_args__ = (
        Index("ix_rag_document_knowledge_base_id_sha256", "knowledge_base_id", "sha256"),
        Index(
            "uq_rag_document_unnamed",
            "knowledge_base_id",
            "sha256",
            unique=True,
            sqlite_where=text("identity IS NULL"),
            postgresql_where=text("identity IS NULL"),
        ),
        Index("uq_rag_document_version", "knowledge_base_id", "identity", "version", unique=True),
        Index(
            "ix_rag_document_superseded_at",
            "superseded_at",
            sqlite_where=text("superseded_at IS NOT NULL"),
            postgresql_where=text("superseded_at IS NOT NULL"),
        ),
        Index("ix_rag_document_in_order", "knowledge_base_id", "uploaded_at", "id"),
        Index("ix_rag_document_knowledge_base_id_filename", "knowledge_base_id", "filename"),
        Index("ix_rag_document_knowledge_base_id_size_bytes", "knowledge_base_id", "size_bytes"),
        Index(
            "ix_rag_document_untold",
            "knowledge_base_id",
            sqlite_where=text("language_told IS 0"),
            postgresql_where=text("language_told IS false"),
        ),
        Index(
            "ix_rag_document_parent_id",
            "parent_id",
            sqlite_where=text("parent_id IS NOT NULL"),
            postgresql_where=text("parent_id IS NOT NULL"),
        ),
        Index(
            "ix_rag_document_processing",
            "knowledge_base_id",
            "uploaded_at",
            sqlite_where=text("status = 'processing'"),
            postgresql_where=text("status = 'processing'"),
        ),
        Index(
            "ix_rag_document_early",
            "knowledge_base_id",
            sqlite_where=text("searchable_count > 0"),
            postgresql_where=text("searchable_count > 0"),
        ),
        Index(
            "ix_rag_document_uploaded_by",
            "uploaded_by",
            sqlite_where=text("uploaded_by IS NOT NULL"),
            postgresql_where=text("uploaded_by IS NOT NULL"),
        ),
        # What a search reads to find the documents that somebody may read: no row of a document.
        Index("ix_rag_document_readable", "knowledge_base_id", "audience_id", "id"),
        Index(
            "ix_rag_document_audience_id",
            "audience_id",
            sqlite_where=text("audience_id IS NOT NULL"),
            postgresql_where=text("audience_id IS NOT NULL"),
        ),
    )

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    knowledge_base_id: Mapped[str] = mapped_column(String(36))
    filename: Mapped[str] = mapped_column(String(255))
    content_type: Mapped[str] = mapped_column(String(255))
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str] = mapped_column(String(64))
    status: Mapped[str] = mapped_column(String(16), default="processing")
    error: Mapped[str | None] = mapped_column(Text)
    notice: Mapped[str | None] = mapped_column(Text)
    """What could not be read of a completed document."""
    chunk_count: Mapped[int] = mapped_column(Integer, default=0)
    searchable_count: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    """While it is being read: how many of its chunks are found by their words already; then 0."""
    page_count: Mapped[int | None] = mapped_column(Integer)
    uploaded_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    uploaded_by: Mapped[int | None] = mapped_column(Integer)
    """The account that sent it; None for a plugin's, a deleted account's, and what came before 0111."""
    completed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    language_told: Mapped[bool] = mapped_column(Boolean, default=True, server_default=false())
    """Whether its language has been detected; it is stored with its passages."""
    parent_id: Mapped[str | None] = mapped_column(String(36))
    """The document that it was last extracted from, which may be gone."""
    identity: Mapped[str | None] = mapped_column(String(512))
    """What a later upload replaces it by: ``path:`` or ``id:`` and what the uploader sent."""
    version: Mapped[int] = mapped_column(Integer, default=1, server_default="1")
    """Counts the uploads under its identity, from 1. Each version is a row, with its own id."""
    audience_id: Mapped[str | None] = mapped_column(String(36))
    """Who may read it of those who see its knowledge base: without one, all; if it is gone, nobody."""
    superseded_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Since when a newer version answers instead; its status is then `superseded`."""
    tree_wanted: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    tree_nodes: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    tree_levels: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    tree_built_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    @property
    def holder(self) -> str:
        """The name under which the document holds its blob."""
        return f"rag:document:{self.id}"


TRASH: Final = "trash"
"""The audience of documents in the trash: nobody. No row has this id."""


class TrashedDocument(Base):
    """A version of a document in the trash, and its former audience."""

    __tablename__ = "rag_trashed_document"
    __table_args__ = (Index("ix_rag_trashed_document_in_order", "knowledge_base_id", "trashed_at"),)

    document_id: Mapped[str] = mapped_column(ForeignKey(Document.id, ondelete="CASCADE"), primary_key=True)
    main_id: Mapped[str] = mapped_column(String(36), index=True)
    """The version that somebody deleted; the others went along."""
    knowledge_base_id: Mapped[str] = mapped_column(String(36))
    audience_id: Mapped[str | None] = mapped_column(String(36))
    trashed_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)


class TrashedBase(Base):
    """A knowledge base in the trash. Its row is here instead, so that nothing reaches its documents."""

    __tablename__ = "rag_trashed_base"

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    owner_id: Mapped[int | None] = mapped_column(Integer, index=True)
    name: Mapped[str] = mapped_column(String(255))
    document_count: Mapped[int] = mapped_column(Integer)
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    trashed_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    fields: Mapped[Any] = mapped_column(json_type())
    """Its other columns, by name. Those that say who sees it are not kept: it comes back private."""


class Audience(Base):
    """A set of readers that documents share. Its id is never used again."""

    __tablename__ = "rag_audience"
    __table_args__ = (
        Index("uq_rag_audience_holder_digest", "holder", "digest", unique=True),
        Index(
            "ix_rag_audience_everybody",
            "id",
            sqlite_where=text("everybody"),
            postgresql_where=text("everybody"),
        ),
    )

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    holder: Mapped[str] = mapped_column(String(100))
    """Whose it is, such as ``sources:`` and a source's id; all of a holder's audiences go together."""
    digest: Mapped[str] = mapped_column(String(64))
    everybody: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())


class AudienceReader(Base):
    """A person or group of a holder, by a name that begins with the holder's and a colon."""

    __tablename__ = "rag_audience_reader"

    reader: Mapped[str] = mapped_column(String(500), primary_key=True)
    audience_id: Mapped[str] = mapped_column(String(36), primary_key=True, index=True)


class ReaderMember(Base):
    """An account that a reader stands for."""

    __tablename__ = "rag_reader_member"

    account_id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    reader: Mapped[str] = mapped_column(String(500), primary_key=True, index=True)


class MemberVersion(Base):
    """Counts the changes of readers' members, in its only row; see `metadata.changes`."""

    __tablename__ = "rag_member_version"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    version: Mapped[int] = mapped_column(BigInteger)


class Deletion(Base):
    """A note that a document was deleted, kept while something could still bring the same bytes back."""

    __tablename__ = "rag_deletion"

    knowledge_base_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    asked_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """When the newest document that may contain it was uploaded; later uploads may bring it back."""


class MetadataField(Base):
    """A field that the documents of a knowledge base have, and its type."""

    __tablename__ = "rag_metadata_field"

    knowledge_base_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    """`text`, `number`, `date`, `boolean` or `person`."""
    many: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    """Whether a document may have several values."""
    description: Mapped[str] = mapped_column(String(255), default="", server_default="")
    propose: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    """Whether a model proposes values."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class MetadataVersion(Base):
    """Counts the changes of what filters read in a knowledge base; see `metadata.changes`."""

    __tablename__ = "rag_metadata_version"

    knowledge_base_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    version: Mapped[int] = mapped_column(BigInteger)


class MetadataValue(Base):
    """One value of a document's field. A field with several values has a row for each.

    `text` is the value of texts, the account's id for a person, and a date as it is shown; `number` is that
    of numbers, a date in seconds since 1970 (UTC), and 0 or 1 for booleans. `folded` is a text as it is
    compared (NFC, case-folded), or the account's id.
    """

    __tablename__ = "rag_metadata_value"
    __table_args__ = (
        Index("ix_rag_metadata_value_folded", "knowledge_base_id", "field", "folded", "document_id"),
        Index("ix_rag_metadata_value_number", "knowledge_base_id", "field", "number", "document_id"),
    )

    document_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    field: Mapped[str] = mapped_column(String(64), primary_key=True)
    position: Mapped[int] = mapped_column(Integer, primary_key=True, default=0)
    knowledge_base_id: Mapped[str] = mapped_column(String(36))
    text: Mapped[str | None] = mapped_column(String(512))
    folded: Mapped[str | None] = mapped_column(String(512))
    number: Mapped[float | None] = mapped_column(Float(53))
    origin: Mapped[str] = mapped_column(String(16))
    """Who said so: `hand`, `source`, `rule`, `file` or `text`. An earlier one in this order wins."""


class ShadowedValue(Base):
    """A value that does not count, as an earlier origin says something else about the field, or as it is only
    proposed (`proposal`).

    One of `hand` without text and number says that the field is empty.
    """

    __tablename__ = "rag_metadata_shadowed"
    __table_args__ = (Index("ix_rag_metadata_shadowed_field", "knowledge_base_id", "field"),)

    document_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    field: Mapped[str] = mapped_column(String(64), primary_key=True)
    origin: Mapped[str] = mapped_column(String(16), primary_key=True)
    position: Mapped[int] = mapped_column(Integer, primary_key=True, default=0)
    knowledge_base_id: Mapped[str] = mapped_column(String(36))
    text: Mapped[str | None] = mapped_column(String(512))
    folded: Mapped[str | None] = mapped_column(String(512))
    number: Mapped[float | None] = mapped_column(Float(53))


class MetadataRule(Base):
    """A rule of a knowledge base: documents whose paths fit a pattern get a value."""

    __tablename__ = "rag_metadata_rule"

    knowledge_base_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    position: Mapped[int] = mapped_column(Integer, primary_key=True)
    """Its place among the rules: the first that says something about a field counts."""
    pattern: Mapped[str] = mapped_column(String(500))
    field: Mapped[str] = mapped_column(String(64))
    value: Mapped[Any | None] = mapped_column(json_type())
    """The field's values as they were given; without them, a part of the path is the value."""
    part: Mapped[str | None] = mapped_column(String(64))


class Pipeline(Owned, Base):
    """A way to ask: knowledge bases and how to retrieve and generate."""

    __tablename__ = "rag_pipeline"

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    name: Mapped[str] = mapped_column(String(255))
    retrieval_config: Mapped[Any] = mapped_column(json_type())
    generation_config: Mapped[Any] = mapped_column(json_type())
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now, index=True)


class PipelineSource(Base):
    """A knowledge base of a pipeline. The reference outlives the knowledge base: asking then answers 409."""

    __tablename__ = "rag_pipeline_source"

    pipeline_id: Mapped[str] = mapped_column(ForeignKey(Pipeline.id, ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(Integer, primary_key=True)
    knowledge_base_id: Mapped[str] = mapped_column(String(36), index=True)


class QuestionDay(Base):
    """How many questions were asked of a knowledge base on one day (UTC), and how the answers were rated."""

    __tablename__ = "rag_question_day"

    knowledge_base_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    questions: Mapped[int] = mapped_column(Integer)
    refused: Mapped[int] = mapped_column(Integer)
    up: Mapped[int] = mapped_column(Integer)
    down: Mapped[int] = mapped_column(Integer)


class StorageDay(Base):
    """What a knowledge base took up on one day (UTC)."""

    __tablename__ = "rag_storage_day"

    knowledge_base_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    files: Mapped[int] = mapped_column(Integer)


class ContradictionReport(Base):
    """When a knowledge base's documents were last compared with each other."""

    __tablename__ = "rag_contradiction_report"

    knowledge_base_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    made_at: Mapped[datetime] = mapped_column(UtcDateTime)
    is_complete: Mapped[bool] = mapped_column(Boolean)
    """Whether no document, and nothing of one, was left out because there was too much."""
    judged_pairs: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    """How many pairs of sentences a model judged for it."""


class ContradictingPair(Base):
    """Two sentences of different documents that contradict each other, by their places; see the report.

    A position is that of a passage in its document; characters count from the document's beginning. The
    sentences themselves are only in the passages.
    """

    __tablename__ = "rag_contradicting_pair"

    knowledge_base_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    document_id: Mapped[str] = mapped_column(ForeignKey(Document.id, ondelete="CASCADE"), index=True)
    position: Mapped[int] = mapped_column(Integer)
    char_start: Mapped[int] = mapped_column(Integer)
    char_end: Mapped[int] = mapped_column(Integer)
    other_id: Mapped[str] = mapped_column(ForeignKey(Document.id, ondelete="CASCADE"), index=True)
    other_position: Mapped[int] = mapped_column(Integer)
    other_start: Mapped[int] = mapped_column(Integer)
    other_end: Mapped[int] = mapped_column(Integer)
    by_model: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())


class JudgedPair(Base):
    """What a model says of two sentences of different documents, which are where they begin."""

    __tablename__ = "rag_judged_pair"

    document_id: Mapped[str] = mapped_column(ForeignKey(Document.id, ondelete="CASCADE"), primary_key=True)
    char_start: Mapped[int] = mapped_column(Integer, primary_key=True)
    other_id: Mapped[str] = mapped_column(
        ForeignKey(Document.id, ondelete="CASCADE"), primary_key=True, index=True
    )
    other_start: Mapped[int] = mapped_column(Integer, primary_key=True)
    model: Mapped[str] = mapped_column(String(255), primary_key=True)
    contradicts: Mapped[bool] = mapped_column(Boolean)
