"""Google Drive, against answers of the documented shape: there is no Google here."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

import pytest
import pytest_asyncio
from aiohttp import web
from pydantic import SecretStr, ValidationError

from builtin_plugins.source_drive.guarded import GuardedDrive
from builtin_plugins.source_drive.kind import DRIVE, open_drive
from builtin_plugins.source_drive.settings import DriveSettings
from builtin_plugins.sources.api import (
    CredentialRefused,
    DocumentSource,
    GoneItem,
    ItemUnsuitable,
    ListingEnd,
    ListingIncomplete,
    SourceGrant,
    SourceItem,
    SourceMisplaced,
    SourceSetup,
    SourceThrottled,
)
from builtin_plugins.sources.conformance import SourceWorld, read_item
from builtin_plugins.sources.conformance_rights import GuardedConformance
from kernel.sdk import Platform
from kernel.testing import Running, platforms
from tests.fakes.google_drive import (
    DOCUMENT,
    FOLDER,
    SHORTCUT,
    FakeFile,
    FakeGoogle,
    key_file,
    user_file,
)
from tests.fakes.spoilt_world import SpoiltWorld
from tests.fakes.website import served_by

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    async with platforms(tmp_path_factory.mktemp("platform")) as start:
        yield await start("source_drive", env={"PLATFORM_OUTGOING_ALLOWED": "127.0.0.1"})


@pytest.fixture(params=["", "0Shared"], ids=["own", "shared"])
def google(request: pytest.FixtureRequest) -> FakeGoogle:
    return FakeGoogle(request.param)


def opened_at(
    platform: Platform, url: str, google: FakeGoogle, secret: str | None = None, **fields: Any
) -> AbstractAsyncContextManager[DocumentSource]:
    settings = DriveSettings(**{"server": url, "shared_drive": google.drive, **fields})
    return open_drive(SourceSetup(platform, "one", settings, SecretStr(secret or key_file(url))))


def user(email: str, **fields: Any) -> dict[str, Any]:
    """A permission of a person."""
    name = email.partition("@")[0]
    return {"id": f"p-{name}", "type": "user", "emailAddress": email, "displayName": name, **fields}


class DriveWorld(SpoiltWorld):
    """A drive with folders."""

    people = ("ann@example.org", "bob@example.org", "cleo@example.org")
    groups = ("staff@example.org", "board@example.org")

    def __init__(self, platform: Platform, url: str, google: FakeGoogle) -> None:
        super().__init__(google)
        self._platform, self._url, self._google = platform, url, google
        google.members = {one: [] for one in self.groups}

    def opened(self) -> AbstractAsyncContextManager[DocumentSource]:
        fields = {"directory": True, "account": "admin@example.org"}
        return opened_at(self._platform, self._url, self._google, **fields)

    def _place(self, path: str) -> tuple[str | None, str]:
        """The folder in which it is, made if there is none, and its name."""
        *folders, name = path.split("/")
        parent = self._google.drive or None
        for folder in folders:
            wanted = (FOLDER, folder, parent)
            files = self._google.files.values()
            above = [one for one in files if (one.type, one.name, one.parent) == wanted]
            parent = (above[0] if above else self._google.add(folder, parent, FOLDER)).id
        return parent, name

    def _found(self, path: str) -> FakeFile | None:
        wanted = self._place(path)
        return next((one for one in self._google.files.values() if (one.parent, one.name) == wanted), None)

    def _existing(self, path: str) -> FakeFile:
        file = self._found(path)
        assert file is not None
        self._google.changed.append(file.id)
        return file

    async def put(self, path: str, content: bytes) -> None:
        if self._found(path) is None:
            parent, name = self._place(path)
            self._google.add(name, parent, content=content)
        else:
            self._existing(path).content = content

    async def remove(self, path: str) -> None:
        del self._google.files[self._existing(path).id]

    async def move(self, old: str, new: str) -> None:
        file = self._existing(old)
        file.parent, file.name = self._place(new)

    async def grant(self, path: str, grant: SourceGrant) -> None:
        groups = [{"id": one, "type": "group", "emailAddress": one} for one in grant.groups]
        anyone = {"id": "anyone", "type": "anyone", "allowFileDiscovery": True}
        people = [user(one) for one in grant.people]
        self._existing(path).permissions = [*people, *groups, *[anyone] * grant.everybody]

    async def set_group(self, group: str, people: tuple[str, ...]) -> None:
        self._google.members[group] = [
            {"id": one, "email": one, "type": "USER", "status": "ACTIVE"} for one in people
        ]

    def shortened(self) -> AbstractAsyncContextManager[object]:
        self._google.add("a folder", type=FOLDER)  # so that everything is listed
        return self.spoilt("short")

    @asynccontextmanager
    async def expired(self) -> AsyncIterator[None]:
        self._google.token, token = "another", self._google.token
        async with self.spoilt("expired"):
            yield
        self._google.token = token

    def rights_cut_off(self) -> AbstractAsyncContextManager[object]:
        return self.spoilt("rights" if self._google.drive else "cut")


class TestDrive(GuardedConformance):
    """The suites for one's own drive and for a shared one."""

    MANY = 300

    @pytest_asyncio.fixture(loop_scope="module")
    async def world(self, running: Running, google: FakeGoogle) -> AsyncIterator[SourceWorld]:
        async with served_by(google.handle) as url:
            yield DriveWorld(running.platform, url, google)


