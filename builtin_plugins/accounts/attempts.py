"""How often a password may be guessed: slows down guessing at each account without locking anybody out.

What counts is the pair of account name and client address (an IPv6 client is its /64 network). An address
that has never signed in to the account gets `_CALM` tries in 15 minutes, or `_WARY` while such addresses
together send more than `_ATTACK` tries for the name. An address always gets its own first tries, whatever
others do, so the owner with the right password gets in from anywhere. An address that has signed in to the
account (remembered for at most 30 days, in the cache store) is never counted, so nobody behind the owner's
own router can lock the owner out either. Guessing from one address is bounded by the limit of 10 a minute,
from many by three tries each.

Names are counted as written, known or not: counting by account would reveal that a name and an e-mail address
belong together. The attempt is counted before the password is checked, so that simultaneous attempts count
too, and an unknown name costs the same calls.
"""

from __future__ import annotations

import hashlib

from kernel.sdk import ResourceKey, TooManyRequests
from kernel.sdk.http import RateLimits, network_of

_WINDOW = 15 * 60
_CALM, _WARY, _ATTACK = 10, 3, 100
_KNOWN_FOR = 30 * 86_400


class Attempts:
    """Password attempts, counted in the cache store."""

    def __init__(self, limits: RateLimits) -> None:
        self._limits = limits

    async def admit(self, name: str, address: str) -> None:
        """Count a try. Raises TooManyRequests when this address has tried this name too often."""
        who, place = _digest(name.casefold()), _digest(network_of(address))
        if await self._limits.current_count(f"sign-in:known:{who}:{place}", _KNOWN_FOR):
            return
        attacked = await self._limits.exceeds(f"sign-in:all:{who}", _ATTACK, _WINDOW)
        if await self._limits.exceeds(f"sign-in:{who}:{place}", _WARY if attacked else _CALM, _WINDOW):
            raise TooManyRequests(
                "Too many attempts for this account from your address; try again in 15 minutes",
                headers={"Retry-After": str(_WINDOW)},
            )

    async def succeeded(self, name: str, address: str) -> None:
        """Remember that this address has signed in to the account."""
        who, place = _digest(name.casefold()), _digest(network_of(address))
        await self._limits.exceeds(f"sign-in:known:{who}:{place}", 0, _KNOWN_FOR)


ATTEMPTS: ResourceKey[Attempts] = ResourceKey("attempts")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=12).hexdigest()
