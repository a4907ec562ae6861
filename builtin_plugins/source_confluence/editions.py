"""The two Confluences: routes and shapes in which Cloud and Data Center differ.

Cloud: https://developer.atlassian.com/cloud/confluence/rest/v2 (spaces, their permissions, bodies, people)
and v1 (search, restrictions, groups). Data Center: https://developer.atlassian.com/server/confluence/rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from urllib.parse import quote

from yarl import URL

from builtin_plugins.sources.api import (
    JsonApi,
    ListingIncomplete,
    RouteRefused,
    SourceGrant,
    SourceMisplaced,
    SourcePerson,
    SourceUnreachable,
    entries_of,
    link_of,
)

_PAGE: Final = 100
_MEMBERS: Final = 200
_PEOPLE: Final = 100
_KEYS: Final = 250
_GONE: Final = ("inactive", "closed")
_READS_SPACE: Final = ("read", "space")
EXPANDED: Final = (
    "space,version,ancestors,children.attachment,children.attachment.version,"
    "restrictions.read.restrictions.user,restrictions.read.restrictions.group"
)


@dataclass(frozen=True, slots=True)
class Space:
    """A space; `id` is asked for in some routes of the cloud."""

    key: str
    id: str


class Edition(ABC):
    """What is asked of a Confluence at `base`, whose path is the context of all routes.

    `asks_about_all`: only `people` says who may no longer sign in, and it answers for many at once.
    `has_folders`: pages can be in folders, and below whiteboards, databases and embeds.
    """

    asks_about_all: ClassVar[bool]
    has_folders: ClassVar[bool]

    def __init__(self, api: JsonApi, base: URL, *, anonymous: bool) -> None:
        self.api = api
        self._base = str(base).rstrip("/")
        self._context = base.raw_path.rstrip("/")
        self._anonymous = anonymous

    def route(self, path: str, query: Mapping[str, str] | Sequence[tuple[str, str]] = ()) -> URL:
        """The address of a route; the path is quoted already."""
        url = URL(self._base + path, encoded=True)
        return url.with_query(query) if query else url

    def following(self, _page: URL, answer: Any) -> URL | None:
        """The next page: on this server, whatever host the answer names."""
        links = answer.get("_links")
        after = links.get("next") if isinstance(links, dict) else None
        if not after:
            return None
        target = link_of(after)
        path = target.raw_path.removeprefix(self._context)
        if self._context.endswith("/wiki"):
            path = path.removeprefix("/wiki")
        return URL(f"{self._base}/{path.lstrip('/')}?{target.raw_query_string}", encoded=True)

    def entries(self, url: URL) -> AsyncGenerator[Mapping[str, Any], None]:
        """The entries of all pages from this one on. Raises as `entries_of` does."""
        return entries_of(self.api, url, "results", self.following)

    async def all_of(self, url: URL) -> list[Mapping[str, Any]]:
        """The same, at once."""
        return [one async for one in self.entries(url)]

    async def spaces(self, keys: Collection[str]) -> list[Space]:
        """These spaces, or all that the account sees. Raises SourceMisplaced if one is not there."""
        named, entries = sorted(keys), list[Mapping[str, Any]]()
        for start in range(0, max(len(named), 1), _KEYS):
            entries += await self.all_of(self.spaces_route(named[start : start + _KEYS]))
        spaces = {str(one["key"]): Space(str(one["key"]), str(one["id"])) for one in entries}
        missing = sorted(set(keys) - spaces.keys())
        if missing:
            raise SourceMisplaced(f"Spaces: the account does not see {', '.join(missing)}")
        return list(spaces.values())

    async def space_readers(self, space: Space) -> SourceGrant:
        """Who may see a space. Raises SourceFault with the remedy if that can't be read."""
        try:
            return await self.read_space_readers(space)
        except (SourceUnreachable, RouteRefused) as fault:
            raise type(fault)(f"{self.remedy(space)}: {fault}") from None

    def restriction(self, content: str) -> URL:
        """The route with the people and groups to whom reading a content is restricted."""
        query = {"expand": "restrictions.user,restrictions.group", "limit": str(_MEMBERS)}
        return self.route(f"/rest/api/content/{quote(content)}/restriction/byOperation/read", query)

    def grant(self, people: Collection[str], groups: Collection[str], *, anonymous: bool) -> SourceGrant:
        """Anonymous people count only where the source's settings say that they may use Confluence."""
        return SourceGrant(sorted(people), sorted(groups), anonymous and self._anonymous)

    @abstractmethod
    def spaces_route(self, keys: Collection[str]) -> URL:
        """The first page of these spaces, or of all."""

    @abstractmethod
    def listing(self, space: Space, kind: str) -> URL:
        """The first page of a space's content of a kind (page, blogpost)."""

    @abstractmethod
    def body(self, kind: str, content: str) -> URL:
        """The route with a content's version and its body in storage format."""

    @abstractmethod
    def attachments(self, kind: str, content: str) -> URL:
        """The route with all attachments of a content of a kind."""

    @abstractmethod
    def download(self, page: str, attachment: str, name: str, version: str) -> URL:
        """The route of one version of an attachment."""

    @abstractmethod
    async def read_space_readers(self, space: Space) -> SourceGrant:
        """The same as `space_readers`."""

    @abstractmethod
    def remedy(self, space: Space) -> str:
        """What to do if the readers of a space can't be read."""

    @abstractmethod
    def members(self, group: str) -> URL:
        """The first page of the people in a group."""

    @abstractmethod
    def person(self, user: Mapping[str, Any]) -> SourcePerson | None:
        """A user of an answer; None for one who is unknown there, or may no longer sign in."""

    @abstractmethod
    def group(self, group: Mapping[str, Any]) -> tuple[str, str]:
        """Id and name of a group of an answer."""

    @abstractmethod
    async def people(self, ids: Sequence[str]) -> list[SourcePerson]:
        """Who these are, as far as they are there."""


