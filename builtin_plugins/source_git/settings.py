"""Settings of the plugin, and of a source."""

from __future__ import annotations

import re
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from kernel.sdk import Settings

_PLAIN: Final = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]+")
_URL: Final = re.compile(
    r"https?://([a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_][a-z0-9_-]{0,62})*|\[[0-9a-f:.]+\])(:\d{1,5})?"
    r"(/[^\x00-\x20\x7f\\?#\ud800-\udfff]*)?",
    re.ASCII | re.IGNORECASE,
)


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
    """A host is spelled so that git can't read another one than the platform has checked."""
    parts = urlsplit(value)
    if parts.username or parts.password:
        raise ValueError("the address must hold no user or password; give the token as the credential")
    if value.startswith("/") and _PLAIN.fullmatch(value):
        return value
    if _URL.fullmatch(value) is None or parts.port == 0:
        raise ValueError("expected https://host/repository.git, or the path of a repository on the server")
    return value


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
