"""Which core services belong to which bundle, and which of them are in service (wire-facts 9.2).

A service is active if an enabled bundle claims it, or if no bundle does. Container labels add services and
bundles to the platform's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
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


Claims = Mapping[str, tuple[str, ...]]
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


def all_claims(labelled: Iterable[tuple[str, Iterable[str]]]) -> Claims:
    """What each bundle claims, including the services and bundles from container labels."""
    claims_by_bundle = {name: list(claims) for name, claims in CLAIMS.items()}
    for service, bundles in labelled:
        for name in filter(_NAME.fullmatch, bundles):
            claims = claims_by_bundle.setdefault(name, [])
            if service not in claims:
                claims.append(service)
    return {name: tuple(claims) for name, claims in claims_by_bundle.items()}


@dataclass(frozen=True)
class BundleSwitches:
    """What administrators want of the bundles."""

    disabled: frozenset[str]
    claims: Claims

    def is_enabled(self, bundle: str) -> bool:
        """Whether a bundle is wanted: all are, unless somebody disabled them."""
        return bundle == CORE or bundle not in self.disabled

    def claimants(self, service: str) -> list[str]:
        """The enabled bundles that claim a service."""
        return [name for name, claims in self.claims.items() if service in claims and self.is_enabled(name)]

    def services(self) -> list[str]:
        """All services that a bundle claims."""
        return list(dict.fromkeys(service for claims in self.claims.values() for service in claims))

    def is_active(self, service: str) -> bool:
        """Whether a service is wanted."""
        return service not in self.services() or bool(self.claimants(service))

    def orphaned(self) -> list[str]:
        """The services that only disabled bundles claim."""
        return sorted(service for service in self.services() if not self.is_active(service))
