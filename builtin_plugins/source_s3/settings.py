"""Settings of a source."""

from __future__ import annotations

from typing import Annotated, Final, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from builtin_plugins.source_s3.readers import PrefixReaders
from builtin_plugins.sources.api import address_of

Line: TypeAlias = Annotated[str, StringConstraints(max_length=2_000)]
_MOST_LINES: Final = 500


class S3SourceSettings(BaseModel):
    """What a source of this kind is."""

    model_config = ConfigDict(extra="forbid")

    bucket: str = Field(
        ...,
        title="Bucket",
        pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$",
        description="3 to 63 lower-case letters, digits, dots and hyphens.",
    )
    prefix: str = Field(
        "",
        title="Prefix",
        max_length=900,
        description="Only objects whose names begin with it, such as policies/; all when empty.",
    )
    endpoint: Annotated[str, address_of("https://s3.example.org", has_path=False)] = Field(
        "",
        title="Server",
        max_length=1000,
        description="Such as https://s3.example.org; Amazon's when empty.",
    )
    region: str = Field(
        "us-east-1",
        title="Region",
        pattern=r"^[a-z0-9-]{1,64}$",
        description="Region of the bucket.",
    )
    access_key: str = Field(
        "",
        title="Access key ID",
        max_length=255,
        pattern=r"^[!-~]*$",
        description="Sent with the secret access key; the bucket is read as by strangers when empty.",
    )
    versions: bool = Field(
        False,
        title="Read by version",
        description="In a bucket with versioning, each document names its version, and exactly that is read.",
    )
    readers: list[Line] = Field(
        [],
        title="Readers",
        max_length=_MOST_LINES,
        json_schema_extra={"format": "lines"},
        description="A line for each prefix, such as hr/ = @hr, ann@example.org; * is everybody. The "
        "longest prefix decides. Everybody who sees the knowledge base reads all when empty.",
    )
    groups: list[Line] = Field(
        [],
        title="Groups",
        max_length=_MOST_LINES,
        json_schema_extra={"format": "lines"},
        description="A line for each group, such as hr = ann@example.org, bob@example.org. What other groups "
        "are here is said in the source's table of counterparts.",
    )

    @model_validator(mode="after")
    def _readers_known(self) -> Self:
        PrefixReaders(self.readers, self.groups)
        if self.groups and not self.readers:
            raise ValueError("groups have a meaning only with readers")
        return self
