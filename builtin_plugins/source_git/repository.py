"""A branch of a repository as a source: files are known by their paths, content by Git's own digest."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import quote, urlsplit

from builtin_plugins.source_git.program import GIT_CHILDREN, Repository, TooLarge, environment_of
from builtin_plugins.source_git.settings import RepositorySettings, SourceGitSettings
from builtin_plugins.sources.api import (
    DocumentSource,
    ItemUnsuitable,
    ItemVanished,
    Listing,
    ListingEnd,
    SourceItem,
    SourceKind,
    SourceSetup,
    SourceUnreachable,
)

_PORTION: Final = 1024 * 1024
_FILES: Final = ("100644", "100755", "100664")
_POINTER: Final = b"version https://git-lfs.github.com/spec/"
_LINKS: Final = {
    "github.com": "{base}/blob/{commit}/{path}",
    "gitlab.com": "{base}/-/blob/{commit}/{path}",
}


class RepositorySource:
    """The newest commit of a branch. If it is that of the last listing, nothing is fetched."""

    def __init__(self, repository: Repository, settings: RepositorySettings) -> None:
        self._repository = repository
        self._settings = settings
        self._commit: str | None = None
        self._turn = asyncio.Lock()

    async def documents(self, since: str | None) -> Listing:
        """The files of the commit, or no change at all."""
        commit = await self._repository.head()
        if commit == since:
            yield ListingEnd(commit, only_changes=True)
            return
        commit = await self._fetch(only_names=since is not None)
        for item in self._items(commit, await self._repository.names(commit)):
            yield item
        yield ListingEnd(commit)

    def _items(self, commit: str, listed: bytes) -> Iterator[SourceItem]:
        """Links and submodules are no files."""
        for line in listed.split(b"\0"):
            about, _, name = line.partition(b"\t")
            mode, _, digest = about.decode().partition(" blob ")
            if mode not in _FILES:
                continue
            path = name.decode(errors="replace")
            is_text = path.encode() == name
            yield SourceItem(
                identity=path if is_text else quote(name),
                etag=digest,
                path=path,
                link=self._link(commit, path),
                details={"commit": commit},
                fingerprint=digest,
                unavailable=None if is_text else "its name is not valid UTF-8",
            )

    def _link(self, commit: str, path: str) -> str | None:
        parts = urlsplit(self._settings.url)
        pattern = self._settings.link or _LINKS.get(parts.hostname or "")
        if pattern is None:
            return None
        base = self._settings.url.removesuffix("/").removesuffix(".git")
        values = {"base": base, "commit": commit, "path": quote(path), "branch": quote(self._settings.branch)}
        for name, value in values.items():
            pattern = pattern.replace(f"{{{name}}}", value)
        return pattern

    async def _fetch(self, *, only_names: bool) -> str:
        self._commit = await self._repository.fetch(only_names=only_names)
        return self._commit

    @asynccontextmanager
    async def content(self, item: SourceItem) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of a file. Raises ItemUnsuitable for a pointer to one that Git does not hold itself."""
        async with self._turn:
            if self._commit is None:  # a run that continues after a kill
                await self._fetch(only_names=True)
        try:
            whole = await self._repository.blob(item.etag)
        except TooLarge:
            raise ItemUnsuitable("It is larger than files of repositories may be") from None
        except SourceUnreachable:
            if await self._repository.head() != item.details.get("commit", self._commit):
                raise ItemVanished("The branch has moved on since it was listed") from None
            raise
        if whole.startswith(_POINTER):
            raise ItemUnsuitable("It is a pointer of Git LFS; the file itself is not in the repository")

        async def pieces() -> AsyncIterator[bytes]:
            for start in range(0, len(whole), _PORTION):
                yield whole[start : start + _PORTION]

        yield pieces()


@asynccontextmanager
async def open_repository(setup: SourceSetup) -> AsyncIterator[DocumentSource]:
    """Open a source of this kind; what is fetched is removed at the end. Raises SourceFault."""
    settings = RepositorySettings.model_validate(setup.settings.model_dump())
    limits = setup.platform.settings_of(SourceGitSettings)
    place = setup.platform.scratch.new(".git")
    place.mkdir(mode=0o700)
    try:
        environment = await environment_of(setup.platform, settings, setup.secret, place)
        children = setup.platform.resource(GIT_CHILDREN)
        yield RepositorySource(Repository(children, settings, limits, place, environment), settings)
    finally:
        await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)


GIT: Final = SourceKind("git", "Git repository", RepositorySettings, open_repository, secret="Access token")
