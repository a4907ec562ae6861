"""The state of each manifest in the folder, for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from builtin_plugins.inference.api import find_availability
from builtin_plugins.manifest_webhooks.catalog import Holders
from builtin_plugins.manifest_webhooks.folder import ManifestFolder
from builtin_plugins.manifest_webhooks.manifest import Manifest
from builtin_plugins.manifest_webhooks.secrets import how_to_set, missing_secret
from builtin_plugins.manifest_webhooks.settings import WebhookSettings
from builtin_plugins.tools.api import Directory
from kernel.sdk import Platform


@dataclass(frozen=True)
class ManifestState:
    """A manifest or a refused file. `status` is live, incomplete, disabled or refused; `reason` says more."""

    name: str
    status: str
    webhook: str = ""
    collection: str = ""
    reason: str = ""


async def list_manifests(
    platform: Platform, disabled: Mapping[str, str], holders: Holders
) -> Sequence[ManifestState]:
    """All files of the folder. `disabled` has the reason of each disabled manifest, `holders` the claims."""
    folder = ManifestFolder(
        platform.settings_of(WebhookSettings).manifests_dir, Directory(platform).taken_names
    )
    folder.look(holders)
    states = []
    for live in folder.live():
        remarks = await _remarks(platform, live.manifest)
        remarks += [str(oddity) for oddity in live.oddities]
        states.append(_state(live.manifest, "; ".join(remarks), disabled.get(live.manifest.name)))
    return [*states, *(ManifestState(file, "refused", reason=why) for file, why, _ in folder.refused())]


async def _remarks(platform: Platform, manifest: Manifest) -> list[str]:
    """What keeps its webhook from working."""
    secret = missing_secret(platform, manifest)
    remarks = [] if secret is None else [how_to_set(secret)]
    named = manifest.store.embed_model
    model = platform.settings_of(WebhookSettings).platform_model(named)
    availability = await find_availability(platform, model)
    if availability.is_offered is False:
        remarks.append(
            f"the embedding model '{model}' is not available; add it, or name another in "
            f"PLATFORM_WEBHOOK_EMBED_MODELS={named}=MODEL. {availability.choices}"
        )
    return remarks


def _state(manifest: Manifest, remarks: str, disabled: str | None) -> ManifestState:
    status = "disabled" if disabled else "incomplete" if remarks else "live"
    reason = disabled or remarks or manifest.metadata.description
    return ManifestState(
        manifest.name, status, f"/webhook{manifest.webhook.path}", manifest.store.collection, reason
    )
