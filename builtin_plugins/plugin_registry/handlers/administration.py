"""Installing, removing and switching plugins; for administrators."""

from __future__ import annotations

from kernel.sdk import (
    ADMIN,
    AUTHENTICATED,
    Conflict,
    Context,
    Message,
    NotFound,
    RawBody,
    RouteTable,
    read_body,
)

from ..schemas import Installed, Reloaded, Webhooks
from ..services import installing
from ..services.records import get_entry
from ..services.switching import switch

routes = RouteTable("Plugin administration")

NAME = "plugin_registry"
_DOCUMENT_LIMIT = 1024 * 1024
_YAML = """\
apiVersion: platform.dev/v1alpha1
kind: Plugin
metadata:
  name: station-notes
  version: 1.0.0
  description: Stores notes
spec:
  trigger:
    type: webhook
    webhook:
      path: /stations/notes  # live at /webhook/stations/notes
  action:
    type: store-vector
    store:
      collection: station-notes
      input:
        text: "{{ .note }}"  # the field `note` of what is sent there
        metadata:
          station: "{{ .station }}"
"""
_DOCUMENT = RawBody(
    ("application/json", "application/yaml", "text/yaml"),
    {"type": "object", "description": "The manifest; `GET /v1/plugins/schema` shows its schema."},
    example={
        "apiVersion": "platform.dev/v1alpha1",
        "kind": "Plugin",
        "metadata": {
            "name": "station-notes",
            "version": "1.0.0",
            "description": "Stores notes",
        },
        "spec": {
            "trigger": {"type": "webhook", "webhook": {"path": "/stations/notes"}},
            "action": {
                "type": "store-vector",
                "store": {
                    "collection": "station-notes",
                    "input": {"text": "{{ .note }}", "metadata": {"station": "{{ .station }}"}},
                },
            },
        },
    },
    more_examples={"application/yaml": _YAML, "text/yaml": _YAML},
)


@routes.post(
    "/v1/plugins/install",
    access=ADMIN,
    body=_DOCUMENT,
    returns=Installed,
    errors=(Conflict,),
)
async def install(ctx: Context) -> Installed:
    """Install a plugin from its manifest (YAML or JSON). Its webhook is live when the response arrives."""
    document, media_type = await _document(ctx)
    entry = await installing.install(ctx.caller, document, media_type, update=False)
    path = next(iter(entry.webhooks), "")
    return Installed(message="Plugin installed", plugin=entry.name, webhook_path=path)


@routes.post(
    "/v1/plugins/reload-webhook",
    access=ADMIN,
    body=_DOCUMENT,
    returns=Reloaded,
    errors=(Conflict, NotFound),
)
async def reload_webhook(ctx: Context) -> Reloaded:
    """Replace the manifest of an installed plugin. Its webhook changes at once."""
    document, media_type = await _document(ctx)
    entry = await installing.install(ctx.caller, document, media_type, update=True)
    paths = [f"/webhook{path}" for path in entry.webhooks]
    return Reloaded(message="Webhook reloaded", webhook_path=next(iter(paths), ""), registered_routes=paths)


@routes.delete("/v1/plugins/{name}", access=ADMIN, returns=Message, errors=(NotFound, Conflict))
async def uninstall(ctx: Context, name: str) -> Message:
    """Remove a manifest plugin for good: its file, webhook, collected points and configuration."""
    await installing.uninstall(ctx.caller, name)
    return Message(message=f"Plugin {name} uninstalled")


@routes.post("/v1/plugins/{name}/enable", access=ADMIN, returns=Message, errors=(NotFound, Conflict))
async def enable(ctx: Context, name: str) -> Message:
    """Enable a disabled plugin."""
    await _switch(ctx, name, on=True)
    return Message(message=f"Plugin {name} enabled")


@routes.post("/v1/plugins/{name}/disable", access=ADMIN, returns=Message, errors=(NotFound, Conflict))
async def disable(ctx: Context, name: str) -> Message:
    """Disable a plugin, also after restarts, until it is enabled again."""
    await _switch(ctx, name, on=False)
    return Message(message=f"Plugin {name} disabled")


@routes.post("/v1/force-webhooks", access=AUTHENTICATED, returns=Webhooks)
async def force_webhooks(ctx: Context) -> Webhooks:
    """Check for changed manifests now, and list all live webhooks."""
    paths = await installing.refresh(ctx.platform)
    return Webhooks(message=f"{len(paths)} webhooks registered", webhooks=paths)


@routes.post("/force-webhooks", access=AUTHENTICATED, returns=Webhooks, deprecated=True)
async def force_webhooks_by_old_path(ctx: Context) -> Webhooks:
    """Use POST /v1/force-webhooks."""
    return await force_webhooks(ctx)


async def _document(ctx: Context) -> tuple[bytes, str]:
    raw = await read_body(ctx.request, _DOCUMENT_LIMIT, ctx.platform.settings.body_timeout)
    return raw, ctx.request.headers.get("Content-Type", "")


async def _switch(ctx: Context, name: str, *, on: bool) -> None:
    entry = await get_entry(ctx.platform, name)
    await switch(ctx.caller, entry, own_name=NAME, on=on)
