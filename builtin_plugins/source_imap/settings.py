"""Settings of a source."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from kernel.sdk import split_list


class ImapSettings(BaseModel):
    """What a source of this kind is."""

    model_config = ConfigDict(extra="forbid")

    host: str = Field(
        ...,
        title="Server",
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$",
        description="Such as imap.example.org.",
    )
    port: int = Field(993, ge=1, le=65_535, title="Port", description="993 with TLS, 143 with STARTTLS.")
    security: Literal["tls", "starttls"] = Field(
        "tls", title="Encryption", description="TLS from the beginning, or by STARTTLS; never without."
    )
    user: str = Field(..., title="User", min_length=1, max_length=255, pattern=r"^[^\x00-\x1f]*$")
    address: str = Field(
        "",
        title="E-mail address",
        max_length=255,
        pattern=r"^([^@\s]+@[^@\s]+)?$",
        description="The mailbox's: only the account with it reads the mails; the user when empty.",
    )
    folders: str = Field(
        "",
        max_length=2_000,
        title="Folders",
        description="Separated by commas; all but drafts, junk and trash when empty.",
    )

    @model_validator(mode="after")
    def _has_address(self) -> ImapSettings:
        if not self.address and "@" not in self.user:
            raise ValueError("give the mailbox's e-mail address in 'address', as 'user' is none")
        return self

    @property
    def folder_names(self) -> frozenset[str]:
        """The folders that are read; empty for all that are usual."""
        return frozenset(split_list(self.folders))

    @property
    def owner(self) -> str:
        """The e-mail address of the account to which the mailbox belongs."""
        return self.address or self.user
