"""A prefix in a bucket: the calls that the store makes, and the meaning of their failures.

All calls block: run them in a thread. Whatever goes wrong raises BlobsAway with a reason for the operator.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from builtin_plugins.s3_blobs.settings import S3Settings
from kernel.sdk.storage import BlobsAway

_PIECE = 1024 * 1024
_SHORT = 1024
_CONNECT = 2.0  # seconds
_SILENCE = 20.0  # seconds without a byte from the server during a transfer
_QUICK = 4.0  # the same for calls inside a transaction
_REST = 1.0
_ADDRESS = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:/[A-Za-z0-9._-]+)*)/?")
_ABSENT = {"404", "NoSuchKey", "NotFound"}
_KEYS = {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "403"}


@dataclass(frozen=True)
class BucketPrefix:
    """A bucket, and the prefix of all our objects in it (empty, or with a trailing slash)."""

    bucket: str
    prefix: str

    @classmethod
    def at(cls, address: str) -> BucketPrefix:
        """The place of ``s3://bucket`` or ``s3://bucket/prefix``. Raises ValueError with the remedy."""
        match = _ADDRESS.fullmatch(address)
        if match is None:
            raise ValueError(
                "expected s3://bucket or s3://bucket/prefix, where the bucket's name has 3 to 63 lower-case "
                "letters, digits, dots and hyphens, and the prefix letters, digits, '.', '_', '-' and '/'"
            )
        return cls(match[1], f"{match[2][1:]}/" if match[2] else "")

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


@dataclass(frozen=True)
class Object:
    """An object in a listing: its key below the prefix, its size in bytes, when it was written."""

    key: str
    size: int
    modified_at: datetime


