"""Tables: uploaded files, what a vector store has that a knowledge base lacks, and batches of files.

Files in a vector store have no rows here: they are documents of the knowledge base.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Boolean, Index, Integer, String, false
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import Owned, UtcDateTime, json_type, plugin_base, utc_now

Base: Any = plugin_base("openai_files")


class UploadedFile(Owned, Base):
    """A file as it was uploaded; only its owner sees it."""

    __tablename__ = "openai_files_file"
    __table_args__ = (Index("ix_openai_files_file_in_order", "owner_id", "created_at", "id"),)

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    filename: Mapped[str] = mapped_column(String(255))
    purpose: Mapped[str] = mapped_column(String(32))
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)

    @property
    def holder(self) -> str:
        """The name under which the file holds its blob."""
        return f"openai_files:file:{self.id}"


class StoreLabels(Base):
    """The key-value pairs that a client keeps with a vector store; they are not searched."""

    __tablename__ = "openai_files_store"

    knowledge_base_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    labels: Mapped[Any] = mapped_column(json_type())


class FileBatch(Base):
    """Files that were put into a vector store together.

    `file_ids` are those of files. `refused` says why some were not taken, by file: code and message.
    """

    __tablename__ = "openai_files_batch"

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    knowledge_base_id: Mapped[str] = mapped_column(String(36), index=True)
    file_ids: Mapped[Any] = mapped_column(json_type())
    refused: Mapped[Any] = mapped_column(json_type())
    cancelled: Mapped[Any] = mapped_column(json_type())
    """The files that were still being read when the batch was cancelled."""
    is_cancelled: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)


class MakingRequest(Base):
    """A request that made a vector store or a batch, so that its retry makes no second one.

    `id` is that of the row it makes, and drawn before: a request that was cut off is finished by its retry.
    """

    __tablename__ = "openai_files_request"
    __table_args__ = (Index("ix_openai_files_request_same", "owner_id", "digest"),)

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    knowledge_base_id: Mapped[str] = mapped_column(String(36), index=True)
    owner_id: Mapped[int] = mapped_column(Integer)
    digest: Mapped[str] = mapped_column(String(64))
    """SHA-256 of what was asked for, with the client's key if it sent one."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
