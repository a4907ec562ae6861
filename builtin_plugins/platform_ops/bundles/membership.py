"""Which core services belong to which bundle, and which of them are in service (wire-facts 9.2).

A service is active while an enabled bundle claims it, or none does. It runs while the plugin that offers it
is enabled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CORE = "core"
CLAIMS: Mapping[str, tuple[str, ...]] = {
    CORE: ("api-gateway", "plugin-registry", "marketplace", "platform-ops"),
    "inference": ("model-management",),
    "rag": ("rag-pipeline", "model-management"),
    "chat": ("orchestrator", "model-management"),
    "voice": ("tts-stt",),
    "graph-rag": ("graph-rag",),
}


@dataclass(frozen=True)
class Wanted:
    """What administrators want of the bundles."""

    disabled: frozenset[str]

    def is_enabled(self, bundle: str) -> bool:
        """Whether a bundle is wanted: all are that nobody disabled."""
        return bundle == CORE or bundle not in self.disabled

    def claimants(self, service: str) -> list[str]:
        """The enabled bundles that claim a service."""
        return [name for name, claims in CLAIMS.items() if service in claims and self.is_enabled(name)]

    def is_active(self, service: str) -> bool:
        """Whether a service is wanted."""
        claimed = any(service in claims for claims in CLAIMS.values())
        return not claimed or bool(self.claimants(service))

    def orphaned(self) -> list[str]:
        """The services that only disabled bundles claim."""
        services = {service for claims in CLAIMS.values() for service in claims}
        return sorted(service for service in services if not self.is_active(service))
