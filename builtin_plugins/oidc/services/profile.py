"""Turns the provider's data about somebody into what the kernel needs: name, address, role."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from builtin_plugins.accounts.api import ExternalIdentity
from builtin_plugins.oidc.settings import OidcSettings

log = logging.getLogger("platform.oidc")

_EMAIL: Final = re.compile(r"[^\s@<>\"]{1,64}@[^\s@<>\"]{1,189}")


def identity_of(
    settings: OidcSettings, id_claims: Mapping[str, Any], userinfo: Mapping[str, Any] | None
) -> ExternalIdentity:
    """The identity: userinfo first, the ID token second (wire-facts 3.3).

    `userinfo` is None if the provider could not be reached: missing claims are then unknown, and take no role
    away.
    """
    claims = {**id_claims, **(userinfo or {})}
    return ExternalIdentity(
        issuer=id_claims["iss"],
        subject=id_claims["sub"],
        username=_text(claims.get("preferred_username")),
        email=_email(settings, claims),
        is_email_verified=_is_verified(settings, claims),
        role=_role(settings, claims, unknown=userinfo is None),
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


def _role(
    settings: OidcSettings, claims: Mapping[str, Any], *, unknown: bool
) -> Literal["user", "admin"] | None:
    groups = _claim(claims, settings.groups_claim)
    if groups is None and _is_elsewhere(claims, settings.groups_claim):
        log.warning(
            "the provider did not send the claim '%s', which is too long or kept elsewhere: the role stays; "
            "let the provider send only the groups that are assigned to this application",
            settings.groups_claim,
        )
        return None
    if groups is None:
        return None if unknown else "user"
    listed = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
    return "admin" if any(isinstance(g, str) and g in settings.admins for g in listed) else "user"


def _is_elsewhere(claims: Mapping[str, Any], path: str) -> bool:
    """Whether the provider says that the claim exists but does not send it: as a distributed claim (OpenID
    Connect Core, section 5.6.2), or by Entra's `hasgroups`.
    """
    names = claims.get("_claim_names")
    is_distributed = isinstance(names, Mapping) and bool({path, path.partition(".")[0]} & names.keys())
    return is_distributed or claims.get("hasgroups") in (True, "true")


def _claim(claims: Mapping[str, Any], path: str) -> Any:
    """The claim with exactly this name, else at this path: names may contain dots (a URL does)."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