class Cloud(Edition):
    """People have account ids, and an e-mail address only where their profile shows it to the account."""

    asks_about_all = True
    has_folders = True

    def spaces_route(self, keys: Collection[str]) -> URL:
        query = {"limit": "250", "status": "current"}
        return self.route("/api/v2/spaces", query | ({"keys": ",".join(sorted(keys))} if keys else {}))

    def listing(self, space: Space, kind: str) -> URL:
        cql = f'space = "{space.key}" and type = {kind} order by created'
        query = {"cql": cql, "limit": str(_PAGE), "expand": EXPANDED}
        return self.route("/rest/api/content/search", query)

    def body(self, kind: str, content: str) -> URL:
        return self.route(_place(kind, content), {"body-format": "storage"})

    def attachments(self, kind: str, content: str) -> URL:
        return self.route(f"{_place(kind, content)}/attachments", {"status": "current", "limit": str(_PAGE)})

    def download(self, page: str, attachment: str, name: str, version: str) -> URL:
        path = f"/rest/api/content/{quote(page)}/child/attachment/{quote(attachment)}/download"
        return self.route(path, {"version": version})

    async def read_space_readers(self, space: Space) -> SourceGrant:
        people, groups, is_open = set[str](), set[str](), False
        url = self.route(f"/api/v2/spaces/{quote(space.id)}/permissions", {"limit": "250"})
        async for entry in self.entries(url):
            operation, principal = _parts(entry, "operation"), _parts(entry, "principal")
            if (operation.get("key"), operation.get("targetType")) != _READS_SPACE:
                continue
            kind, name = principal.get("type"), str(principal.get("id") or "")
            if kind == "user":
                people.add(name)
            elif name == "anonymous-users":
                is_open = True
            elif name:  # a group, or a class of people such as all-licensed-users
                groups.add(name)
        return self.grant(people, groups, anonymous=is_open)

    def remedy(self, space: Space) -> str:
        return f"The account may not see who reads the space {space.key}"

    def members(self, group: str) -> URL:
        return self.route(
            f"/rest/api/group/{quote(group, safe='')}/membersByGroupId", {"limit": str(_MEMBERS)}
        )

    def person(self, user: Mapping[str, Any]) -> SourcePerson | None:
        account = user.get("accountId")
        if not account or user.get("accountStatus") in _GONE:
            return None
        is_person = user.get("accountType", "atlassian") == "atlassian"
        name = user.get("displayName") or user.get("publicName") or account
        return SourcePerson(str(account), str(name), (user.get("email") or None) if is_person else None)

    def group(self, group: Mapping[str, Any]) -> tuple[str, str]:
        return str(group.get("id") or ""), str(group.get("name") or "")

    async def people(self, ids: Sequence[str]) -> list[SourcePerson]:
        people = list[SourcePerson]()
        for start in range(0, len(ids), _PEOPLE):
            body = {"accountIds": list(ids[start : start + _PEOPLE])}
            answer = await self.api.read(self.route("/api/v2/users-bulk"), method="POST", body=body)
            if not isinstance(answer, dict) or not isinstance(answer.get("results"), list):
                raise ListingIncomplete("Confluence's list of people is not understood")
            people += [person for one in answer["results"] if (person := self.person(one)) is not None]
        return people


