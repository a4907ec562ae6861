"""SharePoint and OneDrive, against answers of the documented shape: there is no Microsoft here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

import pytest
import pytest_asyncio
from pydantic import SecretStr, ValidationError

from builtin_plugins.source_sharepoint.guarded import GuardedLibraries
from builtin_plugins.source_sharepoint.kind import SHAREPOINT, open_sharepoint
from builtin_plugins.source_sharepoint.settings import SharepointSettings
from builtin_plugins.sources.api import (
    CredentialRefused,
    DocumentSource,
    GoneItem,
    ListingEnd,
    ListingIncomplete,
    SourceGrant,
    SourceItem,
    SourceMisplaced,
    SourceSetup,
    SourceThrottled,
)
from builtin_plugins.sources.conformance import SourceWorld
from builtin_plugins.sources.conformance_rights import (
    GuardedConformance,
    GuardedWorld,
    read_readers,
)
from kernel.sdk import Platform
from kernel.testing import Running, platforms
from tests.fakes.microsoft_graph import FakeGraph, GraphFile
from tests.fakes.spoilt_world import SpoiltWorld
from tests.fakes.website import served_by

pytestmark = pytest.mark.asyncio(loop_scope="module")

SITE = "https://b.sharepoint.com/sites/team"
ANN, BOB, CLEO, STAFF, BOARD, HIDDEN = (f"{number}2345678-1234-1234-1234-123456789abc" for number in range(6))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    async with platforms(tmp_path_factory.mktemp("platform")) as start:
        yield await start("source_sharepoint", env={"PLATFORM_OUTGOING_ALLOWED": "127.0.0.1"})


def user(number: str, **fields: Any) -> dict[str, Any]:
    """A permission of a person."""
    named = {"user": {"id": number, "displayName": number}, "siteUser": {"id": "9", "loginName": "i:0#.f|x"}}
    return {"id": number, "roles": ["read"], "grantedToV2": named, **fields}


def group(number: str) -> dict[str, Any]:
    """A permission of a group of the directory."""
    return {"id": number, "roles": ["write"], "grantedToV2": {"group": {"id": number, "displayName": "G"}}}


def claim(login: str) -> dict[str, Any]:
    """A permission of what SharePoint calls a user, although it is a group."""
    named = {"siteUser": {"id": "7", "displayName": "Some", "loginName": login}}
    return {"id": login, "roles": ["read"], "grantedToV2": named}


def member(number: str) -> dict[str, Any]:
    """A person in a group."""
    return {"@odata.type": "#microsoft.graph.user", "id": number, "mail": f"{number[0]}@b.org"}


@asynccontextmanager
async def graph_at(
    platform: Platform, graph: FakeGraph, secret: str = "a secret", **fields: Any
) -> AsyncIterator[DocumentSource]:
    """The source, and the servers that it asks."""
    async with (
        served_by(graph.handle) as url,
        served_by(graph.download) as graph.download_host,
        opened_at(platform, url, secret, **fields) as source,
    ):
        yield source


def opened_at(
    platform: Platform, url: str, secret: str = "a secret", **fields: Any
) -> AbstractAsyncContextManager[DocumentSource]:
    place = {} if "user" in fields else {"site": SITE}
    given = {"tenant": "b.org", "client_id": "app", "server": url, "sign_in": url, **place, **fields}
    return open_sharepoint(SourceSetup(platform, "one", SharepointSettings(**given), SecretStr(secret)))


class GraphWorld(SpoiltWorld):
    """A library with folders; everybody in the organization is a group, which only a table explains."""

    people = (ANN, BOB, CLEO)
    groups = (STAFF, BOARD)

    def __init__(self, platform: Platform, url: str, graph: FakeGraph) -> None:
        super().__init__(graph)
        self._platform, self._url, self._graph = platform, url, graph
        graph.members = {one: [] for one in self.groups}

    def opened(self) -> AbstractAsyncContextManager[DocumentSource]:
        return opened_at(self._platform, self._url, library="Documents")

    def _place(self, path: str) -> tuple[str, str]:
        *folders, name = path.split("/")
        parent = "root"
        for folder in folders:
            items = self._graph.items.values()
            above = [one for one in items if (one.name, one.parent, one.is_folder) == (folder, parent, True)]
            parent = (above[0] if above else self._graph.add(folder, parent, is_folder=True)).id
        return parent, name

    def _found(self, path: str) -> GraphFile | None:
        wanted = self._place(path)
        return next((one for one in self._graph.items.values() if (one.parent, one.name) == wanted), None)

    def _existing(self, path: str) -> GraphFile:
        item = self._found(path)
        assert item is not None
        self._graph.note(item)
        return item

    async def put(self, path: str, content: bytes) -> None:
        if self._found(path) is None:
            parent, name = self._place(path)
            self._graph.add(name, parent, content=content)
        else:
            item = self._existing(path)
            item.content, item.version = content, item.version + 1

    async def remove(self, path: str) -> None:
        del self._graph.items[self._existing(path).id]

    async def move(self, old: str, new: str) -> None:
        item = self._existing(old)
        item.parent, item.name = self._place(new)

    async def grant(self, path: str, grant: SourceGrant) -> None:
        everyone = [claim("c:0-.f|rolemanager|spo-grid-all-users/1")] * grant.everybody
        people, groups = [user(one) for one in grant.people], [group(one) for one in grant.groups]
        self._existing(path).permissions = [*people, *groups, *everyone]

    async def set_group(self, group: str, people: tuple[str, ...]) -> None:
        self._graph.members[group] = [member(one) for one in people]

    def shortened(self) -> AbstractAsyncContextManager[object]:
        self._graph.add("a folder", is_folder=True)  # so that everything is listed
        return self.spoilt("short")

    @asynccontextmanager
    async def expired(self) -> AsyncIterator[None]:
        self._graph.token, token = "another", self._graph.token
        async with self.spoilt("expired"):
            yield
        self._graph.token = token


class TestSharepoint(GuardedConformance):
    """The suites."""

    MANY = 300

    @pytest_asyncio.fixture(loop_scope="module")
    async def world(self, running: Running) -> AsyncIterator[SourceWorld]:
        graph = FakeGraph()
        async with served_by(graph.handle) as url, served_by(graph.download) as graph.download_host:
            yield GraphWorld(running.platform, url, graph)

    async def test_everybody_and_nobody(self, world: GuardedWorld) -> None:
        """Everybody in the organization is a group that only the table of counterparts explains."""
        [first, second] = await self._put(world, SourceGrant(everybody=True), SourceGrant())
        assert await read_readers(world) == {first: set(), second: set()}


@pytest.fixture
def graph() -> FakeGraph:
    return FakeGraph()


@pytest_asyncio.fixture(loop_scope="module")
async def source(running: Running, graph: FakeGraph) -> AsyncIterator[GuardedLibraries]:
    async with graph_at(running.platform, graph) as opened:
        yield cast("GuardedLibraries", opened)


async def listed(source: DocumentSource, since: str | None = None) -> tuple[list[Any], ListingEnd]:
    """All but the end of a listing, and that."""
    *items, end = [one async for one in source.documents(since)]
    assert isinstance(end, ListingEnd)
    return items, end


async def items_of(source: DocumentSource) -> dict[str, SourceItem]:
    items, _ = await listed(source)
    return {one.path: one for one in items}


async def grants_of(source: GuardedLibraries) -> dict[str, SourceGrant]:
    """As a new reading has them, by path."""
    await source.rights_mark()
    items = await items_of(source)
    grants = await source.grants(list(items.values()))
    return {path: grants[one.identity] for path, one in items.items() if one.identity in grants}


async def test_links_give_only_the_people_they_name(source: GuardedLibraries, graph: FakeGraph) -> None:
    """Whoever has another link is a group; what is over, or no reading, gives nobody anything."""
    named = [{"user": {"id": BOB, "displayName": "Bob"}}]
    never, past = "0001-01-01T00:00:00Z", "2020-01-01T00:00:00Z"
    graph.add(
        "a.txt",
        permissions=[
            user(ANN, expirationDateTime=never),
            user(CLEO, expirationDateTime=past),
            user(CLEO, roles=[]),
            {"id": "1", "roles": ["read"], "link": {"scope": "users"}, "grantedToIdentitiesV2": named},
            {"id": "2", "roles": ["write"], "link": {"scope": "organization"}},
            {"id": "3", "roles": ["read"], "link": {"scope": "anonymous"}},
            {"id": "4", "roles": ["read"], "link": {"scope": "existingAccess"}},
            {"id": "5", "roles": ["read"], "invitation": {"email": "eve@elsewhere.org"}},
        ],
    )
    assert await grants_of(source) == {
        "Documents/a.txt": SourceGrant([ANN, BOB], ["link anonymous", "link organization"])
    }


async def test_groups_of_the_directory_are_their_people(source: GuardedLibraries, graph: FakeGraph) -> None:
    """Also by SharePoint's claims; its own groups, owners of a group and hidden ones are nobody."""
    graph.members = {STAFF: [member(ANN), {"@odata.type": "#microsoft.graph.group", "id": BOARD}]}
    site_group = {"siteGroup": {"id": "6", "displayName": "Team Members", "loginName": "Team Members"}}
    graph.add(
        "a.txt",
        permissions=[
            claim(f"c:0o.c|federateddirectoryclaimprovider|{STAFF.upper()}"),
            claim(f"c:0o.c|federateddirectoryclaimprovider|{BOARD}_o"),
            claim("c:0(.s|true"),
            {"id": "s", "roles": ["write"], "grantedToV2": site_group},
            group(HIDDEN),
        ],
    )
    await source.rights_mark()
    groups = {one.id: list(one.people) for one in (await source.directory()).groups}
    assert groups == {
        STAFF: [ANN],
        HIDDEN: [],
        "siteGroup 6": [],
        "siteUser c:0(.s|true": [],
        f"siteUser c:0o.c|federateddirectoryclaimprovider|{BOARD}_o": [],
    }


