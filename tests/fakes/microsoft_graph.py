"""Microsoft's token server and Graph (v1.0) as Microsoft documents them: no Microsoft."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from aiohttp import web
from aiohttp.test_utils import make_mocked_request

DRIVE = "b!drive-1"
_CODES = {401: "InvalidAuthenticationToken", 403: "accessDenied", 404: "itemNotFound", 410: "resyncRequired"}


@dataclass
class GraphFile:
    """An item of the one library; `facet` says what it is besides a file or a folder."""

    id: str
    name: str
    parent: str
    is_folder: bool = False
    content: bytes = b""
    version: int = 1
    permissions: list[dict[str, Any]] = field(default_factory=list)
    facet: str = ""
    has_hash: bool = True
    is_hidden: bool = False
    version_id: str = ""


@dataclass
class FakeGraph:
    """A site with one library, `Documents`. `spoil` says what goes wrong."""

    items: dict[str, GraphFile] = field(default_factory=dict)
    members: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    people: dict[str, dict[str, Any]] = field(default_factory=dict)
    most: int = 200
    spoil: str = ""
    token: str = "t1"
    next_host: str = ""
    download_host: str = ""
    changed: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    _ids: count[int] = field(default_factory=lambda: count(1))

    def add(self, name: str, parent: str = "root", **fields: Any) -> GraphFile:
        item = GraphFile(f"01ITEM{next(self._ids)}", name, parent, **fields)
        self.items[item.id] = item
        self.note(item)
        return item

    def note(self, item: GraphFile) -> None:
        """Let listings of changes name an item."""
        self.changed.append((item.id, "folder" if item.is_folder else "file"))

    async def handle(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        if request.path.endswith("/oauth2/v2.0/token"):
            return await self._token(request)
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return error(401)
        if self.spoil == "busy" and len(self.asked) % 4 == 0:
            return web.Response(status=429, headers={"Retry-After": "0"})
        if request.path == "/v1.0/$batch":
            return await self._batch(request)
        return await self._route(request)

    async def _batch(self, request: web.Request) -> web.Response:
        """At most 20 requests, answered in another order. `busy`: the third of each is to be sent again."""
        sent = (await request.json())["requests"]
        self.batches.append(len(sent))
        assert len(sent) <= 20
        assert len({one["id"] for one in sent}) == len(sent)
        answers = []
        for number, one in enumerate(sent):
            assert one["method"] == "GET"
            assert one["url"].startswith("/")
            inner = make_mocked_request("GET", f"/v1.0{one['url']}", {"Host": request.host})
            reply = await self._route(inner)
            if self.spoil in ("busy", "batch busy") and number == 2:
                reply = web.json_response({}, status=429, headers={"Retry-After": "0"})
            if self.spoil == "batch full":
                reply = web.json_response({}, status=429, headers={"Retry-After": "600"})
            body = json.loads(reply.body) if isinstance(reply.body, bytes) else None
            headers = dict(reply.headers.items())
            answers.append({"id": one["id"], "status": reply.status, "headers": headers, "body": body})
        if self.spoil == "batch cut":
            answers.pop()
        return web.json_response({"responses": answers[::-1]})

    async def _route(self, request: web.Request) -> web.Response:
        parts = request.path.removeprefix("/v1.0/").split("/")
        if parts == ["users", "ann@b.org", "drive"]:
            return web.json_response({"id": DRIVE})
        if request.path == "/v1.0/sites/b.sharepoint.com:/sites/team":
            return web.json_response({"id": "b.sharepoint.com,1,2"})
        if parts == ["sites", "b.sharepoint.com,1,2", "drives"]:
            return web.json_response({"value": [{"id": DRIVE, "name": "Documents"}]})
        if parts[0] in ("sites", "users"):
            return error(404)
        if parts[0] == "groups":
            return self._members(request, parts[1])
        if parts == ["directoryObjects", "getByIds"]:
            return await self._people(request)
        assert parts[:2] == ["drives", DRIVE]
        if parts[2:] == ["root", "delta"]:
            return self._delta(request)
        item = self.items.get(parts[3])
        return error(404) if item is None else self._item(request, item, parts[4:])

    async def _token(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert request.path == "/b.org/oauth2/v2.0/token"
        assert str(form["scope"]).endswith("/.default")
        given = (form["grant_type"], form["client_id"], form["client_secret"])
        if given != ("client_credentials", "app", "a secret") or self.spoil == "expired":
            text = "AADSTS7000222: The provided client secret keys are expired."
            return web.json_response({"error": "invalid_client", "error_description": text}, status=401)
        return web.json_response({"token_type": "Bearer", "expires_in": 3599, "access_token": self.token})

    def _about(
        self, item: GraphFile, *, in_delta: bool = True, select: Collection[str] = ()
    ) -> dict[str, Any]:
        reference = {"driveId": DRIVE, "driveType": "documentLibrary", "id": item.parent}
        if not in_delta:
            reference["path"] = f"/drives/{DRIVE}/root:{self._folder(item)}"
        about: dict[str, Any] = {
            "id": item.id,
            "name": item.name,
            "eTag": f'"{{{item.id}}},{item.version}"',
            "lastModifiedDateTime": "2026-01-02T03:04:05Z",
            "parentReference": reference,
            "webUrl": f"https://b.sharepoint.com/sites/team/{item.id}",
        }
        if item.is_folder:
            return {**about, "folder": {"childCount": 0}}
        if item.facet:
            about[item.facet] = {"type": "oneNote"}
        if item.facet != "package":
            digest = hashlib.sha1(item.content, usedforsecurity=False).hexdigest()
            hashes = {"hashes": {"quickXorHash": digest}} if item.has_hash else {}
            about |= {"size": len(item.content), "file": {"mimeType": "text/plain", **hashes}}
        if item.version_id and "publication" in select:  # only if it is asked for
            about["publication"] = {"level": "published", "versionId": item.version_id}
        return about

    def _folder(self, item: GraphFile) -> str:
        above = self.items.get(item.parent)
        return "" if above is None else f"{self._folder(above)}/{above.name}"

    def _delta(self, request: web.Request) -> web.Response:
        assert request.headers["deltaExcludeParent"] == "true"
        root = {"id": "root", "name": "root", "root": {}, "folder": {}, "parentReference": {"id": ""}}
        if "token" in request.query:
            if self.spoil == "resync":
                return error(410)
            start = int(request.query["token"])
            entries = [self._change(number, kind) for number, kind in self.changed[start:]]
        else:
            select = request.query["$select"].split(",")
            entries = [self._about(one, select=select) for one in self.items.values()]
        if self.spoil == "short":
            entries = entries[:1]
        return self._page(request, [root, *entries], {"@odata.deltaLink": f"token={len(self.changed)}"})

    def _change(self, number: str, kind: str) -> dict[str, Any]:
        if number in self.items:
            return self._about(self.items[number])
        facet = {} if self.spoil == "bare" else {kind: {}}
        return {"id": number, "deleted": {"state": "deleted"}, "parentReference": {"id": "root"}, **facet}

    def _page(self, request: web.Request, entries: list[Any], last: dict[str, str]) -> web.Response:
        start = int(request.query.get("$skiptoken", 0))
        end = start + self.most
        if self.spoil == "repeated" and start:
            start -= 1
        origin = self.next_host or str(request.url.origin())
        answer: dict[str, Any] = {"value": entries[start:end]}
        if end < len(entries):
            more = request.url.update_query({"$skiptoken": str(end)})
            answer["@odata.nextLink"] = f"{origin}{more.raw_path_qs}"
        else:
            answer |= {name: f"{origin}{request.url.raw_path}?{query}" for name, query in last.items()}
        if self.spoil == "endless":
            answer.pop("@odata.deltaLink", None)
        text = json.dumps(answer)
        is_listing = request.path.endswith("/delta")
        if self.spoil == "cut" and is_listing:
            text = text[: len(text) // 2]
        return web.Response(text=text, content_type="application/json")

    def _item(self, request: web.Request, item: GraphFile, parts: list[str]) -> web.Response:
        if parts == ["permissions"]:
            if item.is_hidden:
                return error(403)
            return error(500) if self.spoil == "rights" else self._page(request, item.permissions, {})
        if parts == ["content"]:
            return web.Response(status=302, headers={"Location": f"{self.download_host}/{item.id}"})
        return web.json_response(self._about(item, in_delta=False))

    async def download(self, request: web.Request) -> web.Response:
        """The server to which Graph leads, which needs no token and must get none."""
        assert "Authorization" not in request.headers
        item = self.items.get(request.path.strip("/"))
        if item is None:
            return error(404)
        self.bodies.append(item.id)
        return web.Response(body=item.content)

    def _members(self, request: web.Request, group: str) -> web.Response:
        assert request.path.endswith("/transitiveMembers")
        if group not in self.members:
            return error(403)
        return self._page(request, self.members[group], {})

    async def _people(self, request: web.Request) -> web.Response:
        if self.spoil == "people":
            return error(403)
        ids, select = (await request.json())["ids"], request.query["$select"].split(",")
        people = [self.people[one] for one in ids if one in self.people]
        return web.json_response(
            {"value": [{name: value for name, value in one.items() if name in select} for one in people]}
        )


def error(status: int) -> web.Response:
    """An error as Graph answers it."""
    code = _CODES.get(status, "generalException")
    return web.json_response({"error": {"code": code, "message": "No."}}, status=status)
