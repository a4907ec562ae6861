"""The live manifests of this process, in step with the folder and with other processes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from builtin_plugins.tools.api import Directory
from kernel.sdk import Platform, ResourceKey, lasting

from .claims import TOPIC, read_claims, settle_claims
from .folder import ManifestFolder
from .folder_watch import SETTLED_SECONDS, FolderChanges, Snapshot, watch
from .settings import WebhookSettings

log = logging.getLogger("platform.manifests")

_RETRY_SECONDS = 1.0


class WatchedFolder(ManifestFolder):
    """Rereads the folder whenever it changes, and the claims when other processes report changes."""

    def __init__(self, platform: Platform) -> None:
        directory = platform.settings_of(WebhookSettings).manifests_dir
        super().__init__(directory, Directory(platform).taken_names)
        self._platform = platform
        self._turn = asyncio.Lock()
        self._notice = asyncio.Event()

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Everything in it is live when the block begins, and changes follow within 2 s."""
        stop = asyncio.Event()
        with self._platform.notices.listening(TOPIC, lambda _key: self._notice.set()):
            snapshot = await self.refresh()
            tasks = [
                asyncio.create_task(watch(self.directory, self._changed, stop, snapshot), name="manifests"),
                lasting("manifest claims", partial(self._follow_claims, stop)),
            ]
            try:
                yield
            finally:
                # Not cancelled: a statement may be running.
                stop.set()
                self._notice.set()
                await asyncio.gather(*tasks)

    async def refresh(self) -> Snapshot:
        """Scan the folder now and return what is in it.

        Raises SQLAlchemyError and OSError when the database is away; what was live stays live then.
        """
        async with self._turn:
            read = await asyncio.to_thread(self._reread)
            if not read.keys() >= set(self.catalog.sources.values()):
                await asyncio.sleep(SETTLED_SECONDS)  # an editor may be about to put it back
                read = await asyncio.to_thread(self._reread)
            decide = partial(self._resolved, read)
            self._put(read, await self._platform.database.write(settle_claims, decide))
            return {one.path: one.fingerprint for one in read.values()}

    async def _changed(self, changes: FolderChanges) -> None:
        await self.refresh()
        names = sorted(path.name for path in changes.added | changes.changed | changes.removed)
        log.info("manifests changed: %s", ", ".join(names))

    async def _follow_claims(self, stop: asyncio.Event) -> None:
        """Adopt what other processes decided.

        Never claims anything: machines with different folders would take paths from each other forever.
        """
        outage = self._platform.database.outage(log, "the claims of manifests can't be read")
        self._notice.set()  # this may have been stopped by an error meanwhile (`lasting`)
        while True:
            await self._notice.wait()
            self._notice.clear()
            if stop.is_set():
                return
            with outage.tolerated():
                await self._adopt()
            if outage.lasts:
                asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._notice.set)

    async def _adopt(self) -> None:
        async with self._turn:
            holders = await self._platform.database.read(read_claims)
            self._put(self._read, self._resolved(self._read, holders))


FOLDER: ResourceKey[WatchedFolder] = ResourceKey("manifests folder")
