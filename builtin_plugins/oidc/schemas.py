"""Bodies and queries of the oidc plugin."""

from __future__ import annotations

from pydantic import BaseModel, Field


class CallbackQuery(BaseModel):
    """What the provider sends through the browser."""

    code: str | None = Field(None, description="Authorization code.")
    state: str | None = Field(None, description="The state of this sign-in.")
    error: str | None = Field(None, description="Why there is no code.")
    error_description: str | None = Field(None, description="The error in words; logged, never shown.")
    iss: str | None = Field(None, description="The provider that responded (RFC 9207).")


class SignedOut(BaseModel):
    """The result of signing out."""

    message: str
    logout_url: str | None = Field(
        None,
        description="Address that also signs the browser out at the identity provider, if it signed in "
        "there.",
    )
