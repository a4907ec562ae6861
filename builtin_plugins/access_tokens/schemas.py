"""Bodies and records of personal access tokens."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, Field

from builtin_plugins.access_tokens.models import AccessToken
from kernel.sdk import READABLE, Body, example, utc_now
from kernel.sdk.accounts import TokenScope

ALL_SCOPES: tuple[TokenScope, ...] = ("ask", "tools", "manage")


def _ahead(value: datetime) -> datetime:
    if value <= utc_now():
        raise ValueError("must be in the future")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("must be before the year 10000 in UTC") from None


def _each_once(scopes: list[TokenScope]) -> list[TokenScope]:
    return [scope for scope in ALL_SCOPES if scope in scopes]


class AccessTokenCreate(Body):
    """A new token."""

    model_config = example(name="Indexing script", scopes=["ask", "manage"])

    name: Annotated[str, READABLE] = Field(min_length=1, max_length=100, description="What the token is for.")
    expires_at: Annotated[AwareDatetime, AfterValidator(_ahead)] | None = Field(
        None, description="When it expires; never if omitted."
    )
    scopes: Annotated[list[TokenScope], AfterValidator(_each_once)] = Field(
        list(ALL_SCOPES),
        min_length=1,
        max_length=10,
        description="Which of the account's rights it has. `ask`: read and ask; `tools`: run tools; "
        "`manage`: everything else, and what `ask` allows. No token can change account security.",
    )
    idempotency_key: str | None = Field(
        None,
        min_length=1,
        max_length=255,
        description="Any text of your choice, such as a UUID; use a new one for each token. If the response "
        "is lost, send the same request with the same key again to get the same token. 409 if the request "
        "differs.",
    )


class AccessTokenOut(BaseModel):
    """A token without its value."""

    id: int
    name: str
    last_four: str = Field(description="The last characters of the token, to distinguish it from others.")
    scopes: list[TokenScope]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None = Field(description="When it was last sent, to the minute.")


class AccessTokenCreated(AccessTokenOut):
    """A new token with its value, which is never shown again."""

    token: str = Field(description="Send it as `Authorization: Bearer plk_…`.")


class AccessTokenOfAccount(AccessTokenOut):
    """A token as the operator sees it."""

    account_id: int


def scopes_of(text: str) -> list[TokenScope]:
    """A row's scopes."""
    names = text.split()
    return [scope for scope in ALL_SCOPES if scope in names]


def render(row: AccessToken) -> AccessTokenOut:
    """A row without its hash."""
    return AccessTokenOut(
        id=row.id,
        name=row.name,
        last_four=row.last_four,
        scopes=scopes_of(row.scopes),
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
    )
