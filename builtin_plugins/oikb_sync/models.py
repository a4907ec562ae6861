"""What the synchronizer has put into knowledge bases."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import UtcDateTime, plugin_base, utc_now

Base: Any = plugin_base("oikb_sync")


class SyncedFile(Base):
    """A file that was uploaded for a path: its document, and the checksum that its source has for it.

    Both are empty until the upload is complete; an empty checksum alone means: to be sent again.
    """

    __tablename__ = "oikb_sync_file"

    knowledge_base_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    path: Mapped[str] = mapped_column(String(1024), primary_key=True)
    """The folder and the file's name, in NFC."""
    checksum: Mapped[str] = mapped_column(String(255))
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    document_id: Mapped[str] = mapped_column(String(36), index=True)
    changed_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
