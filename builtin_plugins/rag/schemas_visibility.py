"""Whether somebody else sees a knowledge base, and why."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from builtin_plugins.rag.schemas import Id
from kernel.sdk import example

Reason = Literal[
    "owner",
    "administrator",
    "everyone",
    "team",
    "organization",
    "private",
    "not_in_team",
    "not_in_organization",
    "inactive",
]


class SightQuery(BaseModel):
    """The account to look at."""

    model_config = example(user_id=2)

    user_id: Id = Field(description="The account that is asked about.")


class Sight(BaseModel):
    """What an account can do with a knowledge base at this moment."""

    user_id: int
    sees: bool = Field(description="Whether the account can find, read and query it.")
    changes: bool = Field(description="Whether the account can change and delete it.")
    reason: Reason
    explanation: str = Field(description="The reason in words.")
