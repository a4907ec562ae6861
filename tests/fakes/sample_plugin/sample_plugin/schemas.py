"""Requests and answers of the plugin."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field


class BookmarkCreate(BaseModel):
    """A new bookmark."""

    address: str = Field(min_length=1, max_length=2000, pattern=r"^https?://")
    title: str = Field(min_length=1, max_length=200)
    note: str = Field("", max_length=10_000)


class BookmarkOut(BaseModel):
    """A bookmark."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    address: str
    title: str
    note: str
    created_at: datetime


class FindBookmarks(BaseModel):
    """Parameters of the action `find`."""

    words: str = Field(min_length=1, max_length=200, description="Words of the title or the note.")
