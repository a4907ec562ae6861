"""Errors of the plugin."""

from __future__ import annotations

from kernel.sdk import Conflict, NotFound


class TokenNotFound(NotFound):
    """No such token, or somebody else's."""

    code = "token_not_found"
    default_detail = "Access token not found"


class TokenKeyUsed(Conflict):
    """The key belongs to a token with another name, end or scopes."""

    code = "idempotency_key_used"
    default_detail = (
        "You have already used this idempotency_key for a token with another name, expiry or scopes; use a "
        "new key for another token"
    )


class TooManyTokens(Conflict):
    """The account has reached its limit of tokens."""

    code = "too_many_tokens"