class Bucket:
    """Objects by key. A stored object is durable; an object is complete or absent."""

    def __init__(self, place: BucketPrefix, settings: S3Settings) -> None:
        self.place = place
        self._settings = settings
        self._away: tuple[float, str] | None = None

    def check(self) -> None:
        """Check that the bucket exists and can be listed."""
        with self._errors_of_blobs():
            self._quickly.list_objects_v2(Bucket=self.place.bucket, Prefix=self.place.prefix, MaxKeys=1)

    def size_of(self, key: str) -> int | None:
        """The size of an object in bytes; None if there is none."""
        self._be_quick()
        try:
            with self._errors_of_blobs():
                return int(self._quickly.head_object(**self._named(key))["ContentLength"])
        except FileNotFoundError:
            return None

    def put(self, key: str, file: Path, sha256: str) -> None:
        """Write a file as an object. The server compares its bytes with the digest, if it knows how to."""
        checksum = base64.b64encode(bytes.fromhex(sha256)).decode()
        with self._errors_of_blobs(), file.open("rb") as body:
            self._client.put_object(**self._named(key), Body=body, ChecksumSHA256=checksum)

    def put_text(self, key: str, text: str) -> None:
        """Write a short text as an object."""
        with self._errors_of_blobs():
            self._quickly.put_object(**self._named(key), Body=text.encode())

    def get_text(self, key: str) -> str | None:
        """A short text; None if there is no such object."""
        self._be_quick()
        try:
            with self._errors_of_blobs():
                body = self._quickly.get_object(**self._named(key))["Body"]
            with closing(body), self._errors_of_blobs():
                return str(body.read(_SHORT).decode(errors="replace")).strip()
        except FileNotFoundError:
            return None

    def get(self, key: str) -> Iterator[bytes]:
        """An object's content in pieces. Raises FileNotFoundError if there is none."""
        with self._errors_of_blobs():
            answer = self._client.get_object(**self._named(key))
        with closing(answer["Body"]) as body, self._errors_of_blobs():
            yield from body.iter_chunks(_PIECE)

    def remove(self, key: str) -> None:
        """Remove an object, if it is there."""
        self._be_quick()
        with self._errors_of_blobs():
            self._quickly.delete_object(**self._named(key))

    def objects(self) -> Iterator[Object]:
        """Every object below the prefix."""
        pages = self._client.get_paginator("list_objects_v2")
        with self._errors_of_blobs():
            for page in pages.paginate(Bucket=self.place.bucket, Prefix=self.place.prefix):
                for entry in page.get("Contents", ()):
                    key = entry["Key"].removeprefix(self.place.prefix)
                    yield Object(key, int(entry["Size"]), entry["LastModified"])

    def _named(self, key: str) -> dict[str, str]:
        return {"Bucket": self.place.bucket, "Key": self.place.prefix + key}

    @cached_property
    def _client(self) -> Any:
        return self._new_client(_SILENCE, attempts=3)

    @cached_property
    def _quickly(self) -> Any:
        """For calls while others wait: gives up soon."""
        return self._new_client(_QUICK, attempts=1)

    def _new_client(self, silence: float, attempts: int) -> Any:
        from botocore.config import Config
        from botocore.session import Session

        settings, session = self._settings, Session()
        options: dict[str, Any] = {"endpoint_url": settings.endpoint or None}
        if settings.access_key is not None and settings.secret_key is not None:
            options["aws_access_key_id"] = settings.access_key.get_secret_value()
            options["aws_secret_access_key"] = settings.secret_key.get_secret_value()
        region = settings.region or session.get_config_variable("region") or "us-east-1"
        own_server = settings.endpoint or session.get_config_variable("endpoint_url")
        config = Config(
            connect_timeout=_CONNECT,
            read_timeout=silence,
            retries={"mode": "standard", "total_max_attempts": attempts},
            max_pool_connections=32,
            signature_version="s3v4",
            # The SHA-256 is sent with each object; servers other than AWS may not know newer checksums.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            s3={"addressing_style": "path" if own_server else "auto"},
        )
        return session.create_client("s3", region_name=region, config=config, **options)

    def _be_quick(self) -> None:
        """Fail at once, rather than in a transaction that waits, if the server was away a moment ago."""
        away = self._away
        if away is not None and time.monotonic() < away[0]:
            raise BlobsAway(away[1])

    @contextmanager
    def _errors_of_blobs(self) -> Iterator[None]:
        """Turn what the library raises into FileNotFoundError or BlobsAway."""
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            NoCredentialsError,
            PartialCredentialsError,
        )
        from urllib3.exceptions import HTTPError

        try:
            yield
        except ClientError as error:
            raise self._refusal(error) from error
        except (NoCredentialsError, PartialCredentialsError) as error:
            reason = f"no keys for {self.place}: set PLATFORM_S3_ACCESS_KEY and PLATFORM_S3_SECRET_KEY"
            raise BlobsAway(reason, refused=True) from error
        except (BotoCoreError, HTTPError, ConnectionError, TimeoutError) as error:
            what = type(error).__name__
            reason = f"the S3 server of {self.place} does not answer ({what}); see PLATFORM_S3_ENDPOINT"
            self._away = (time.monotonic() + _REST, reason)
            raise BlobsAway(reason) from error

    def _refusal(self, error: Any) -> Exception:
        answer = error.response
        code, status = answer["Error"].get("Code", ""), answer["ResponseMetadata"].get("HTTPStatusCode", 0)
        if code == "NoSuchBucket":
            missing = f"the bucket '{self.place.bucket}' does not exist"
            return BlobsAway(f"{missing}; create it, or correct PLATFORM_BLOB_STORE", refused=True)
        if code in _ABSENT:
            return FileNotFoundError(f"{self.place} has no such object")
        if code in _KEYS:
            reason = (
                f"the S3 server refuses the keys for {self.place} ({code}); check PLATFORM_S3_ACCESS_KEY and"
                " PLATFORM_S3_SECRET_KEY, and that they may list, read, write and delete there"
            )
            return BlobsAway(reason, refused=True)
        return BlobsAway(f"the S3 server of {self.place} answered {status} {code}", refused=status < 500)
