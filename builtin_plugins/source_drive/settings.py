"""Settings of a source."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from builtin_plugins.sources.api import address_of

GOOGLE: Final = "https://www.googleapis.com"


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
    server: Annotated[str, address_of(GOOGLE, has_path=False)] = Field(
        GOOGLE,
        title="Server",
        min_length=1,
        max_length=1000,
        description="Google's, unless a proxy answers for it.",
    )

    @model_validator(mode="after")
    def _asks_for_someone(self) -> Self:
        if self.directory and not self.account:
            raise ValueError("the Directory API answers a service account only for an account")
        return self
