"""Confluence, against answers of the documented shape of both editions: there is no Confluence here."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import pytest
import pytest_asyncio
from aiohttp import web
from pydantic import SecretStr, ValidationError

from builtin_plugins.source_confluence.guarded import GuardedWiki
from builtin_plugins.source_confluence.kind import CONFLUENCE, open_confluence
from builtin_plugins.source_confluence.settings import ConfluenceSettings
from builtin_plugins.sources.api import (
    CredentialRefused,
    DocumentSource,
    GuardedSource,
    Listing,
    ListingEnd,
    ListingIncomplete,
    SourceDirectory,
    SourceFault,
    SourceGrant,
    SourceItem,
    SourceMisplaced,
    SourceSetup,
)
from builtin_plugins.sources.conformance import Mirror, SourceWorld, read_item
from builtin_plugins.sources.conformance_rights import GuardedConformance
from kernel.sdk import Platform
from kernel.testing import Running, platforms
from tests.fakes.confluence import TOKEN, USER, FakeConfluence, WikiPage
from tests.fakes.spoilt_world import SpoiltWorld
from tests.fakes.website import served_by

pytestmark = pytest.mark.asyncio(loop_scope="module")

EDITIONS = ("cloud", "data_center")
_BODY = re.compile(rb"<body>(.*)</body>", re.DOTALL)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    async with platforms(tmp_path_factory.mktemp("platform")) as start:
        yield await start("source_confluence", env={"PLATFORM_OUTGOING_ALLOWED": "127.0.0.1"})


@pytest.fixture(params=EDITIONS)
def wiki(request: pytest.FixtureRequest) -> FakeConfluence:
    return FakeConfluence(request.param)


def opened_at(
    platform: Platform, url: str, wiki: FakeConfluence, **fields: Any
) -> AbstractAsyncContextManager[DocumentSource]:
    user = USER if wiki.edition == "cloud" else ""
    given = {
        "url": f"{url}{wiki.context}",
        "edition": wiki.edition,
        "user": user,
        "spaces": ["DOC"],
        **fields,
    }
    setup = SourceSetup(platform, "one", ConfluenceSettings(**given), SecretStr(TOKEN))
    return open_confluence(setup)


def anonymous_of(wiki: FakeConfluence) -> tuple[str, str]:
    """People who are not signed in, as a reader of a space."""
    return ("role" if wiki.edition == "cloud" else "anonymous", "anonymous-users")


class BareWiki:
    """The source with paths below the space, and bodies as they were written."""

    def __init__(self, source: DocumentSource) -> None:
        self._source = cast("GuardedSource", source)

    async def documents(self, since: str | None) -> Listing:
        async with aclosing(self._source.documents(since)) as listing:
            async for one in listing:
                if isinstance(one, SourceItem):
                    path = one.path.removeprefix("DOC/").removesuffix(".html")
                    yield replace(one, path=path.replace("\N{DIVISION SLASH}", "/"))
                else:
                    yield one

    @asynccontextmanager
    async def content(self, item: SourceItem) -> AsyncIterator[AsyncIterator[bytes]]:
        async with self._source.content(item) as pieces:
            whole = b"".join([piece async for piece in pieces])

        async def body() -> AsyncIterator[bytes]:
            found = _BODY.search(whole)
            assert found is not None
            yield found[1]

        yield body()

    async def rights_mark(self) -> str | None:
        return await self._source.rights_mark()

    async def directory(self) -> SourceDirectory:
        return await self._source.directory()

    async def grants(self, items: Sequence[SourceItem]) -> Mapping[str, SourceGrant]:
        return await self._source.grants(items)


class WikiWorld(SpoiltWorld):
    """A space whose pages are in folders of the cloud, and have slashes in their titles elsewhere."""

    people = ("key-ann", "key-bob", "key-cleo")
    groups = ("staff", "board")

    def __init__(self, platform: Platform, url: str, wiki: FakeConfluence) -> None:
        super().__init__(wiki)
        self._platform, self._url, self._wiki = platform, url, wiki
        wiki.space_readers = [anonymous_of(wiki)]
        wiki.members = {one: [] for one in self.groups}

    def opened(self) -> AbstractAsyncContextManager[DocumentSource]:
        return self._opened()

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[DocumentSource]:
        async with opened_at(self._platform, self._url, self._wiki, anonymous=True) as source:
            yield BareWiki(source)

    def _place(self, path: str) -> tuple[str | None, str]:
        folder, _, title = path.rpartition("/")
        if not folder or self._wiki.edition != "cloud":
            return None, path
        above = [one for one in self._wiki.pages.values() if (one.kind, one.title) == ("folder", folder)]
        return (above[0] if above else self._wiki.add(folder, kind="folder")).id, title

    def _page_at(self, path: str) -> WikiPage | None:
        above, title = self._place(path)
        pages = (one for one in self._wiki.pages.values() if one.kind == "page")
        return next((one for one in pages if (one.above, one.title) == (above, title)), None)

    async def put(self, path: str, content: bytes) -> None:
        page = self._page_at(path)
        if page is None:
            above, title = self._place(path)
            self._wiki.add(title, above, content=content)
        else:
            page.content, page.version = content, page.version + 1

    async def remove(self, path: str) -> None:
        page = self._page_at(path)
        assert page is not None
        del self._wiki.pages[page.id]

    async def move(self, old: str, new: str) -> None:
        page = self._page_at(old)
        assert page is not None
        page.above, page.title = self._place(new)

    async def grant(self, path: str, grant: SourceGrant) -> None:
        page = self._page_at(path)
        assert page is not None
        nobody = not (grant.people or grant.groups or grant.everybody)
        page.readers = (["?"] if nobody else grant.people, grant.groups)

    async def set_group(self, group: str, people: tuple[str, ...]) -> None:
        self._wiki.members[group] = list(people)


class TestConfluence(GuardedConformance):
    """The suites for both editions."""

    MANY = 300

    @pytest_asyncio.fixture(loop_scope="module")
    async def world(self, running: Running, wiki: FakeConfluence) -> AsyncIterator[SourceWorld]:
        async with served_by(wiki.handle) as url:
            yield WikiWorld(running.platform, url, wiki)

    async def test_large_and_empty(self, world: SourceWorld) -> None:
        """Bodies are text."""
        contents = {"large.bin": "größer ".encode() * 200_000, "empty.txt": b""}
        for path, content in contents.items():
            await world.put(path, content)
        mirror = Mirror()
        await mirror.step(world)
        assert mirror.contents == contents


@pytest_asyncio.fixture(loop_scope="module")
async def source(running: Running, wiki: FakeConfluence) -> AsyncIterator[GuardedWiki]:
    wiki.space_readers = [("group", "staff"), ("user", "key-dan")]
    wiki.members = {"staff": ["key-ann", "key-bob", "key-cleo"], "board": ["key-bob", "key-eve"]}
    wiki.emails = {"key-ann": "ann@example.org", "key-dan": ""}
    async with served_by(wiki.handle) as url:
        settings = ConfluenceSettings(url=url)
        assert CONFLUENCE.is_guarded(settings)
        async with opened_at(running.platform, url, wiki, email_domain="b.org") as opened:
            yield cast("GuardedWiki", opened)


async def items_of(source: DocumentSource) -> dict[str, SourceItem]:
    listed = [one async for one in source.documents(None)]
    assert isinstance(listed[-1], ListingEnd)
    return {one.path: one for one in listed if isinstance(one, SourceItem)}


async def grants_of(source: GuardedWiki) -> dict[str, SourceGrant]:
    """As a new reading has them, by path."""
    await source.rights_mark()
    items = await items_of(source)
    grants = await source.grants(list(items.values()))
    return {path: grants[one.identity] for path, one in items.items() if one.identity in grants}


async def test_a_page_is_read_by_who_passes_every_restriction(
    source: GuardedWiki, wiki: FakeConfluence
) -> None:
    """Those of the space, of the pages above and its own; attachments are like their page."""
    top = wiki.add("Top")
    board = wiki.add("Board", top.id, readers=([], ["board"]))
    minutes = wiki.add("Minutes", board.id, readers=(["key-bob", "key-ann"], []))
    wiki.add("votes.txt", minutes.id, "attachment", b"Votes.")
    wiki.add("News", kind="blogpost", readers=(["key-dan"], ["staff"]))
    everyone = ["key-ann", "key-bob", "key-cleo", "key-dan"]
    assert await grants_of(source) == {
        "DOC/Top.html": SourceGrant(["key-dan"], ["staff"]),
        "DOC/Top/Board.html": SourceGrant(["key-bob"], []),
        "DOC/Top/Board/Minutes.html": SourceGrant(["key-bob"], []),
        "DOC/Top/Board/Minutes/votes.txt": SourceGrant(["key-bob"], []),
        "DOC/blog/News.html": SourceGrant(everyone, ["staff"]),
    }
    directory = await source.directory()
    assert {one.id: sorted(one.people) for one in directory.groups} == {
        "staff": ["key-ann", "key-bob", "key-cleo"],
        "board": ["key-bob", "key-eve"],
    }
    emails = {one.id: one.email for one in directory.people}
    if wiki.edition == "cloud":
        assert (emails["key-ann"], emails["key-bob"], emails["key-dan"]) == ("ann@example.org", None, None)
    else:
        assert (emails["key-ann"], emails["key-dan"]) == ("ann@b.org", "dan@b.org")


async def test_a_restriction_above_that_cannot_be_read_closes(
    source: GuardedWiki, wiki: FakeConfluence
) -> None:
    folder = wiki.add("Folder", kind="folder", readers=(["key-ann"], []))
    wiki.add("Page", folder.id)
    assert (await grants_of(source))["DOC/Folder/Page.html"] == SourceGrant(["key-ann"], [])
    wiki.spoil = "folders"
    assert "DOC/Folder/Page.html" not in await grants_of(source)


@pytest.fixture
def cloud() -> FakeConfluence:
    """Its `ancestors` leave out what is no page."""
    return FakeConfluence("cloud", skips_levels=True)


@pytest_asyncio.fixture(loop_scope="module")
async def cloud_source(running: Running, cloud: FakeConfluence) -> AsyncIterator[GuardedWiki]:
    cloud.space_readers = [("user", "key-ann"), ("user", "key-bob")]
    async with served_by(cloud.handle) as url, opened_at(running.platform, url, cloud) as opened:
        yield cast("GuardedWiki", opened)


@pytest.mark.parametrize("kind", ["folder", "whiteboard", "database", "embed"])
async def test_levels_that_ancestors_leave_out_restrict(
    cloud_source: GuardedWiki, cloud: FakeConfluence, kind: str
) -> None:
    """Wherever they are above: within a page, in another level, or above a page that is not listed."""
    ann, top = SourceGrant(["key-ann"], []), cloud.add("Top")
    outer = cloud.add("Outer", top.id, kind, readers=(["key-ann"], []))
    inner = cloud.add("Inner", outer.id, "folder")
    page = cloud.add("Page", inner.id)
    cloud.add("Below", page.id)
    cloud.add("notes.txt", page.id, "attachment", b"Notes.")
    gone = cloud.add("Gone", inner.id, status="trashed")
    cloud.add("Left", gone.id)
    assert await grants_of(cloud_source) == {
        "DOC/Top.html": SourceGrant(["key-ann", "key-bob"], []),
        "DOC/Top/Page.html": ann,
        "DOC/Top/Page/Below.html": ann,
        "DOC/Top/Page/notes.txt": ann,
        "DOC/Top/Gone/Left.html": ann,
    }


@pytest.mark.parametrize("spoil", ["folders", "levels", "refused"])
async def test_levels_that_cannot_be_read_close(
    cloud_source: GuardedWiki, cloud: FakeConfluence, spoil: str
) -> None:
    """Their restrictions, or what they are below."""
    folder = cloud.add("Folder", kind="folder")
    page = cloud.add("Page", folder.id)
    cloud.add("Below", page.id)
    cloud.add("Other")
    assert len(await grants_of(cloud_source)) == 3
    cloud.spoil = spoil
    assert list(await grants_of(cloud_source)) == ["DOC/Other.html"]


@pytest.mark.parametrize(
    "parent",
    [
        {"parentId": "", "parentType": "folder"},
        {"parentId": None, "parentType": "folder"},
        {"parentId": "101", "parentType": "page"},
        {"parentId": "100", "parentType": "canvas"},
        {"parentId": "100", "parentType": None},
        {"parentType": "page"},
        {},
    ],
)
async def test_a_parent_that_is_not_understood_closes(
    cloud_source: GuardedWiki, cloud: FakeConfluence, parent: dict[str, str | None]
) -> None:
    """Also pages that are below each other, or a kind of level that is not known here."""
    folder = cloud.add("Folder", kind="folder")
    page = cloud.add("Page", folder.id)
    cloud.add("Below", page.id)
    cloud.add("Other")
    for number in (page.id, folder.id):
        cloud.parents = {number: parent}
        assert list(await grants_of(cloud_source)) == ["DOC/Other.html"]


async def test_a_page_that_moves_into_a_folder_changes_its_rights_alone(
    cloud_source: GuardedWiki, cloud: FakeConfluence
) -> None:
    """It stays the same item in the same version, and no body is read."""
    folder = cloud.add("Folder", kind="folder", readers=(["key-ann"], []))
    page = cloud.add("Page")
    both, before = SourceGrant(["key-ann", "key-bob"], []), await items_of(cloud_source)
    marks = [await cloud_source.rights_mark()]
    assert await grants_of(cloud_source) == {"DOC/Page.html": both}
    page.above = folder.id
    marks.append(await cloud_source.rights_mark())
    assert await grants_of(cloud_source) == {"DOC/Page.html": SourceGrant(["key-ann"], [])}
    folder.readers = ((), ())
    marks.append(await cloud_source.rights_mark())
    assert await grants_of(cloud_source) == {"DOC/Page.html": both}
    assert marks[0] == marks[2] != marks[1]
    assert await items_of(cloud_source) == before and cloud.bodies == []


async def test_a_level_that_both_versions_name_counts_once(running: Running) -> None:
    """Its group is not spelled out as people."""
    wiki = FakeConfluence("cloud", members={"board": ["key-ann"]})
    wiki.space_readers = [anonymous_of(wiki)]
    folder = wiki.add("Folder", kind="folder", readers=([], ["board"]))
    wiki.add("Page", folder.id)
    async with (
        served_by(wiki.handle) as url,
        opened_at(running.platform, url, wiki, anonymous=True) as source,
    ):
        grants = await grants_of(cast("GuardedWiki", source))
    assert grants == {"DOC/Folder/Page.html": SourceGrant([], ["board"])}


async def test_levels_are_asked_for_once(cloud_source: GuardedWiki, cloud: FakeConfluence) -> None:
    """However many pages are below them."""
    folder = cloud.add("Folder", kind="folder")
    counts = list[int]()
    for number in range(60):
        cloud.add(f"{number}", folder.id)
        if number in (0, 59):
            cloud.asked = 0
            await cloud_source.rights_mark()
            counts.append(cloud.asked)
    assert counts[0] == counts[1]


async def test_long_lists_within_answers_are_read_to_their_end(
    source: GuardedWiki, wiki: FakeConfluence
) -> None:
    wiki.nested, wiki.most = 2, 2
    people = [f"key-{number}" for number in range(5)]
    wiki.members["staff"] = people
    page = wiki.add("Page", readers=(people, []))
    for number in range(5):
        wiki.add(f"{number}.txt", page.id, "attachment", b"Text.")
    items = await items_of(source)
    assert len(items) == 6
    files = [one for one in items.values() if one.media_type == "text/plain"]
    assert [(one.size, one.modified is not None) for one in files] == [(5, True)] * 5
    assert (await grants_of(source))["DOC/Page.html"] == SourceGrant(people, [])


async def test_restrictions_without_an_end_are_a_fault(source: GuardedWiki, wiki: FakeConfluence) -> None:
    wiki.nested, wiki.spoil = 2, "circle"
    wiki.add("Page", readers=([f"key-{number}" for number in range(5)], []))
    with pytest.raises(ListingIncomplete):
        await source.rights_mark()


@pytest.mark.parametrize("fields", [{"space": "SECRET"}, {"status": "archived"}, {"status": "trashed"}])
async def test_what_has_left_the_space_is_neither_listed_nor_granted(
    source: GuardedWiki, wiki: FakeConfluence, fields: dict[str, str]
) -> None:
    """A search still names it, with the readers of the space in which it was."""
    wiki.add("Gone", **fields)
    wiki.add("Page")
    assert list(await grants_of(source)) == ["DOC/Page.html"]


async def test_people_who_may_not_sign_in_read_nothing(source: GuardedWiki, wiki: FakeConfluence) -> None:
    """By themselves, or in a group. Only the cloud says it of all at once."""
    if wiki.edition != "cloud":
        pytest.skip("Data Center does not say it")
    wiki.inactive = {"key-ann", "key-dan"}
    wiki.emails |= {"key-dan": "dan@example.org"}
    wiki.add("Page")
    wiki.add("Other", readers=(["key-ann", "key-bob"], []))
    assert await grants_of(source) == {
        "DOC/Page.html": SourceGrant([], ["staff"]),
        "DOC/Other.html": SourceGrant(["key-bob"], []),
    }
    directory = await source.directory()
    assert [list(one.people) for one in directory.groups] == [["key-bob", "key-cleo"]]
    assert {one.id for one in directory.people} == {"key-bob", "key-cleo"}


async def test_people_of_a_hidden_group_are_nobody(source: GuardedWiki, wiki: FakeConfluence) -> None:
    """And anonymous people, where the settings don't say that they may use Confluence."""
    wiki.space_readers = [
        ("group", "hidden"),
        ("role" if wiki.edition == "cloud" else "anonymous", "anonymous-users"),
    ]
    wiki.add("Page")
    assert await grants_of(source) == {"DOC/Page.html": SourceGrant([], ["hidden"])}
    [group] = (await source.directory()).groups
    assert (group.id, list(group.people)) == ("hidden", [])


