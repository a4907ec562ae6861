"""The typed view of a valid manifest."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from .proofs import NamedProof

EmbedModel = Literal["all-minilm", "nomic-embed-text", "mxbai-embed-large"]


class _Part(BaseModel):
    """Immutable; keys that the format does not know are left out of the view."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class ManifestMetadata(_Part):
    """What the plugin is called."""

    name: str
    version: str
    description: str = ""


class Webhook(_Part):
    """The inbound request: `path` without the leading `/webhook`, the name of its secret, its events.

    `proof`: how the sender proves that it knows the secret; None for a signature as in Standard Webhooks or
    as by GitHub.
    `events`: alternative header values, of which a delivery must match one; None accepts all.
    """

    path: str
    method: Literal["POST"] = "POST"
    secret_ref: str | None = Field(default=None, alias="secretRef")
    proof: NamedProof | None = None
    events: list[dict[str, str]] | None = None


class Trigger(_Part):
    """What starts the plugin."""

    type: Literal["webhook"]
    webhook: Webhook


class Input(_Part):
    """Templates of the stored text and its metadata, and what to do about a missing value.

    `for_each`: the dot-path of a list; each item is stored by itself, and templates find it as `item`.
    """

    text: str
    metadata: dict[str, Any] = Field(default_factory=dict)
    for_each: str | None = Field(default=None, alias="forEach")
    on_missing: Literal["error", "skip"] = Field(default="error", alias="onMissing")


class Store(_Part):
    """Where the text is stored."""

    collection: str
    input: Input
    embed_model: EmbedModel = Field(default="all-minilm", alias="embedModel")


class WebhookAction(_Part):
    """What is done with a request."""

    type: Literal["store-vector"]
    store: Store


class WebhookAccess(_Part):
    """Who may call the plugin's own actions."""

    search: Literal["public", "authenticated"] = "authenticated"


class Spec(_Part):
    """Trigger, action, and who may read what was stored."""

    trigger: Trigger
    action: WebhookAction
    access: WebhookAccess = WebhookAccess()


class Manifest(_Part):
    """A manifest of version v1alpha1; build it with `Manifest.model_validate(dict)` after `validate`."""

    api_version: Literal["platform.dev/v1alpha1"] = Field(alias="apiVersion")
    kind: Literal["Plugin"]
    metadata: ManifestMetadata
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
