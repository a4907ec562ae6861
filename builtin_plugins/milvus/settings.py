"""Where the Milvus server is."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, SecretStr

from kernel.sdk import Settings


def _address(value: str) -> str:
    scheme, _, rest = value.partition("://")
    if scheme not in ("http", "https", "tcp", "unix") or not rest.strip("/") or "@" in rest:
        raise ValueError("expected an address such as http://milvus.internal:19530, without a password in it")
    return value.rstrip("/")


class MilvusSettings(Settings):
    """The server and how to sign in. A Milvus Lite file can't be named: only one process could open it."""

    env_prefix: ClassVar[str] = "PLATFORM_MILVUS_"

    uri: Annotated[str, AfterValidator(_address)] = Field(
        "http://127.0.0.1:19530",
        description="Address of the Milvus server or proxy that searches with PLATFORM_VECTOR_STORE=milvus; "
        "https:// for TLS.",
    )
    token: SecretStr | None = Field(
        None, description="How to sign in to Milvus: name:password, or an API key; unset if it asks for none."
    )
    database: str = Field("", description="The Milvus database; its default one when unset.")
    prefix: str = Field(
        "platform",
        pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$",
        description="What the names of the platform's Milvus collections begin with. An identity of the "
        "PostgreSQL or SQLite database follows, so that several platforms can share a server.",
    )
    timeout_seconds: float = Field(
        10.0, gt=0, le=300, description="How long to wait for an answer of Milvus before it counts as down."
    )
