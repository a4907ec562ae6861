"""Bodies and answers of the service (wire-facts 12)."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator

from builtin_plugins.models.names import names_host
from kernel.sdk import Body, Page, example

Status = Literal["ready", "loading", "error"]
PullStatus = Literal["queued", "running", "done", "failed", "cancelled"]


class ModelOut(BaseModel):
    """A model that can be asked."""

    id: str
    name: str
    type: Literal["local", "remote"] = Field(description="Whether it runs on this machine.")
    provider: Literal["ollama", "openai", "local"]
    runtime: str = Field(description="Name of the runtime that has it.")
    size: str = Field(description="Such as `1.23 GB`, or `Unknown`.")
    status: Status


class OpenAIModel(BaseModel):
    """A model in OpenAI's shape."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str


class ModelPage(Page[ModelOut]):
    """A page of models; `data` is the same page in OpenAI's shape."""

    object: Literal["list"] = "list"
    data: list[OpenAIModel]


class ModelDetailsOut(BaseModel):
    """One model, with the details that its runtime reports."""

    id: str
    details: dict[str, Any] = Field(description="The runtime's own object.")
    capabilities: list[str]
    status: Literal["ready"] = "ready"


class PullRequest(Body):
    """Which model to pull."""

    model_config = example(model_id="llama3.2")

    model_id: str = Field(
        min_length=1,
        max_length=200,
        pattern=r"^[\w][\w./:@-]*$",
        description="Name in the runtime's registry, with or without a tag. It can't name another registry.",
    )
    runtime: str | None = Field(
        None, max_length=64, description="Name of the runtime to pull to; the first that can if not given."
    )
    wait: bool = Field(
        True,
        description="Respond at the end; if false, respond with 202 at once. `GET /v1/models/pulls` "
        "follows it.",
    )

    @field_validator("model_id")
    @classmethod
    def _no_host(cls, value: str) -> str:
        if names_host(value):
            raise ValueError("must not name a registry host")
        return value


class ModelChanged(BaseModel):
    """What was done with a model."""

    message: str
    model: str
    status: Literal["pulled", "already_exists", "deleted", "pulling"]
    details: dict[str, Any]


class PullOut(BaseModel):
    """A pull; bytes count all files that are known so far."""

    id: str
    model: str
    runtime: str
    status: PullStatus
    stage: str = Field(description="What it is doing now.")
    completed_bytes: int
    total_bytes: int | None
    eta_seconds: int | None
    error: str | None
    created_at: datetime
    ended_at: datetime | None


class TestRequest(Body):
    """What to ask a model."""

    model_config = example(prompt="Hello, test.")

    prompt: str = Field("Hello, test.", min_length=1, max_length=4_000, description="Text to send.")


class TestOut(BaseModel):
    """What a model answered."""

    model: str
    prompt: str
    response: str
    status: Literal["success"] = "success"


class Constraints(Body):
    """Limits on a model; what is null is not limited. A change replaces all of them."""

    model_config = example(rate_limit=10, max_tokens=1000, allowed_roles=["admin"])

    rate_limit: int | None = Field(
        None, ge=1, le=1_000_000, description="Calls in a minute for each account."
    )
    max_tokens: int | None = Field(None, ge=1, le=10_000_000, description="Most tokens of one answer.")
    allowed_users: list[str] = Field(
        default_factory=list, max_length=1_000, description="Usernames or account ids that may call it."
    )
    allowed_roles: list[str] = Field(
        default_factory=list, max_length=100, description="Roles of accounts that may call it (user, admin)."
    )
    cost_limit: None = Field(None, description="Not supported: the platform knows no prices.")
    content_filtering: Literal[False] = Field(False, description="Not supported: there is no filter.")

    @field_validator("cost_limit", mode="before")
    @classmethod
    def _no_prices(cls, value: object) -> None:
        if value is not None:
            raise ValueError("can't be enforced: the platform knows no prices; use rate_limit or max_tokens")

    @field_validator("content_filtering", mode="before")
    @classmethod
    def _no_filter(cls, value: object) -> bool:
        if value not in (None, False):
            raise ValueError("can't be enforced: the platform has no content filter")
        return False

    @field_validator("allowed_users", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        if not isinstance(value, list):
            return value
        return [str(one) if isinstance(one, int) and not isinstance(one, bool) else one for one in value]


class ConstraintsOut(Constraints):
    """The limits of one model."""

    model: str


class UseOut(BaseModel):
    """Use of a model on one day (UTC) by one part of the platform: a service, or a kind of job."""

    day: date
    part: str
    calls: int
    errors: int
    tokens: int
    tokens_unknown: int = Field(description="Calls for which the runtime reported no token counts.")
    mean_ms: int
    longest_ms: int


class MetricsOut(BaseModel):
    """The use of a model by day, newest first, and in total."""

    model: str
    days: list[UseOut]
    calls: int
    errors: int
    tokens: int


class FineTuneRequest(Body):
    """Body of a route that is not implemented."""

    model_config = example(base_model="llama3.2")

    base_model: str = Field(max_length=200, description="Model to start from.")
    training_data: str | None = Field(None, description="Data to train on.")
    epochs: int = Field(3, description="Rounds over the data.")
    learning_rate: float = Field(0.0001, description="Size of a step.")


class RootOut(BaseModel):
    """The service in a few words."""

    name: str
    version: str
    status: Literal["running"]
    ollama_available: bool
