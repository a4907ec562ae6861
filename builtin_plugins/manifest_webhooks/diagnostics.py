"""What `platformctl doctor` says about manifests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import get_args

from builtin_plugins.manifest_webhooks.listing import list_manifests
from builtin_plugins.manifest_webhooks.manifest import EmbedModel
from builtin_plugins.manifest_webhooks.settings import WebhookSettings
from kernel.sdk import Diagnostic, Finding, Platform

_LONGEST_REASON = 160


async def check_manifests(platform: Platform) -> AsyncIterator[Finding]:
    """Check that each manifest in the folder can be live, and that a folder that a setting names is there."""
    settings = platform.settings_of(WebhookSettings)
    states = [state for state in await list_manifests(platform, {}, {}) if platform.is_on(state.name)]
    for state in states:
        if state.status != "live":
            text = f"{state.name}: {_shortened(state.reason)}"
            is_refused = state.status == "refused"
            yield Finding(
                "manifest", "failed" if is_refused else "warning", text, "platformctl manifests list"
            )
    folder = settings.manifests_dir
    if not folder.is_dir() and folder != WebhookSettings.model_fields["manifests_dir"].default:
        remedy = "Create the folder or correct PLATFORM_MANIFESTS_DIR."
        yield Finding("manifests", "warning", f"there is no folder {folder.absolute()}", remedy)
        return
    live = sum(state.status == "live" for state in states)
    yield Finding("manifests", "ok", f"{live} live in {folder.absolute()}")


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 1] + "…"


async def check_mapping(platform: Platform) -> AsyncIterator[Finding]:
    """Check that the models that the setting maps are names that a manifest can use."""
    names = get_args(EmbedModel)
    for name, _ in platform.settings_of(WebhookSettings).mapped_models():
        if name not in names:
            text = f"PLATFORM_WEBHOOK_EMBED_MODELS maps '{name}', which no manifest can name"
            yield Finding("webhooks", "warning", text, f"Manifests can name: {', '.join(names)}")


DIAGNOSTICS = (Diagnostic("installation", check_mapping), Diagnostic("installation", check_manifests))
