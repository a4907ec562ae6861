"""The tables of collections and their points: the source of truth of every search index."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, LargeBinary, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import json_type, plugin_base

Base: Any = plugin_base("vectors")

# SQLite numbers rows automatically only with an INTEGER primary key.
_BigId = BigInteger().with_variant(Integer(), "sqlite")


class CollectionRecord(Base):
    """A set of points that are searched together, embedded by the same engine.

    `version` counts the committed changes. A change of the collection's points raises it first, which locks
    the row until the commit: versions follow the order of commits on every database. Tombstones up to `floor`
    are deleted: an older index is rebuilt.
    """

    __tablename__ = "vectors_collection"
    __table_args__ = {"sqlite_autoincrement": True}

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    name: Mapped[str] = mapped_column(String(255), unique=True)
    dimension: Mapped[int] = mapped_column(Integer)
    engine: Mapped[str] = mapped_column(String(255))
    version: Mapped[int] = mapped_column(BigInteger, default=0)
    floor: Mapped[int] = mapped_column(BigInteger, default=0)


class PointRecord(Base):
    """A text with its vector: the source of truth from which every search index is derived.

    `version` is the collection's version that made the point visible; NULL while it is staged.
    """

    __tablename__ = "vectors_point"
    __table_args__ = (
        Index("ix_vectors_point_collection_id_version_label", "collection_id", "version", "label"),
        Index("ix_vectors_point_collection_id_group_key_position", "collection_id", "group_key", "position"),
        UniqueConstraint("collection_id", "id", name="uq_vectors_point_collection_id_id"),
        {"sqlite_autoincrement": True},
    )

    label: Mapped[int] = mapped_column(_BigId, primary_key=True, autoincrement=True)
    collection_id: Mapped[int] = mapped_column(ForeignKey(CollectionRecord.id, ondelete="CASCADE"))
    id: Mapped[str] = mapped_column(String(64))
    group_key: Mapped[str] = mapped_column(String(64))
    position: Mapped[int] = mapped_column(Integer)
    text: Mapped[str] = mapped_column(Text)
    payload: Mapped[Any] = mapped_column(json_type())
    vector: Mapped[bytes] = mapped_column(LargeBinary)
    version: Mapped[int | None] = mapped_column(BigInteger)


class TombstoneRecord(Base):
    """A deleted point, for indexes that have not seen the deletion yet."""

    __tablename__ = "vectors_tombstone"
    __table_args__ = (Index("ix_vectors_tombstone_collection_id_version", "collection_id", "version"),)

    label: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    collection_id: Mapped[int] = mapped_column(ForeignKey(CollectionRecord.id, ondelete="CASCADE"))
    version: Mapped[int] = mapped_column(BigInteger)


class SavedIndexRecord(Base):
    """An index that some machine saved in files as of `version`.

    A database that was set back to a state before that lacks the row, and the files are not used with it.
    """

    __tablename__ = "vectors_saved_index"
    __table_args__ = (Index("ix_vectors_saved_index_collection_id_number", "collection_id", "number"),)

    token: Mapped[str] = mapped_column(String(32), primary_key=True)
    collection_id: Mapped[int] = mapped_column(ForeignKey(CollectionRecord.id, ondelete="CASCADE"))
    version: Mapped[int] = mapped_column(BigInteger)
    number: Mapped[int] = mapped_column(BigInteger)
