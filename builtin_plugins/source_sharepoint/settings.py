"""Settings of a source."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from builtin_plugins.sources.api import address_of

_GRAPH: Final = "https://graph.microsoft.com"
_SIGN_IN: Final = "https://login.microsoftonline.com"
_SITE: Final = "https://example.sharepoint.com/sites/team"
_Server: TypeAlias = Annotated[str, Field(min_length=1, max_length=1000), address_of(_GRAPH, has_path=False)]


class SharepointSettings(BaseModel):
    """What a source of this kind is."""

    model_config = ConfigDict(extra="forbid")

    tenant: str = Field(
        ...,
        title="Tenant",
        max_length=255,
        pattern=r"^[A-Za-z0-9.-]+$",
        description="ID or domain of the organization.",
    )
    client_id: str = Field(
        ...,
        title="Application ID",
        max_length=64,
        pattern=r"^[A-Za-z0-9-]+$",
        description="Of the app registration whose client secret is the credential.",
    )
    site: Annotated[str, address_of(_SITE, has_path=True, schemes=("https",))] = Field(
        "",
        title="Site",
        max_length=1000,
        description="Such as https://example.sharepoint.com/sites/team; or name a user instead.",
    )
    user: str = Field(
        "",
        title="User",
        max_length=255,
        pattern=r"^([^@\s/]+@[^@\s/]+)?$",
        description="Sign-in name of the person whose OneDrive is read.",
    )
    library: str = Field(
        "",
        title="Library",
        max_length=255,
        description="Name of one document library, such as Documents; all of the site when empty.",
    )
    rights: Literal["sharepoint", "knowledge_base"] = Field(
        "sharepoint",
        title="Who may read",
        description="Whoever may read a file there, or everybody who sees the knowledge base.",
    )
    server: _Server = Field(_GRAPH, title="Server", description="Another one in national clouds.")
    sign_in: _Server = Field(_SIGN_IN, title="Sign-in server", description="Another one in national clouds.")

    @model_validator(mode="after")
    def _is_one_place(self) -> Self:
        if bool(self.site) == bool(self.user):
            raise ValueError("name a site, or a user whose OneDrive is read")
        return self
