"""`POST /webhook/{path}`: the one route of manifest plugins, on the plugin registry's service."""

from __future__ import annotations

from kernel.sdk import PUBLIC, Context, Rate, RawBody, RouteTable, read_body

from .errors import EmbeddingUnavailable, EngineChanged, ProofRefused, UnknownWebhook, WebhookDisabled
from .inbox import INBOX, WebhookResult
from .settings import WebhookSettings

routes = RouteTable("Webhooks", service="plugin-registry")

_MB = 1024 * 1024
_BODY = RawBody(
    ("application/json", "application/x-www-form-urlencoded", "multipart/form-data"), {"type": "object"}
)


@routes.post(
    "/webhook/{path:path}",
    access=PUBLIC,
    open_to_writes=True,
    body=_BODY,
    returns=WebhookResult,
    errors=(EmbeddingUnavailable, EngineChanged, ProofRefused, UnknownWebhook, WebhookDisabled),
    rate=Rate(lambda settings: settings.webhook_rate_per_minute, scope="path", settings=WebhookSettings),
)
async def receive_webhook(ctx: Context, path: str) -> WebhookResult:
    """Take a delivery for the manifest with this webhook path.

    A manifest with a secret wants proof of it: Standard Webhooks (webhook-id, webhook-timestamp,
    webhook-signature) or GitHub's X-Hub-Signature-256. The answer comes when the point is durable; the same
    event (webhook-id, X-GitHub-Delivery) is stored once and answers the same point again.
    """
    inbox = ctx.resource(INBOX)
    inbox.expect(f"/{path}")
    limit = ctx.settings_of(WebhookSettings).max_webhook_body_size_mb * _MB
    body = await read_body(ctx.request, limit, ctx.platform.settings.body_timeout)
    headers = ctx.request.headers
    return await inbox.receive(f"/{path}", headers, headers.get("Content-Type"), body)
