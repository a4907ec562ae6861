"""Settings of licensing."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, SecretStr

from kernel.sdk import Settings, env


class LicensingSettings(Settings):
    """How license keys are made and checked."""

    env_prefix: ClassVar[str] = "PLATFORM_LICENSING_"
    administered: ClassVar[frozenset[str]] = frozenset({"order_days"})

    license_secret: SecretStr | None = Field(
        None,
        validation_alias=env("LICENSE_SECRET"),
        description="Key under which license keys are hashed; when unset, JWT_SECRET, or one kept in "
        "PLATFORM_HOME.",
    )
    allow_unvalidated: bool = Field(
        False,
        validation_alias=env("PLATFORM_ALLOW_UNVALIDATED_LICENSES"),
        description="Whether any license key counts as valid; for development only.",
    )
    validations_per_minute: int = Field(
        30, ge=1, description="Times one caller may check license keys in 60 seconds."
    )
    order_days: int = Field(
        30,
        ge=1,
        le=3650,
        description="Days after which an unpaid order expires; a later payment still counts.",
    )
    flush_seconds: float = Field(
        5,
        gt=0,
        le=300,
        description="Seconds for which uses of licenses are collected before writing.",
    )
