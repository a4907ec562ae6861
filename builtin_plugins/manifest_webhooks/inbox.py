"""A webhook delivery, from its proof to its stored point."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, Field

from builtin_plugins.vectors.api import VECTORS
from kernel.sdk import BadRequest, Context, Platform, PlatformError, ResourceKey, Unprocessable, read_body

from .admission import Admission
from .deliveries import DeliveryLog, Fate, Sent, sent_of, why_unwanted
from .errors import ManifestAway, ProofRefused, SecretNotSet, UnknownWebhook, WebhookDisabled
from .folder import LiveManifest
from .live_folder import WatchedFolder
from .manifest import Manifest
from .payload import PayloadError, Record, render
from .proofs import Proof, ProofError, SecretUnusable, challenge_of, check_headers, unsigned, verify
from .secrets import how_to_set, secrets_of
from .settings import WebhookSettings
from .storing import PointKeeper, Stored, embed, find_points
from .templates import MissingValue, TemplateError, names_in

_MB = 1024 * 1024
_UNKNOWN = "unknown"  # one allowance for all paths without a manifest, as there are infinitely many


class StoredPointOut(BaseModel):
    """The point of a delivery."""

    point_id: str = Field(description="UUID of the stored point.")
    collection: str
    text_length: int = Field(description="Characters of the rendered text.")
    metadata: dict[str, Any] = Field(description="The rendered metadata.")
    embedding_dim: int


class WebhookResult(BaseModel):
    """The response to a delivery that was stored."""

    message: str
    plugin: str
    result: StoredPointOut


class WebhookRecords(BaseModel):
    """The response to a delivery that was stored as one record for each item of a list."""

    message: str
    plugin: str
    results: list[StoredPointOut]


class WebhookChallenge(BaseModel):
    """The response to Slack's question whether this address is meant."""

    challenge: str


class WebhookSkipped(BaseModel):
    """The response to a delivery that was acknowledged but not stored."""

    message: str
    plugin: str
    skipped: str = Field(description="Why nothing was stored.")


