"""Turns the provider's data about somebody into what the kernel needs: name, address, role."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from builtin_plugins.accounts.api import ExternalIdentity
from builtin_plugins.oidc.services.groups import StatedGroups
from builtin_plugins.oidc.settings import OidcSettings

_EMAIL: Final = re.compile(r"[^\s@<>\"]{1,64}@[^\s@<>\"]{1,189}")


def identity_of(
    settings: OidcSettings,
    id_claims: Mapping[str, Any],
    userinfo: Mapping[str, Any] | None,
    groups: StatedGroups,
) -> ExternalIdentity:
    """The identity: userinfo first, the ID token second (wire-facts 3.3).

    `userinfo` is None if the provider could not be reached. Unknown groups take no role away.
    """
    claims = {**id_claims, **(userinfo or {})}
    return ExternalIdentity(
        issuer=id_claims["iss"],
        subject=id_claims["sub"],
        username=_text(claims.get("preferred_username")),
        email=_email(settings, claims),
        is_email_verified=_is_verified(settings, claims),
        role=_role(settings, groups),
    )


def _text(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _email(settings: OidcSettings, claims: Mapping[str, Any]) -> str | None:
    """The address, unless the provider itself calls it unverified: invitations are sent to addresses."""
    email = _text(claims.get("email"))
    if claims.get("email_verified") in (False, "false") and not settings.trust_unverified_email:
        return None
    return email if email and email.isprintable() and _EMAIL.fullmatch(email) else None


def _is_verified(settings: OidcSettings, claims: Mapping[str, Any]) -> bool:
    """Whether the provider says that the address is proven; silence is no proof."""
    return settings.trust_unverified_email or claims.get("email_verified") in (True, "true")


def _role(settings: OidcSettings, groups: StatedGroups) -> Literal["user", "admin"] | None:
    if groups.problem is not None:
        return None
    return "admin" if groups.names & settings.admins else "user"
