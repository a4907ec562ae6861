"""Settings of a source."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from builtin_plugins.sources.api import address_of

SpaceKey: TypeAlias = Annotated[
    str, StringConstraints(strip_whitespace=True, pattern=r"^~?[A-Za-z0-9._:-]{1,255}$")
]


class ConfluenceSettings(BaseModel):
    """What a source of this kind is."""

    model_config = ConfigDict(extra="forbid")

    url: Annotated[str, address_of("https://example.atlassian.net/wiki", has_path=True)] = Field(
        ...,
        title="Address",
        min_length=1,
        max_length=1000,
        description="Such as https://example.atlassian.net/wiki.",
    )
    edition: Literal["cloud", "data_center"] = Field(
        "cloud", title="Edition", description="Data Center from 9.1 on, where permissions are read."
    )
    user: str = Field(
        "",
        title="User",
        max_length=255,
        pattern=r"^[^:\x00-\x1f]*$",
        description="E-mail address of the token's account in the cloud; empty for a personal access token.",
    )
    spaces: list[SpaceKey] = Field(
        [],
        title="Spaces",
        max_length=500,
        json_schema_extra={"format": "lines"},
        description="Keys of spaces, one in a line; all that the account sees when empty.",
    )
    blog_posts: bool = Field(True, title="Blog posts", description="Read them as well.")
    attachments: bool = Field(True, title="Attachments", description="Read those of what is read.")
    rights: Literal["confluence", "knowledge_base"] = Field(
        "confluence",
        title="Who may read",
        description="Whoever may read a page there, or everybody who sees the knowledge base.",
    )
    anonymous: bool = Field(
        False,
        title="Public spaces",
        description="Confluence may be used without signing in: everybody who sees the knowledge base "
        "reads spaces that are open to anonymous people. Otherwise nobody does for that reason.",
    )
    email_domain: str | None = Field(
        None,
        title="E-mail domain",
        max_length=255,
        pattern=r"^[A-Za-z0-9.-]+$",
        description="For Data Center: the user ann there has the address ann@domain.",
    )