class Inbox:
    """Takes deliveries of every live manifest of this process."""

    def __init__(self, platform: Platform, folder: WatchedFolder) -> None:
        self._platform = platform
        self._folder = folder
        self._keeper = PointKeeper(platform.resource(VECTORS))
        self._admission = Admission()
        self._log = DeliveryLog(platform.database)

    async def receive(self, ctx: Context, path: str) -> WebhookOut:
        """Take one delivery; what it stores is durable before this returns, and a repeated event is stored
        once.

        `path` is the webhook's, leading slash included. Raises the errors of `errors`, TooManyRequests,
        BadRequest for a body that can't be read, Unprocessable for one that lacks what a template asks for.
        """
        live = self._folder.at(path)
        if live is None:
            await self._admission.count_stranger(ctx, _UNKNOWN)
            raise UnknownWebhook()
        sent = sent_of(ctx.request.headers, proven=False)
        try:
            proof, body = await self._admit(ctx, live)
            sent = sent_of(ctx.request.headers, proven=proof.scheme != "none", proven_id=proof.event_id)
            if sent.proven:
                await self._admission.count_proven(ctx, live.name)
            return await self._take(ctx, live, sent, proof, body)
        except PlatformError as error:
            await self._log.add_refused(live.name, sent, error)
            raise

    async def _admit(self, ctx: Context, live: LiveManifest) -> tuple[Proof, bytes]:
        """Return proof and body. Deliveries without proof are counted, if possible before reading a body."""
        webhook = live.manifest.webhook
        if webhook.secret_ref is None:
            await self._admission.count_stranger(ctx, webhook.path)
            return unsigned(ctx.request.headers), await self._body(ctx)
        try:
            return await self._prove(ctx, live.manifest, webhook.secret_ref)
        except (ProofError, SecretUnusable, PlatformError) as error:
            await self._admission.count_stranger(ctx, webhook.path)
            raise _refusal(error, webhook.secret_ref) from None

    async def _prove(self, ctx: Context, manifest: Manifest, reference: str) -> tuple[Proof, bytes]:
        headers = ctx.request.headers
        secrets = await asyncio.to_thread(secrets_of, self._platform, manifest)
        if not secrets:
            raise SecretUnusable(reference)
        check_headers(headers, time.time(), manifest.webhook.proof)
        async with self._admission.reading(ctx, manifest.webhook.path):
            body = await self._body(ctx)
            proof = manifest.webhook.proof
            return await asyncio.to_thread(verify, headers, body, secrets, time.time(), proof), body

    async def _body(self, ctx: Context) -> bytes:
        limit = ctx.settings_of(WebhookSettings).max_webhook_body_size_mb * _MB
        return await read_body(ctx.request, limit, ctx.platform.settings.body_timeout)

    async def _take(
        self, ctx: Context, live: LiveManifest, sent: Sent, proof: Proof, body: bytes
    ) -> WebhookOut:
        """Store an admitted delivery, or return why it is skipped."""
        if not self._platform.is_on(live.name):
            raise WebhookDisabled()
        headers = ctx.request.headers
        challenge = challenge_of(proof, body)
        if challenge is not None:
            await self._log.add(live.name, sent, Fate("skipped", reason="Slack's question for the address"))
            return WebhookChallenge(challenge=challenge)
        why = why_unwanted(live.manifest.webhook, headers)
        if why is not None:
            return await self._skip(live, sent, why)
        try:
            content_type = headers.get("Content-Type")
            records = await asyncio.to_thread(_rendered, live.manifest, proof, content_type, body)
        except MissingValue as error:
            if live.manifest.store.input.on_missing == "skip":
                return await self._skip(live, sent, str(error))
            raise _unprocessable(error) from None
        return await self._settle(live, sent, records)

    async def _skip(self, live: LiveManifest, sent: Sent, why: str) -> WebhookSkipped:
        await self._log.add(live.name, sent, Fate("skipped", reason=why))
        return WebhookSkipped(message="Skipped", plugin=live.name, skipped=why)

    async def _settle(
        self, live: LiveManifest, sent: Sent, records: list[Record]
    ) -> WebhookResult | WebhookRecords:
        # Looks for repeats before the costly embedding; simultaneous ones are found when storing.
        existing = await self._platform.database.read(find_points, live.name, records)
        stored_points = [stored for stored in existing if stored is not None]
        if len(stored_points) < len(records):
            stored_points = await self._store(live, sent, records)
        if not any(stored.is_new for stored in stored_points):
            await self._log.add(live.name, sent, Fate("repeated", point_id=stored_points[0].point_id))
        pairs = zip(records, stored_points, strict=True)
        points = [await self._point_out(live.name, record, stored) for record, stored in pairs]
        if live.manifest.store.input.for_each is None:
            return WebhookResult(message="Stored", plugin=live.name, result=points[0])
        return WebhookRecords(message="Stored", plugin=live.name, results=points)

    async def _point_out(self, plugin: str, record: Record, stored: Stored) -> StoredPointOut:
        length, metadata = len(record.text), record.metadata
        if not stored.is_new:
            length, metadata = await self._keeper.metadata_of(plugin, stored)
        return StoredPointOut(
            point_id=stored.point_id,
            collection=stored.collection,
            text_length=length,
            metadata=metadata,
            embedding_dim=stored.dimension,
        )

    async def _store(self, live: LiveManifest, sent: Sent, records: list[Record]) -> list[Stored]:
        target = live.manifest.store
        texts = [record.text for record in records]
        vectors, engine = await embed(self._platform, target.embed_model, texts, "passage")
        write, store = self._platform.database.write, self._keeper.store
        try:
            return await write(store, live, sent, records, vectors, engine)
        except ManifestAway:
            return await write(store, await self._current_manifest(live), sent, records, vectors, engine)

    async def _current_manifest(self, live: LiveManifest) -> LiveManifest:
        """The manifest that took a delivery, where its file is now. Raises UnknownWebhook."""
        await self._folder.refresh()
        current = self._folder.get(live.name)
        if current is None or current.manifest.webhook != live.manifest.webhook:
            raise UnknownWebhook()
        return replace(live, path=current.path)


WebhookOut = WebhookResult | WebhookRecords | WebhookSkipped | WebhookChallenge

INBOX: ResourceKey[Inbox] = ResourceKey("webhook inbox")


def _refusal(error: Exception, reference: str) -> Exception:
    if isinstance(error, ProofError):
        return ProofRefused(str(error))
    if isinstance(error, SecretUnusable):
        return SecretNotSet(f"This webhook can't be used yet: {how_to_set(reference)}")
    return error


def _rendered(manifest: Manifest, proof: Proof, content_type: str | None, body: bytes) -> list[Record]:
    try:
        return render(manifest, proof, content_type, body)
    except PayloadError as error:
        raise BadRequest(str(error)) from None
    except MissingValue:
        raise
    except TemplateError as error:
        raise _unprocessable(error) from None


def _unprocessable(error: TemplateError) -> Unprocessable:
    names = names_in(error.path.removeprefix(".")) if error.path.startswith(".") else ()
    return Unprocessable.field(("body", *names), f"{error.path}: {error.reason}")