class DataCenter(Edition):
    """People have keys and user names, and no e-mail address; groups are known by their names."""

    asks_about_all = False
    has_folders = False

    def __init__(self, api: JsonApi, base: URL, domain: str | None, *, anonymous: bool) -> None:
        super().__init__(api, base, anonymous=anonymous)
        self._domain = domain

    def spaces_route(self, keys: Collection[str]) -> URL:
        query = [("limit", str(_PAGE)), ("status", "current"), *(("spaceKey", one) for one in sorted(keys))]
        return self.route("/rest/api/space", query)

    def listing(self, space: Space, kind: str) -> URL:
        query = {"spaceKey": space.key, "type": kind, "status": "current", "start": "0"}
        return self.route("/rest/api/content", {**query, "limit": str(_PAGE), "expand": EXPANDED})

    def body(self, kind: str, content: str) -> URL:
        return self.route(f"/rest/api/content/{quote(content)}", {"expand": "body.storage,version"})

    def attachments(self, kind: str, content: str) -> URL:
        query = {"expand": "version", "limit": str(_PAGE)}
        return self.route(f"/rest/api/content/{quote(content)}/child/attachment", query)

    def download(self, page: str, attachment: str, name: str, version: str) -> URL:
        query = {"version": version, "api": "v2"}
        return self.route(f"/download/attachments/{quote(page)}/{quote(name, safe='')}", query)

    async def read_space_readers(self, space: Space) -> SourceGrant:
        """By the routes of 9.1 on: `expand=permissions` answers 500 to whoever is no administrator."""
        answer = await self.api.read(self.route(f"/rest/api/space/{quote(space.key)}/permissions"))
        if answer is None:
            raise RouteRefused("there is no such route")
        if not isinstance(answer, list):
            raise ListingIncomplete("Confluence's list of permissions is not understood")
        people, groups, is_open = set[str](), set[str](), False
        for entry in answer:
            operation, subject = _parts(entry, "operation"), _parts(entry, "subject")
            if (operation.get("operationKey"), operation.get("targetType")) != _READS_SPACE:
                continue
            if subject.get("type") == "user" and subject.get("userKey"):
                people.add(str(subject["userKey"]))
            elif subject.get("type") == "group" and subject.get("name"):
                groups.add(str(subject["name"]))
            elif subject.get("type") == "anonymous":
                is_open = True
        return self.grant(people, groups, anonymous=is_open)

    def remedy(self, space: Space) -> str:
        return (
            f"Who reads the space {space.key} can't be read: let the account administer the space, on "
            "Confluence 9.1 or later, or let the knowledge base decide who may read"
        )

    def members(self, group: str) -> URL:
        return self.route(f"/rest/api/group/{quote(group, safe='')}/member", {"limit": str(_MEMBERS)})

    def person(self, user: Mapping[str, Any]) -> SourcePerson | None:
        key, name = user.get("userKey"), user.get("username")
        if not key:
            return None
        email = f"{name}@{self._domain}" if name and self._domain else None
        return SourcePerson(str(key), str(user.get("displayName") or name or key), email)

    def group(self, group: Mapping[str, Any]) -> tuple[str, str]:
        name = str(group.get("name") or "")
        return name, name

    async def people(self, ids: Sequence[str]) -> list[SourcePerson]:
        people = list[SourcePerson]()
        for key in ids:
            answer = await self.api.read(self.route("/rest/api/user", {"key": key}))
            person = self.person(answer) if isinstance(answer, dict) else None
            if person is not None:
                people.append(person)
        return people


def _place(kind: str, content: str) -> str:
    return f"/api/v2/{'pages' if kind == 'page' else 'blogposts'}/{quote(content)}"


def _parts(entry: Any, name: str) -> Mapping[str, Any]:
    part = entry.get(name) if isinstance(entry, dict) else None
    if not isinstance(part, dict):
        raise ListingIncomplete("Confluence's list of permissions is not understood")
    return part
