"""Settings of the plugin, and of a source."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from kernel.sdk import Settings


class SourceGitSettings(Settings):
    """How large repositories may be, and whether they may be on the server itself."""

    source_git_folders: str = Field(
        "",
        max_length=20_000,
        description="Folders of the server, separated by commas, whose repositories may be sources; none by "
        "default.",
    )
    source_git_mb: int = Field(
        2_000,
        ge=1,
        le=1_000_000,
        description="Largest repository, in MB, without its history.",
    )
    source_git_file_mb: int = Field(
        50, ge=1, le=1_000, description="Largest file of a repository that becomes a document, in MB."
    )
    source_git_seconds: int = Field(
        900, ge=1, le=86_400, description="Longest time for fetching a repository."
    )


def _address(value: str) -> str:
    parts = urlsplit(value)
    if parts.username or parts.password:
        raise ValueError("the address must hold no user or password; give the token as the credential")
    if parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.fragment:
        return value
    if value.startswith("/"):
        return value
    raise ValueError("expected https://host/repository.git, or the path of a repository on the server")


class RepositorySettings(BaseModel):
    """What a source of this kind is."""

    model_config = ConfigDict(extra="forbid")

    url: Annotated[str, AfterValidator(_address)] = Field(
        ...,
        title="Address",
        min_length=1,
        max_length=1000,
        description="https://host/repository.git, or the path of a repository that the operator allows.",
    )
    branch: str = Field(
        "",
        title="Branch",
        max_length=255,
        pattern=r"^$|^[\w][\w./+-]*$",
        description="The default branch when empty.",
    )
    folder: str = Field(
        "",
        title="Folder",
        max_length=500,
        pattern=r"^$|^[^/\x00-\x1f:][^\x00-\x1f]*$",
        description="Only what is below this folder of the repository.",
    )
    user: str = Field(
        "git",
        title="User",
        min_length=1,
        max_length=255,
        pattern=r"^[^:\x00-\x1f]+$",
        description="The user name that is sent with the token; most servers take any.",
    )
    link: str = Field(
        "",
        title="Link",
        max_length=1000,
        pattern=r"^$|^https?://.*\{path\}",
        description="Where people see a file, such as https://host/repository/src/{commit}/{path}; known for "
        "GitHub and GitLab.",
    )