async def test_addresses_are_those_of_the_directory(source: GuardedLibraries, graph: FakeGraph) -> None:
    """A guest's sign-in name is none; people have none if the application may not know them."""
    graph.add("a.txt", permissions=[user(ANN), user(BOB), user(CLEO)])
    graph.people = {
        ANN: {"id": ANN, "displayName": "Ann", "mail": "ann@b.org", "userPrincipalName": "a@b.org"},
        BOB: {"id": BOB, "displayName": "Bob", "mail": None, "userPrincipalName": "bob@b.org"},
        CLEO: {"id": CLEO, "displayName": "C", "mail": None, "userPrincipalName": "c_x.org#EXT#@b.org"},
    }
    people = {one.id: one.email for one in (await source.directory()).people}
    assert people == {ANN: "ann@b.org", BOB: "bob@b.org", CLEO: None}
    graph.spoil = "people"
    await source.rights_mark()
    assert {one.email for one in (await source.directory()).people} == {None}


async def test_people_who_may_not_sign_in_read_nothing(source: GuardedLibraries, graph: FakeGraph) -> None:
    """By themselves, or in a group; whoever is not said to be blocked is not."""
    blocked = {"accountEnabled": False}
    graph.members = {STAFF: [member(ANN), {**member(BOB), **blocked}]}
    graph.people = {
        BOB: {"id": BOB, "mail": "bob@b.org", **blocked},
        CLEO: {"id": CLEO, "mail": "cleo@b.org", "accountEnabled": True},
    }
    graph.add("a.txt", permissions=[group(STAFF), user(BOB), user(CLEO)])
    assert await grants_of(source) == {"Documents/a.txt": SourceGrant([CLEO], [STAFF])}
    directory = await source.directory()
    assert {one.id for one in directory.people} == {ANN, CLEO}


