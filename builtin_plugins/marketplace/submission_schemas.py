"""Bodies and answers of submissions and their review (wire-facts 10.4)."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

from kernel.sdk import Body, PageQuery, example

from .schemas import CatalogQuery, NaiveUtc
from .states import Status


class SubmissionsQuery(CatalogQuery):
    """Which submissions."""

    status: Status = "submitted"


class RejectRequest(Body):
    """Why a submission is rejected."""

    model_config = example(notes="The repository has no license; please add one.")

    notes: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4000)]


class TransitionOut(BaseModel):
    """A status change of a listing."""

    plugin_id: str
    from_status: str
    to_status: str
    actor: str
    actor_role: str
    notes: str | None
    created_at: NaiveUtc


class HistoryQuery(PageQuery):
    """Which status changes."""

    limit: int = Field(500, ge=1, le=500, description="Largest number of items to return.")


class History(BaseModel):
    """The status changes of a listing, oldest first."""

    transitions: list[TransitionOut]
    count: int
    total: int
    limit: int
    offset: int
