"""`POST /webhook/{path}`: the one route of manifest plugins, on the plugin registry's service."""

from __future__ import annotations

from kernel.sdk import PUBLIC, Context, InsufficientStorage, RawBody, RouteTable

from .errors import (
    CollectionEngineChanged,
    EmbeddingUnavailable,
    ProofRefused,
    UnknownWebhook,
    WebhookDisabled,
)
from .inbox import INBOX, WebhookOut

routes = RouteTable("Webhooks", service="plugin-registry", optional=True)

_NOTE = {"station": "Bergen", "note": "Negative wind speed: calm air, -0.4 m/s"}
_BODY = RawBody(
    ("application/json", "application/x-www-form-urlencoded", "multipart/form-data"),
    {
        "type": "object",
        "description": "What the manifest's templates ask for. The example fits the manifest shown at "
        "`POST /v1/plugins/install`.",
        "properties": {
            "station": {"description": "Fills in `{{ .station }}`, which that manifest keeps as metadata."},
            "note": {"description": "Fills in `{{ .note }}`, the text that it stores."},
        },
    },
    example=_NOTE,
    more_examples={"application/x-www-form-urlencoded": _NOTE, "multipart/form-data": _NOTE},
)


@routes.post(
    "/webhook/{path:path}",
    access=PUBLIC,
    open_to_writes=True,
    body=_BODY,
    returns=WebhookOut,
    judges_credential=True,  # an Authorization header is for the manifest or for a proxy
    errors=(
        *(EmbeddingUnavailable, CollectionEngineChanged, InsufficientStorage, ProofRefused),
        *(UnknownWebhook, WebhookDisabled),
    ),
)
async def receive_webhook(ctx: Context, path: str) -> WebhookOut:
    """Receive a webhook delivery for the manifest with this path.

    If the manifest has a secret, the request must prove that its sender knows it: by the manifest's `proof`,
    or signed as in Standard Webhooks (webhook-id, webhook-timestamp, webhook-signature) or with GitHub's
    X-Hub-Signature-256. The response is sent once the point is stored durably; with `forEach`, it lists the
    points of all items. The same event (webhook-id, X-GitHub-Delivery) is stored only once; sending it
    again returns the same point. GitHub's ping, and events that the manifest doesn't want, are acknowledged
    with the reason why they were skipped. Signed deliveries are limited per manifest, all others per client
    address and path.
    """
    return await ctx.resource(INBOX).receive(ctx, f"/{path}")
