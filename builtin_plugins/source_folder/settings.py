"""Settings of the plugin, and of a source."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from kernel.sdk import Settings


class SourceFolderSettings(Settings):
    """Which folders of the server may become sources."""

    source_folders: str = Field(
        "",
        max_length=20_000,
        description="Folders of the server, separated by commas. Whoever owns a knowledge base may add these "
        "and what is below them as sources; none by default.",
    )


class FolderSettings(BaseModel):
    """What a source of this kind is."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(
        ...,
        title="Folder",
        min_length=1,
        max_length=1000,
        description="The folder on the server, below one that the operator allows.",
    )
    rights: Literal["knowledge_base", "posix"] = Field(
        "knowledge_base",
        title="Who may read",
        description="Everybody who sees the knowledge base, or whoever may read a file on the server.",
    )
    email_domain: str | None = Field(
        None,
        title="E-mail domain",
        max_length=255,
        pattern=r"^[A-Za-z0-9.-]+$",
        description="With it, the user ann there has the address ann@domain; only if the "
        "permissions there are read.",
    )
