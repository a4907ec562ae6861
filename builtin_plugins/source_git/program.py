"""The program git, in a folder of its own: no settings of the machine, no prompts, no secret arguments."""

from __future__ import annotations

import asyncio
import base64
import logging
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import SecretStr

from builtin_plugins.source_git.settings import RepositorySettings, SourceGitSettings
from builtin_plugins.sources.api import (
    CredentialRefused,
    SourceFault,
    SourceMisplaced,
    SourceThrottled,
    SourceUnreachable,
)
from kernel.sdk import ChildFailed, ChildLimits, Children, OutgoingError, Platform, ResourceKey, split_list
from kernel.sdk.outgoing import CheckedResolver, Destinations

log = logging.getLogger("platform.source_git")

_MEGABYTE: Final = 1024 * 1024
_PAUSE: Final = 60.0
_LISTING_BYTES: Final = 256 * _MEGABYTE
_REASONS: Final[Sequence[tuple[str, type[SourceFault], str]]] = (
    (r"error: 429|too many requests", SourceThrottled, ""),
    (
        r"authentication failed|could not read (username|password)|terminal prompts disabled|error: 40[13]",
        CredentialRefused,
        "The server of the repository refuses the credential, or asks for one",
    ),
    (
        r"remote branch .* not found|couldn't find remote ref|no such remote ref",
        SourceMisplaced,
        "The repository has no such branch, or is empty",
    ),
    (
        r"repository .* not found|error: 404|does not appear to be a git repository|not a git repository",
        SourceMisplaced,
        "There is no repository at this address, or the credential may not see it",
    ),
    (r"redirect", SourceMisplaced, "The server redirects to another address; use that one"),
)


class Repository:
    """One repository, and the folder into which it is fetched."""

    def __init__(
        self,
        children: Children,
        settings: RepositorySettings,
        limits: SourceGitSettings,
        place: Path,
        environment: Mapping[str, str],
    ) -> None:
        self._children = children
        self._settings = settings
        self._limits = limits
        self._place = place
        self._environment = environment

    @property
    def most_bytes(self) -> int:
        """The largest file."""
        return self._limits.source_git_file_mb * _MEGABYTE

    @property
    def _name(self) -> str:
        """The branch in full: a tag may have the same name."""
        return f"refs/heads/{self._settings.branch}" if self._settings.branch else "HEAD"

    async def head(self) -> str:
        """The commit of the branch at the server. Raises SourceFault."""
        listed = await self._call("ls-remote", "--quiet", "--", self._settings.url, self._name)
        for line in listed.decode(errors="replace").splitlines():
            commit, _, name = line.partition("\t")
            if name == self._name:
                return commit
        raise SourceMisplaced("The repository has no such branch, or is empty")

    async def fetch(self, *, only_names: bool) -> str:
        """Get the branch's commit without its history, and with `only_names` without the files, if the server
        can; returns the commit. Raises SourceFault.
        """
        await self._call("init", "--quiet", "--bare", ".")
        await self._call("config", "remote.origin.url", self._settings.url)
        await self._call("config", "remote.origin.promisor", "true")
        parts = ["--filter=blob:none"] if only_names else []
        await self._call("fetch", "--quiet", "--depth=1", "--no-tags", *parts, "origin", self._name)
        return (await self._call("rev-parse", "FETCH_HEAD")).decode().strip()

    async def names(self, commit: str) -> bytes:
        """The files of a commit, as ``ls-tree -z`` lists them. Raises SourceFault."""
        folder = [f":(literal){self._settings.folder.rstrip('/')}"] if self._settings.folder else []
        return await self._call(
            "ls-tree", "-r", "-z", "--full-tree", commit, "--", *folder, most=_LISTING_BYTES
        )

    async def blob(self, digest: str) -> bytes:
        """The bytes of a file. Raises SourceFault, and ChildFailed for one that is too large."""
        return await self._call("cat-file", "blob", digest, most=self.most_bytes)

    async def _call(self, *words: str, most: int = _MEGABYTE) -> bytes:
        limits = ChildLimits(
            memory_mb=4_000,
            cpu_seconds=self._limits.source_git_seconds,
            wall_seconds=self._limits.source_git_seconds,
            file_bytes=self._limits.source_git_mb * _MEGABYTE,
            output_bytes=most,
        )
        try:
            return await self._children.run(
                ["git", *words], limits=limits, environment=self._environment, folder=self._place
            )
        except ChildFailed as failure:
            raise _fault(failure) from failure


