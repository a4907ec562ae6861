"""By what the engine is recognized as having followed this database."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import plugin_base

Base: Any = plugin_base("milvus")


class IdentityRecord(Base):
    """One row: the identity of this database, a part of the names in the engine."""

    __tablename__ = "milvus_identity"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    identity: Mapped[str] = mapped_column(String(16))


class MarkRecord(Base):
    """The random mark of a collection's version, which the engine has if it followed up to that version.

    A database that was set back to a state before the version lacks the mark, or gives the same version
    another one. Marks that nobody may need are deleted.
    """

    __tablename__ = "milvus_mark"

    collection_id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    version: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    mark: Mapped[str] = mapped_column(String(16))
