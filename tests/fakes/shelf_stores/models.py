"""The plugin's tables."""

from __future__ import annotations

from typing import Any

from sqlalchemy import LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from kernel.sdk import json_type, plugin_base

Base: Any = plugin_base("shelf")


class ShelfCollection(Base):
    """Points of one engine."""

    __tablename__ = "shelf_collection"

    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    dimension: Mapped[int]
    engine: Mapped[str] = mapped_column(String(255))


class ShelfPoint(Base):
    """A point with its vector as float32."""

    __tablename__ = "shelf_point"

    collection: Mapped[str] = mapped_column(String(255), primary_key=True)
    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    group_key: Mapped[str] = mapped_column(String(64))
    position: Mapped[int]
    text: Mapped[str] = mapped_column(Text)
    payload: Mapped[Any] = mapped_column(json_type())
    vector: Mapped[bytes] = mapped_column(LargeBinary)
    published: Mapped[bool] = mapped_column(default=False)


class ShelfHolder(Base):
    """Somebody who holds a content."""

    __tablename__ = "shelf_holder"

    sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    holder: Mapped[str] = mapped_column(String(255), primary_key=True)
