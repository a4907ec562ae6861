"""Bodies and answers of the routes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field, SecretStr, StringConstraints

from builtin_plugins.sources.filters import SourceFilters
from builtin_plugins.sources.schedules import checked_schedule
from builtin_plugins.sources.services.states import RunState, Trigger
from kernel.sdk import READABLE, Body, PageQuery, example

SourceName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=255), READABLE]
Schedule = Annotated[str | None, Field(max_length=64), AfterValidator(checked_schedule)]
Credential = Annotated[SecretStr | None, Field(max_length=65_536)]
RightsSeconds = Annotated[int | None, Field(ge=15, le=86_400)]
SignInGroups = Literal["id", "name"] | None
ItemState = Literal["waiting", "stored", "skipped", "failed", "deleted_here"]

_SETTINGS = "As the schema of the kind says: `GET /v1/rag/source-kinds`."
_RIGHTS = "How often its permissions are read between runs, in seconds; null for every 30."
_GROUPS = (
    "Whether a group there is also the group of the sign-in with the same `id` or `name`; null: only as the "
    "counterparts say."
)
_SCHEDULE = "Five cron fields, or @hourly, @daily, @weekly; null for runs by hand and by push alone."


class SourceKindOut(BaseModel):
    """A kind of source that can be added."""

    name: str
    title: str
    settings_schema: dict[str, Any] = Field(description="JSON Schema of its settings.")
    guarded: Literal["always", "never", "depends"] = Field(
        description="Whether it has permissions of its own, or its settings decide that."
    )
    secret: str | None = Field(description="What its credential is, if it takes one.")


class SourceKindsOut(BaseModel):
    """The kinds of sources, and those that were refused."""

    items: list[SourceKindOut]
    refused: dict[str, str] = Field(description="Why a kind that a plugin brings can't be used.")


class SourceDescription(Body):
    """What a source is, and what of it becomes documents."""

    kind: Annotated[str, Field(max_length=50)]
    settings: dict[str, Any] = Field(default_factory=dict, description=_SETTINGS)
    secret: Credential = Field(None, description="Its credential, if the kind takes one.")
    filters: SourceFilters = Field(default_factory=SourceFilters)


class SourceTest(SourceDescription):
    """Settings to try before they are saved."""

    model_config = example(kind="folder", settings={"path": "/srv/policies"})

    source_id: UUID | None = Field(
        None, description="The source that is to have them: its credential is used if none is sent."
    )


class SourceCreate(SourceDescription):
    """A new source of a knowledge base."""

    model_config = example(
        kind="folder", name="Policies", settings={"path": "/srv/policies"}, schedule="@hourly"
    )

    name: SourceName
    schedule: Schedule = Field(None, description=_SCHEDULE)
    rights_seconds: RightsSeconds = Field(None, description=_RIGHTS)
    sign_in_groups: SignInGroups = Field(None, description=_GROUPS)


class SourceUpdate(Body):
    """What is to change of a source; what is left out stays."""

    model_config = example(name="Policies", schedule="0 3 * * *")

    name: SourceName | None = None
    settings: dict[str, Any] | None = Field(None, description=_SETTINGS)
    secret: Credential = Field(None, description="A new credential; null keeps the one that there is.")
    filters: SourceFilters | None = None
    schedule: Schedule = Field(None, description=_SCHEDULE)
    rights_seconds: RightsSeconds = Field(None, description=_RIGHTS)
    sign_in_groups: SignInGroups = Field(None, description=_GROUPS)


class SampleItem(BaseModel):
    """One of the first items of a listing."""

    path: str
    size_bytes: int | None
    skipped: str | None = Field(description="Why it would be left out.")


class SourceTested(BaseModel):
    """Whether a source can be listed, and what is there."""

    ok: bool
    problem: str | None
    found: int = Field(description="How many items were listed, at most 10.")
    items: list[SampleItem] = Field(
        description="These items; none of a source with permissions of its own: not all may see them."
    )


class SourceRunOut(BaseModel):
    """A run; the figures count items."""

    id: str
    trigger: Trigger
    is_dry: bool
    state: RunState
    error: str | None
    job_id: str | None = Field(description="Follow it at `/v1/jobs/{job_id}`.")
    started_at: datetime
    finished_at: datetime | None
    resume_at: datetime | None = Field(description="When it continues, if the source asked it to wait.")
    found: int
    added: int
    changed: int
    moved: int
    gone: int = Field(
        description="Deleted; with `needs_confirmation` or `superseded`, those that would have been."
    )
    skipped: int = Field(description="Left out, by a filter or because they are no documents.")
    failed: int
    fetched_bytes: int
    plan: dict[str, list[str]] | None = Field(description="Of a dry run: the first paths of each change.")


class SourceOut(BaseModel):
    """A source."""

    id: str
    knowledge_base_id: str
    kind: str
    name: str
    settings: dict[str, Any]
    filters: SourceFilters
    schedule: str | None
    has_secret: bool
    has_push: bool = Field(description="Whether it has an address that triggers a run.")
    problem: str | None = Field(description="Why the last run did not succeed.")
    is_leaving: bool = Field(description="Whether it is being removed.")
    next_at: datetime | None
    created_at: datetime
    last_run: SourceRunOut | None = Field(description="The last one that was no dry run.")
    missing: int | None = Field(description="Documents that a run would delete that waits to be confirmed.")
    items: dict[str, int] = Field(description="Its items by state.")
    is_guarded: bool = Field(description="Whether its documents have the readers that they have there.")
    rights_seconds: int | None = Field(description="How often its permissions are read between runs.")
    sign_in_groups: SignInGroups = Field(description=_GROUPS)
    is_watched: bool = Field(description="Whether changes there are noticed at once.")
    watch_problem: str | None = Field(description="Why they are not, although the source could say so.")


class SourcesOut(BaseModel):
    """The sources of a knowledge base."""

    items: list[SourceOut]


class SourceRun(Body):
    """How to run."""

    model_config = example(dry=True)

    dry: bool = Field(False, description="Only list what would change.")


class SourceRemoval(BaseModel):
    """What becomes of the documents of a source that is removed."""

    documents: Literal["keep", "delete"] = Field(
        ..., description="`keep` leaves them in the knowledge base, as if they had been uploaded."
    )


class SourceItemQuery(PageQuery):
    """Which items."""

    state: ItemState | None = None


class SourceItemOut(BaseModel):
    """An item, and why it is no document, if it isn't."""

    id: str
    path: str
    name: str
    state: ItemState
    reason: str | None
    document_id: str | None
    link: str | None
    size_bytes: int | None
    media_type: str | None
    modified_at: datetime | None


class PushAddress(BaseModel):
    """The address whose call triggers a run. It is shown this once, and replaces an earlier one."""

    path: str


class OriginOut(BaseModel):
    """Where a document comes from."""

    source: str
    source_id: str
    kind: str
    path: str
    link: str | None
    version: str | None = Field(description="Its version at the source.")
    modified_at: datetime | None
    details: dict[str, str]
