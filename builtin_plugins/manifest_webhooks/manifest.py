"""The typed view of a valid manifest."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

EmbedModel = Literal["all-minilm", "nomic-embed-text", "mxbai-embed-large"]


class _Part(BaseModel):
    """Immutable; keys that the format does not know are left out of the view."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class Metadata(_Part):
    """What the plugin is called."""

    name: str
    version: str
    description: str = ""


class Webhook(_Part):
    """The inbound request: `path` without the leading `/webhook`, the name of its secret, its events.

    `events`: alternative header values, of which a delivery must match one; None accepts all.
    """

    path: str
    method: Literal["POST"] = "POST"
    secret_ref: str | None = Field(default=None, alias="secretRef")
    events: list[dict[str, str]] | None = None


class Trigger(_Part):
    """What starts the plugin."""

    type: Literal["webhook"]
    webhook: Webhook


class Input(_Part):
    """Templates of the stored text and its metadata, and what to do about a missing value."""

    text: str
    metadata: dict[str, Any] = Field(default_factory=dict)
    on_missing: Literal["error", "skip"] = Field(default="error", alias="onMissing")


class Store(_Part):
    """Where the text is stored."""

    collection: str
    input: Input
    embed_model: EmbedModel = Field(default="all-minilm", alias="embedModel")


class Action(_Part):
    """What is done with a request."""

    type: Literal["store-vector"]
    store: Store


class Access(_Part):
    """Who may call the plugin's own actions."""

    search: Literal["public", "authenticated"] = "authenticated"


class Spec(_Part):
    """Trigger, action, and who may read what was stored."""

    trigger: Trigger
    action: Action
    access: Access = Access()


class Manifest(_Part):
    """A manifest of version v1alpha1; build it with `Manifest.model_validate(dict)` after `validate`."""

    api_version: Literal["platform.dev/v1alpha1"] = Field(alias="apiVersion")
    kind: Literal["Plugin"]
    metadata: Metadata
    spec: Spec

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def webhook(self) -> Webhook:
        return self.spec.trigger.webhook

    @property
    def store(self) -> Store:
        return self.spec.action.store
