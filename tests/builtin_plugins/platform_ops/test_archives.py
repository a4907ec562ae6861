"""Archives that are damaged, truncated, foreign or hostile are refused, and nothing is touched."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from builtin_plugins.platform_ops.backup.compression import compressed
from builtin_plugins.platform_ops.backup.errors import ArchiveBroken, BackupFailed
from builtin_plugins.platform_ops.backup.operator import restore
from builtin_plugins.platform_ops.backup.service import back_up
from kernel.testing import Start
from tests.builtin_plugins.platform_ops.conftest import Open, Shop

NAME = "platform-20260101-000000.tar.gz"


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    inside = io.BytesIO()
    with tarfile.open(fileobj=inside, mode="w") as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return gzip.compress(inside.getvalue())


def link() -> tarfile.TarInfo:
    member = tarfile.TarInfo("manifest.json")
    member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
    return member


HOSTILE: dict[str, Callable[[], bytes]] = {
    "no archive": lambda: b"hello",
    "path outside": lambda: tar_of((tarfile.TarInfo("../../etc/passwd"), b"x")),
    "link": lambda: tar_of((link(), b"")),
    "two members": lambda: tar_of((tarfile.TarInfo("manifest.json"), b"{}"), (tarfile.TarInfo("more"), b"x")),
    "foreign": lambda: tar_of((tarfile.TarInfo("manifest.json"), b'{"format": "other"}')),
    "bomb": lambda: gzip.compress(b"\0" * 600_000_000, 1),
}


@pytest.mark.parametrize("made", HOSTILE.values(), ids=HOSTILE.keys())
async def test_hostile_archives_are_refused(
    made: Callable[[], bytes], open_shop: Open, tmp_path: Path
) -> None:
    """Each is refused by its name, before anything is changed."""
    shop: Shop = await open_shop(env={"PLATFORM_BACKUP_TO": str(tmp_path / "store")})
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / NAME).write_bytes(made())
    with pytest.raises(BackupFailed, match=re.escape(NAME)):
        await restore(shop.running.platform, NAME)
    assert (await shop.admin.get("/v1/backups/jobs")).json()["jobs"][0]["status"] == "error"


@pytest.mark.parametrize("path", ["../../outside", "a/../../outside", "/outside", "a\\outside", ""])
async def test_files_stay_in_their_folder(path: str, open_shop: Open, tmp_path: Path) -> None:
    """A manifest in order but for the path of a file is refused as soon as it is read."""
    shop: Shop = await open_shop(env={"PLATFORM_BACKUP_TO": str(tmp_path / "store")})
    name = await shop.back_up()
    archive = tmp_path / "store" / name
    with tarfile.open(archive) as tar:
        member = tar.extractfile("manifest.json")
        assert member is not None
        manifest = json.load(member)
    empty = {"folder": "shop", "sha256": hashlib.sha256(b"").hexdigest(), "size": 0, "pieces": []}

    def with_file(path: str) -> bytes:
        files = [*manifest["files"], {**empty, "path": path}]
        content = json.dumps({**manifest, "files": files}).encode()
        return tar_of((tarfile.TarInfo("manifest.json"), content))

    archive.write_bytes(with_file("a/inside"))
    assert shop.archives.verify(name).files[-1].path == "a/inside"
    archive.write_bytes(with_file(path))
    with pytest.raises(ArchiveBroken):
        shop.archives.verify(name)


def flip(content: bytes) -> bytes:
    return content[:40] + bytes([content[40] ^ 1]) + content[41:]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "one byte": flip,
    "truncated": lambda content: content[: len(content) // 2],
    "without its last byte": lambda content: content[:-1],
    "with one byte more": lambda content: content + b"x",
    "bomb": lambda _: compressed(b"\0" * 50_000_000),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
async def test_damage_is_found(damage: Callable[[bytes], bytes], open_shop: Open, tmp_path: Path) -> None:
    """A piece that is not what its name says, or gone, makes the archive unusable; the rest is untouched."""
    shop: Shop = await open_shop(env={"PLATFORM_BACKUP_TO": str(tmp_path / "store")})
    name = await shop.back_up()
    assert shop.archives.verify(name).format == "platform.backup"
    piece = max((tmp_path / "store" / "objects").glob("*/*"), key=lambda path: path.stat().st_size)
    piece.write_bytes(damage(piece.read_bytes()))
    with pytest.raises(ArchiveBroken, match="damaged"):
        shop.archives.verify(name)
    with pytest.raises(BackupFailed, match="damaged"):
        await restore(shop.running.platform, name)
    piece.unlink()
    with pytest.raises(ArchiveBroken, match="missing"):
        shop.archives.verify(name)


async def test_restore_needs_its_name_again(open_shop: Open) -> None:
    """404 for what is no backup, 400 without the confirmation; nobody but administrators may ask."""
    shop: Shop = await open_shop()
    name = await shop.back_up()
    body = {"confirm_filename": name}
    assert (await shop.admin.post(f"/v1/backups/{NAME}/restore", json=body)).status == 404
    assert (await shop.admin.post("/v1/backups/..%2Fx/restore", json=body)).status == 404
    refused = await shop.admin.post(f"/v1/backups/{name}/restore", json={"confirm_filename": "other"})
    assert (refused.status, refused.json()["code"]) == (400, "restore_not_confirmed")
    assert (await shop.admin.get("/v1/backups/jobs/nothing")).status == 404


async def test_backup_to_s3(start_platform: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """An S3 address: made, listed, verified and pruned as in a folder."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        address = "http://{}:{}".format(*server.get_host_and_port())
        for key, value in {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }.items():
            monkeypatch.setenv(key, value)
        boto3.client("s3").create_bucket(Bucket="backups")
        env = {"PLATFORM_BACKUP_TO": "s3://backups/platform", "PLATFORM_BACKUP_KEEP": "1"}
        running = await start_platform("platform_ops", env=env)
        shop = Shop(running, await running.user("boss", role="admin"))
        first, _ = await back_up(running.platform, "test")
        second, _ = await back_up(running.platform, "test")
        listed = (await shop.admin.get("/v1/backups")).json()["archives"]
        assert [one["name"] for one in listed] == [second] != [first]
        assert shop.archives.verify(second).reason == "test"
    finally:
        server.stop()


async def test_what_a_library_of_a_store_says(start_platform: Start) -> None:
    """botocore's own errors are reported like those of a folder: missing credentials, a wrong name."""
    running = await start_platform("platform_ops", env={"PLATFORM_BACKUP_TO": "s3://no bucket/platform"})
    admin = await running.user("boss", role="admin")
    answer = await admin.get("/v1/backups")
    assert answer.status == 503
    assert "Invalid bucket name" in answer.json()["detail"]
    with pytest.raises(BackupFailed, match="Invalid bucket name"):
        await back_up(running.platform, "test")
