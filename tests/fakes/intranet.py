"""A place with documents, people and groups, which a source reads over HTTP; it counts what is fetched."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import aiohttp
from aiohttp import web
from pydantic import BaseModel, ConfigDict

from builtin_plugins.sources.api import (
    DocumentSource,
    ItemVanished,
    Listing,
    ListingEnd,
    SourceDirectory,
    SourceGrant,
    SourceGroup,
    SourceItem,
    SourceKind,
    SourcePerson,
    SourceSetup,
    SourceUnreachable,
)
from kernel.sdk import Plugin, hookimpl
from tests.cli.packages import Package


@dataclass
class Intranet:
    """What is there: texts and grants by document id, people and groups."""

    texts: dict[str, str] = field(default_factory=dict)
    grants: dict[str, SourceGrant] = field(default_factory=dict)
    people: dict[str, SourcePerson] = field(default_factory=dict)
    groups: dict[str, SourceGroup] = field(default_factory=dict)
    fetched_bytes: int = 0

    def may_read(self, person: str, document: str) -> bool:
        """Its own answer."""
        grant = self.grants[document]
        return (
            grant.everybody or person in grant.people or any(self._has(one, person) for one in grant.groups)
        )

    def _has(self, group: str, person: str) -> bool:
        found = self.groups[group]
        return person in found.people or any(self._has(one, person) for one in found.groups)

    def application(self) -> web.Application:
        """Its protocol."""
        app = web.Application(client_max_size=10**8)
        app.router.add_get("/listing", self._listing)
        app.router.add_get("/directory", self._directory)
        app.router.add_post("/grants", self._grants)
        app.router.add_get("/content/{id}", self._content)
        return app

    async def _listing(self, _request: web.Request) -> web.Response:
        digests = {one: hashlib.sha256(text.encode()).hexdigest() for one, text in self.texts.items()}
        return web.json_response(digests)

    async def _directory(self, _request: web.Request) -> web.Response:
        people, groups = self.people.values(), self.groups.values()
        return web.json_response({"people": [*map(asdict, people)], "groups": [*map(asdict, groups)]})

    async def _grants(self, request: web.Request) -> web.Response:
        asked = [one for one in await request.json() if one in self.grants]
        return web.json_response({one: asdict(self.grants[one]) for one in asked})

    async def _content(self, request: web.Request) -> web.Response:
        text = self.texts.get(request.match_info["id"])
        if text is None:
            raise web.HTTPNotFound
        self.fetched_bytes += len(text)
        return web.Response(text=text)


class IntranetSettings(BaseModel):
    """Where it is."""

    model_config = ConfigDict(extra="forbid")

    url: str


class IntranetSource:
    """The place as a source."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def documents(self, since: str | None) -> Listing:
        async with self._session.get("/listing") as answer:
            listed = await answer.json()
        for one, digest in listed.items():
            yield SourceItem(one, digest, f"{one}.txt", fingerprint=digest)
        yield ListingEnd()

    @asynccontextmanager
    async def content(self, item: SourceItem) -> AsyncIterator[AsyncIterator[bytes]]:
        async with self._session.get(f"/content/{item.identity}") as answer:
            if answer.status == 404:
                raise ItemVanished("It is gone")
            yield answer.content.iter_any()

    async def rights_mark(self) -> str | None:
        return None

    async def directory(self) -> SourceDirectory:
        async with self._session.get("/directory") as answer:
            found = await answer.json()
        people = [SourcePerson(**one) for one in found["people"]]
        return SourceDirectory(people, [SourceGroup(**one) for one in found["groups"]])

    async def grants(self, items: Sequence[SourceItem]) -> Mapping[str, SourceGrant]:
        async with self._session.post("/grants", json=[one.identity for one in items]) as answer:
            return {one: SourceGrant(**grant) for one, grant in (await answer.json()).items()}


class IntranetPlugin(Plugin):
    """Brings the kind `intranet`."""

    name = "intranet"
    version = "1.0"
    requires = ("sources",)

    @hookimpl
    def register_sources(self) -> Sequence[SourceKind]:
        return [SourceKind("intranet", "Intranet", IntranetSettings, self._open, guarded=True)]

    @asynccontextmanager
    async def _open(self, setup: SourceSetup) -> AsyncIterator[DocumentSource]:
        try:
            async with aiohttp.ClientSession(setup.settings.model_dump()["url"]) as session:
                yield IntranetSource(session)
        except aiohttp.ClientError as error:
            raise SourceUnreachable(f"The intranet does not answer: {type(error).__name__}") from None


def intranet_package(folder: Path) -> str:
    """Install the plugin into `folder`, for other processes; returns the folder for their path."""
    body = f"from {__name__} import IntranetPlugin as ThePlugin\n"
    return str(Package("intranet", body=body).unpack(folder))
