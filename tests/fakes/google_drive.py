"""Google's token server, Drive (v3) and Directory API as Google documents them: no Google."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from email import message_from_bytes
from functools import cache
from itertools import count
from typing import Any

import jwt
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

FOLDER = "application/vnd.google-apps.folder"
DOCUMENT = "application/vnd.google-apps.document"
SHORTCUT = "application/vnd.google-apps.shortcut"
_ERRORS = {401: "authError", 404: "notFound"}


@cache
def private_key() -> rsa.RSAPrivateKey:
    """The key of the service account."""
    return rsa.generate_private_key(65537, 2048)


def key_file(url: str) -> str:
    """A service account's key, as Google's console gives it out."""
    pem = private_key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    about = {"private_key_id": "k1", "private_key": pem, "client_email": "robot@p.iam.gserviceaccount.com"}
    return json.dumps({"type": "service_account", **about, "token_uri": f"{url}/token"})


def user_file(url: str) -> str:
    """The file of an OAuth client that a person has authorized."""
    about = {"client_id": "c", "client_secret": "s", "refresh_token": "r", "token_uri": f"{url}/token"}
    return json.dumps({"type": "authorized_user", **about})


@dataclass
class FakeFile:
    """A file or folder; `permissions` as Drive has them, `can_share`: the account may see them."""

    id: str
    name: str
    type: str
    parent: str | None
    content: bytes = b""
    modified: str = "2026-01-02T03:04:05.000Z"
    permissions: list[dict[str, Any]] = field(default_factory=list)
    can_share: bool = True
    can_download: bool = True


@dataclass
class FakeGoogle:
    """One account's own drive, or a shared drive (`drive`). `spoil` says what goes wrong."""

    drive: str = ""
    files: dict[str, FakeFile] = field(default_factory=dict)
    members: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    most: int = 1000
    spoil: str = ""
    token: str = "t1"
    tokens: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    asked: int = 0
    batches: list[int] = field(default_factory=list)
    _ids: count[int] = field(default_factory=lambda: count(1))

    def add(self, name: str, parent: str | None = None, type: str = "text/plain", **fields: Any) -> FakeFile:
        file = FakeFile(f"file-{next(self._ids)}", name, type, parent or self.drive or None, **fields)
        self.files[file.id] = file
        self.changed.append(file.id)
        return file

    async def handle(self, request: web.Request) -> web.Response:
        self.asked += 1
        if request.path == "/token":
            return await self._token(request)
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return error(401)
        if self.spoil == "busy" and self.asked % 4 == 0:
            return web.Response(status=429, headers={"Retry-After": "0"})
        if self.spoil == "quota":
            return error(403, "userRateLimitExceeded")
        if request.path == "/batch/drive/v3":
            return await self._batch(request)
        return self._route(request)

    async def _batch(self, request: web.Request) -> web.Response:
        """At most 100 requests, answered in another order. `batch quota`: the third is to be sent again."""
        head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
        sent = message_from_bytes(head + await request.read())
        parts = [one for one in sent.walk() if not one.is_multipart()]
        self.batches.append(len(parts))
        assert len(parts) <= 100
        answers = []
        for number, part in enumerate(parts):
            assert part.get_content_type() == "application/http"
            method, path, _ = str(part.get_payload()).partition("\r\n")[0].split()
            reply = self._route(make_mocked_request(method, path, {"Host": request.host}))
            if self.spoil == "batch quota" and number == 2:
                reply = error(403, "userRateLimitExceeded")
                reply.headers["Retry-After"] = "0"
            assert isinstance(reply.body, bytes)
            marked = f"Content-Type: application/http\r\nContent-ID: <response-{part['Content-ID'][1:]}\r\n"
            lines = [
                f"HTTP/1.1 {reply.status} OK",
                *(f"{name}: {one}" for name, one in reply.headers.items()),
            ]
            text = "\r\n".join([marked, *lines, "", reply.body.decode(), ""])
            answers.append(f"--batch_x\r\n{text}")
        if self.spoil == "batch cut":
            answers.pop()
        body = "".join([*reversed(answers), "--batch_x--"]).encode()
        return web.Response(body=body, headers={"Content-Type": 'multipart/mixed; boundary="batch_x"'})

    def _route(self, request: web.Request) -> web.Response:
        parts = request.path.strip("/").split("/")
        if parts[:3] == ["admin", "directory", "v1"]:
            return self._members(request, parts[4])
        assert parts[:2] == ["drive", "v3"]
        if parts[2] == "changes":
            return self._changes(request, parts[3:])
        if len(parts) == 3:
            return self._list(request)
        assert request.query.get("supportsAllDrives") == "true" or parts[-1] == "export"
        file = self.files.get(parts[3])
        if file is None:
            return error(404)
        return self._file(request, file, parts[4:])

    async def _token(self, request: web.Request) -> web.Response:
        form = await request.post()
        if form["grant_type"] == "refresh_token":
            good = (form["client_id"], form["client_secret"], form["refresh_token"]) == ("c", "s", "r")
        else:
            assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
            key, audience = private_key().public_key(), str(request.url)
            claims = jwt.decode(str(form["assertion"]), key, ["RS256"], audience=audience)
            good = "https://www.googleapis.com/auth/drive.readonly" in claims["scope"].split()
            self.tokens.append(claims.get("sub", ""))
        if not good or self.spoil == "expired":
            answer = {"error": "invalid_grant", "error_description": "Token has been expired or revoked."}
            return web.json_response(answer, status=400)
        return web.json_response({"access_token": self.token, "expires_in": 3599, "token_type": "Bearer"})

    def _about(self, file: FakeFile, *, rights: bool = False) -> dict[str, Any]:
        about: dict[str, Any] = {
            "id": file.id,
            "name": file.name,
            "mimeType": file.type,
            "modifiedTime": file.modified,
            "trashed": False,
            "webViewLink": f"https://drive.google.com/file/d/{file.id}/view",
            "capabilities": {"canDownload": file.can_download, "canShare": file.can_share},
        }
        if file.parent is not None:
            about["parents"] = [file.parent]
        if not file.type.startswith("application/vnd.google-apps."):
            about["md5Checksum"] = hashlib.md5(file.content, usedforsecurity=False).hexdigest()
            about["size"] = str(len(file.content))
        if self.drive:  # whose listings have no permissions
            about["driveId"] = self.drive
        elif rights and file.can_share:
            about["permissions"] = file.permissions
        return about

    def _list(self, request: web.Request) -> web.Response:
        query = request.query
        assert query["supportsAllDrives"] == query["includeItemsFromAllDrives"] == "true"
        wanted = ("drive", self.drive) if self.drive else ("user", None)
        assert (query["corpora"], query.get("driveId")) == wanted
        self.lists.append(query["q"])
        rights = "permissions(" in query["fields"]
        found = [self._about(one, rights=rights) for one in self.files.values()]
        if "mimeType = " in query["q"]:
            found = [one for one in found if one["mimeType"] == FOLDER]
        if self.spoil == "short":
            found = found[:1]
        if self.spoil == "hollow":
            answer = {"files": [], "nextPageToken": str(self.asked)}
            return web.json_response(answer)
        more = {"incompleteSearch": self.spoil == "incomplete"}
        return self._page(request, "files", found, more)

    def _page(
        self, request: web.Request, key: str, entries: list[Any], more: dict[str, Any], start: int = 0
    ) -> web.Response:
        first = int(request.query["pageToken"]) if "pageToken" in request.query and not start else start
        end = first + self.most
        if self.spoil == "repeated" and first > start:
            first -= 1
        answer = {key: entries[first:end], **more}
        if end < len(entries):
            answer["nextPageToken"] = str(end)
            answer.pop("newStartPageToken", None)
        text = json.dumps(answer)
        if self.spoil == "cut" and key in ("files", "changes"):
            text = text[: len(text) // 2]
        return web.Response(text=text, content_type="application/json")

    def _changes(self, request: web.Request, parts: list[str]) -> web.Response:
        if request.query.get("driveId", "") != self.drive:
            return error(404)
        if parts == ["startPageToken"]:
            return web.json_response({"startPageToken": str(len(self.changed))})
        if self.spoil == "token":
            return error(400, "invalid")
        start = int(request.query["pageToken"])
        entries = [self._change(one) for one in self.changed]
        return self._page(request, "changes", entries, {"newStartPageToken": str(len(entries))}, start)

    def _change(self, file: str) -> dict[str, Any]:
        change: dict[str, Any] = {"changeType": "file", "fileId": file, "removed": file not in self.files}
        return change if change["removed"] else {**change, "file": self._about(self.files[file])}

    def _file(self, request: web.Request, file: FakeFile, parts: list[str]) -> web.Response:
        if parts == ["permissions"]:
            if not file.can_share and not self.drive:
                return error(403, "insufficientFilePermissions")
            if self.spoil == "rights":
                return error(500, "backendError")
            return self._page(request, "permissions", file.permissions, {})
        if parts == ["export"]:
            if self.spoil == "export":
                return error(403, "exportSizeLimitExceeded")
            assert re.match(r"application/(vnd\.openxmlformats|pdf)", request.query["mimeType"])
        elif request.query.get("alt") != "media":
            return web.json_response(self._about(file))
        self.bodies.append(file.id)
        return web.Response(body=file.content)

    def _members(self, request: web.Request, group: str) -> web.Response:
        assert request.query["includeDerivedMembership"] == "true"
        if group not in self.members:
            return error(403, "forbidden")
        found = self.members[group]  # of an empty list, there is no mention
        return self._page(request, "members", found, {}) if found else web.json_response({"kind": "x"})


def error(status: int, reason: str | None = None) -> web.Response:
    """An error as Google answers it."""
    one = {"domain": "global", "reason": reason or _ERRORS[status], "message": "No."}
    return web.json_response({"error": {"errors": [one], "code": status, "message": "No."}}, status=status)
