"""Nextcloud's shares: who besides the user may read what is in the user's folders.

One request lists all shares of what is the user's, as the OCS Share API documents it; a share of a folder
holds for what is below it. What others share with the user is read here by the user alone: their other shares
can't be seen.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any, Final, Self
from urllib.parse import quote

from aiohttp import hdrs
from pydantic import BaseModel, Field, TypeAdapter, ValidationError, field_validator
from yarl import URL

from builtin_plugins.sources.api import (
    CredentialRefused,
    ListingIncomplete,
    SourceGrant,
    SourceMisplaced,
    SourceUnreachable,
    call_server,
)
from kernel.sdk import CallLimits, OutgoingClient, OutgoingError, OutgoingReply

_FILES: Final = "/remote.php/dav/files/"
_API: Final = CallLimits(total_seconds=120, silence_seconds=60, body_bytes=64 * 1024 * 1024)
_USER, _GROUP = 0, 1
"""Types of shares; links, mail addresses, other clouds, circles and talks are nobody who is known here."""
_READ: Final = 1
_EASTMOST: Final = timedelta(hours=14)
"""The server's day of expiry may have begun so long before that of UTC."""


@dataclass(frozen=True)
class CloudPlace:
    """Whose folder it is: the server's `address`, the `user`, and the folder from the user's own on."""

    address: URL
    user: str
    folder: PurePosixPath

    @classmethod
    def of(cls, root: URL) -> Self:
        """That of a WebDAV address. Raises SourceMisplaced if it is none of a Nextcloud."""
        server, marker, rest = root.path.partition(_FILES)
        user, _, folder = rest.partition("/")
        if not marker or not user:
            raise SourceMisplaced("Shares are read only of https://host/remote.php/dav/files/USER/folder")
        return cls(
            root.origin() / server.strip("/") if server.strip("/") else root.origin(),
            user,
            PurePosixPath("/", folder),
        )


class CloudShare(BaseModel):
    """What is said of one share that matters here. `path` is from the user's own folder on."""

    share_type: int
    permissions: int
    path: str
    share_with: str | None = Field(None, max_length=1_000)
    expiration: datetime | None = None

    @field_validator("expiration")
    @classmethod
    def _of_utc(cls, value: datetime | None) -> datetime | None:
        return value if value is None else value.replace(tzinfo=UTC)

    def counts(self, now: datetime) -> bool:
        """Whether it is for a person or a group, and not over."""
        is_over = self.expiration is not None and self.expiration - _EASTMOST <= now
        return self.share_type in (_USER, _GROUP) and bool(self.share_with) and not is_over


_SHARES: Final = TypeAdapter(list[CloudShare])


class CloudShares:
    """The shares at one moment, by path."""

    def __init__(self, place: CloudPlace, shares: Sequence[CloudShare], now: datetime) -> None:
        self._place = place
        self._by_path: dict[PurePosixPath, list[CloudShare]] = {}
        for share in shares:
            if share.counts(now):
                self._by_path.setdefault(PurePosixPath("/", share.path), []).append(share)

    def of(self, path: str) -> SourceGrant:
        """Who may read a file below the source's folder: with a share that denies it, the user alone."""
        whole = self._place.folder / path
        shares = [one for place in (whole, *whole.parents) for one in self._by_path.get(place, ())]
        if any(not one.permissions & _READ for one in shares):
            return SourceGrant([self._place.user])
        people = {one.share_with or "" for one in shares if one.share_type == _USER}
        groups = {one.share_with or "" for one in shares if one.share_type == _GROUP}
        return SourceGrant(sorted({self._place.user, *people}), sorted(groups))

    def people(self) -> set[str]:
        """All who are named, and the user."""
        return {self._place.user} | self._recipients(_USER)

    def groups(self) -> set[str]:
        """The same of groups."""
        return self._recipients(_GROUP)

    def _recipients(self, kind: int) -> set[str]:
        shares = (one for some in self._by_path.values() for one in some)
        return {one.share_with or "" for one in shares if one.share_type == kind}

    def mark(self, members: Mapping[str, Collection[str]], tag: str) -> str:
        """A text that differs after every change of these, of groups' members and of a tag."""
        shares = sorted(
            [str(path), share.share_type, share.permissions, share.share_with or ""]
            for path, some in self._by_path.items()
            for share in some
        )
        groups = sorted([name, sorted(people)] for name, people in members.items())
        return hashlib.sha256(json.dumps([shares, groups, tag]).encode()).hexdigest()


class CloudApi:
    """Nextcloud's OCS routes. Raises SourceFault: nothing that is not understood counts as no share."""

    def __init__(self, client: OutgoingClient, place: CloudPlace, headers: Mapping[str, str]) -> None:
        self._client, self._place = client, place
        self._headers = {**headers, "OCS-APIRequest": "true", hdrs.ACCEPT: "application/json"}

    async def shares(self, now: datetime) -> CloudShares:
        """All shares of what is the user's, by whomever."""
        data = await self._ask("apps/files_sharing/api/v1/shares", {"reshares": "true"})
        if data is None:
            raise CredentialRefused("The server refuses to list the shares")
        try:
            return CloudShares(self._place, _SHARES.validate_python(data), now)
        except ValidationError as error:
            place = ".".join(map(str, error.errors()[0]["loc"]))
            raise ListingIncomplete(f"The server's list of shares is not understood ({place})") from None

    async def members(self, group: str) -> Sequence[str]:
        """The people in a group; nobody if the user may not know."""
        data = await self._ask(f"cloud/groups/{quote(group, safe='')}", {})
        if data is None:
            return ()
        users = data.get("users") if isinstance(data, dict) else None
        if not isinstance(users, list) or not all(isinstance(one, str) for one in users):
            raise ListingIncomplete("The server's list of a group is not understood")
        return users

    async def _ask(self, path: str, query: Mapping[str, str]) -> Any:
        """The data of an answer; None if the user may not have it, or there is no such thing."""
        base = URL(f"{str(self._place.address).rstrip('/')}/ocs/v2.php/{path}", encoded=True)
        url = base.with_query({**query, "format": "json"})
        async with await call_server(self._client, "GET", url, _API, self._headers) as reply:
            if reply.status == 401:
                raise CredentialRefused("The server refuses the user or the password")
            if reply.status in (403, 404):
                return None
            if reply.status != 200:
                raise SourceUnreachable(f"The server answered {reply.status} when asked for shares")
            return await _data_of(reply)


async def _data_of(reply: OutgoingReply) -> Any:
    try:
        answer = json.loads(await reply.read())
        meta = answer["ocs"]["meta"]
        if meta["status"] != "ok":
            raise SourceUnreachable("The server could not list shares")
        return answer["ocs"]["data"]
    except (OutgoingError, ValueError, LookupError, TypeError):
        raise ListingIncomplete("The server's answer about shares is not understood") from None
