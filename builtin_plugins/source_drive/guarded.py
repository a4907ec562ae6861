"""Who may read files, as the permissions of each say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from builtin_plugins.source_drive.drive import DriveSource
from builtin_plugins.source_drive.files import FOLDER, DriveApi, DriveFile
from builtin_plugins.source_drive.settings import DriveSettings
from builtin_plugins.sources.api import (
    RightsReading,
    RouteAbsent,
    RouteRefused,
    SourceGrant,
    SourcePerson,
    WholeReading,
)
from kernel.sdk import utc_now

_LINK: Final = "link"
"""Whoever has a link: nobody here, until the table of counterparts says who that is."""


class GuardedDrive(WholeReading, DriveSource):
    """Files of shared drives are asked for their permissions, which listings do not have."""

    def __init__(self, api: DriveApi, settings: DriveSettings) -> None:
        super().__init__(api, settings)
        self.is_exact = True
        self._asks_for_groups = settings.directory

    async def read_rights(self) -> RightsReading:
        """As it is now. Raises SourceFault."""
        reading = RightsReading()
        files = {one.id: one async for one in self.api.files(rights=True)}
        documents = [
            one for one in files.values() if one.type != FOLDER and self.path_of(one, files) is not None
        ]
        listed = {one.id: _listed(one) for one in documents}
        unknown = [one.id for one in documents if listed[one.id] is None and _may_be_asked(one)]
        answers = await self.api.permissions(unknown)
        for file, permissions in {**listed, **dict(zip(unknown, answers, strict=True))}.items():
            if permissions is not None:  # otherwise, the account may not see them
                reading.grants[file] = _grant(reading, permissions)
        if self._asks_for_groups:
            for group in sorted({one for grant in reading.grants.values() for one in grant.groups}):
                if "@" in group:
                    reading.members[group] = await self._members(reading, group)
        return reading

    async def _members(self, reading: RightsReading, group: str) -> frozenset[str]:
        try:
            members = await self.api.members(group)
        except (RouteAbsent, RouteRefused):  # such as a group of another domain
            return frozenset()
        people = [
            str(one["email"]).lower()
            for one in members
            if one.get("type") == "USER" and one.get("email") and one.get("status", "ACTIVE") == "ACTIVE"
        ]
        for email in people:
            reading.people.setdefault(email, SourcePerson(email, email, email))
        return frozenset(people)


def _listed(file: DriveFile) -> Sequence[Mapping[str, Any]] | None:
    """The permissions with which a file was listed."""
    listed = file.about.get("permissions")
    return listed if isinstance(listed, list) and not file.about.get("driveId") else None


def _may_be_asked(file: DriveFile) -> bool:
    """Whether the account may see the permissions of a file: outside of shared drives, if it may share it."""
    able = file.about.get("capabilities")
    return bool(file.about.get("driveId")) or not isinstance(able, dict) or able.get("canShare") is not False


def _grant(reading: RightsReading, permissions: Sequence[Mapping[str, Any]]) -> SourceGrant:
    """Every role lets one read; a permission of a view is for something else than the content."""
    people, groups, everybody = set[str](), set[str](), False
    for permission in permissions:
        if (
            permission.get("deleted")
            or permission.get("pendingOwner")
            or permission.get("view")
            or _is_over(permission)
        ):
            continue
        kind, email = permission.get("type"), str(permission.get("emailAddress") or "").lower()
        if kind == "user" and (email or permission.get("id")):
            person = email or str(permission["id"])
            people.add(person)
            reading.people[person] = SourcePerson(
                person, str(permission.get("displayName") or person), email or None
            )
        elif kind == "group" and email:
            groups.add(email)
            reading.names[email] = str(permission.get("displayName") or email)
        elif kind == "domain" and permission.get("domain"):
            groups.add(f"domain {permission['domain']}")
        elif kind == "anyone" and permission.get("allowFileDiscovery") is True:
            everybody = True
        elif kind == "anyone":
            groups.add(_LINK)
    return SourceGrant(sorted(people), sorted(groups), everybody)


def _is_over(permission: Mapping[str, Any]) -> bool:
    ends = permission.get("expirationTime")
    if not ends:
        return False
    try:
        return datetime.fromisoformat(str(ends)) <= utc_now()
    except (ValueError, TypeError):
        return True
