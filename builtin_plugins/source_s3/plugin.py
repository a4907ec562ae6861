"""The plugin for buckets of S3 servers."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.source_s3.bucket import S3
from builtin_plugins.sources.api import SourceKind
from kernel.sdk import Plugin, hookimpl


class SourceS3Plugin(Plugin):
    """Brings the kind `s3`."""

    name = "source_s3"
    version = "0.1.0"
    description = "Buckets of S3 servers as sources of knowledge bases"
    author = "Platform"
    requires = ("sources",)

    @hookimpl
    def register_sources(self) -> Sequence[SourceKind]:
        return [S3]
