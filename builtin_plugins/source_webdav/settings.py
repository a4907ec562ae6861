"""Settings of a source."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from yarl import URL


def _address(value: str) -> str:
    url = URL(value)
    if url.user or url.password:
        raise ValueError("the address must hold no user or password; give them in their own fields")
    if url.scheme not in ("http", "https") or not url.host or url.query_string or url.fragment:
        raise ValueError("expected https://host/folder")
    return value


class WebdavSettings(BaseModel):
    """What a source of this kind is."""

    model_config = ConfigDict(extra="forbid")

    url: Annotated[str, AfterValidator(_address)] = Field(
        ...,
        title="Address",
        min_length=1,
        max_length=1000,
        description="The folder. Nextcloud: https://host/remote.php/dav/files/USER/folder",
    )
    user: str = Field(
        "",
        title="User",
        max_length=255,
        pattern=r"^[^:\x00-\x1f]*$",
        description="Sent with the password; none when empty.",
    )
    rights: Literal["knowledge_base", "nextcloud"] = Field(
        "knowledge_base",
        title="Who may read",
        description="Everybody who sees the knowledge base, or the user and those to whom a file is shared.",
    )
    email_domain: str | None = Field(
        None,
        title="E-mail domain",
        max_length=255,
        pattern=r"^[A-Za-z0-9.-]+$",
        description="With it, the user ann there has the address ann@domain; only if the "
        "permissions there are read.",
    )

    @model_validator(mode="after")
    def _is_cloud(self) -> Self:
        if self.rights == "nextcloud" and "/remote.php/dav/files/" not in self.url:
            raise ValueError("shares are read only of https://host/remote.php/dav/files/USER/folder")
        return self
