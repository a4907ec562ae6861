"""A webhook call, from its proof to its stored point."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from kernel.sdk import BadRequest, Platform, ResourceKey, Unprocessable

from .embedding import embed
from .errors import ProofRefused, SecretNotSet, UnknownWebhook, WebhookDisabled
from .folder import LiveManifest, ManifestFolder
from .manifest import Manifest
from .payload import PayloadError
from .proofs import Proof, ProofError, SecretUnusable
from .reading import Delivery, prove, render
from .secrets import how_to_set, secret_of
from .storing import PointKeeper, Stored, find_event
from .templates import TemplateError


class StoredPointOut(BaseModel):
    """The point of a delivery."""

    point_id: str = Field(description="UUID of the stored point.")
    collection: str
    text_length: int = Field(description="Characters of the rendered text.")
    metadata: dict[str, Any] = Field(description="The rendered metadata.")
    embedding_dim: int


class WebhookResult(BaseModel):
    """Answer of a webhook (wire-facts 6.3)."""

    message: str
    plugin: str
    result: StoredPointOut


class Inbox:
    """Takes deliveries of every live manifest of this process."""

    def __init__(self, platform: Platform, folder: ManifestFolder) -> None:
        self._platform = platform
        self._folder = folder
        self._keeper = PointKeeper(platform.vectors)

    async def receive(
        self, path: str, headers: Mapping[str, str], content_type: str | None, body: bytes
    ) -> WebhookResult:
        """Store one delivery, durable before it returns; a repeated event answers its first point.

        `path` is the webhook's, leading slash included. Raises the errors of `errors`, BadRequest for a body
        that can't be read, Unprocessable for one that lacks what a template asks for.
        """
        live = self.expect(path)
        proof = await asyncio.to_thread(self._proved, live.manifest, headers, body)
        if not self._platform.is_on(live.name):
            raise WebhookDisabled()
        delivery = await asyncio.to_thread(_rendered, live.manifest, proof, content_type, body)
        stored = await self._known(live, delivery) or await self._store(live, delivery)
        length, metadata = await self._keeper.metadata_of(live.name, stored)
        point = StoredPointOut(
            point_id=stored.point_id,
            collection=stored.collection,
            text_length=length,
            metadata=metadata,
            embedding_dim=stored.dimension,
        )
        return WebhookResult(message="Stored", plugin=live.name, result=point)

    def expect(self, path: str) -> LiveManifest:
        """The live manifest of a path. Raises UnknownWebhook."""
        live = self._folder.at(path)
        if live is None:
            raise UnknownWebhook()
        return live

    def _proved(self, manifest: Manifest, headers: Mapping[str, str], body: bytes) -> Proof:
        secret = secret_of(self._platform, manifest)
        try:
            return prove(manifest, secret, headers, body, time.time())
        except ProofError as error:
            raise ProofRefused(str(error)) from None
        except SecretUnusable:
            reference = manifest.webhook.secret_ref or ""
            raise SecretNotSet(f"This webhook can't be used yet: {how_to_set(reference)}") from None

    async def _known(self, live: LiveManifest, delivery: Delivery) -> Stored | None:
        """Look before the costly embedding; a duplicate that is under way now is found when it stores."""
        async with self._platform.database.read() as session:
            return await find_event(session, live.name, delivery.event_id)

    async def _store(self, live: LiveManifest, delivery: Delivery) -> Stored:
        target = live.manifest.store
        vector, engine = await embed(self._platform, target.embed_model, delivery.text, "passage")
        async with self._platform.database.unit() as unit:
            return await self._keeper.store(
                unit, live.name, target.collection, delivery, vector, engine, live.path
            )


INBOX: ResourceKey[Inbox] = ResourceKey("webhook inbox")


def _rendered(manifest: Manifest, proof: Proof, content_type: str | None, body: bytes) -> Delivery:
    try:
        return render(manifest, proof, content_type, body)
    except PayloadError as error:
        raise BadRequest(str(error)) from None
    except TemplateError as error:
        names = error.path.removeprefix(".").split(".") if error.path.startswith(".") else ()
        raise Unprocessable.field(("body", *names), f"{error.path}: {error.reason}") from None
