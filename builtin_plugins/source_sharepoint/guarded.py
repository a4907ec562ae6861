"""Who may read files, as the permissions of each say it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from builtin_plugins.source_sharepoint.graph import GraphApi
from builtin_plugins.source_sharepoint.libraries import LibrarySource
from builtin_plugins.sources.api import (
    RightsReading,
    RouteRefused,
    SourceGrant,
    SourcePerson,
    WholeReading,
)
from kernel.sdk import utc_now

_READING: Final = frozenset({"read", "write", "owner"})
_EDITING: Final = frozenset({"write", "owner"})
_ID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_DIRECTORY_GROUP: Final = re.compile(
    rf"c:0(?:o\.c\|federateddirectoryclaimprovider|t\.c\|tenant)\|({_ID})", re.IGNORECASE
)
"""Claims of SharePoint for groups of the directory; one with `_o` at the end is for the group's owners."""
_USER: Final = "#microsoft.graph.user"
_GUEST: Final = "#ext#"


class GuardedLibraries(WholeReading, LibrarySource):
    """Each file is asked for its permissions, as Graph gives none in lists."""

    def __init__(self, api: GraphApi) -> None:
        super().__init__(api)
        self.is_exact = True

    async def read_rights(self) -> RightsReading:
        """As it is now. Raises SourceFault."""
        reading, directory_groups = RightsReading(), set[str]()
        for drive in await self.api.drives():
            items, _ = await self.all_items(drive)
            files = [one for one in items.values() if one.is_file]
            for file, permissions in zip(files, await self.api.permissions(files), strict=True):
                if permissions is not None:  # otherwise, the application may not see them
                    roles = _EDITING if file.is_draft else _READING
                    grant = _grant(reading, directory_groups, permissions, roles)
                    reading.grants[f"{drive.id}/{file.id}"] = grant
        groups = sorted(directory_groups)
        for group, members in zip(groups, await self.api.members(groups), strict=True):
            reading.members[group] = _members(reading, members or ())
        named = {person for grant in reading.grants.values() for person in grant.people}
        unknown = sorted(named - {one.id for one in reading.people.values() if one.email})
        await self._describe(reading, unknown)
        return reading

    async def _describe(self, reading: RightsReading, ids: Sequence[str]) -> None:
        """Ask for the addresses of people; they have none if the application may not know them.

        Those who may no longer sign in read nothing.
        """
        valid_ids = [one for one in ids if re.fullmatch(_ID, one, re.IGNORECASE)]
        try:
            users = await self.api.people(valid_ids) if valid_ids else []
        except RouteRefused:
            return
        people = {str(one["id"]): one for one in users if one.get("id")}
        reading.people |= {number: _person(one) for number, one in people.items()}
        reading.withdraw({number for number, one in people.items() if not _may_sign_in(one)})


def _members(reading: RightsReading, members: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """The people in a group; nobody if the application may not know."""
    users = [one for one in members if one.get("@odata.type") == _USER and one.get("id")]
    active = {str(one["id"]): _person(one) for one in users if _may_sign_in(one)}
    reading.people |= active
    return frozenset(active)


def _grant(
    reading: RightsReading,
    directory_groups: set[str],
    permissions: Sequence[Mapping[str, Any]],
    roles: frozenset[str],
) -> SourceGrant:
    """Links give only the people they name; whoever has another one is a group that the table explains."""
    people, groups = set[str](), set[str]()
    for permission in permissions:
        if _is_over(permission) or not roles.intersection(permission.get("roles") or ()):
            continue
        link = permission.get("link")
        if isinstance(link, dict) and link.get("scope") in ("anonymous", "organization"):
            groups.add(f"link {link['scope']}")
        for kind, number, name in _identities(permission):
            if kind == "user":
                people.add(number)
                reading.people.setdefault(number, SourcePerson(number, name))
            else:
                groups.add(number)
                reading.names[number] = name
                if kind == "group":
                    directory_groups.add(number)
    return SourceGrant(sorted(people), sorted(groups))


def _identities(permission: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Kind (user, group of the directory, other group), id and name of whom a permission names."""
    named = permission.get("grantedToIdentitiesV2")
    for identity in [permission.get("grantedToV2"), *(named if isinstance(named, list) else [])]:
        parts = _identity(identity) if isinstance(identity, dict) else None
        if parts is not None:
            yield parts


def _identity(named: Mapping[str, Any]) -> tuple[str, str, str] | None:
    for kind in ("group", "user"):
        about = named.get(kind)
        if isinstance(about, dict) and about.get("id"):
            return kind, str(about["id"]), str(about.get("displayName") or about["id"])
    for kind in ("sharePointGroup", "siteGroup", "siteUser"):
        about = named.get(kind)
        if not isinstance(about, dict) or not about.get("id"):
            continue
        name, login = str(about.get("displayName") or about["id"]), str(about.get("loginName") or "")
        claim = _DIRECTORY_GROUP.fullmatch(login)
        if claim is not None:
            return "group", claim[1].lower(), name
        return "other", f"{kind} {login if kind == 'siteUser' and login else about['id']}", name
    return None


def _person(user: Mapping[str, Any]) -> SourcePerson:
    """With the mail address that the directory has, or the sign-in name of a member."""
    number, name = str(user["id"]), str(user.get("userPrincipalName") or "")
    email = user.get("mail") or (name if "@" in name and _GUEST not in name.lower() else None)
    return SourcePerson(number, str(user.get("displayName") or name or number), email)


def _may_sign_in(user: Mapping[str, Any]) -> bool:
    return user.get("accountEnabled") is not False


def _is_over(permission: Mapping[str, Any]) -> bool:
    """The first moment of all times means that there is no end."""
    ends = permission.get("expirationDateTime")
    if not ends or str(ends).startswith("0001-"):
        return False
    try:
        return datetime.fromisoformat(str(ends)) <= utc_now()
    except (ValueError, TypeError):
        return True
