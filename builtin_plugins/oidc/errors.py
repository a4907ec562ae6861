"""Errors of a sign-in through the provider (wire-facts 3.3). The login page shows their texts."""

from __future__ import annotations

from kernel.sdk import BadGateway, BadRequest, NotFound, Unauthorized


class NotOffered(NotFound):
    code = "sso_not_configured"
    default_detail = "Single sign-on is not set up on this server; sign in with username and password"


class RefusedByProvider(BadRequest):
    code = "sso_refused"
    default_detail = "The identity provider refused the sign-in"


class BadCallback(BadRequest):
    code = "sso_bad_callback"
    default_detail = "This sign-in was not started in this browser, or it took too long; start again"


class BadIdToken(Unauthorized):
    code = "sso_bad_id_token"
    default_detail = "The identity provider's response could not be verified"


class ProviderFault(BadGateway):
    code = "sso_provider_fault"
    default_detail = "The identity provider is not responding correctly; try again later"


class UnknownKey(ProviderFault):
    code = "sso_unknown_key"
    default_detail = "The identity provider used a signing key that it does not publish"


class BadLogoutToken(BadRequest):
    code = "sso_bad_logout_token"
    default_detail = "The logout token was refused"
