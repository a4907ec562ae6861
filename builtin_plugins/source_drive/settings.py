"""Settings of a source."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from yarl import URL

GOOGLE: Final = "https://www.googleapis.com"


def _address(value: str) -> str:
    url = URL(value)
    if url.scheme not in ("http", "https") or not url.host or url.user or url.password:
        raise ValueError(f"expected an address such as {GOOGLE}")
    if url.query_string or url.fragment or url.path.strip("/"):
        raise ValueError("expected an address without a path")
    return value.rstrip("/")


class DriveSettings(BaseModel):
    """What a source of this kind is."""

    model_config = ConfigDict(extra="forbid")

    shared_drive: str = Field(
        "",
        title="Shared drive",
        max_length=255,
        pattern=r"^[\w-]*$",
        description="Its ID, from its address. Without one: what is in the account's own drive or shared "
        "with it.",
    )
    folder: str = Field(
        "",
        title="Folder",
        max_length=255,
        pattern=r"^[\w-]*$",
        description="ID of a folder, from its address: only what is below it; all when empty.",
    )
    account: str = Field(
        "",
        title="Account",
        max_length=255,
        pattern=r"^([^@\s]+@[^@\s]+)?$",
        description="E-mail address of the account for which a service account reads, by domain-wide "
        "delegation; the service account itself when empty.",
    )
    rights: Literal["drive", "knowledge_base"] = Field(
        "drive",
        title="Who may read",
        description="Whoever may read a file there, or everybody who sees the knowledge base.",
    )
    directory: bool = Field(
        False,
        title="Ask who is in groups",
        description="With the Directory API; the account must be allowed to read groups.",
    )
    server: Annotated[str, AfterValidator(_address)] = Field(
        GOOGLE, title="Server", max_length=1000, description="Google's, unless a proxy answers for it."
    )

    @model_validator(mode="after")
    def _asks_for_someone(self) -> Self:
        if self.directory and not self.account:
            raise ValueError("the Directory API answers a service account only for an account")
        return self