async def test_space_permissions_that_cannot_be_read_stop_with_a_remedy(
    source: GuardedWiki, wiki: FakeConfluence
) -> None:
    wiki.spoil = "rights"
    with pytest.raises(SourceFault, match="DOC"):
        await source.rights_mark()


async def test_what_is_listed_opens_the_original(source: GuardedWiki, wiki: FakeConfluence) -> None:
    """Its text is that of macros as well, without what these would fill in."""
    text = (
        '<p>a &amp; b</p><ac:structured-macro ac:name="code">'
        '<ac:parameter ac:name="language">sql</ac:parameter>'
        "<ac:plain-text-body><![CDATA[if a < b]]></ac:plain-text-body></ac:structured-macro>"
    )
    page = wiki.add("A/B", content=text.encode())
    wiki.add("a b.txt", page.id, "attachment", b"Text.")
    items = await items_of(source)
    item = items["DOC/A\N{DIVISION SLASH}B.html"]
    assert item.link is not None and item.link.endswith(f"{wiki.context}/spaces/DOC/pages/{page.id}")
    content = (await read_item(source, item)).decode()
    assert "if a &lt; b" in content and "sql" not in content and "<title>A/B</title>" in content
    assert await read_item(source, items["DOC/A\N{DIVISION SLASH}B/a b.txt"]) == b"Text."


