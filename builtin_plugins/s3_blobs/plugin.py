"""Keeps uploads in an S3-compatible object store, chosen by ``PLATFORM_BLOB_STORE=s3://bucket/prefix``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from kernel.sdk import (
    HealthCheck,
    NotConfigured,
    Platform,
    Plugin,
    Resource,
    ResourceKey,
    StoreOffer,
    Tables,
    Unhealthy,
    hookimpl,
    lasting,
)
from kernel.sdk.storage import BLOB_STORE, BlobsAway

from .models import Base
from .settings import S3Settings
from .store import REMOVED, S3Blobs, follow, look_after, open_store

log = logging.getLogger("s3_blobs")
FOLLOWER: ResourceKey[None] = ResourceKey("s3_blobs.follower")


class S3BlobsPlugin(Plugin):
    """Brings the store; does nothing unless a setting chooses it."""

    name = "s3_blobs"
    version = "0.1.0"
    description = "Keeps uploaded files in an S3-compatible object store"
    author = "Platform"
    capabilities = ("storage",)

    @hookimpl
    def register_settings(self) -> type[S3Settings]:
        return S3Settings

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_stores(self) -> Sequence[StoreOffer[Any]]:
        return [StoreOffer(BLOB_STORE, "s3", open_store, early=True)]

    @hookimpl
    def register_resources(self) -> Sequence[Resource[None]]:
        return [Resource(FOLLOWER, follow_removals)]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("s3", check_bucket)]


@asynccontextmanager
async def follow_removals(platform: Platform) -> AsyncIterator[None]:
    """Remove local copies of what is removed anywhere."""
    store = platform.blobs
    if not isinstance(store, S3Blobs):
        yield
        return
    removed: asyncio.Queue[str] = asyncio.Queue()
    with platform.notices.listening(REMOVED, removed.put_nowait):
        tasks = [
            lasting("copies of uploads", work)
            for work in (partial(look_after, store), partial(follow, store, removed))
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def check_bucket(platform: Platform) -> None:
    """Whether uploads can be stored and read. The log and `platformctl doctor` name the bucket."""
    store = platform.blobs
    if not isinstance(store, S3Blobs):
        raise NotConfigured()
    try:
        await store.check()
    except BlobsAway as error:
        log.warning("%s", error.reason)
        symptom = "refuses the platform; see 'platformctl doctor'" if error.refused else "does not answer"
        raise Unhealthy(f"the S3 server {symptom}; files can't be uploaded or read") from None
