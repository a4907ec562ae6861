"""Confluence's routes as Atlassian documents them, of Cloud (v1 and v2) and of Data Center: no Confluence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from aiohttp import encode_basic_auth, web
from yarl import URL

USER, TOKEN = "robot@example.org", "a token"
LEVELS = {
    "page": "pages",
    "folder": "folders",
    "whiteboard": "whiteboards",
    "database": "databases",
    "embed": "embeds",
}


@dataclass
class WikiPage:
    """A page, blog post, attachment, or a level such as a folder, `above` what it is below.

    `readers`: people and groups.
    """

    id: str
    kind: str
    title: str
    above: str | None
    content: bytes
    version: int = 1
    when: str = "2026-01-02T03:04:05.000Z"
    readers: tuple[Sequence[str], Sequence[str]] = ((), ())
    space: str = "DOC"
    status: str = "current"


@dataclass
class FakeConfluence:
    """One space, `spoil` what goes wrong. People and groups are known by ids, as the edition has them.

    The search of the cloud still names pages that have left the space, as its index does for a while.
    `skips_levels`: its `ancestors` are pages alone. `parents`: what the second version of its routes says of
    these instead.
    """

    edition: str
    key: str = "DOC"
    context: str = "/wiki"
    pages: dict[str, WikiPage] = field(default_factory=dict)
    space_readers: list[tuple[str, str]] = field(default_factory=list)
    members: dict[str, list[str]] = field(default_factory=dict)
    emails: dict[str, str] = field(default_factory=dict)
    most: int = 100
    nested: int = 25
    spoil: str = ""
    next_host: str = ""
    skips_levels: bool = False
    parents: dict[str, dict[str, Any]] = field(default_factory=dict)
    inactive: set[str] = field(default_factory=set)
    bodies: list[str] = field(default_factory=list)
    asked: int = 0
    _ids: count[int] = field(default_factory=lambda: count(100))

    def add(
        self, title: str, above: str | None = None, kind: str = "page", content: bytes = b"", **fields: Any
    ) -> WikiPage:
        number = str(next(self._ids))
        page = WikiPage(
            f"att{number}" if kind == "attachment" else number, kind, title, above, content, **fields
        )
        self.pages[page.id] = page
        return page

    def user(self, one: str) -> dict[str, Any]:
        if one == "?":
            return {"type": "unknown", "displayName": "Unknown user"}
        if self.edition == "cloud":
            about = {"accountId": one, "accountType": "atlassian", "publicName": one}
            return {"type": "known", **about, "email": self.emails.get(one, ""), "displayName": one.title()}
        return {"type": "known", "userKey": one, "username": one.removeprefix("key-"), "displayName": one}

    def group(self, one: str) -> dict[str, Any]:
        return {"type": "group", "name": f"{one} (name)" if self.edition == "cloud" else one, "id": one}

    async def handle(self, request: web.Request) -> web.Response:
        self.asked += 1
        given = request.headers.get("Authorization")
        wanted = encode_basic_auth(USER, TOKEN) if self.edition == "cloud" else f"Bearer {TOKEN}"
        if given != wanted or self.spoil == "expired":
            return web.json_response({"statusCode": 401, "message": "Unauthorized"}, status=401)
        if self.spoil == "busy" and self.asked % 3 == 0:
            return web.Response(status=429, headers={"Retry-After": "0"})
        path = request.path.removeprefix(self.context)
        if path == request.path:
            return web.Response(status=404)
        return await self._routed(request, path)

    async def _routed(self, request: web.Request, path: str) -> web.Response:
        parts, query = path.strip("/").split("/"), request.query
        is_cloud = self.edition == "cloud"
        if path == ("/api/v2/spaces" if is_cloud else "/rest/api/space"):
            keys = query["keys"].split(",") if "keys" in query else query.getall("spaceKey", [self.key])
            spaces: list[Any] = [{"id": "7", "key": self.key, "name": "Docs"}] * (self.key in keys)
            return self._page(request, spaces)
        if path == "/rest/api/content/search" and is_cloud:
            kind = query["cql"].partition(" type = ")[2].split()[0]
            assert query["cql"].startswith(f'space = "{self.key}" and ')
            return self._content(request, kind)
        if path == "/rest/api/content" and not is_cloud:
            return self._content(request, query["type"])
        if path == "/api/v2/spaces/7/permissions" and is_cloud:
            return self._cloud_permissions(request)
        if path == f"/rest/api/space/{self.key}/permissions" and not is_cloud:
            return self._server_permissions()
        if path.endswith("/membersByGroupId" if is_cloud else "/member"):
            return self._members(request, parts[3])
        if path == "/api/v2/users-bulk" and is_cloud:
            return await self._people(request)
        if path == "/rest/api/user" and not is_cloud:
            return web.json_response(self.user(query["key"]))
        if path.endswith("/restriction/byOperation/read"):
            return self._restriction(request, parts[3])
        if path.endswith("/child/attachment") and not is_cloud:
            return self._page(request, [self._entry(one) for one in self._attached(parts[3])])
        if path.endswith("/attachments") and path.startswith("/api/v2/pages/") and is_cloud:
            return self._page(request, [self._second(one) for one in self._attached(parts[3])])
        if is_cloud and parts[:2] == ["api", "v2"] and "body-format" not in query:
            return self._levels(request, parts[2:])
        return self._body(request, parts)

    def _levels(self, request: web.Request, parts: list[str]) -> web.Response:
        """Pages of the space, or one level: each says what it is directly below."""
        if parts == ["spaces", "7", "pages"]:
            pages = [one for one in self.pages.values() if one.kind == "page"]
            return self._page(
                request, [self._level(one) for one in pages if one.status in ("current", "archived")]
            )
        place, number = parts
        page = self.pages.get(number)
        if self.spoil == "refused":
            return web.json_response({"errors": [{"status": 403, "code": "FORBIDDEN"}]}, status=403)
        if page is None or LEVELS.get(page.kind) != place or self.spoil == "levels":
            return web.json_response({"errors": [{"status": 404, "code": "NOT_FOUND"}]}, status=404)
        return web.json_response(self._level(page))

    def _level(self, page: WikiPage) -> dict[str, Any]:
        parent = self.pages.get(page.above or "")
        about = {"id": page.id, "status": page.status, "title": page.title, "spaceId": "7"}
        above = {"parentId": parent and parent.id, "parentType": parent and parent.kind}
        return about | self.parents.get(page.id, above)

    async def _people(self, request: web.Request) -> web.Response:
        """Only this route says whether somebody may still sign in."""
        people = [self.user(one) for one in (await request.json())["accountIds"]]
        status = {True: "inactive", False: "active"}
        return web.json_response(
            {
                "results": [
                    {**one, "accountStatus": status[one["accountId"] in self.inactive]} for one in people
                ]
            }
        )

    def _page(self, request: web.Request, entries: list[Any]) -> web.Response:
        """A page of a list: in the cloud by a cursor, else by a start."""
        limit = min(int(request.query.get("limit", 25)), self.most)
        start = int(request.query.get("cursor") or request.query.get("start") or 0)
        end = start + limit
        if self.spoil == "repeated" and start:
            start -= 1
        answer: dict[str, Any] = {
            "results": entries[start:end],
            "limit": limit,
            "size": len(entries[start:end]),
        }
        answer["_links"] = {"base": f"http://elsewhere.example{self.context}", "context": self.context}
        if end < len(entries):
            name = "cursor" if self.edition == "cloud" else "start"
            url = URL(request.path_qs, encoded=True).update_query({name: str(end)})
            place = str(url)
            if "/api/v2/" not in place:
                place = place.removeprefix(self.context)
            answer["_links"]["next"] = f"{self.next_host}{place}"
        return self._json(answer)

    def _json(self, answer: Any) -> web.Response:
        text = json.dumps(answer)
        if self.spoil == "cut" and isinstance(answer, dict) and len(answer.get("results", ())) != 1:
            text = text[: len(text) // 2]
        return web.Response(text=text, content_type="application/json")

    def _content(self, request: web.Request, kind: str) -> web.Response:
        found = [self._entry(one) for one in self.pages.values() if one.kind == kind]
        if self.spoil == "short":
            found = found[:1]
        return self._page(request, found)

    def _attached(self, above: str) -> list[WikiPage]:
        return [one for one in self.pages.values() if one.kind == "attachment" and one.above == above]

    def _above(self, page: WikiPage) -> list[WikiPage]:
        parent = self.pages.get(page.above or "")
        return [] if parent is None else [*self._above(parent), parent]

    def _entry(self, page: WikiPage) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "id": page.id,
            "type": page.kind,
            "status": page.status,
            "space": {"id": 7, "key": page.space, "type": "global"},
            "title": page.title,
            "version": {"number": page.version, "when": page.when, "minorEdit": False},
            "_links": {"webui": f"/spaces/{self.key}/pages/{page.id}"},
        }
        if page.kind == "attachment":
            entry["extensions"] = {"mediaType": "text/plain", "fileSize": len(page.content)}
            return entry
        above = [one for one in self._above(page) if one.kind == "page" or not self.skips_levels]
        entry["ancestors"] = [{"id": one.id, "type": one.kind, "title": one.title} for one in above]
        attached = [self._entry(one) for one in self._attached(page.id)]
        entry["children"] = {"attachment": self._nested(attached)}
        entry["restrictions"] = {"read": {"operation": "read", "restrictions": self._limits(page, 0)}}
        return entry

    def _second(self, page: WikiPage) -> dict[str, Any]:
        """An attachment as the second version of the routes has it."""
        return {
            "id": page.id,
            "status": "current",
            "title": page.title,
            "mediaType": "text/plain",
            "fileSize": len(page.content),
            "version": {"number": page.version, "createdAt": page.when},
            "_links": {"webui": f"/pages/viewpageattachments.action?pageId={page.above}"},
        }

    def _nested(self, entries: list[Any], start: int = 0) -> dict[str, Any]:
        part = entries[start : start + self.nested]
        return {"results": part, "start": start, "limit": self.nested, "size": len(part)}

    def _limits(self, page: WikiPage, start: int) -> dict[str, Any]:
        people, groups = page.readers
        return {
            "user": self._nested([self.user(one) for one in people], start),
            "group": self._nested([self.group(one) for one in groups], start),
        }

    def _restriction(self, request: web.Request, content: str) -> web.Response:
        page = self.pages.get(content)
        if page is None or (page.kind in [*LEVELS][1:] and self.spoil == "folders"):
            return web.json_response({"statusCode": 404}, status=404)
        start = 0 if self.spoil == "circle" else int(request.query["start"])
        answer = {"operation": "read", "restrictions": self._limits(page, start)}
        return web.json_response(answer)

    def _cloud_permissions(self, request: web.Request) -> web.Response:
        if self.spoil == "rights":
            return web.json_response({"message": "no"}, status=403)
        found = [("read", "space", one) for one in self.space_readers] + [("create", "page", ("user", "eve"))]
        entries = [
            {
                "id": str(at),
                "principal": {"type": kind, "id": name},
                "operation": {"key": key, "targetType": target},
            }
            for at, (key, target, (kind, name)) in enumerate(found)
        ]
        return self._page(request, entries)

    def _server_permissions(self) -> web.Response:
        if self.spoil == "rights":  # CONFSERVER: whoever does not administer it
            return web.json_response({"statusCode": 500, "message": "Internal"}, status=500)
        named = {"user": "userKey", "group": "name"}
        read, create = ("read", "space"), ("create", "page")
        entries = [
            {
                "operation": {"operationKey": key, "targetType": target},
                "subject": {"type": kind, **({named[kind]: name} if kind in named else {})},
                "spaceKey": self.key,
                "spaceId": 7,
            }
            for (key, target), (kind, name) in [
                *((read, one) for one in self.space_readers),
                (create, ("user", "eve")),
            ]
        ]
        return web.json_response(entries)

    def _members(self, request: web.Request, group: str) -> web.Response:
        if group not in self.members:
            return web.json_response({"statusCode": 403, "message": "no"}, status=403)
        return self._page(request, [self.user(one) for one in self.members[group]])

    def _body(self, request: web.Request, parts: list[str]) -> web.Response:
        is_file = "attachment" in parts or "attachments" in parts
        name = parts[-2] if is_file and self.edition == "cloud" else parts[-1]
        found = [one for one in self.pages.values() if name in (one.id, is_file and one.title)]
        if not found:
            return web.json_response({"statusCode": 404}, status=404)
        [page] = found
        self.bodies.append(page.id)
        if is_file:
            assert request.query["version"] == str(page.version)
            return web.Response(body=page.content)
        text = {"storage": {"value": page.content.decode(), "representation": "storage"}}
        return web.json_response(
            {"id": page.id, "title": page.title, "version": {"number": page.version}, "body": text}
        )