@pytest_asyncio.fixture(loop_scope="module")
async def source(running: Running, google: FakeGoogle) -> AsyncIterator[GuardedDrive]:
    async with served_by(google.handle) as url:
        assert DRIVE.is_guarded(DriveSettings())
        async with opened_at(running.platform, url, google) as opened:
            yield cast("GuardedDrive", opened)


async def listed(source: DocumentSource, since: str | None = None) -> tuple[list[Any], ListingEnd]:
    """All but the end of a listing, and that."""
    *items, end = [one async for one in source.documents(since)]
    assert isinstance(end, ListingEnd)
    return items, end


async def items_of(source: DocumentSource) -> dict[str, SourceItem]:
    items, _ = await listed(source)
    return {one.path: one for one in items}


async def grants_of(source: GuardedDrive) -> dict[str, SourceGrant]:
    """As a new reading has them, by path."""
    await source.rights_mark()
    items = await items_of(source)
    grants = await source.grants(list(items.values()))
    return {path: grants[one.identity] for path, one in items.items() if one.identity in grants}


async def test_only_what_gives_the_content_counts(source: GuardedDrive, google: FakeGoogle) -> None:
    """Links, deleted accounts, views, what is over, and owners to be are nobody; domains are groups."""
    over = user("old@b.org", expirationTime="2020-01-01T00:00:00Z")
    soon = user("new@b.org", expirationTime="2999-01-01T00:00:00Z")
    no_content = [
        over,
        user("gone@b.org", deleted=True),
        user("view@b.org", view="metadata"),
        user("heir@b.org", pendingOwner=True),
    ]
    more = [{"id": "d", "type": "domain", "domain": "b.org"}, {"id": "l", "type": "anyone"}]
    google.add("a.txt", permissions=[user("Ann@B.org"), soon, *no_content, *more])
    google.add("b.txt")
    assert await grants_of(source) == {
        "a.txt": SourceGrant(["ann@b.org", "new@b.org"], ["domain b.org", "link"]),
        "b.txt": SourceGrant([], []),
    }
    people = {one.id: one.email for one in (await source.directory()).people}
    assert people == {"ann@b.org": "ann@b.org", "new@b.org": "new@b.org"}
    assert all(not one.people for one in (await source.directory()).groups)


