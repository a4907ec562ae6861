"""Settings of the oidc plugin. Names follow wire-facts section 15."""

from __future__ import annotations

import ipaddress
from typing import ClassVar, Final
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from kernel.sdk import Settings, env

CALLBACK: Final = "/v1/auth/oidc/callback"
LOGIN: Final = "/v1/auth/oidc/login"

# Signatures by a key that only the provider has: never `none`, never a shared secret (RFC 8725 section 3.1).
_ALGORITHMS: Final = tuple(f"{family}{size}" for family in ("RS", "PS", "ES") for size in (256, 384, 512))


class OidcSettings(Settings):
    """The identity provider. Without `issuer` the plugin hides."""

    env_prefix: ClassVar[str] = "PLATFORM_OIDC_"

    issuer: str | None = Field(
        None,
        validation_alias=env("PLATFORM_OIDC_ISSUER", "AUTHELIA_ISSUER_URL"),
        description="Address of the identity provider, exactly as in its discovery document.",
    )
    internal_url: str | None = Field(
        None,
        validation_alias=env("PLATFORM_OIDC_INTERNAL_URL", "AUTHELIA_INTERNAL_URL"),
        description="Address at which this server reaches the provider, if not the issuer's.",
    )
    client_id: str | None = Field(
        None, description="ID of the client registered with the provider for this platform."
    )
    client_secret: SecretStr | None = Field(
        None, description="Secret of the client; leave it unset for a public client, which uses PKCE only."
    )
    redirect_uri: str | None = Field(
        None, description=f"Public address of this platform's {CALLBACK}, as registered with the provider."
    )
    post_logout_redirect_uri: str | None = Field(
        None,
        description="Address the provider sends the browser to after sign-out, as registered with "
        "the provider.",
    )
    label: str = Field("Single sign-on", max_length=100, description="Text of the button on sign-in pages.")
    scope: str = Field(
        "openid profile email groups",
        description="Scopes to request, separated by spaces; openid is required.",
    )
    groups_claim: str = Field(
        "groups",
        description="Claim that holds the groups, a text or a list; may be a path: realm_access.roles.",
    )
    groups_hours: float = Field(
        24,
        gt=0,
        le=8760,
        description="For so many hours after a sign-in, the groups that the provider named then count for "
        "the permissions of sources; afterwards, none until the next sign-in.",
    )
    admin_groups: str = Field(
        "admins", description="Groups whose members become instance administrators, separated by commas."
    )
    algorithms: str = Field(
        "RS256,PS256,ES256", description=f"Accepted signatures of tokens, out of {', '.join(_ALGORITHMS)}."
    )
    require_at_hash: bool = Field(
        False,
        description="Whether to refuse ID tokens without at_hash. If present, at_hash is always checked.",
    )
    trust_unverified_email: bool = Field(
        False, description="Whether to accept an e-mail address that the provider has not verified."
    )
    timeout: float = Field(10, gt=0, le=60, description="Time limit in seconds for one call to the provider.")
    cache_seconds: float = Field(
        3600, ge=0, le=86_400, description="Seconds to cache the provider's discovery document and keys."
    )
    leeway_seconds: int = Field(
        60, ge=0, le=300, description="Clock difference in seconds to tolerate in exp and iat."
    )
    allow_insecure: bool = Field(
        False,
        description="For trials on one machine only: allows http://, IP addresses and cookies "
        "without Secure.",
    )

    @field_validator("issuer", "internal_url", "redirect_uri", "post_logout_redirect_uri")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        parts = urlsplit(value or "https://host")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise ValueError("expected https://host[:port][/path]")
        if parts.fragment or parts.query:
            raise ValueError("must have no query and no fragment")
        return value

    @field_validator("client_id", "redirect_uri")
    @classmethod
    def _complete(cls, value: str | None, info: ValidationInfo) -> str | None:
        if info.data.get("issuer") and not value:
            raise ValueError("is required when the issuer is set")
        return value

    @field_validator("redirect_uri")
    @classmethod
    def _callback(cls, value: str | None) -> str | None:
        if value and not urlsplit(value).path.endswith(CALLBACK):
            raise ValueError(f"must end in {CALLBACK}")
        return value

    @field_validator("scope")
    @classmethod
    def _openid(cls, value: str) -> str:
        if "openid" not in value.split():
            raise ValueError("must contain openid")
        return value

    @field_validator("algorithms")
    @classmethod
    def _asymmetric(cls, value: str) -> str:
        listed = [item.strip() for item in value.split(",") if item.strip()]
        if not listed or not set(listed) <= set(_ALGORITHMS):
            raise ValueError(f"must be a comma-separated list of {', '.join(_ALGORITHMS)}")
        return ",".join(listed)

    @property
    def hidden_because(self) -> str | None:
        """Why single sign-on is not offered; None if it is (spec 5.5 rule 4)."""
        if not self.issuer or not self.redirect_uri or not self.client_id:
            return "it is not configured"
        if self.allow_insecure:
            return None
        if not self.issuer.startswith("https://"):
            return "PLATFORM_OIDC_ISSUER is not an https:// address"
        if not _is_public(self.redirect_uri):
            return (
                "PLATFORM_OIDC_REDIRECT_URI needs https:// and a host name, not localhost or a bare address"
            )
        return None

    @property
    def login_url(self) -> str:
        """Where a browser begins: next to the callback, on the same host, so that its cookies are sent."""
        return (self.redirect_uri or CALLBACK).removesuffix(CALLBACK) + LOGIN

    @property
    def admins(self) -> frozenset[str]:
        """The groups of `admin_groups`."""
        return frozenset(item.strip() for item in self.admin_groups.split(",") if item.strip())


def _is_public(url: str) -> bool:
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return parts.scheme == "https" and host != "localhost"
    return False
