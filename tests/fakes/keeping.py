"""A plugin's side of guarded documents, for tests: puts them, and says who may read them."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from builtin_plugins.rag import api as rag
from kernel.sdk import Caller, Platform, Principal


class Keeper:
    """A holder of audiences, in one knowledge base."""

    def __init__(self, platform: Platform, base: str) -> None:
        self.platform, self.base = platform, base
        self.holder = f"keeper:{secrets.token_hex(4)}"
        self.caller = Caller(platform, Principal("service", "service:keeper"))

    def readers(self, *names: str, everybody: bool = False) -> rag.DocumentReaders:
        """These readers of the holder."""
        return rag.DocumentReaders(self.holder, [self.reader(one) for one in names], everybody)

    def reader(self, name: str) -> str:
        return f"{self.holder}:{name}"

    async def put(
        self,
        name: str,
        content: bytes | str,
        readers: rag.DocumentReaders | None,
        key: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> str:
        """Store a document under a key, its file name if none is given; returns its id."""
        data = content.encode() if isinstance(content, str) else content

        async def portions() -> AsyncIterator[bytes]:
            yield data

        document = rag.PluginDocument(f"keeper:{key or name}", name, portions(), readers, metadata)
        stored = await self.platform.hooks.ask(
            rag.put_document, caller=self.caller, knowledge_base_id=self.base, document=document
        )
        assert stored is not None
        return stored

    async def grant(self, readers: Mapping[str, rag.DocumentReaders | None]) -> int:
        """Change the readers of documents by their keys."""
        named = {f"keeper:{key}": one for key, one in readers.items()}
        return await self._write(rag.grant_documents, knowledge_base_id=self.base, readers_by_key=named)

    async def members(self, **members: Sequence[int]) -> int:
        """Say which accounts readers stand for, by their names."""
        named = {self.reader(name): ids for name, ids in members.items()}
        return await self._write(rag.set_reader_members, holder=self.holder, members=named)

    async def drop(self) -> int:
        """Remove all audiences of the holder."""
        return await self._write(rag.drop_audiences, holder=self.holder)

    async def _write(self, spec: object, **arguments: object) -> int:
        hooks, platform = self.platform.hooks, self.platform
        done = await platform.database.write(
            lambda unit: hooks.ask_now(spec, platform=platform, unit=unit, **arguments)
        )
        assert done is not None
        return int(done)
