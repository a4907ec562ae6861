"""Settings of the S3 store for uploads; the bucket itself is named by ``PLATFORM_BLOB_STORE=s3://bucket``."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, SecretStr, model_validator

from kernel.sdk import Settings


def _web_address(value: str) -> str:
    scheme, _, rest = value.partition("://")
    if value and (scheme not in ("http", "https") or not rest.strip("/") or "@" in rest):
        raise ValueError("expected an address such as https://s3.example.org, without keys in it")
    return value.rstrip("/")


class S3Settings(Settings):
    """Where the S3 server is and how to sign in; what is unset comes from AWS's own variables and files."""

    env_prefix: ClassVar[str] = "PLATFORM_S3_"

    endpoint: Annotated[str, AfterValidator(_web_address)] = Field(
        "",
        description="Address of the S3 server that stores uploads, such as https://s3.example.org; AWS when "
        "unset, or AWS_ENDPOINT_URL.",
    )
    region: str = Field("", description="Region of the bucket; AWS_DEFAULT_REGION or us-east-1 when unset.")
    access_key: SecretStr | None = Field(
        None, description="Access key ID; AWS's variables, files or instance role are used when unset."
    )
    secret_key: SecretStr | None = Field(None, description="Secret access key that belongs to it.")
    copies_mb: int = Field(
        1024,
        ge=1,
        le=10_000_000,
        description="Disk space in MB for copies of uploads in PLATFORM_HOME; more is used only for what was "
        "read in the last five minutes.",
    )

    @model_validator(mode="after")
    def _both_keys(self) -> S3Settings:
        if (self.access_key is None) != (self.secret_key is None):
            raise ValueError("set PLATFORM_S3_ACCESS_KEY and PLATFORM_S3_SECRET_KEY, both or neither")
        return self