async def test_drafts_are_read_by_who_may_edit_them(source: GuardedLibraries, graph: FakeGraph) -> None:
    """Readers may see the last published version alone, which is not the one that is read."""
    permissions = [user(ANN), user(BOB, roles=["write"])]
    file = graph.add("a.txt", permissions=permissions, version_id="2.1")
    graph.add("b.txt", permissions=permissions, version_id="3.0")
    both = SourceGrant([ANN, BOB], [])
    assert await grants_of(source) == {
        "Documents/a.txt": SourceGrant([BOB], []),
        "Documents/b.txt": both,
    }
    file.version_id = "3.0"
    assert (await grants_of(source))["Documents/a.txt"] == both


async def test_permissions_that_are_refused_close(source: GuardedLibraries, graph: FakeGraph) -> None:
    graph.add("a.txt", permissions=[user(ANN)], is_hidden=True)
    graph.add("b.txt", permissions=[user(ANN)])
    assert await grants_of(source) == {"Documents/b.txt": SourceGrant([ANN], [])}


@pytest.mark.parametrize("how", ["", "batch busy"])
async def test_files_are_asked_together(source: GuardedLibraries, graph: FakeGraph, how: str) -> None:
    """Twenty in one request; what is throttled among them is sent again, the rest is not."""
    for number in range(45):
        graph.add(f"{number}.txt", permissions=[user(ANN), user(BOB)][: number % 3], is_hidden=number == 7)
    graph.spoil, graph.most = how, 100
    grants = await grants_of(source)
    assert sorted(graph.batches) == ([5, 20, 20] if not how else [1, 1, 1, 5, 20, 20])
    assert "Documents/7.txt" not in grants
    given = {path: len(grant.people) for path, grant in grants.items()}
    expected = {f"Documents/{number}.txt": number % 3 for number in range(45) if number != 7}
    assert given == expected


async def test_long_lists_of_permissions_have_pages(source: GuardedLibraries, graph: FakeGraph) -> None:
    graph.add("a.txt", permissions=[user(one) for one in (ANN, BOB, CLEO)])
    graph.most = 2
    assert await grants_of(source) == {"Documents/a.txt": SourceGrant([ANN, BOB, CLEO], [])}