async def test_the_next_page_is_asked_of_this_server_alone(source: GuardedWiki, wiki: FakeConfluence) -> None:
    """Whatever host the answer names: the token goes nowhere else."""
    wiki.most, wiki.next_host = 2, "https://elsewhere.example"
    for number in range(5):
        wiki.add(f"{number}")
    assert len(await items_of(source)) == 5


@pytest.mark.parametrize("after", ["@elsewhere.example/rest", ".elsewhere.example/x", "http://[x"])
async def test_a_link_can_not_change_the_server(running: Running, after: str) -> None:
    """Also where the address has no path, so that a host could go on in a link."""
    asked = list[str]()

    async def handle(request: web.Request) -> web.Response:
        asked.append(request.path)
        links = {"next": after} if len(asked) == 1 else {}
        return web.json_response({"results": [{"id": "7", "key": "DOC"}], "_links": links})

    wiki = FakeConfluence("data_center", context="")
    async with served_by(handle) as url, opened_at(running.platform, url, wiki) as source:
        edition = cast("GuardedWiki", source).edition
        if after.startswith("http"):
            with pytest.raises(ListingIncomplete):
                await edition.spaces(["DOC"])
        else:
            await edition.spaces(["DOC"])
            assert asked == ["/rest/api/space", f"/{after}"]