@pytest.mark.parametrize("how", ["", "batch quota"])
async def test_files_of_a_shared_drive_are_asked_together(running: Running, how: str) -> None:
    """A hundred in one request; what is throttled among them is sent again, the rest is not."""
    google, people = FakeGoogle("0Shared"), [user("ann@b.org", displayName="Änn"), user("bob@b.org")]
    files = [google.add(f"{number}.txt", permissions=people[: number % 3]) for number in range(130)]
    google.spoil = how
    async with (
        served_by(google.handle) as url,
        opened_at(running.platform, url, google) as source,
    ):
        guarded = cast("GuardedDrive", source)
        await guarded.rights_mark()
        items = [one async for one in source.documents(None) if isinstance(one, SourceItem)]
        grants = await guarded.grants(items)
        names = {one.name for one in (await guarded.directory()).people}
    assert sorted(google.batches) == ([30, 100] if not how else [1, 1, 30, 100])
    given = {one: len(grant.people) for one, grant in grants.items()}
    assert given == {file.id: number % 3 for number, file in enumerate(files)}
    assert names == {"Änn", "bob"}


async def test_a_batch_that_is_not_answered_counts_nothing(running: Running) -> None:
    google = FakeGoogle("0Shared")
    google.add("a.txt", permissions=[user("ann@b.org")])
    google.spoil = "batch cut"
    async with served_by(google.handle) as url, opened_at(running.platform, url, google) as source:
        with pytest.raises(ListingIncomplete):
            await cast("GuardedDrive", source).rights_mark()


async def test_permissions_that_the_account_may_not_see_close(running: Running) -> None:
    google = FakeGoogle()
    google.add("a.txt", permissions=[user("ann@b.org")], can_share=False)
    async with served_by(google.handle) as url, opened_at(running.platform, url, google) as source:
        assert await grants_of(cast("GuardedDrive", source)) == {}


async def test_people_of_a_hidden_group_are_nobody(running: Running, google: FakeGoogle) -> None:
    """And groups within it or suspended accounts are no people; its people are asked for as an account."""
    group = [{"id": "g", "type": "group", "emailAddress": one} for one in ("x@b.org", "staff@b.org")]
    google.add("a.txt", permissions=group)
    google.members["staff@b.org"] = [
        {"id": "1", "email": "Ann@b.org", "type": "USER", "status": "ACTIVE"},
        {"id": "2", "email": "bob@b.org", "type": "USER", "status": "SUSPENDED"},
        {"id": "3", "email": "inner@b.org", "type": "GROUP"},
    ]
    async with served_by(google.handle) as url:
        fields = {"directory": True, "account": "admin@b.org"}
        async with opened_at(running.platform, url, google, **fields) as source:
            groups = (await cast("GuardedDrive", source).directory()).groups
    assert {one.id: list(one.people) for one in groups} == {"x@b.org": [], "staff@b.org": ["ann@b.org"]}
    assert google.tokens == ["admin@b.org"]


async def test_googles_documents_are_exported(source: GuardedDrive, google: FakeGoogle) -> None:
    """Shortcuts and what Google exports not at all are left out, with the reason."""
    google.add("Plan", type=DOCUMENT, content=b"Word.")
    google.add("To the plan", type=SHORTCUT)
    google.add("Survey", type="application/vnd.google-apps.form")
    google.add("closed.txt", can_download=False)
    items = await items_of(source)
    assert {path for path, one in items.items() if one.unavailable} == {
        "To the plan",
        "Survey",
        "closed.txt",
    }
    plan = items["Plan.docx"]
    assert await read_item(source, plan) == b"Word."
    assert plan.link is not None and plan.link.startswith("https://drive.google.com/")
    google.spoil = "export"
    with pytest.raises(ItemUnsuitable):
        await read_item(source, plan)


async def test_only_a_folder(running: Running, google: FakeGoogle) -> None:
    """What is moved out of it is gone; nothing else is asked for if nothing has changed."""
    folder = google.add("Policies", type=FOLDER)
    inner = google.add("Inner", folder.id, FOLDER)
    file = google.add("a/b.txt", inner.id)
    google.add("elsewhere.txt")
    async with (
        served_by(google.handle) as url,
        opened_at(running.platform, url, google, folder=folder.id) as source,
    ):
        items, end = await listed(source)
        assert [one.path for one in items] == ["Inner/a\N{DIVISION SLASH}b.txt"]
        google.lists.clear()
        assert await listed(source, end.cursor) == ([], ListingEnd(end.cursor, only_changes=True))
        assert google.lists == []
        file.parent = google.drive or None
        google.changed.append(file.id)
        items, end = await listed(source, end.cursor)
        assert items == [GoneItem(file.id)] and end.only_changes
        assert google.bodies == []


