"""The errors for senders of webhooks."""

from __future__ import annotations

from kernel.sdk import Conflict, NotFound, PlatformError, Unavailable
from kernel.sdk.http import PluginDisabled


class UnknownWebhook(NotFound):
    """No live manifest has this path."""

    code = "unknown_webhook"
    default_detail = "No manifest uses this webhook path"


class ManifestAway(UnknownWebhook):
    """The manifest's file is missing: removed, renamed, or being saved by an editor."""


class WebhookDisabled(PluginDisabled):
    """The manifest's plugin is disabled."""

    default_detail = "The plugin behind this webhook is disabled; an administrator can enable it"


class ProofRefused(PlatformError):
    """The request does not prove that its sender knows the secret."""

    status = 401
    code = "webhook_proof_refused"
    default_detail = "The webhook's signature is missing or wrong"

    def __init__(self, detail: str | None = None) -> None:
        super().__init__(detail, headers={"WWW-Authenticate": "Webhook-Signature"})


class SecretNotSet(Unavailable):
    """The manifest names a secret that the operator has not set."""

    code = "webhook_secret_not_set"


class EmbeddingUnavailable(Unavailable):
    """No plugin can embed with the manifest's model now."""

    code = "embedding_unavailable"


class CollectionEngineChanged(Conflict):
    """The collection holds vectors of another embedding engine."""

    code = "embedding_engine_changed"
    default_detail = (
        "The plugin's collection holds vectors from another embedding model: choose another collection "
        "in the "
        "manifest, or uninstall the plugin together with its points and install it again"
    )
