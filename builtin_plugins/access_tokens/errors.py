"""Errors of the plugin."""

from __future__ import annotations

from kernel.sdk import Conflict, NotFound


class TokenNotFound(NotFound):
    """No such token, or somebody else's."""

    code = "token_not_found"
    default_detail = "Access token not found"


class TooManyTokens(Conflict):
    """The account has reached its limit of tokens."""

    code = "too_many_tokens"