@pytest.mark.parametrize("field", ["folder", "shared_drive"])
async def test_what_the_settings_name_must_be_there(running: Running, google: FakeGoogle, field: str) -> None:
    """Otherwise, everything would look deleted."""
    google.add("a.txt")
    async with (
        served_by(google.handle) as url,
        opened_at(running.platform, url, google, **{field: "elsewhere"}) as source,
    ):
        with pytest.raises(SourceMisplaced):
            await listed(source)


@pytest.mark.parametrize("how", ["removed", "folder", "token"])
async def test_changes_that_say_too_little_list_everything(
    source: GuardedDrive, google: FakeGoogle, how: str
) -> None:
    """Something is gone, a folder has changed, or the token is too old."""
    folder = google.add("Old", type=FOLDER)
    google.add("a.txt", folder.id)
    gone = google.add("b.txt")
    _, end = await listed(source)
    folder.name = "New"
    google.changed.append(gone.id if how == "removed" else folder.id)
    if how == "removed":
        del google.files[gone.id]
    google.spoil = "token" if how == "token" else ""
    items, end = await listed(source, end.cursor)
    assert not end.only_changes
    assert "New/a.txt" in {one.path for one in items}


async def test_a_part_of_a_search_is_no_listing(source: GuardedDrive, google: FakeGoogle) -> None:
    google.add("a.txt")
    google.spoil = "incomplete"
    with pytest.raises(ListingIncomplete):
        await listed(source)


async def test_a_quota_is_no_refusal(source: GuardedDrive, google: FakeGoogle) -> None:
    google.spoil = "quota"
    with pytest.raises(SourceThrottled):
        await listed(source)


async def test_a_token_that_has_expired_is_renewed(source: GuardedDrive, google: FakeGoogle) -> None:
    google.add("a.txt", content=b"Text.")
    item = (await items_of(source))["a.txt"]
    google.token = "t2"
    assert await read_item(source, item) == b"Text."


async def test_a_refresh_token_serves_as_well(running: Running, google: FakeGoogle) -> None:
    google.add("a.txt")
    async with (
        served_by(google.handle) as url,
        opened_at(running.platform, url, google, user_file(url)) as source,
    ):
        assert list(await items_of(source)) == ["a.txt"]


@pytest.mark.parametrize(
    "secret", ["", "{}", "[]", '{"type": "service_account"}', "not JSON"], ids=lambda one: one[:9]
)
async def test_a_key_that_is_none_is_refused(running: Running, secret: str) -> None:
    google = FakeGoogle()
    with pytest.raises(CredentialRefused):
        async with opened_at(running.platform, "http://127.0.0.1:1", google, secret or " "):
            pass


@pytest.mark.parametrize("address", ["http://[x", "token", "ftp://example.org/token"])
async def test_an_address_of_tokens_that_is_none_is_named(running: Running, address: str) -> None:
    key = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}
    secret = json.dumps({**key, "token_uri": address})
    with pytest.raises(CredentialRefused, match="token_uri"):
        async with opened_at(running.platform, "http://127.0.0.1:1", FakeGoogle(), secret):
            pass


async def test_clocks_that_differ_are_named(running: Running) -> None:
    """Google calls a token of another time a wrong grant."""

    async def handle(_request: web.Request) -> web.Response:
        past = {"Date": "Tue, 15 Nov 1994 08:12:31 GMT"}
        return web.json_response({"error": "invalid_grant"}, status=400, headers=past)

    async with (
        served_by(handle) as url,
        opened_at(running.platform, url, FakeGoogle(), user_file(url)) as one,
    ):
        with pytest.raises(CredentialRefused, match="clocks"):
            await items_of(one)


async def test_empty_pages_without_an_end_are_a_fault(source: GuardedDrive, google: FakeGoogle) -> None:
    google.spoil = "hollow"
    with pytest.raises(ListingIncomplete):
        await items_of(source)


async def test_groups_are_asked_for_only_as_an_account() -> None:
    with pytest.raises(ValidationError):
        DriveSettings(directory=True)