async def test_many_spaces_are_asked_for_in_parts(source: GuardedWiki, wiki: FakeConfluence) -> None:
    """The cloud takes 250 keys at once."""
    with pytest.raises(SourceMisplaced, match="S299"):
        await source.edition.spaces(["DOC", *(f"S{number}" for number in range(300))])
    assert wiki.asked == 2


async def test_a_space_that_is_not_seen_is_named(running: Running, wiki: FakeConfluence) -> None:
    """Its documents are not taken for deleted."""
    async with (
        served_by(wiki.handle) as url,
        opened_at(running.platform, url, wiki, spaces=["DOC", "HR"]) as source,
    ):
        with pytest.raises(SourceMisplaced, match="HR"):
            await items_of(source)


async def test_rights_without_changes_fetch_no_body(source: GuardedWiki, wiki: FakeConfluence) -> None:
    page = wiki.add("Page")
    marks = [await source.rights_mark(), await source.rights_mark()]
    page.readers = (["key-ann"], [])
    marks.append(await source.rights_mark())
    assert marks[0] == marks[1] != marks[2]
    assert wiki.bodies == []


async def test_another_server_gets_no_answer_at_private_addresses(running: Running) -> None:
    wiki = FakeConfluence("cloud")
    async with opened_at(running.platform, "http://10.0.0.1", wiki) as source:
        with pytest.raises(SourceMisplaced):
            await items_of(source)


async def test_a_wrong_token_is_a_refused_credential(running: Running, wiki: FakeConfluence) -> None:
    wiki.spoil = "expired"
    async with served_by(wiki.handle) as url, opened_at(running.platform, url, wiki) as source:
        with pytest.raises(CredentialRefused):
            await items_of(source)


@pytest.mark.parametrize("url", ["example.org", "https://ada:x@example.org/wiki", "https://example.org/?a"])
async def test_addresses_are_checked(url: str) -> None:
    with pytest.raises(ValidationError):
        ConfluenceSettings(url=url)
