"""A folder on a Nextcloud whose files are read by whoever may read them there, as far as shares say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing

from yarl import URL

from builtin_plugins.source_webdav.server import WebdavSource
from builtin_plugins.source_webdav.shares import CloudApi, CloudPlace, CloudShares
from builtin_plugins.sources.api import (
    Listing,
    SourceDirectory,
    SourceGrant,
    SourceGroup,
    SourceItem,
    SourcePerson,
)
from kernel.sdk import OutgoingClient, utc_now


class SharedSource(WebdavSource):
    """People and groups are known by their names there; `email_domain` makes addresses of names."""

    def __init__(
        self, client: OutgoingClient, root: URL, headers: Mapping[str, str], email_domain: str | None
    ) -> None:
        super().__init__(client, root, headers)
        self.is_exact = True
        self._domain = email_domain
        self._api = CloudApi(client, CloudPlace.of(root), headers)
        self._shares: CloudShares | None = None
        self._in_groups: Mapping[str, Sequence[str]] = {}
        self._paths: dict[str, str] | None = None

    async def documents(self, since: str | None) -> Listing:
        """All files below the folder. Raises SourceFault."""
        paths = dict[str, str]()
        async with aclosing(super().documents(since)) as listing:
            async for item in listing:
                if isinstance(item, SourceItem):
                    paths[item.identity] = item.path
                yield item
        self._paths = paths

    async def rights_mark(self) -> str | None:
        """Of the shares, the groups, and the folder's tag: Nextcloud changes that with all that is below."""
        shares = await self._read()
        return shares.mark(self._in_groups, await self.tag())

    async def _read(self) -> CloudShares:
        self._shares = await self._api.shares(utc_now())
        self._in_groups = {one: await self._api.members(one) for one in sorted(self._shares.groups())}
        return self._shares

    async def directory(self) -> SourceDirectory:
        """The people and groups of all shares, and the people in these groups."""
        shares = self._shares or await self._read()
        names = shares.people().union(*self._in_groups.values())
        people = [SourcePerson(one, one, self._domain and f"{one}@{self._domain}") for one in sorted(names)]
        return SourceDirectory(people, [SourceGroup(one, one, who) for one, who in self._in_groups.items()])

    async def grants(self, items: Sequence[SourceItem]) -> Mapping[str, SourceGrant]:
        """By the shares of files and of the folders above, where they are now. Raises SourceFault."""
        shares = self._shares or await self._read()
        if self._paths is None:
            async with aclosing(self.documents(None)) as listing:
                async for _ in listing:
                    pass
        paths = self._paths or {}
        return {one.identity: shares.of(paths[one.identity]) for one in items if one.identity in paths}
