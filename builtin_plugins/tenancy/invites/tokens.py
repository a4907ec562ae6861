"""Tokens of invites. Only their hashes are stored.

A token is random, unless the request has an idempotency key: then it is derived from the key, so that the
same request sent again finds its invite and can show the token, although it isn't stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from builtin_plugins.tenancy.invites.offers import Offer
from kernel.sdk import Caller, Platform, ResourceKey

MakeToken = Callable[[str], str]

INVITE_SECRET: ResourceKey[bytes] = ResourceKey("tenancy.invite_secret")


@asynccontextmanager
async def open_secret(platform: Platform) -> AsyncIterator[bytes]:
    """The resource `INVITE_SECRET`, made at the start: operators then copy the secrets to other machines."""
    yield (await asyncio.to_thread(platform.secrets.ensure, "invite-tokens")).encode()


def token_hash(token: str) -> str:
    """What is stored of a token. It has 256 random bits, so a plain hash can't be reversed by guessing."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def tokens_for(caller: Caller, offer: Offer, key: str | None) -> MakeToken:
    """A function that makes the token for an address: with a key, the same one each time."""
    if key is None:
        return lambda _email: secrets.token_urlsafe(32)
    secret = caller.platform.resource(INVITE_SECRET)
    request = [caller.principal.subject, offer.team_id, offer.organization_id, key]

    def make(email: str) -> str:
        text = json.dumps([*request, email.casefold()])
        return urlsafe_b64encode(hmac.digest(secret, text.encode(), "sha256")).decode().rstrip("=")

    return make
