"""Git repositories over HTTP, from Git's own server: the suite for all sources, and what is Git's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pydantic import SecretStr, ValidationError

from builtin_plugins.source_git.repository import open_repository
from builtin_plugins.source_git.settings import RepositorySettings
from builtin_plugins.sources.api import (
    CredentialRefused,
    DocumentSource,
    ItemUnsuitable,
    ItemVanished,
    ListingEnd,
    SourceFault,
    SourceItem,
    SourceMisplaced,
    SourceSetup,
    SourceThrottled,
    SourceUnreachable,
)
from builtin_plugins.sources.conformance import SourceConformance, SourceWorld, read_item
from kernel.sdk import Platform
from kernel.testing import Running, platforms
from tests.fakes.git_server import GitServer, git, git_server

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def allowed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose repositories may be sources."""
    return tmp_path_factory.mktemp("allowed")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory, allowed: Path) -> AsyncIterator[Running]:
    """A platform that may call this machine."""
    env = {"PLATFORM_OUTGOING_ALLOWED": "127.0.0.1", "PLATFORM_SOURCE_GIT_FOLDERS": str(allowed)}
    async with platforms(tmp_path_factory.mktemp("git") / "home") as start:
        yield await start("source_git", env=env)


@pytest_asyncio.fixture(loop_scope="module")
async def server(tmp_path: Path) -> AsyncIterator[GitServer]:
    async with git_server(tmp_path / "served") as found:
        yield found


def opened(
    platform: Platform, url: str, secret: str | None = None, **settings: str
) -> AbstractAsyncContextManager[DocumentSource]:
    checked = RepositorySettings(url=url, **settings)
    kept = None if secret is None else SecretStr(secret)
    return open_repository(SourceSetup(platform, "test", checked, kept))


class GitWorld(SourceWorld):
    """A repository on a server, and a working copy in which people change it."""

    def __init__(self, platform: Platform, server: GitServer) -> None:
        self.platform = platform
        self.server = server
        self.environment: dict[str, str] = {}

    def opened(self) -> AbstractAsyncContextManager[DocumentSource]:
        return opened(self.platform, self.server.url, "s3cret" if self.server.token else None)

    async def put(self, path: str, content: bytes) -> None:
        place = self.server.work / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)

    async def remove(self, path: str) -> None:
        (self.server.work / path).unlink()

    async def move(self, old: str, new: str) -> None:
        (self.server.work / new).parent.mkdir(parents=True, exist_ok=True)
        git(self.server.work, "mv", old, new)

    async def settle(self) -> None:
        self.server.publish(**self.environment)

    @asynccontextmanager
    async def cut_off(self) -> AsyncIterator[None]:
        await self.put("more.txt", b"more")
        await self.settle()
        self.server.cut = 150
        yield
        self.server.cut = None
        await self.remove("more.txt")
        await self.settle()

    @asynccontextmanager
    async def shortened(self) -> AsyncIterator[None]:
        git(self.server.work, "rm", "--quiet", "-r", "folder 0", "folder 1")
        await self.settle()
        yield
        git(self.server.work, "revert", "--no-edit", "HEAD")
        await self.settle()

    @asynccontextmanager
    async def expired(self) -> AsyncIterator[None]:
        self.server.token = "another"
        yield
        self.server.token = None

    @asynccontextmanager
    async def skewed(self) -> AsyncIterator[None]:
        past = "2001-01-01T00:00:00"
        self.environment = {"GIT_AUTHOR_DATE": past, "GIT_COMMITTER_DATE": past}
        yield
        self.environment = {}


class TestGit(SourceConformance):
    """The suite."""

    @pytest.fixture
    def world(self, running: Running, server: GitServer) -> SourceWorld:
        return GitWorld(running.platform, server)


async def listed(source: DocumentSource, since: str | None = None) -> tuple[list[SourceItem], ListingEnd]:
    found: list[Any] = [one async for one in source.documents(since)]
    end = found.pop()
    assert isinstance(end, ListingEnd)
    return found, end


async def test_an_unchanged_branch_sends_nothing(running: Running, server: GitServer) -> None:
    """And after a change, only what changed."""
    (server.work / "large.txt").write_bytes(bytes(range(256)) * 4_000)
    (server.work / "small.txt").write_bytes(b"small")
    server.publish()
    async with opened(running.platform, server.url) as source:
        _, end = await listed(source)
    before = server.sent
    async with opened(running.platform, server.url) as source:
        items, again = await listed(source, end.cursor)
    assert (items, again.only_changes, server.sent - before < 1_000) == ([], True, True)
    (server.work / "small.txt").write_bytes(b"other")
    server.publish()
    async with opened(running.platform, server.url) as source:
        items, _ = await listed(source, end.cursor)
        [small] = [one for one in items if one.path == "small.txt"]
        assert await read_item(source, small) == b"other"
    assert server.sent - before < 5_000


