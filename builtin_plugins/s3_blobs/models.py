"""The table with the identity of this database, which the marker in the bucket is compared with."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import plugin_base

Base: Any = plugin_base("s3_blobs")


class DatabaseIdentity(Base):
    """One row: the identity of this database, which is part of backups."""

    __tablename__ = "s3_blobs_identity"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    identity: Mapped[str] = mapped_column(String(32))