def _fault(failure: ChildFailed) -> SourceFault:
    """What git's words mean. They are not shown: they may name what nobody else should see."""
    if failure.reason == "unavailable":
        return SourceMisplaced("The program git is not installed on the server")
    if failure.reason == "output":
        return TooLarge("It is too large")
    if failure.reason == "timeout":
        return SourceUnreachable("The repository takes too long")
    for pattern, fault, text in _REASONS:
        if re.search(pattern, failure.errors, re.IGNORECASE):
            return SourceThrottled(_PAUSE) if fault is SourceThrottled else fault(text)
    log.warning("git ended with status %d: %s", failure.status, failure.errors)
    return SourceUnreachable("The repository can't be fetched; the server's log says why")


class TooLarge(SourceFault):
    """A file or a listing has more bytes than are taken."""


async def environment_of(
    platform: Platform, settings: RepositorySettings, secret: SecretStr | None, place: Path
) -> dict[str, str]:
    """The variables of each call. Raises SourceMisplaced, SourceUnreachable.

    The address is resolved here, once, and git connects to just that: a name that leads elsewhere later gains
    nothing.
    """
    options = {"core.hooksPath": "/dev/null", "http.followRedirects": "false", "safe.directory": "*"}
    parts = urlsplit(settings.url)
    if parts.scheme:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        address = await _permitted(platform, parts.hostname or "", port)
        options |= {"http.proxy": "", "http.curloptResolve": f"{parts.hostname}:{port}:{address}"}
        if secret is not None:
            pair = f"{settings.user}:{secret.get_secret_value()}".encode()
            header = f"Authorization: Basic {base64.b64encode(pair).decode()}"
            options[f"http.{parts.scheme}://{parts.netloc}/.extraHeader"] = header
    else:
        allowed = split_list(platform.settings_of(SourceGitSettings).source_git_folders)
        await asyncio.to_thread(_check_local, settings.url, allowed)
    values = {
        "HOME": str(place),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": parts.scheme or "file",
        "GIT_CONFIG_COUNT": str(len(options)),
    }
    for number, (name, value) in enumerate(options.items()):
        values[f"GIT_CONFIG_KEY_{number}"], values[f"GIT_CONFIG_VALUE_{number}"] = name, value
    return values


async def _permitted(platform: Platform, host: str, port: int) -> str:
    """An address of the host that calls may reach. Raises SourceMisplaced, SourceUnreachable."""
    resolver = CheckedResolver(Destinations(allowed=split_list(platform.settings.outgoing_allowed)))
    try:
        addresses = await resolver.resolve(host, port)
    except OutgoingError as error:
        raise SourceMisplaced(str(error)) from None
    except OSError:
        raise SourceUnreachable(f"{host} can't be found") from None
    finally:
        await resolver.close()
    if not addresses:
        raise SourceUnreachable(f"{host} can't be found")
    address = addresses[0]["host"]
    return f"[{address}]" if ":" in address else address


def _check_local(path: str, allowed: Sequence[str]) -> None:
    """All places where git may look for the repository: a link or a file there may name another one."""
    places = [Path(location) for location in (path, f"{path}/.git", f"{path}.git", f"{path}.git/.git")]
    try:
        resolved = [place.resolve() for place in places]
        roots = [Path(one).resolve() for one in allowed]
        inside = all(any(place.is_relative_to(root) for root in roots) for place in resolved)
        is_other = any(place.is_file() for place in resolved)
    except (OSError, RuntimeError):  # no name that a disk takes, or links in a circle
        raise SourceMisplaced("There is no repository at this address") from None
    if not inside or is_other:
        raise SourceMisplaced(
            "This repository on the server may not be a source; the operator can allow it in "
            "PLATFORM_SOURCE_GIT_FOLDERS"
        )


GIT_CHILDREN: ResourceKey[Children] = ResourceKey("processes of git")


@asynccontextmanager
async def open_children(_platform: Platform) -> AsyncIterator[Children]:
    """The resource `GIT_CHILDREN`."""
    async with aclosing(Children()) as children:
        yield children