async def test_a_branch_and_a_folder(running: Running, server: GitServer) -> None:
    (server.work / "docs").mkdir()
    for name in ("docs/a.txt", "b.txt"):
        (server.work / name).write_text(name)
    server.publish("next")
    async with opened(running.platform, server.url, branch="next", folder="docs") as source:
        items, end = await listed(source)
    assert [one.path for one in items] == ["docs/a.txt"]
    assert items[0].details == {"commit": end.cursor}
    async with opened(running.platform, server.url) as source:
        assert (await listed(source))[0] == []
    for wrong in ({"branch": "nowhere"}, {"url": server.url.replace("docs", "other")}):
        settings = {"url": server.url, **wrong}
        async with opened(running.platform, **settings) as source:
            with pytest.raises(SourceMisplaced):
                await listed(source)


async def test_a_pointer_of_lfs_is_named(running: Running, server: GitServer) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 12345\n"
    (server.work / "film.txt").write_text(pointer)
    (server.work / "link.txt").symlink_to("/etc/passwd")
    server.publish()
    async with opened(running.platform, server.url) as source:
        [item], _ = await listed(source)
        with pytest.raises(ItemUnsuitable):
            await read_item(source, item)


async def test_a_token_is_sent_and_shown_nowhere(
    running: Running, server: GitServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.token = "s3cret-token"
    caplog.set_level("DEBUG")
    async with opened(running.platform, server.url, "s3cret-token") as source:
        await listed(source)
    for secret in ("wrong-token", None):
        async with opened(running.platform, server.url, secret) as source:
            with pytest.raises(CredentialRefused) as refused:
                await listed(source)
            assert "token" not in str(refused.value)
    assert "s3cret-token" not in caplog.text
    assert "wrong-token" not in caplog.text


@pytest.mark.parametrize(
    ("status", "fault"), [(429, SourceThrottled), (503, SourceUnreachable), (403, CredentialRefused)]
)
async def test_refusals_are_told_apart(
    running: Running,
    server: GitServer,
    status: int,
    fault: type[SourceFault],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The log says what git said of one that is not known."""
    server.refusal = status
    async with opened(running.platform, server.url) as source:
        with pytest.raises(fault):
            await listed(source)
    assert ("503" in caplog.text) is (status == 503)


async def test_only_what_an_operator_allows(running: Running, server: GitServer, tmp_path: Path) -> None:
    """Neither private addresses, nor folders of the server, nor helpers of git."""
    for url in ("http://10.1.2.3/docs.git", "http://169.254.169.254/docs.git", str(server.bare), "/"):
        with pytest.raises(SourceMisplaced):
            async with opened(running.platform, url):
                pass


async def test_nothing_in_an_allowed_folder_leads_out_of_it(
    running: Running, server: GitServer, allowed: Path
) -> None:
    """Neither a link, nor a file that names another repository, as working copies of submodules have."""
    (server.work / "a.txt").write_text("text")
    server.publish()
    git(allowed, "clone", "--quiet", "--bare", str(server.bare), "inside")
    (allowed / "named").mkdir()
    (allowed / "named/.git").write_text(f"gitdir: {server.bare}\n")
    (allowed / "linked").symlink_to(server.bare)
    (allowed / "suffixed.git").symlink_to(server.bare)
    async with opened(running.platform, str(allowed / "inside")) as source:
        assert [one.path for one in (await listed(source))[0]] == ["a.txt"]
    for name in ("named", "linked", "suffixed", "x" * 300):
        with pytest.raises(SourceMisplaced):
            async with opened(running.platform, str(allowed / name)):
                pass


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c id",
        "file:///etc",
        "http://a:b@example.org/x.git",
        "--upload-pack=id",
        "http://%31%32.example.org/x.git",  # curl reads another name than the platform checks
        "http://docs\u3002example.org/x.git",
        "http://example.org./x.git",
        "http://exa\tmple.org/x.git",
        "http://example.org\\@127.0.0.1/x.git",
        "http://example.org:99999/x.git",
        f"http://{'a' * 64}.org/x.git",
        "http://example..org/x.git",
        "/srv/a\0b",
    ],
)
async def test_addresses_that_git_could_read_otherwise_are_refused(url: str) -> None:
    with pytest.raises(ValidationError, match=r"address|expected|Port"):
        RepositorySettings(url=url)


async def test_a_branch_is_not_the_tag_of_the_same_name(running: Running, server: GitServer) -> None:
    git(server.work, "tag", "main")
    git(server.work, "push", "--quiet", "origin", "refs/tags/main")
    (server.work / "new.txt").write_text("new")
    server.publish("refs/heads/main")
    async with opened(running.platform, server.url, branch="main") as source:
        items, _ = await listed(source)
    assert [one.path for one in items] == ["new.txt"]


async def test_a_run_that_continues_after_a_push_goes_on(running: Running, server: GitServer) -> None:
    """A file that the newest commit no longer has is one item's fault, not the whole source's."""
    (server.work / "a.txt").write_text("old")
    server.publish()
    async with opened(running.platform, server.url) as source:
        [item], _ = await listed(source)
    (server.work / "a.txt").write_text("new")
    git(server.work, "add", "a.txt")
    git(server.work, "commit", "--quiet", "--amend", "-m", "anew")
    git(server.work, "push", "--quiet", "--force", "origin", "HEAD:main")
    git(server.bare, "reflog", "expire", "--expire=now", "--all")
    git(server.bare, "gc", "--quiet", "--prune=now")
    async with opened(running.platform, server.url) as source:
        with pytest.raises(ItemVanished):
            await read_item(source, item)
