"""Signed addresses of a bucket's lists and objects: computed here, without asking the server."""

from __future__ import annotations

from typing import Any, Final

from pydantic import SecretStr
from yarl import URL

from builtin_plugins.source_s3.settings import S3SourceSettings

_SECONDS: Final = 900
"""For how long an address may be used; a request that has begun may take longer."""


class SignedAddresses:
    """Addresses for one bucket. Without a key, they are not signed. Creating one reads botocore's files."""

    def __init__(self, settings: S3SourceSettings, secret: SecretStr | None) -> None:
        from botocore import UNSIGNED
        from botocore.config import Config
        from botocore.session import Session

        signed = bool(settings.access_key and secret is not None)
        keys: dict[str, str] = {}
        if signed and secret is not None:
            keys = {
                "aws_access_key_id": settings.access_key,
                "aws_secret_access_key": secret.get_secret_value(),
            }
        config = Config(
            signature_version="s3v4" if signed else UNSIGNED,
            ignore_configured_endpoint_urls=True,  # those are the operator's
            s3={"addressing_style": "path" if settings.endpoint else "auto"},
        )
        self._bucket = settings.bucket
        self._client: Any = Session().create_client(
            "s3",
            region_name=settings.region,
            endpoint_url=settings.endpoint or None,
            config=config,
            **keys,
        )

    def page(self, prefix: str, most: int, after: str | None) -> URL:
        """A page of up to `most` objects below a prefix; `after` is the token of the page before."""
        more = {"ContinuationToken": after} if after else {}
        return self._signed("list_objects_v2", Prefix=prefix, MaxKeys=most, EncodingType="url", **more)

    def versions_page(self, prefix: str, most: int, after: tuple[str, str] | None) -> URL:
        """A page of their versions; `after` is the key and the version that the page before ended with."""
        more = {"KeyMarker": after[0], "VersionIdMarker": after[1]} if after else {}
        return self._signed("list_object_versions", Prefix=prefix, MaxKeys=most, EncodingType="url", **more)

    def content(self, key: str, version: str | None) -> URL:
        """The content of an object, or of one of its versions."""
        more = {"VersionId": version} if version else {}
        return self._signed("get_object", Key=key, **more)

    def _signed(self, operation: str, **parameters: Any) -> URL:
        named = {"Bucket": self._bucket, **parameters}
        address = self._client.generate_presigned_url(operation, Params=named, ExpiresIn=_SECONDS)
        return URL(address, encoded=True)
