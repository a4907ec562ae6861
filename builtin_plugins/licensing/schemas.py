"""Bodies and answers of licensing (spec 2.9, wire-facts 7 and 10.6). Times are naive UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, Field, PlainSerializer

from kernel.sdk import Body, example

from .tiers import PaidTier, Tier


def _naive(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat()


NaiveUtc = Annotated[datetime, PlainSerializer(_naive, return_type=str)]
Key = Annotated[str, Field(min_length=1, max_length=100)]
PluginId = Annotated[str, Field(min_length=1, max_length=100)]
Subject = Annotated[str, Field(min_length=1, max_length=255)]


class ActivateRequest(Body):
    """A license to be made, or renewed with another key and tier."""

    model_config = example(
        plugin_id="3f0e8f6e-0c57-4d0f-9c07-5f8a3a1f6f5b", tier="pro", organization_id=7, seats=25
    )

    plugin_id: PluginId
    tier: Tier
    user_id: Subject | None = Field(None, description="The account that gets it; the caller when omitted.")
    organization_id: int | None = Field(
        None, ge=1, lt=2**31, description="The organization that gets it instead of an account."
    )
    seats: int | None = Field(None, ge=1, le=1_000_000, description="Seats of an organization's license.")
    trial_days: int | None = Field(None, ge=1, le=365, description="A trial that ends after this many days.")


class ActivatedLicense(BaseModel):
    """A license that was just activated; `license_key` is shown this once."""

    id: str
    tenant_id: str
    activated_by: str | None
    plugin_id: str
    tier: str
    license_key: str = Field(description="The whole key. It is not stored and can't be shown again.")
    license_key_masked: str
    valid_from: NaiveUtc
    valid_until: NaiveUtc
    trial_expires_at: NaiveUtc | None
    active: bool
    seats: int | None


class LicenseOut(BaseModel):
    """A license of the caller."""

    id: str
    user_id: str | None
    organization_id: int | None
    plugin_id: str
    plugin_name: str
    plugin_display_name: str
    tier: str
    license_key: str = Field(description="Masked except for its last four characters.")
    valid_from: NaiveUtc
    valid_until: NaiveUtc | None
    active: bool
    usage_count: int
    last_used_at: NaiveUtc | None
    seats: int | None
    seats_used: int | None


class LicenseList(BaseModel):
    """All licenses of a caller or of an organization."""

    licenses: list[LicenseOut]
    count: int


class LookupQuery(BaseModel):
    """An account and a plugin."""

    user_id: Subject
    plugin_id: PluginId


class LicenseLookup(BaseModel):
    """The highest tier that an account has for a plugin."""

    tier: str | None
    active: bool


class ValidateKeyRequest(Body):
    """A key to be checked."""

    model_config = example(
        license_key="0A1B-2C3D-4E5F-6789", plugin_id="3f0e8f6e-0c57-4d0f-9c07-5f8a3a1f6f5b"
    )

    license_key: Key
    plugin_id: PluginId


class KeyValid(BaseModel):
    """The answer for a valid key."""

    valid: bool = True
    user_id: str | None
    plugin_id: str
    tier: str
    valid_until: NaiveUtc | None
    usage_count: int


class KeyInvalid(BaseModel):
    """The answer for a key that is not valid."""

    valid: bool = False
    reason: str
    valid_until: NaiveUtc | None = None


class NewKey(BaseModel):
    """A new key of a license, in place of the old one; shown this once."""

    id: str
    license_key: str
    license_key_masked: str


class CheckoutRequest(Body):
    """What to buy."""

    model_config = example(tier="pro")

    tier: PaidTier


class Checkout(BaseModel):
    """Where to pay."""

    checkout_url: str
    tier: str


class SeatOut(BaseModel):
    """A seat that is taken."""

    user_id: int
    assigned_at: NaiveUtc


class SeatList(BaseModel):
    """The accounts that have the seats of a license."""

    seats: list[SeatOut]
    count: int
    total: int = Field(description="Seats that the license has.")


class RequiredTier(BaseModel):
    """The tier that a plugin needs."""

    plugin_name: str
    required_tier: str


class ValidateForPluginRequest(Body):
    """A key for a plugin, or none."""

    model_config = example(license_key="0A1B-2C3D-4E5F-6789")

    license_key: Key | None = None


class PluginKeyVerdict(BaseModel):
    """Whether a key is enough for what a plugin needs."""

    valid: bool
    tier: str
    message: str


class PluginTierChange(Body):
    """The tier that a plugin will need."""

    model_config = example(license_tier="pro", license_key="0A1B-2C3D-4E5F-6789")

    license_tier: Tier
    license_key: Key | None = Field(
        None, pattern=r"[0-9A-Za-z]", description="A key of this server for the plugin."
    )


class PluginTierOut(BaseModel):
    """The tier that a plugin needs now."""

    plugin_name: str
    license_tier: str
    license_key: str | None = Field(description="Masked except for its last four characters.")
    updated_at: NaiveUtc
