"""`POST /webhook/{path}`: the one route of manifest plugins, on the plugin registry's service."""

from __future__ import annotations

from kernel.sdk import PUBLIC, Context, RawBody, RouteTable

from .errors import EmbeddingUnavailable, EngineChanged, ProofRefused, UnknownWebhook, WebhookDisabled
from .inbox import INBOX, WebhookResult, WebhookSkipped

routes = RouteTable("Webhooks", service="plugin-registry")

_BODY = RawBody(
    ("application/json", "application/x-www-form-urlencoded", "multipart/form-data"),
    example={
        "action": "opened",
        "issue": {"title": "Negative wind speed", "body": "Calm air, -0.4 m/s"},
    },
)


@routes.post(
    "/webhook/{path:path}",
    access=PUBLIC,
    open_to_writes=True,
    body=_BODY,
    returns=WebhookResult | WebhookSkipped,
    errors=(EmbeddingUnavailable, EngineChanged, ProofRefused, UnknownWebhook, WebhookDisabled),
)
async def receive_webhook(ctx: Context, path: str) -> WebhookResult | WebhookSkipped:
    """Take a delivery for the manifest with this webhook path.

    A manifest with a secret wants proof of it: Standard Webhooks (webhook-id, webhook-timestamp,
    webhook-signature) or GitHub's X-Hub-Signature-256. The answer comes when the point is durable; the same
    event (webhook-id, X-GitHub-Delivery) is stored once and answers the same point again. GitHub's ping, and
    what the manifest does not want, is acknowledged: the answer says why it was skipped. Deliveries that
    prove themselves are limited for each manifest, all others for each address and path.
    """
    return await ctx.resource(INBOX).receive(ctx, f"/{path}")