@pytest.mark.parametrize(
    ("how", "fault"), [("batch full", SourceThrottled), ("batch cut", ListingIncomplete)]
)
async def test_a_batch_that_is_not_answered_counts_nothing(
    source: GuardedLibraries, graph: FakeGraph, how: str, fault: type[Exception]
) -> None:
    graph.add("a.txt", permissions=[user(ANN)])
    graph.spoil = how
    with pytest.raises(fault) as raised:
        await source.rights_mark()
    assert getattr(raised.value, "seconds", 600) == 600


async def test_only_what_has_changed_is_listed(source: GuardedLibraries, graph: FakeGraph) -> None:
    """With its path, which lists of changes leave out; without changes, nothing more is asked."""
    folder = graph.add("A B", is_folder=True)
    file = graph.add("a.txt", folder.id)
    gone = graph.add("b.txt")
    _, end = await listed(source)
    graph.asked.clear()
    assert await listed(source, end.cursor) == ([], ListingEnd(end.cursor, only_changes=True))
    assert [one.rpartition("/")[2] for one in graph.asked] == ["team", "drives", "delta"]
    file.name = "c.txt"
    graph.note(file)
    graph.note(gone)
    del graph.items[gone.id]
    items, end = await listed(source, end.cursor)
    assert end.only_changes
    assert [one.path for one in items if isinstance(one, SourceItem)] == ["Documents/A B/c.txt"]
    assert [one for one in items if isinstance(one, GoneItem)] == [GoneItem(f"b!drive-1/{gone.id}")]
    assert graph.bodies == []


@pytest.mark.parametrize("how", ["resync", "bare", "folder"])
async def test_changes_that_say_too_little_list_everything(
    source: GuardedLibraries, graph: FakeGraph, how: str
) -> None:
    """The link is too old (410), something unknown is gone, or a folder has changed."""
    folder = graph.add("Old", is_folder=True)
    graph.add("a.txt", folder.id)
    gone = graph.add("b.txt")
    _, end = await listed(source)
    folder.name = "New"
    graph.note(gone if how == "bare" else folder)
    if how == "bare":
        del graph.items[gone.id]
    graph.spoil = how
    items, end = await listed(source, end.cursor)
    assert not end.only_changes
    assert "Documents/New/a.txt" in {one.path for one in items}


async def test_what_is_no_file_is_left_out_with_the_reason(
    source: GuardedLibraries, graph: FakeGraph
) -> None:
    for facet in ("package", "remoteItem", "malware"):
        graph.add(facet, facet=facet)
    graph.add("a.txt", has_hash=False)
    items = await items_of(source)
    assert {one.name for one in items.values() if one.unavailable} == {"package", "remoteItem", "malware"}
    link = items["Documents/a.txt"].link
    assert link is not None and link.startswith(SITE)


@pytest.mark.parametrize("how", ["endless", "elsewhere", "no address", "no server"])
async def test_a_list_without_an_end_here_is_none(
    source: GuardedLibraries, graph: FakeGraph, how: str
) -> None:
    """It must say where changes begin, and go on at this server: the token goes to no other."""
    graph.spoil = how
    graph.most = 2
    hosts = {"elsewhere": "https://elsewhere.example", "no address": "http://[x", "no server": "ftp:"}
    graph.next_host = hosts.get(how, "")
    for number in range(3):
        graph.add(f"{number}.txt")
    with pytest.raises(ListingIncomplete):
        await listed(source)


async def test_a_onedrive_is_named_by_its_user(running: Running, graph: FakeGraph) -> None:
    graph.add("a.txt")
    async with graph_at(running.platform, graph, user="ann@b.org") as source:
        assert list(await items_of(source)) == ["a.txt"]


@pytest.mark.parametrize(
    "fields", [{"library": "Other"}, {"site": "https://b.sharepoint.com/sites/x"}, {"user": "bob@b.org"}]
)
async def test_what_the_settings_name_must_be_there(
    running: Running, graph: FakeGraph, fields: dict[str, str]
) -> None:
    async with graph_at(running.platform, graph, **fields) as source:
        with pytest.raises(SourceMisplaced):
            await listed(source)


async def test_a_wrong_secret_says_why(running: Running, graph: FakeGraph) -> None:
    async with graph_at(running.platform, graph, "wrong") as source:
        with pytest.raises(CredentialRefused, match="AADSTS7000222"):
            await listed(source)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"site": SITE, "user": "ann@b.org"},
        {"site": "http://b.org"},
        {"site": "https://:word@b.org"},
        {"site": SITE, "server": "https://b.org?a=b"},
        {"site": SITE, "server": ""},
    ],
)
async def test_settings_name_one_place(fields: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        SharepointSettings(tenant="b.org", client_id="app", **fields)
    assert SHAREPOINT.is_guarded(SharepointSettings(tenant="b.org", client_id="app", site=SITE))
